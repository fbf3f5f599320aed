"""What a reader needs to know about the machine and the code behind a run."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import rlvrlab


@cache
def package_versions() -> dict[str, str]:
    """Versions of the installed packages that can change a result."""
    versions = {"rlvrlab": rlvrlab.__version__}
    for name in ("numpy", "pydantic", "torch", "transformers", "peft", "trl", "verl", "vllm", "ray"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def machine() -> dict[str, Any]:
    """Cores, memory, system, and the GPU where the engine found one."""
    memory, info = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    facts: dict[str, Any] = {
        "system": f"{platform.system()} {platform.release()}",
        "processor": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(memory, 1),
        "python": sys.version.split()[0],
    }
    torch = sys.modules.get("torch")  # where the engine has brought it along: importing it here would cost seconds
    if torch is not None and torch.cuda.is_available():
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        facts |= {"gpus": names, "cuda": torch.version.cuda}
    return facts


@cache
def code_state() -> dict[str, Any]:
    """Commit and cleanliness of the source tree, where there is one, when this process first asked."""
    folder = Path(rlvrlab.__file__).parent
    commit = _git(folder, "rev-parse", "HEAD")
    return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain", "-uno"))} if commit else {}


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5)  # noqa: S603, S607
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
