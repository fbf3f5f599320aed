"""Judge servers for tests: in processes of their own, so that they can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from command_line import RLVR

from rlvrlab.judge.tasks import Call, CallsTask

DOUBLE = CallsTask("double", (Call((3,), 6), Call(((1, 2),), (1, 2, 1, 2))))
RIGHT, WRONG = "def double(x): return x * 2", "def double(x): return x"


class JudgeProcess:
    """`rlvr serve judge`, killed at the end whatever happens."""

    def __init__(self, *words: str, port: int = 0) -> None:
        command = [*RLVR, "serve", "judge", "--port", str(port), "--workers", "2", "--json", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the judge did not start"
        self.url: str = json.loads(line)["url"]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def facts(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/v1/load", timeout=120) as answer:
            return json.loads(answer.read())

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def __enter__(self) -> JudgeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def isolated() -> bool:
    from rlvrlab.judge.isolation import probe

    return probe().best != "weak"


def wait_until(true: Any, timeout_s: float = 60.0) -> None:
    ends = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.02)


os.environ.setdefault("OMP_NUM_THREADS", "1")
