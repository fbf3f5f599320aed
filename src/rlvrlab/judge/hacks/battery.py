"""The hack battery: gold must be 1, junk must be 0, every applicable exploit must be 0 — for any environment.

The environment is tried in a process of its own, so a scorer that hangs, dies or runs what it should read is a row of
the table and not the end of it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvrlab.judge.hacks.exploits import exploits_of, junk
from rlvrlab.types import Environment, Problem

PROBLEMS = 3
PATIENCE_S = 60.0
PLACEHOLDER = "/canary"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An answer to hand to the environment's scorer."""

    problem: int
    """Index among the problems."""
    kind: str
    """gold, junk or exploit."""
    name: str
    text: str
    canary: str = "/nowhere"
    """A file that exists afterwards only if the text was run."""


@dataclass(frozen=True, slots=True)
class Row:
    """How the scorer judged one attempt, and whether that is as it must be."""

    problem: str
    kind: str
    name: str
    must_be: bool
    judged: bool | None
    ok: bool
    note: str


def hack_battery(env: Environment, patience_s: float = PATIENCE_S) -> list[Row]:
    """Try everything against a few problems of the environment's own."""
    chosen = env.problems("train", PROBLEMS, 0)
    with tempfile.TemporaryDirectory(prefix="rlvr-battery-") as folder:
        attempts: list[Attempt] = []
        for index, problem in enumerate(chosen):
            gold = env.gold(problem)
            texts = junk(problem.prompt).items()
            attempts += [Attempt(index, "gold", "gold", gold)] if gold is not None else []
            attempts += [Attempt(index, "junk", name, text) for name, text in texts if text != gold]
            for number, (name, text) in enumerate(exploits_of(gold, PLACEHOLDER) if gold is not None else ()):
                canary = f"{folder}/{index}_{number}"
                if text != gold:
                    attempts.append(Attempt(index, "exploit", name, text.replace(PLACEHOLDER, canary), canary))
        rows: list[Row] = []
        while len(rows) < len(attempts):
            rows += _in_own_process(env, chosen, attempts[len(rows) :], patience_s)
        return rows


def _in_own_process(
    env: Environment, problems: Sequence[Problem], attempts: Sequence[Attempt], patience_s: float
) -> list[Row]:
    """Rows until all are done or the process stopped answering; then one row says so."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            _try_all(env, problems, attempts, writing)
        finally:
            os._exit(0)
    os.close(writing)
    rows: list[Row] = []
    with os.fdopen(reading, "rb") as pipe:
        while len(rows) < len(attempts):
            line = _line(pipe.fileno(), patience_s)
            attempt = attempts[len(rows)]
            rows.append(_row(problems[attempt.problem], attempt, line))
            if line is None:
                break
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return rows


def _try_all(env: Environment, problems: Sequence[Problem], attempts: Sequence[Attempt], pipe: int) -> None:
    for attempt in attempts:
        try:
            verdict = env.verify(problems[attempt.problem], attempt.text)
            answer = {
                "judged": verdict.correct,
                "score": verdict.score,
                "note": f"{verdict.error}: {verdict.detail}"[:200],
            }
        except Exception as error:
            answer = {"judged": None, "score": 0.0, "note": f"the scorer raised {type(error).__name__}: {error}"[:200]}
        os.write(pipe, json.dumps(answer).encode() + b"\n")


def _line(pipe: int, patience_s: float) -> dict[str, object] | None:
    """The next answer; None when the process died or went silent."""
    text, end = b"", time.monotonic() + patience_s
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
        piece = os.read(pipe, 1) if ready else b""
        if not piece:
            return None
        text += piece
    try:
        answer: dict[str, object] = json.loads(text)
    except ValueError:  # the answer ran, and found our pipe
        return None
    return answer if isinstance(answer, dict) and {"judged", "score", "note"} <= set(answer) else None


def _row(problem: Problem, attempt: Attempt, line: dict[str, object] | None) -> Row:
    must_be = attempt.kind == "gold"
    ran_it = Path(attempt.canary).exists()
    if line is None:
        note = "the scorer hung, died or let the answer speak for it"
        return Row(problem.id, attempt.kind, attempt.name, must_be, None, False, note)
    judged = line["judged"] if isinstance(line["judged"], bool) else None
    paid = float(str(line["score"])) > 0
    ok = judged is must_be and not ran_it and (must_be or not paid or attempt.kind == "exploit")
    note = "the scorer ran the answer" if ran_it else str(line["note"])
    return Row(problem.id, attempt.kind, attempt.name, must_be, judged, ok, note)
