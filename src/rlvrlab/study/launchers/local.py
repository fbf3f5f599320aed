"""Trials as child processes of this one, a bounded number at a time, each with its share of cores and GPUs."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from dataclasses import dataclass, field

from rlvrlab import fate
from rlvrlab.errors import InfrastructureError
from rlvrlab.study.launchers.base import GRACE_S, Job, Outcome, outcome_of, timed_out, worker_command, worker_env
from rlvrlab.study.schema import Resources
from rlvrlab.study.worker import PARENT

TICK_S = 0.05
"""Between two looks, where the kernel cannot tell us of a child's end (no pidfd)."""


@dataclass
class _Running:
    job: Job
    child: subprocess.Popen[bytes]
    until: float | None
    gpus: list[int]
    watch: int | None
    """File descriptor that becomes readable when the child ends."""
    too_late: bool = False
    """Its time is up: it was asked to end, and is ended when it does not."""


@dataclass
class Local:
    """Runs up to resources.processes children at once."""

    resources: Resources
    name: str = "local"
    _running: dict[str, _Running] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._gpus = list(self.resources.gpu_ids)

    @property
    def free(self) -> bool:
        """True while one more process may run and the GPUs it needs are left."""
        return len(self._running) < self.resources.processes and len(self._gpus) >= self.resources.gpus

    def start(self, job: Job) -> None:
        """A child that dies with us; its words go to log.txt."""
        gpus, self._gpus = self._gpus[: self.resources.gpus], self._gpus[self.resources.gpus :]
        env = worker_env(self.resources, gpus if self.resources.gpu_ids else None) | {PARENT: str(os.getpid())}
        with (job.folder / "log.txt").open("ab") as log:
            try:
                child = subprocess.Popen(worker_command(job.folder), stdout=log, stderr=log, env=env)  # noqa: S603
            except OSError as error:
                raise InfrastructureError(f"no process for trial {job.trial} ({error.strerror}); run again") from None
        limit = self.resources.time_limit_s
        until = None if limit is None else time.monotonic() + limit
        watch = os.pidfd_open(child.pid) if hasattr(os, "pidfd_open") else None
        self._running[job.trial] = _Running(job, child, until, gpus, watch)

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Children that ended, and those whose time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            outcomes = []
            for one in [one for one in self._running.values() if one.child.poll() is not None]:
                self._forget(one)
                code = one.child.returncode
                outcomes.append(timed_out(one.job, self.resources) if one.too_late else outcome_of(one.job, code))
            now = time.monotonic()
            if outcomes or now >= deadline or not self._running:
                return outcomes
            for one in self._running.values():
                if one.until is not None and now >= one.until:
                    (one.child.kill if one.too_late else one.child.terminate)()
                    one.too_late, one.until = True, now + GRACE_S
            left = max(0.0, min([deadline, *(one.until for one in self._running.values() if one.until)]) - now)
            watched = [one.watch for one in self._running.values() if one.watch is not None]
            if len(watched) < len(self._running):
                time.sleep(min(TICK_S, left))
                continue
            with selectors.DefaultSelector() as selector:  # so long, or until a child ends
                for descriptor in watched:
                    selector.register(descriptor, selectors.EVENT_READ)
                selector.select(left)

    def close(self) -> None:
        """Ask all children at once to end, then end those that have not."""
        fate.end([one.child for one in self._running.values()], GRACE_S, group=False)
        for one in list(self._running.values()):
            self._forget(one)

    def _forget(self, one: _Running) -> None:
        if one.watch is not None:
            os.close(one.watch)
        self._gpus += one.gpus
        del self._running[one.job.trial]
