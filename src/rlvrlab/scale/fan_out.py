"""An evaluation spread over Ray: every worker answers and judges with the same code, one process keeps the results.

    with RayAnswerer(build, request, address="local") as answerer:
        evaluate_into(folder, answerer, env, problems, protocol)

`build(request)` is a context manager that gives a worker its own policy and environment. Answers are keyed, so that who
gives them does not matter: the folder holds what one process would have written, and either can go on with the other's.
A worker that dies is replaced and its open questions are asked again; answers come back as they are ready, so a kill of
the driver loses none that a worker had handed over.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.evals.answering import Answerer, Ask, Ready, failed
from rlvrlab.scale.code_version import ONE_CODE, code_version
from rlvrlab.scale.examiner import Examiner, Told, raise_told
from rlvrlab.types import Environment

Build = Callable[[dict[str, Any]], AbstractContextManager[tuple[Answerer, Environment]]]
LARGEST_SHARD = 256
SHARDS_EACH = 4
"""Per worker at least, so that a slow one does not keep the others waiting."""
ATTEMPTS = 3
"""Workers that may die over one question; then it stays unjudged."""
START_S = 300.0
START_HINT = "look at `ray status`, or ask for fewer --ray-workers"
STORE_BYTES = 256 << 20


class RayAnswerer:
    """Workers behind the one interface that an evaluation knows. Use as a context."""

    def __init__(
        self, build: Build, request: dict[str, Any], address: str = "local", workers: int | None = None, *,
        gpus: bool = False, pass_on: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """`address`: local starts Ray here, auto or HOST:PORT joins a cluster. `pass_on`: variables workers need.

        `gpus` gives every worker one, where the cluster has any.
        """
        self._build, self._request, self._address, self._wanted = build, request, address, workers
        self._gpus = gpus
        self._variables = {name: os.environ[name] for name in pass_on if name in os.environ}
        self._workers: list[Any] = []
        self._deaths: Counter[tuple[str, int, int]] = Counter()
        self.replaced = 0
        """Workers that died and were replaced."""

    def __enter__(self) -> RayAnswerer:
        self._ray = connected(self._address, self._wanted)
        try:
            there = self._ray.cluster_resources()
            with_gpu = self._gpus and int(there.get("GPU", 0)) > 0
            kind, room = ("GPUs", int(there["GPU"])) if with_gpu else ("CPUs", int(there.get("CPU", 1)))
            count = self._wanted or room
            if count > room:
                raise UserError(f"--ray-workers {count}: the cluster has {room} {kind}; ask for at most so many")
            self._options = {"num_cpus": 1, "num_gpus": 1} if with_gpu else {"num_cpus": 1}
            self._workers = [self._new_worker() for _ in range(count)]
            self._identity = self._first_words()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; a cluster that was joined stays."""
        for worker in self._workers:
            self._ray.kill(worker)
        self._workers.clear()
        self._ray.shutdown()

    def identity(self) -> dict[str, Any]:
        """Who answers, as a worker says it: the same words as without Ray."""
        return self._identity

    def _new_worker(self) -> Any:
        remote = self._ray.remote(Examiner).options(**self._options, max_restarts=0)
        return remote.remote(self._build, self._request, self._variables, str(Path.cwd()))

    def _first_words(self) -> dict[str, Any]:
        """All must be of one version and examine the same policy."""
        asked = [worker.introduce.remote() for worker in self._workers]
        try:
            told: list[Told] = self._ray.get(asked, timeout=START_S)
        except self._ray.exceptions.GetTimeoutError:
            raise InfrastructureError(f"Ray: the workers did not start within {START_S:g} s; {START_HINT}") from None
        except self._ray.exceptions.RayError as error:
            raise InfrastructureError(f"Ray: a worker could not start ({_words(error)}); {START_HINT}") from None
        for one in told:
            raise_told(one)
        versions = sorted({str(one["version"]) for one in told} - {code_version()})
        if versions:
            raise UserError(f"Ray workers run rlvrlab {' and '.join(versions)}; {ONE_CODE.format(code_version())}")
        policies = [{k: v for k, v in one["identity"].items() if k != "servers"} for one in told]
        if any(policy != policies[0] for policy in policies):
            raise UserError(f"Ray workers would examine different policies: {policies[0]} and others; one is allowed")
        return told[0]["identity"]

    def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        """Lists of answers as the workers hand them over, already judged."""
        waiting = list(asks)
        size = min(LARGEST_SHARD, max(1, math.ceil(len(waiting) / (SHARDS_EACH * len(self._workers)))))
        shards = [waiting[i : i + size] for i in range(0, len(waiting), size)][::-1]
        running: dict[Any, tuple[int, list[Ask]]] = {}
        idle = list(range(len(self._workers)))
        try:
            while shards or running:
                while shards and idle:
                    index, shard = idle.pop(), shards.pop()
                    stream = self._workers[index].answer.options(num_returns="streaming").remote(shard)
                    running[stream] = (index, shard)
                stream = self._ray.wait(list(running), num_returns=1)[0][0]
                index, shard = running[stream]
                ready, over = self._taken(stream, shard)
                if over:
                    del running[stream]
                    idle.append(index)
                    if shard:
                        again, lost = self._after_death(index, shard)
                        shards += again
                        ready += lost
                if ready:
                    yield ready
        finally:
            for stream in running:
                self._ray.cancel(stream)

    def _taken(self, stream: Any, shard: list[Ask]) -> tuple[Ready, bool]:
        """What a worker has ready, taken off its shard, and whether it is through, or dead."""
        try:
            told: Told = self._ray.get(next(stream))
        except StopIteration:
            return [], True
        except self._ray.exceptions.RayTaskError as error:
            raise InfrastructureError(
                f"Ray: a worker failed ({_words(error)}); what was judged is kept, so resume"
            ) from None
        except self._ray.exceptions.RayError:
            return [], True
        raise_told(told)
        ready: Ready = told["ready"]
        done = {ask.name for ask, _ in ready}
        shard[:] = [ask for ask in shard if ask.name not in done]
        return ready, False

    def _after_death(self, index: int, shard: list[Ask]) -> tuple[list[list[Ask]], Ready]:
        """Replace a dead worker; its shard is asked again in halves, a single question at most ATTEMPTS times."""
        self.replaced += 1
        self._ray.kill(self._workers[index])
        self._workers[index] = self._new_worker()
        if len(shard) > 1:
            middle = len(shard) // 2
            return [shard[:middle], shard[middle:]], []
        (ask,) = shard
        key = ask.name
        self._deaths[key] += 1
        if self._deaths[key] < ATTEMPTS:
            return [shard], []
        return [], [(ask, failed(f"{ATTEMPTS} Ray workers died over it"))]


def connected(address: str, workers: int | None) -> Any:
    """Ray, with a cluster: `local` starts one on this machine, anything else joins the one at that address."""
    try:
        import ray
    except ImportError:
        raise UserError("--ray needs Ray: pip install 'rlvrlab[ray]'") from None
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address == "local":
            own = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": STORE_BYTES}
            ray.init(address="local", **own, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        remedy = "start one with `ray start --head` (with a token: set RAY_AUTH_MODE=token), or take --ray local"
        raise UserError(f"--ray {address}: no cluster answers ({_words(error)}); {remedy}") from None
    return ray


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
