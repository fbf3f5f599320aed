"""Which of the machine's files a job may read: what Python needs, all of it read ahead, and no more."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from test_channels import resident_pages

from rlvrlab.judge.jail.library import UNNEEDED
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask
from rlvrlab.judge.workers import libraries

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
FOUND = """
import os
def f(folders):
    found, waiting = [], list(folders)
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        waiting += [one.path for one in entries if one.is_dir(follow_symlinks=False)]
        for one in entries:
            try:
                open(one.path, 'rb').read(1)
            except OSError:
                continue
            found.append(one.path)
    return found[:20]
"""
IMPORTS = """
import importlib
def f(names):
    failed = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            failed.append(repr(error))
    return failed
"""


def test_nothing_of_the_system_can_be_read_but_what_python_needs(judge: Judge) -> None:
    folders = ["/usr/share/doc", "/usr/lib/python3", "/usr/lib/gcc", "/usr/lib/systemd", "/usr/bin", "/usr/local/lib"]
    apart = [folder for folder in folders if not str(STANDARD_LIBRARY).startswith(f"{folder}/")]
    assert judge.verify(CallsTask("f", (Call((apart,), []),)), FOUND).detail == "accepted"


def test_folders_of_the_standard_library_that_no_program_needs_are_empty(judge: Judge) -> None:
    unneeded = [str(one) for one in STANDARD_LIBRARY.iterdir() if one.is_dir() and one.name.startswith(UNNEEDED)]
    assert unneeded and judge.verify(CallsTask("f", (Call((unneeded,), []),)), FOUND).detail == "accepted"


def test_every_module_of_the_standard_library_finds_its_shared_libraries(judge: Judge) -> None:
    left_out = (*libraries.LEFT_OUT, "_test", "_xx", "xx", "_ctypes_test")
    names = [one.name.partition(".")[0] for one in STANDARD_LIBRARY.glob("lib-dynload/*.so")]
    wanted = [name for name in names if not name.startswith(left_out)]
    assert len(wanted) > 10
    assert judge.verify(CallsTask("f", (Call((wanted,), []),)), IMPORTS).detail == "accepted"
    sized = "import ctypes, zoneinfo, ssl, sqlite3\nctypes.CDLL('libm.so.6')\nprint(zoneinfo.ZoneInfo('Europe/Paris'))"
    assert judge.verify(StdioTask((("", "Europe/Paris"),)), sized).detail == "accepted"


def test_what_jobs_may_read_is_read_ahead_to_its_end() -> None:
    """A page that nobody has read would be a bit that one job could leave for the next."""
    large = max(STANDARD_LIBRARY.glob("encodings/*.py"), key=os.path.getsize)
    file = os.open(large, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    libraries._read_ahead([])
    assert resident_pages(large) >= large.stat().st_size // 4096
