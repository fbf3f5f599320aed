"""A process that has imported what all tests need but nothing of the package, and forks for every run of pytest.

python mutant_zygote.py FOLDER: reads a JSON list of pytest's words per line, answers with [exit code, what was said].
Starting Python and importing numpy, pytest and torch anew would take most of the time of a run.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback

PRELOADED = ("numpy", "pydantic", "pytest", "hypothesis.strategies", "click.testing", "rich.console", "torch")
STALLED_S = 120
"""A run of pytest in which no test ended for so long hangs; a bug that makes it hang was noticed.

How long the whole run takes does not matter: on a busy machine the tests of a large room need their time."""
HANGS = 124


def forked(words: list[str]) -> tuple[int, str]:
    """pytest's exit code, or HANGS, and its output."""
    import pytest

    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.setsid()
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                code = int(pytest.main(words))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = waited(child, output.fileno())
        output.seek(0)
        return code, output.read().decode(errors="replace")


def waited(child: int, output: int) -> int:
    """The exit code, or HANGS when its output has not grown for too long: pytest says a word after every test."""
    size, since, pause = 0, time.monotonic(), 0.01
    while time.monotonic() - since < STALLED_S:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if (now := os.fstat(output).st_size) != size:
            size, since = now, time.monotonic()
        time.sleep(pause)
        pause = min(0.2, 1.5 * pause)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return HANGS


def main() -> None:
    os.chdir(sys.argv[1])
    sys.path.insert(0, "")
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not any(name.partition(".")[0] == "rlvrlab" for name in sys.modules)
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
