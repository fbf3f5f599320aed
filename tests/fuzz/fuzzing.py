"""Give random inputs to a target, and make what breaks it small."""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from fuzz_inputs import LARGE
from fuzz_targets import TARGETS, Input, Target

FOUND = Path(__file__).with_name("found")
SIZES = (200, 2_000, 20_000)
LARGE_SHARE = 0.01
"""Of the inputs; each takes as long as hundreds of others."""
LINEAR_S = 1.0
"""CPU time allowed for LARGE characters; more only where half of the input takes about half as long."""
QUICK_S = 0.25
"""CPU time allowed for any other size: where time grows with the square, the longest of them takes seconds."""
ENDLESS = 4
"""Times the allowed time after which an input is given up, however its time grows."""
GROWTH = 3.0
"""Times what half of the input takes from which an input over the allowed time is slow; a square would be 4."""
SHRINK_S = 10.0
RETRIES = 3


class Endless(BaseException):
    """It took far too long; no BaseException of a target's own, so that it cannot be swallowed."""


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise Endless in the main thread after so much CPU time."""

    def stop(number: int, where: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Find(NamedTuple):
    """An input that breaks a target."""

    target: str
    seed: int
    given: Input
    trouble: str


def trouble_of(target: Target, given: Input) -> str:
    """What is wrong with a target's answer to an input; nothing where all is well."""
    allowed_s = LINEAR_S if len(given) > max(SIZES) else QUICK_S
    spent: list[float] = []
    for _ in range(RETRIES):  # a garbage collection or cold caches may spoil one
        started = time.thread_time()
        try:
            with interrupted_after(ENDLESS * allowed_s):
                target.run(given)
        except Endless:
            return f"slow: more than {ENDLESS * allowed_s:g} s of CPU time for {len(given)} characters"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:200]}"
        spent.append(time.thread_time() - started)
        if spent[-1] <= allowed_s:
            return ""
        gc.collect()
    half = min(seconds_of(target, given[: len(given) // 2]) for _ in range(RETRIES))
    if min(spent) < GROWTH * half:  # a slow machine, not a slow reader
        return ""
    return f"slow: {min(spent):.2f} s of CPU time for {len(given)} characters, {half:.2f} for half of them"


def seconds_of(target: Target, given: Input) -> float:
    """CPU time; an error that half an input leads to is no find of its own."""
    started = time.thread_time()
    with suppress(Exception):
        target.run(given)
    return time.thread_time() - started


def inputs(target: Target, seed: int) -> Iterator[tuple[int, Input]]:
    """Each with its own seed, so that one can be made again without the others."""
    for number in range(1 << 62):
        own = seed + number
        rng = random.Random(f"{target.name} {own}")
        size = LARGE if rng.random() < LARGE_SHARE else rng.choice(SIZES)
        yield own, target.input(rng, size)


def shrunk(target: Target, given: Input, trouble: str, seconds: float = SHRINK_S) -> Input:
    """A smaller input with the same kind of trouble: pieces are left out as long as that lasts."""
    kind = trouble.partition(":")[0]

    def same(shorter: Input) -> bool:
        return bool(shorter) and trouble_of(target, shorter).partition(":")[0] == kind

    ends = time.monotonic() + seconds
    piece = max(1, len(given) // 2)
    while time.monotonic() < ends:
        start, before = 0, len(given)
        while start < len(given) and time.monotonic() < ends:
            shorter = given[:start] + given[start + piece :]
            if same(shorter):
                given = shorter
            else:
                start += piece
        if piece == 1 and len(given) == before:
            break
        piece = max(1, piece // 2)
    return given


def keep(find: Find) -> Path:
    """As a file that test_fuzz.py tries again from now on."""
    data = find.given if isinstance(find.given, bytes) else find.given.encode("utf-8", "surrogatepass")
    content = {
        "target": find.target,
        "seed": find.seed,
        "trouble": find.trouble,
        "base64": base64.b64encode(data).decode(),
    }
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{find.target.replace(' ', '_')}_{hashlib.sha256(data).hexdigest()[:8]}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def kept() -> list[tuple[str, Target, Input]]:
    """Everything found so far."""
    by_name = {target.name: target for target in TARGETS}
    found = []
    for path in sorted(FOUND.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        target, data = by_name[content["target"]], base64.b64decode(content["base64"])
        found.append((path.stem, target, data if target.binary else data.decode("utf-8", "surrogatepass")))
    return found


def fuzz(seconds: float, seed: int, say: Callable[[str], None], only: str = "") -> tuple[int, list[Find]]:
    """All targets in turn until the time is over; a target that broke is left alone. Returns inputs tried and finds."""
    tried, finds = 0, list[Find]()
    streams = {target: inputs(target, seed) for target in TARGETS if only in target.name}
    ends = time.monotonic() + seconds
    while streams and time.monotonic() < ends:
        for target in list(streams):
            own, given = next(streams[target])
            tried += 1
            trouble = trouble_of(target, given)
            if trouble:
                del streams[target]
                small = shrunk(target, given, trouble)
                finds.append(Find(target.name, own, small, trouble_of(target, small) or trouble))
                say(f"{target.name}: {finds[-1].trouble}\n  seed {own}, {len(given)} -> {len(small)}: {small[:300]!r}")
    return tried, finds
