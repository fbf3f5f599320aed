"""The worker's side of a fan-out: one policy, one environment, questions in, judged answers out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rlvrlab.errors import InfrastructureError, JudgeLost, LabError, UserError
from rlvrlab.evals.answering import Ask
from rlvrlab.evals.evaluate import judge_answers
from rlvrlab.judge.workers.pool import WORKERS
from rlvrlab.scale.code_version import code_version

JUDGES = "2"
"""Programs at once per worker, which has one processor: while one hands its result over, another runs."""
Told = dict[str, Any]
"""What a worker says: its result, or `error` with the kind and words of what went wrong."""
KINDS: dict[str, type[LabError]] = {"UserError": UserError, "JudgeLost": JudgeLost}


class Examiner:
    """Lives in a Ray worker. Errors are told and not raised: not every exception survives the way."""

    def __init__(self, build: Any, request: dict[str, Any], variables: dict[str, str], folder: str) -> None:
        os.environ.update(variables)
        os.environ.setdefault(WORKERS, JUDGES)
        self._build, self._request, self._folder = build, request, folder
        self._opened: Any = None

    def introduce(self) -> Told:
        """Open the policy, and say who it is."""
        told: Told = {"version": code_version()}
        try:
            try:
                os.chdir(self._folder)
            except OSError:
                where = os.uname().nodename
                raise UserError(f"Ray worker on {where}: no folder {self._folder}; share it between machines") from None
            self._opened = self._build(self._request)
            self._answerer, self._env = self._opened.__enter__()
            told["identity"] = self._answerer.identity()
        except LabError as error:
            told["error"] = _facts(error)
        return told

    def answer(self, asks: list[Ask]) -> Iterator[Told]:
        """Judged answers, in lists as they become ready."""
        if self._opened is None:
            introduced = self.introduce()
            if "error" in introduced:
                yield introduced
                return
        started = time.monotonic()
        try:
            for ready in self._answerer.answers(asks):
                judged = judge_answers(self._env.verify_many, ready, lambda: time.monotonic() - started)
                pairs = zip(ready, judged, strict=True)
                yield {
                    "ready": [
                        (ask, replace(answer, verdict=one.verdict, judge_s=one.judge_s)) for (ask, answer), one in pairs
                    ]
                }
        except LabError as error:
            yield {"error": _facts(error)}


def _facts(error: LabError) -> dict[str, Any]:
    kinds = [name for name, kind in KINDS.items() if isinstance(error, kind)]
    facts: dict[str, Any] = {"kind": kinds[0] if kinds else "", "words": str(error)}
    since = getattr(error, "since", None)
    if since is not None:  # a monotonic clock means nothing on another machine
        facts |= {"server": getattr(error, "server", None), "seconds_ago": time.monotonic() - since}
    return facts


def raise_told(told: Told) -> None:
    """Raise here what a worker met there."""
    facts = told.get("error")
    if facts is None:
        return
    error = KINDS.get(facts["kind"], InfrastructureError)(facts["words"])
    if "seconds_ago" in facts:
        # evaluate.py takes back what a server said since it was last known to serve the right model.
        error.server, error.since = facts["server"], time.monotonic() - facts["seconds_ago"]  # type: ignore[attr-defined]
    raise error
