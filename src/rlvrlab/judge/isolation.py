"""What this machine can hold foreign code with, and what is missing. `rlvr doctor` prints it; the judge obeys it."""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from rlvrlab.errors import UserError
from rlvrlab.judge.jail import kernel, landlock

LEVELS = ("landlock", "bwrap", "weak")
RECOMMENDED_LANDLOCK = 6


@dataclass(frozen=True, slots=True)
class Isolation:
    """The means of isolation this machine offers."""

    landlock_version: int
    """0: none; 3 and up governs truncation, 6 and up signals as well."""
    seccomp: bool
    """Is the filter known for this processor and the kernel willing?"""
    bwrap: str | None
    """Path of bubblewrap; None where it is not installed."""
    linux: bool

    @property
    def best(self) -> str:
        """The strongest level for code without processes of its own."""
        return "landlock" if self.linux and self.landlock_version and self.seccomp else "weak"

    @property
    def remarks(self) -> list[str]:
        """What is missing, and what to do about it."""
        found = []
        if not self.linux:
            found.append(f"{platform.system()}: no jail here; judge in a Linux container or VM, or use a remote judge")
        elif not self.landlock_version:
            found.append("no Landlock: needs Linux 5.13 or later with landlock in lsm=; gVisor has none")
        elif self.landlock_version < RECOMMENDED_LANDLOCK:
            found.append(
                f"Landlock {self.landlock_version}: {RECOMMENDED_LANDLOCK} or later also scopes signals (Linux 6.12)"
            )
        if self.linux and not self.seccomp:
            found.append(f"no system call filter for {platform.machine()}: only x86_64 and aarch64 are known")
        if self.bwrap is None:
            found.append("no bubblewrap (bwrap): programs that start processes cannot be judged")
        return found


def probe() -> Isolation:
    """Ask the kernel for Landlock and seccomp, and the path for bubblewrap."""
    linux = platform.system() == "Linux"
    return Isolation(
        landlock_version=landlock.version() if linux else 0,
        seccomp=linux and kernel.MACHINE in kernel.AUDIT_ARCH and Path("/proc/sys/kernel/seccomp").exists(),
        bwrap=shutil.which("bwrap"),
        linux=linux,
    )


def chosen_level(wanted: str | None, allow_weak: bool) -> str:
    """The level to judge with; weak only when explicitly allowed."""
    found = probe()
    level = wanted or found.best
    if level not in LEVELS:
        raise UserError(f"unknown isolation {level!r}; allowed: {', '.join(LEVELS)}")
    if level == "landlock" and found.best == "weak":
        raise UserError(f"this machine cannot isolate code: {'; '.join(found.remarks)}")
    if level == "bwrap" and found.bwrap is None:
        raise UserError("isolation 'bwrap' needs bubblewrap: apt install bubblewrap")
    if level == "weak" and not allow_weak:
        raise UserError(f"refusing weak isolation ({'; '.join(found.remarks)}); allow it with allow_weak = true")
    return level
