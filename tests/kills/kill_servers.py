"""Work that asks a server: here it is the server that is killed, and started again at the same address."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import runs
from kill_works import told_of_a_run, told_of_an_evaluation

from rlvrlab.cli import main
from rlvrlab.engines.openai import Servers
from rlvrlab.envs.countdown import Countdown
from rlvrlab.evals.answering import ServerAnswerer
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import eval_at_k
from rlvrlab.judge.fusion.addresses import ADDRESSES
from rlvrlab.train import session

CODE = """
name = "tiny"
phases = ["sft", "grpo"]
env = {type = "minicode", levels = [1, 2]}
data = {train_size = 24, dev_size = 4}
rollout = {n = 4, max_tokens = 24}
eval = {every = 2}
checkpoint = {every = 1}
sft = {steps = 10, batch_size = 16, references = 24, learning_rate = 0.2}
grpo = {steps = 3, batch_size = 4}
"""


class Served(NamedTuple):
    """Work of a process that asks a server."""

    words: tuple[str, ...]
    """`rlvr serve …`, without the port."""
    go: Callable[[Path, str], None]
    """Begins or goes on, asking the server at this address."""
    told: Callable[[Path], dict[str, Any]]
    parts: str


def train_judged(folder: Path, url: str) -> None:
    os.environ[ADDRESSES] = url
    found = runs.only_run(folder)
    resolved = None if found else runs.recipe(folder, text=CODE)
    ended = session.start(resolved, runs.quiet) if resolved else session.resume(found, runs.quiet)
    assert ended.status == "finished"


def examine_served(folder: Path, url: str) -> None:
    env = Countdown(numbers=(2,), style="bare")
    with Servers([url], concurrency=2, pause_s=0.05, chat=False) as servers:
        problems, protocol = env.problems("dev", 12, 0), eval_at_k(2, (1, 2), max_tokens=4)
        evaluate_into(folder / "kept", ServerAnswerer(servers), env, problems, protocol)


SERVED = {
    "judge server": Served(
        ("judge", "--workers", "2"), train_judged, told_of_a_run, "training whose judge is `rlvr serve judge`"
    ),
    "model server": Served(
        ("model", "nano", "--backend", "embedded"), examine_served, told_of_an_evaluation,
        "an evaluation of `rlvr serve model nano`",
    ),
}  # fmt: skip


def wait_for(port: int) -> None:
    """Until a port can be used: what was killed may hold it for a moment, until all its threads are gone."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as place, suppress(OSError):
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            place.bind(("127.0.0.1", port))
            return
        time.sleep(0.05)


class Server:
    """`rlvr serve …` in a fork, which saves the imports."""

    def __init__(self, words: tuple[str, ...], port: int = 0) -> None:
        wait_for(port)
        told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.dup2(tell, 1)
                sys.stdout = os.fdopen(1, "w", closefd=False)
                sys.argv = ["rlvr", "serve", *words, "--port", str(port), "--json"]
                main()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(tell)
        with os.fdopen(told) as lines:
            facts = json.loads(lines.readline())
        self.url: str = facts.get("url") or facts["urls"][0]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
