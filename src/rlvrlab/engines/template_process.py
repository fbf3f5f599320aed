"""A chat template rendered in a process of its own: the system ends a step that no bound of the template's foresaw.

One call of Python's own code can take the square of what it is given (a text searched from its end, a table whose keys
all collide) and looks at no clock on the way. So the kernel counts the seconds of the processor, and the memory.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Any
from weakref import finalize

SECONDS = 10
"""Of the processor, for one text. The template's own clock has as many; it is asked between steps, and says more."""
GRACE_S = 2
MEMORY = 2 << 30
"""Bytes of address space of the process."""


class TemplateProcess:
    """A template whose process starts at once, in the background, and is started anew after it had to be ended."""

    def __init__(self, source: str, seconds: int = SECONDS) -> None:
        self._source, self._seconds, self._turn = source, seconds, threading.Lock()
        self._process = self._begun()

    def render(self, messages: list[dict[str, str]], **known: Any) -> str:
        """The messages as one text, ready for the answer; a ValueError says why there is none."""
        with self._turn:
            if self._process.poll() is not None:
                self._process = self._begun()
            try:
                _tell(self._process.stdin, {"messages": messages, "known": known})
                line = self._process.stdout.readline() if self._process.stdout else b""
                reply = json.loads(line) if line else {"error": self._ended()}
            except BrokenPipeError:
                reply = {"error": self._ended()}
            except BaseException:  # interrupted while the answer is under way: the next one must not get it
                _end(self._process)
                raise
        if "error" in reply:
            raise ValueError(reply["error"])
        return str(reply["text"])

    def _begun(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "rlvrlab.engines.template_process"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        with suppress(BrokenPipeError):  # it has ended already; `render` finds that out
            _tell(process.stdin, {"source": self._source, "seconds": self._seconds})
        finalize(self, _end, process)
        return process

    def _ended(self) -> str:
        code = self._process.wait()
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"more than {self._seconds} seconds in one step"
        return f"its process ended with {code}"


def _tell(pipe: IO[bytes] | None, what: Any) -> None:
    assert pipe is not None
    pipe.write(json.dumps(what).encode() + b"\n")
    pipe.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            assert pipe is not None
            pipe.close()


def serve() -> None:
    """In the process: a line with the template, then one with messages for every text."""
    from rlvrlab.engines.templates import Template

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked is interrupted, and closes the pipe
    with suppress(ValueError, OSError):  # not every system bounds address space
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    begun, template = json.loads(sys.stdin.buffer.readline()), None
    for line in sys.stdin.buffer:
        most = int(time.process_time()) + begun["seconds"] + GRACE_S
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        asked = json.loads(line)
        try:
            template = template or Template(begun["source"])
            reply = {"text": template.render(asked["messages"], **asked["known"])}
        except Exception as error:
            reply = {"error": str(error) or type(error).__name__}
        _tell(sys.stdout.buffer, reply)


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):
        serve()
