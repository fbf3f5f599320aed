"""Trials as Ray tasks: on a cluster that is there (`--address`), or on one started here for the study.

Every machine of the cluster must have rlvrlab and see the study folder under the same path. A task whose worker dies is
run again by Ray; the trial then resumes from its last checkpoint.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rlvrlab.errors import InfrastructureError, UserError, one_line
from rlvrlab.study.launchers.base import Job, Outcome, run_worker
from rlvrlab.study.schema import Resources

PROBE_S = 3.0
"""Ray itself tries for minutes before it says that a cluster is not there, and ends this process when it goes away."""


@dataclass
class Ray:
    """resources.processes tasks at a time, each with its CPUs and GPUs."""

    resources: Resources
    name: str = "ray"
    _running: dict[Any, Job] = field(default_factory=dict)

    def __post_init__(self) -> None:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of its own future default
        try:
            import ray
        except ImportError:
            raise UserError("--launcher ray needs Ray; install it with: pip install 'rlvrlab[ray]'") from None
        self._ray = ray
        address = self.resources.address
        if address and "://" not in address and ":" in address and not _reachable(address):
            raise InfrastructureError(f"ray: nothing listens at {address}; check --address, or leave it out")
        here: dict[str, Any] = {} if address else {"num_cpus": self.resources.processes * self.resources.cpus}
        try:
            ray.init(address=address or "local", include_dashboard=None if address else False, log_to_driver=False,
                     logging_level="error", **here)  # fmt: skip
        except Exception as error:  # Ray has many ways of not being there
            raise InfrastructureError(
                f"ray: no cluster at {address or 'here'} ({one_line(error)}); check --address and how Ray "
                "authenticates there (RAY_AUTH_MODE), or leave the address out"
            ) from None
        self._gcs, self._probed = str(ray.get_runtime_context().gcs_address), time.monotonic()
        task = ray.remote(run_worker)
        self._task = task.options(
            num_cpus=self.resources.cpus, num_gpus=self.resources.gpus, max_retries=self.resources.retries
        )

    @property
    def free(self) -> bool:
        """Ray queues what does not fit; we hold no more than asked for."""
        return len(self._running) < self.resources.processes

    def start(self, job: Job) -> None:
        """Submit it as a task, which Ray repeats by itself when its worker dies."""
        try:
            reference = self._task.remote(str(job.folder), self.resources.model_dump_json())
        except Exception as error:
            raise _gone(error) from None
        self._running[reference] = job

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Tasks that ended; an InfrastructureError when the cluster went away."""
        if not self._running:
            return []
        try:
            if time.monotonic() - self._probed > PROBE_S:
                self._probed = time.monotonic()
                if not self._ray.is_initialized() or not _reachable(self._gcs):
                    raise ConnectionError(f"nothing listens at {self._gcs} any more")
            done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        except Exception as error:
            raise _gone(error) from None
        return [self._outcome(reference) for reference in done]

    def close(self) -> None:
        """Cancel what runs (the trial's process is asked to stop), and leave the cluster."""
        if not _reachable(self._gcs):
            self._running.clear()
            return
        with suppress(Exception):  # a cluster that is gone cannot be left in order
            for reference in self._running:
                self._ray.cancel(reference)
            until = time.monotonic() + 10
            while self._running and time.monotonic() < until:
                done, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0.5)
                for reference in done:
                    self._running.pop(reference)
            self._ray.shutdown()
        self._running.clear()

    def _outcome(self, reference: Any) -> Outcome:
        job = self._running.pop(reference)
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.WorkerCrashedError as error:
            return Outcome(
                job.trial, "killed", f"its Ray worker died more often than resources.retries: {one_line(error)}"
            )
        except self._ray.exceptions.OutOfMemoryError as error:
            return Outcome(job.trial, "oom", one_line(error))
        except self._ray.exceptions.RayTaskError as error:
            return Outcome(job.trial, "failed", one_line(error))
        except Exception as error:
            self._running[reference] = job
            raise _gone(error) from None


def _reachable(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), PROBE_S):
            return True
    except (OSError, ValueError):
        return False


def _gone(error: BaseException) -> InfrastructureError:
    remedy = "finished trials are kept; start the cluster and run the study again"
    return InfrastructureError(f"ray: the cluster went away ({one_line(error)}); {remedy}")
