"""compute_score as verl calls it: environment, judge and reward of the job.

Answers that arrive while others are being judged wait and go to the verifier together. An answer that could not be
judged is asked about again, with growing pauses, for PATIENCE_S seconds: a judge server may be restarting. If it still
cannot be judged its score is NaN, never 0: our estimators leave such a row out, the trainer counts it, and stops when
half of a batch is like that. (An exception would not do: verl 0.9.1 drops the answer from its group without a count.)
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from typing import Any

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.rewards.total import paid
from rlvrlab.scale.verl.job import Job, current
from rlvrlab.types import Completion, Finish, Problem, Turn, Verdict, unjudged

PATIENCE_S = float(os.environ.get("RLVR_JUDGE_PATIENCE_S", "120"))
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
TOKENS = "rlvr_tokens"
"""Where the reward manager leaves an answer's tokens."""
END = "rlvr_end"
"""Where it leaves the policy's end token, with which an answer may end at the very limit."""
EPISODE = "rlvr_episode"
"""Where the agent loop leaves what an episode's tokens do not say: its turns, and why it ended."""


async def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None, **_: Any
) -> dict[str, Any]:
    """The score and its named parts; every answer of a run has the same names."""
    job = current()
    problem = problem_of(job, extra_info or {}, ground_truth)
    async for last in tries():
        verdict = await asyncio.wrap_future(_desk(job).hand_in(problem, solution_str))
        if verdict.correct is not None or last:
            break
    given = extra_info or {}
    answer = completion_of(job, solution_str, tuple(given.get(TOKENS, ())), given.get(EPISODE), end=given.get(END))
    return scored(job, problem, answer, verdict)


def completion_of(
    job: Job, text: str, tokens: tuple[int, ...], episode: Mapping[str, Any] | None = None, *, end: int | None = None
) -> Completion:
    """The answer as a reward sees it; one that fills all its room without an end token was cut off.

    Of an episode its agent loop says whether it was.
    """
    if episode is None:
        full = len(tokens) >= job.resolved.recipe.rollout.max_tokens and tokens[-1:] != (end,)
        return Completion(text, tokens, (), Finish.LENGTH if full else Finish.STOP)
    turns = tuple(Turn(by, said, (span[0], span[1]), tool, ok) for by, said, span, tool, ok in episode["turns"])
    return Completion(text, tokens, (), Finish(episode["finish"]), turns=turns)


def scored(job: Job, problem: Problem, completion: Completion, verdict: Verdict) -> dict[str, Any]:
    """What verl keeps of an answer. `acc` is what its validation reports."""
    found: dict[str, Any] = {
        "score": math.nan,
        "acc": math.nan,
        "judged": float(verdict.correct is not None),
        "error": str(verdict.error),
        "truncated": float(completion.finish is Finish.LENGTH),
        "problem": problem.id,
        "detail": verdict.detail[:200],
    }
    if verdict.correct is not None:
        given = paid(job.reward, problem, completion, verdict)
        found |= {"score": given.value, "acc": float(verdict.correct)}
        found |= {f"part/{name}": float(value) for name, value in given.parts.items()}
    return found


def problem_of(job: Job, extra_info: dict[str, Any], ground_truth: str) -> Problem:
    """The problem of a row; its reference comes from the job's own files."""
    name = extra_info.get("id")
    problem = job.problems.get(str(name))
    if problem is None:
        raise UserError(f"{job.folder}: no problem {name!r}; train with the Parquet files of this folder")
    return problem


async def tries() -> AsyncIterator[bool]:
    """Goes on with growing pauses for PATIENCE_S seconds; True says that it is the last try."""
    start, pause, last = time.monotonic(), FIRST_PAUSE_S, False
    while not last:
        last = time.monotonic() - start >= PATIENCE_S
        yield last
        await asyncio.sleep(0 if last else pause)
        pause = min(LONGEST_PAUSE_S, 2 * pause)


class ManagerHooks:
    """Before verl's own reward manager: it hands on the text alone, and a reward may count tokens or turns."""

    tokenizer: Any

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Leave the tokens, the token that ends an answer, and the turns of an episode in extra_info."""
        item = data[-1]
        length = item.batch["responses"].shape[-1]
        valid = int(item.batch["attention_mask"][-length:].sum())
        known = item.non_tensor_batch["extra_info"]
        known[TOKENS] = item.batch["responses"][:valid].tolist()
        known[END] = self.tokenizer.eos_token_id
        known[EPISODE] = item.non_tensor_batch.get("tool_extra_fields", {}).get(EPISODE)
        return await super().run_single(data)  # type: ignore[misc]


class Desk:
    """Takes answers from any thread and judges in batches, in a thread of its own."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._waiting: list[tuple[Problem, str, Future[Verdict]]] = []
        self._arrived = threading.Condition()
        if job.judges:
            from rlvrlab.envs.code.shared_judge import judge_elsewhere

            judge_elsewhere(job.judges)
        threading.Thread(target=self._work, name="rlvr-reward", daemon=True).start()

    def hand_in(self, problem: Problem, text: str) -> Future[Verdict]:
        """The verdict to come."""
        answer: Future[Verdict] = Future()
        with self._arrived:
            self._waiting.append((problem, text, answer))
            self._arrived.notify()
        return answer

    def _work(self) -> None:
        while True:
            with self._arrived:
                while not self._waiting:
                    self._arrived.wait()
                taken, self._waiting = self._waiting, []
            try:
                verdicts = self._job.env.verify_many([(problem, text) for problem, text, _ in taken])
            except (InfrastructureError, OSError, MemoryError) as error:  # verl drops what raises without a count
                verdicts = [unjudged(str(error))] * len(taken)
            except BaseException as error:
                for _, _, answer in taken:
                    answer.set_exception(error)
                continue
            for (_, _, answer), verdict in zip(taken, verdicts, strict=True):
                answer.set_result(verdict)


_desks: dict[int, Desk] = {}
_opening = threading.Lock()


def _desk(job: Job) -> Desk:
    """One per process: threads do not survive a fork."""
    with _opening:
        return _desks.setdefault(os.getpid(), _desks.get(os.getpid()) or Desk(job))
