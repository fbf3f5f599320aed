"""The fork server's preparations: what a child is forked from, and the messages between two children."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from rlvrlab.judge.jail.frames import LARGEST_FRAME, Frames, PeerGone, text
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.judge.workers.worker import PACKAGE_ROOT

REHEARSED = """
import importlib, os, sys
sys.path.append(sys.argv[1])
from rlvrlab.judge.jail import child, rehearsal, zygote
told = os.dup(1)
while os.open("/dev/null", os.O_RDWR) < 9:
    pass
child.open_streams()
roles = {name: importlib.import_module(f"rlvrlab.judge.jail.roles.{name}").run for name in zygote.ROLES}
statuses = rehearsal.rehearse(roles)
os.write(told, repr((statuses, "solution" in sys.modules, sys.argv[1:] == [sys.argv[1]], __name__)).encode())
"""


def test_every_role_of_a_rehearsal_comes_to_a_good_end_and_leaves_nothing() -> None:
    """A rehearsal that fails would warm up nothing, and nobody would notice."""
    command = [sys.executable, "-s", "-S", "-P", "-c", REHEARSED, PACKAGE_ROOT]
    told = subprocess.run(command, capture_output=True, check=True, timeout=300).stdout
    assert told.decode() == repr(([0] * 5, False, True, "__main__"))


def test_a_program_finds_the_interpreter_as_if_it_were_the_first(judge: Judge) -> None:
    code = (
        "import sys, random, os\n"
        "print('solution' in sys.modules, sys.argv, sys.modules['__main__'].__dict__ is globals())\n"
        "print(input(), sys.stdin.read(), random.random(), sorted(k for k in os.environ if k.startswith('LD_')))"
    )
    expected = "False ['solution.py'] True\none two\nthree 0.8444218515250481 []"
    assert judge.verify(StdioTask((("one\ntwo\nthree", expected),)), code).detail == "accepted"


@pytest.fixture
def ends() -> Iterator[tuple[Frames, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(60)
        yield Frames(ours.fileno()), theirs


def framed(body: bytes) -> bytes:
    return struct.pack("=I", len(body)) + body


def test_messages_come_apart_where_they_were_put_together(ends: tuple[Frames, socket.socket]) -> None:
    frames, peer = ends
    peer.sendall(framed(b'["a"]') + framed(b"[]") + framed(b'["\\ud800", 1e400')[:6])
    assert frames.receive() == ["a"]
    assert frames.receive() == []
    peer.sendall(framed(b'["\\ud800", 1e400')[6:])
    with pytest.raises(PeerGone, match="not a message"):
        frames.receive()
    long = ["x" * 900_000]
    sender = threading.Thread(target=peer.sendall, args=(framed(text(long).encode()),))
    sender.start()
    assert frames.receive() == long
    sender.join()


@pytest.mark.parametrize(
    "data",
    [b"", b"\x01", framed(b"[1] [2]"), framed(b" []"), framed(b""), framed(b"\xff"), framed(b"[" * 60_000),
     struct.pack("=I", LARGEST_FRAME + 1), struct.pack("=I", 5) + b"[1]", framed(b"nul")],
)  # fmt: skip
def test_what_is_no_message_ends_the_conversation(ends: tuple[Frames, socket.socket], data: bytes) -> None:
    frames, peer = ends
    peer.sendall(data)
    peer.close()
    with pytest.raises(PeerGone):
        frames.receive()


def test_the_way_into_the_jail_is_practised_before_the_first_job_goes_it(judge: Judge) -> None:
    """An interpreter changes the code that it has met a few times; a job that is the first to do so copies the page."""
    code = (
        "import sys\n"
        "inner = {name: sys.modules['rlvrlab.judge.jail.' + name] for name in ('walls', 'child')}\n"
        "for way in (inner['walls'].Walls.enter, inner['child'].live):\n"
        "    print(way.__code__._co_code_adaptive != way.__code__.co_code)\n"
        "print(inner['walls'].setrlimit.__name__, inner['child'].leave.__name__)"
    )
    expected = "True\nTrue\nsetrlimit _exit"
    assert judge.verify(StdioTask((("", expected),)), code).detail == "accepted"
