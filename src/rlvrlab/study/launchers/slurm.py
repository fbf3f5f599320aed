"""Trials as Slurm jobs through submitit. Time limit, CPUs and GPUs are asked for; resources.slurm adds the rest.

    [resources]
    launcher = "slurm"
    time_limit_s = 14400
    slurm = { slurm_partition = "gpu", slurm_mem = "64GB" }

`cluster = "local"` runs the same jobs as processes here, `cluster = "debug"` inside this process: for trying it out.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from rlvrlab.errors import InfrastructureError, UserError, one_line
from rlvrlab.study.launchers.base import GRACE_S, Job, Outcome, run_worker
from rlvrlab.study.schema import Resources

TICK_S = {"slurm": 2.0, "local": 0.1, "debug": 0.0}
"""Between two looks: asking Slurm is not free."""


@dataclass
class Slurm:
    """Keeps up to resources.processes jobs queued or running."""

    resources: Resources
    name: str = "slurm"
    _running: dict[str, tuple[Job, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            import submitit
        except ImportError:
            raise UserError("--launcher slurm needs submitit; install it with: pip install 'rlvrlab[slurm]'") from None
        self._submitit = submitit

    @property
    def free(self) -> bool:
        """Slurm queues; we hold no more than asked for."""
        return len(self._running) < self.resources.processes

    def start(self, job: Job) -> None:
        """Submit it; its logs go to the trial's folder."""
        resources = self.resources
        try:
            executor = self._submitit.AutoExecutor(folder=job.folder / "slurm", cluster=resources.cluster)
            limit = resources.time_limit_s
            asked: dict[str, Any] = {"name": job.trial, "cpus_per_task": resources.cpus}
            if limit is not None:  # the worker's own limit comes first, so that it can stop in order
                asked["timeout_min"] = math.ceil((limit + 6 * GRACE_S) / 60)
            if resources.gpus:
                asked["gpus_per_node"] = resources.gpus
            executor.update_parameters(**asked, **resources.slurm)
            submitted = executor.submit(run_worker, str(job.folder), resources.model_dump_json())
        except Exception as error:  # sbatch missing, a parameter it does not know, a partition that is not there
            raise InfrastructureError(
                f"slurm: {job.trial} could not be submitted ({one_line(error)}); check resources.slurm"
            ) from None
        self._running[job.trial] = (job, submitted)

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Jobs that ended; one that vanished (cancelled, preempted, node failure) counts as killed."""
        until = time.monotonic() + max(timeout_s, TICK_S[self.resources.cluster])
        while not (done := [name for name, (_, submitted) in self._running.items() if submitted.done()]):
            if not self._running or time.monotonic() >= until:
                return []
            time.sleep(TICK_S[self.resources.cluster])
        outcomes = []
        for name in done:
            job, submitted = self._running.pop(name)
            try:
                outcomes.append(submitted.result())
            except Exception as error:
                why = f"its job {submitted.job_id} died: {one_line(error)}"
                outcomes.append(Outcome(job.trial, "killed", why))
        return outcomes

    def close(self) -> None:
        """Cancel the jobs that are queued or running."""
        for _, submitted in self._running.values():
            submitted.cancel(check=False)
        self._running.clear()
