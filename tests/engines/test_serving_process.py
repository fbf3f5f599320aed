"""`rlvr serve model` as a process: what it leaves behind when it is killed, and how it ends when told to."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import needs_torch  # noqa: F401 -- skips where there is no torch
import pytest
from living import alive, left_of
from tiny_models import tiny

from rlvrlab.errors import UserError


@contextmanager
def serving(folder: Path, *more: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], int, list[int]]]:
    """The process, the port of its replica, and the replica's process."""
    words = [sys.executable, "-m", "rlvrlab", "serve", "model", tiny(), "--backend", "embedded", "--json", *more]
    known = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", **env}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=known)
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["urls"][0]
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield process, int(url.rpartition(":")[2]), [int(child) for child in children]
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def ask(port: int, content: dict[str, object], **headers: str) -> bytes:
    body = json.dumps(content).encode()
    known = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "\r\n".join(f"{name}: {text}" for name, text in {**known, "Connection": "close"}.items())
    with socket.create_connection(("127.0.0.1", port), 120) as caller:
        caller.sendall(f"POST /v1/completions HTTP/1.1\r\n{lines}\r\n\r\n".encode() + body)
        answer = b""
        while piece := caller.recv(65536):
            answer += piece
    return answer


def soon(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()


def is_free(port: int) -> bool:
    with socket.socket() as place, suppress(OSError):
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", port))
        return True
    return False


@pytest.mark.slow
def test_killed_without_warning_it_leaves_no_replica_no_port_and_no_file(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, port, replicas):
        assert len(replicas) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not left_of(replicas)
        assert soon(lambda: is_free(port))  # threads of a dying process may hold it for a moment
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("rlvr_serve")] == []


@pytest.mark.slow
def test_told_to_stop_it_finishes_its_answers_and_ends_well(tmp_path: Path) -> None:
    with serving(tmp_path, RLVR_MODEL_TOKEN="secret") as (process, port, replicas):
        content = {"prompt": "1", "max_tokens": 100, "n": 200, "model": "gone"}
        assert b" 401 " in ask(port, content).splitlines()[0]
        assert b" 404 " in ask(port, content, Authorization="Bearer secret").splitlines()[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0 and not any(map(alive, replicas))


def test_a_door_without_adapters_is_refused(tmp_path: Path) -> None:
    from rlvrlab.engines.openai.launch import EMBEDDED, Fleet

    with pytest.raises(UserError, match=r"--receive takes adapters .* add --adapters RANK"):
        Fleet(tiny(), 1, EMBEDDED, "127.0.0.1", 0, [], receive=0)
    with Fleet(tiny(), 1, EMBEDDED, "127.0.0.1", 0, [], adapters=4, receive=0) as fleet:
        assert fleet.door is not None and len({one.url for one in fleet.processes}) == 2
        (listed,) = fleet.listed
        assert str(listed) == f"{fleet.replicas[0].url} adapters={fleet.door.url}"


@pytest.mark.slow
def test_when_its_door_ends_it_ends_too(tmp_path: Path) -> None:
    """A server that can take no further adapter would only look alive."""
    words = ["--adapters", "4", "--receive", "0"]
    with serving(tmp_path, *words) as (process, _, children):
        door = next(child for child in children if b"adapter_door" in Path(f"/proc/{child}/cmdline").read_bytes())
        os.kill(door, signal.SIGTERM)
        assert process.wait(60) == 1
        assert not left_of(children)
        assert list(tmp_path.glob("rlvr_adapters_*")) == []
