"""Plants one bug at a time in a copy of the tree, and sees whether a test notices."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from mutant_plants import Plant
from mutant_rooms import ROOT, tests_for

COPIED = ("src", "tests", "recipes", "studies", "docs", "benchmarks", "pyproject.toml", "Makefile", "README.md")
COPIED_TOO = ("CONTRIBUTING.md", "CHANGELOG.md", "constraints.txt", "CITATION.cff", "LICENSE")
PYTEST = (
    "-q", "-x", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider", "-p", "no:xdist",
    "--no-header", "--tb=no", "-rfE", "-m", "not slow and not soak and not oracle",
)  # fmt: skip
NOTHING_COLLECTED = 5
BROKEN_RUN = 70
"""What the zygote says where pytest itself raised. It may be the machine's doing: it counts when it comes thrice."""
ZYGOTE = Path(__file__).with_name("mutant_zygote.py")


@dataclass(frozen=True)
class Fate:
    """What became of a bug."""

    plant: Plant
    noticed: bool
    by: str
    """The test that failed first, or how else it was noticed; empty for a survivor."""
    seconds: float


class Copy:
    """A tree of its own that holds one bug at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (*COPIED, *COPIED_TOO):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".venv*"))
            elif source.exists():
                shutil.copy2(source, folder / name)
        self._scratch = folder.with_name(f"{folder.name}_tmp")
        """The tests' own files: in pytest's usual place a run first removes what the runs of others left there."""
        self._now = int(time.time())
        words = [sys.executable, str(ZYGOTE), str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        self._zygote = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def write(self, file: str, text: str) -> None:
        """Each version gets a time of its own: compiled files are told apart by whole seconds."""
        path = self.folder / "src" / "rlvrlab" / file
        path.write_text(text, "utf-8")
        self._now += 2
        os.utime(path, (self._now, self._now))

    def first_failure(self, tests: list[str], broken: Collection[str] = ()) -> str:
        """The name of the first test that fails, leaving out the known broken; empty when all pass."""
        words = [*PYTEST, f"--basetemp={self._scratch}", *(f"tests/{name}" for name in tests)]
        words += [f"--deselect={name}" for name in sorted(broken)]
        assert self._zygote.stdin and self._zygote.stdout
        code, said = BROKEN_RUN, ""
        for _ in range(3):
            self._zygote.stdin.write(json.dumps(words) + "\n")
            self._zygote.stdin.flush()
            code, said = json.loads(self._zygote.stdout.readline())
            if code != BROKEN_RUN:
                break
        if code in (0, NOTHING_COLLECTED):
            return ""
        found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
        return found[1] if found and code == 1 else f"pytest ended with {code}"

    def close(self) -> None:
        self._zygote.kill()
        self._zygote.wait()


def fates(plants: list[Plant], jobs: int, until: float, say: Callable[[str], None], work: Path) -> Iterator[Fate]:
    """Every bug that was tried before the time was up; `until` is on the monotonic clock.

    All are first shown to the tests nearest to them; those that are still there, to the others afterwards."""
    copies = [Copy(work / str(number)) for number in range(jobs)]
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)
    known = Known(set(), set())

    def tried(plant: Plant, which: int) -> Fate | None:
        if time.monotonic() > until:
            return None
        copy = free.get()
        try:
            return _tried(plant, near_and_far(plant)[which], copy, known, say)
        finally:
            free.put(copy)

    further: list[Plant] = []
    try:
        with ThreadPoolExecutor(jobs) as pool:
            for plant, fate in zip(plants, pool.map(partial(tried, which=0), plants), strict=True):
                if fate is not None and not fate.noticed and near_and_far(plant)[1]:
                    say(f"not noticed by the nearest tests  {plant.name}")
                    further.append(plant)
                elif fate is not None:
                    yield fate
            yield from (fate for fate in pool.map(partial(tried, which=1), further) if fate is not None)
    finally:
        for copy in copies:
            copy.close()


NEAR_FILES = 4


@cache
def near_and_far(plant: Plant) -> tuple[list[list[str]], list[list[str]]]:
    """The tests for a bug: those that speak of its function and the few files that name its module; and the others."""
    tests = tests_for(plant)
    near = list(takewhile(lambda some: "::" in some[0] or len(some) <= NEAR_FILES, tests))
    return near, tests[len(near) :]


class Known(NamedTuple):
    """Tests that passed without a bug after they had failed with one, and tests that did not."""

    sound: set[str]
    broken: set[str]


def _tried(plant: Plant, tests: list[list[str]], copy: Copy, known: Known, say: Callable[[str], None]) -> Fate:
    """A test only counts as having noticed when it passes without the bug."""
    started = time.monotonic()
    text = (ROOT / "src" / "rlvrlab" / plant.file).read_text("utf-8")
    remaining = list(tests)
    while remaining:
        copy.write(plant.file, plant.planted(text))
        by = copy.first_failure(remaining[0], known.broken)
        copy.write(plant.file, text)
        if not by:
            remaining.pop(0)
            continue
        one_test = "::" in by  # otherwise pytest itself stopped: a file that cannot be imported, or a run that hangs
        again = [by.removeprefix("tests/")] if one_test else remaining[0]
        failure = by if one_test else f"{by}: {' '.join(again)}"
        if failure in known.sound or copy.first_failure(again, known.broken - {by}) != by:
            known.sound.add(failure)
            return Fate(plant, True, by, time.monotonic() - started)
        say(f"{failure} fails without a bug and is left out")
        if one_test:
            known.broken.add(by)
        else:
            remaining.pop(0)
    return Fate(plant, False, "", time.monotonic() - started)
