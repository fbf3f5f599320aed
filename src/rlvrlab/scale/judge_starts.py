"""Where the servers of a judge fleet run: processes of this machine, or actors on the nodes of a Ray cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rlvrlab import fate
from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.fusion.server import TOKEN_ENV

START_S = 120.0
"""For a Ray cluster to find a place for a server and start it."""


class JudgeProcess:
    """`rlvr serve judge` on this machine; it ends with the process that started it, however that ends."""

    def __init__(self, words: Sequence[str], token: str) -> None:
        command = fate.command([sys.executable, "-m", "rlvrlab", "serve", "judge", "--port", "0", "--json", *words])
        # A session of its own: Ctrl-C reaches the fleet alone, which lets its servers finish what they are at.
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, env={**os.environ, TOKEN_ENV: token}, start_new_session=True
        )

    def announced(self) -> dict[str, Any]:
        """Its first line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise InfrastructureError(f"a judge server ended with {self._process.wait()} before it listened")
        return json.loads(line)

    def ended(self) -> bool:
        """Is it gone?"""
        return self._process.poll() is not None

    def stop(self) -> None:
        """SIGTERM: it finishes what runs."""
        self._process.terminate()


class JudgeActor(JudgeProcess):
    """Lives in a Ray worker: a judge server on that node, reached under the node's address."""

    def __init__(self, words: Sequence[str], token: str) -> None:
        import ray

        super().__init__([*words, "--host", ray.util.get_node_ip_address()], token)


class RayJudge:
    """The fleet's side of a JudgeActor."""

    def __init__(self, ray: Any, words: Sequence[str], token: str, cpus: int) -> None:
        self._ray = ray
        self._actor = ray.remote(JudgeActor).options(num_cpus=cpus, max_restarts=0).remote(list(words), token)

    def announced(self) -> dict[str, Any]:
        """Its first line; where the cluster has no room for it, none comes."""
        try:
            return self._ray.get(self._actor.announced.remote(), timeout=START_S)
        except self._ray.exceptions.RayError as error:
            raise InfrastructureError(f"Ray started no judge server within {START_S:g} s ({error})") from None

    def ended(self) -> bool:
        """Is the server gone, its actor or its node?"""
        try:
            return bool(self._ray.get(self._actor.ended.remote(), timeout=START_S))
        except self._ray.exceptions.RayError:
            return True

    def stop(self) -> None:
        """The server ends with its actor; whoever waits for an answer of it asks another one."""
        self._ray.kill(self._actor)


def starter(words: Sequence[str], token: str, cpus: int, ray: Any = None) -> Callable[[], JudgeProcess | RayJudge]:
    """Starts a server each time it is called: here, or where Ray has `cpus` free."""
    if ray is None:
        return lambda: JudgeProcess(words, token)
    return lambda: RayJudge(ray, words, token, cpus)
