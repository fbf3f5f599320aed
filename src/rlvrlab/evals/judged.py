"""One answer with its verdict: as evaluated, as stored, as counted; and how many of them were right."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from rlvrlab.errors import cut
from rlvrlab.evals.answering import Answer
from rlvrlab.evals.metrics import Sample
from rlvrlab.evals.statistics import proportion, wilson
from rlvrlab.types import TESTS_LEFT_OUT, Completion, ErrorKind, Finish, Problem, Verdict

FINISHES, ERRORS = {str(kind): kind for kind in Finish}, {str(kind): kind for kind in ErrorKind}
"""By name; calling an enum takes three times as long, which tells with many stored answers."""
LONGEST_REASON = 200
"""Characters that are told of why an answer could not be judged."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer with its verdict."""

    problem: Problem
    sample: int
    """Which of the n answers to the problem this is, from 0."""
    answer: Answer
    verdict: Verdict
    judge_s: float
    """Seconds of judging: the judge's own figure, else this answer's share of its batch."""
    at_s: float
    """Seconds of evaluation when it was there, summed over interruptions."""
    turn: int = 0
    """0 for the first try, 1 … for repairs after feedback, -1 for a second try that was told nothing."""
    credit: float | None = None
    """The recipe's reward, where it is an accuracy with partial credit; None: the verdict's own score counts."""

    @property
    def accuracy(self) -> float:
        """What mean accuracy is the mean of."""
        return self.verdict.score if self.credit is None else self.credit

    def as_sample(self) -> Sample:
        """The record that metrics are made of."""
        return Sample(
            problem_id=self.problem.id,
            sample=self.sample,
            accepted=self.verdict.correct,
            pass_ratio=self.verdict.score,
            error_type=str(self.verdict.error),
            judge_time=self.judge_s,
            gen_tokens=self.answer.gen_tokens,
            truncated=self.answer.completion.finish is Finish.LENGTH,
            entropy=self.answer.entropy,
            answer=self.verdict.answer,
            skill=self.problem.skill,
            level=str(self.problem.meta.get("level", "")),
            turn=self.turn,
            at_s=self.at_s,
            accuracy=self.accuracy,
            stopped_early="stopped_early" in self.verdict.flags,
            limited=TESTS_LEFT_OUT in self.problem.meta,
            answered=self.answer.completion.finish is not Finish.ERROR,
        )


@dataclass(frozen=True)
class Accuracy:
    """How many answers were right, wrong and unjudged."""

    solved: int
    judged: int
    """Answers with a verdict: the denominator."""
    unjudged: int
    """Left out because the judge or sampler failed."""
    errors: dict[str, int]
    """Kind of error -> number of wrong answers."""
    truncated: int
    """Answers cut at max_tokens."""
    why_unjudged: str = ""
    """What was said of the first answer without a verdict."""

    @property
    def unjudged_words(self) -> str:
        """`29 of 33 unjudged: verify raised KeyError: 'paper' at late.py:5`; empty where all were judged."""
        why = f": {cut(' '.join(self.why_unjudged.split()), LONGEST_REASON)}" if self.why_unjudged else ""
        return f"{self.unjudged} of {self.judged + self.unjudged} unjudged{why}" if self.unjudged else ""

    @property
    def value(self) -> float:
        """Share solved among those judged; 0 when none could be."""
        return self.solved / self.judged if self.judged else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval."""
        return wilson(self.solved, self.judged)

    def metrics(self, data: str) -> dict[str, float]:
        """The counts as metrics `val-core/<data>/acc` and the like."""
        named = proportion(self.solved, self.judged).named("acc")
        named |= {"truncated": float(self.truncated), "unjudged": float(self.unjudged)}
        named |= {f"error/{kind}": float(count) for kind, count in self.errors.items()}
        return {f"val-core/{data}/{name}": value for name, value in named.items()}


class BySkill(NamedTuple):
    """How many were solved: of the whole, and of every skill."""

    whole: Accuracy
    skills: dict[str, Accuracy]

    @property
    def value(self) -> float:
        """Accuracy over all skills."""
        return self.whole.value

    def metrics(self, data: str) -> dict[str, float]:
        """The whole's; with several skills also `val-core/<data>/<skill>/acc`, of `…/n` answers, and the worst."""
        found = self.whole.metrics(data)
        if len(self.skills) > 1:
            values = {skill: accuracy.value for skill, accuracy in self.skills.items()}
            found |= {f"val-core/{data}/{skill}/acc": value for skill, value in values.items()}
            found |= {f"val-core/{data}/{skill}/n": float(part.judged) for skill, part in self.skills.items()}
            found[f"val-core/{data}/worst_skill/acc"] = min(values.values())
        return found


def problems_of_roles(roles: Collection[str]) -> str:
    """`test problems`, `dev problems`: every heading says which, because dev problems also choose."""
    return " ".join([" and ".join(sorted(roles)), "problems"]).strip()


def as_row(one: Judged) -> dict[str, Any]:
    """A line of samples.jsonl: together with problems.jsonl it is enough to judge again."""
    answer, verdict, completion = one.answer, one.verdict, one.answer.completion
    row: dict[str, Any] = {
        "problem": one.problem.id,
        "sample": one.sample,
        "turn": one.turn,
        "skill": one.problem.skill,
        "completion": completion.text,
        "finish": str(completion.finish),
        "gen_tokens": answer.gen_tokens,
        "correct": verdict.correct,
        "score": verdict.score,
        "error": str(verdict.error),
        "parts": dict(verdict.parts),
        "passed": verdict.passed,
        "total": verdict.total,
        "answer": verdict.answer,
        "detail": verdict.detail,
        "isolation": verdict.isolation,
        "flags": list(verdict.flags),
        "judge_s": round(one.judge_s, 6),
        "at_s": round(one.at_s, 3),
    }
    # Only where there is something to say: most servers tell no tokens, most answers take one request.
    extra: dict[str, Any] = {"entropy": answer.entropy, "tokens": completion.tokens, "logprobs": completion.logprobs}
    extra |= {"server": answer.server, "sampler_error": answer.error, "credit": one.credit}
    row |= {name: value for name, value in extra.items() if value not in (None, "", ())}
    return row | ({"attempts": answer.attempts} if answer.attempts > 1 else {})


def from_row(row: dict[str, Any], problem: Problem) -> Judged:
    """A stored row as it was judged: the inverse of `as_row`."""
    completion = Completion(
        row["completion"], tuple(row.get("tokens", ())), tuple(row.get("logprobs", ())), FINISHES[row["finish"]]
    )
    facts = (row.get("entropy"), row.get("attempts", 1), row.get("server", ""), row.get("sampler_error", ""))
    verdict = Verdict(
        row["correct"], row["score"], ERRORS[row["error"]], row["parts"], row["passed"], row["total"], row["answer"],
        row["detail"], row["isolation"], tuple(row["flags"]),
    )  # fmt: skip
    answer = Answer(completion, row["gen_tokens"], *facts)
    times = (row["judge_s"], row["at_s"])
    return Judged(problem, row["sample"], answer, verdict, *times, row["turn"], row.get("credit"))


def sample_of(row: dict[str, Any], problem: Problem) -> Sample:
    """`from_row(row, problem).as_sample()`, in a third of the time: comparisons read many rows and need no more."""
    score, credit, finish = row["score"], row.get("credit"), FINISHES[row["finish"]]
    return Sample(
        problem.id, row["sample"], row["correct"], score, row["error"], row["judge_s"], row["gen_tokens"],
        finish is Finish.LENGTH, row.get("entropy"), row["answer"], problem.skill, str(problem.meta.get("level", "")),
        row["turn"], row["at_s"], score if credit is None else credit, "stopped_early" in row["flags"],
        TESTS_LEFT_OUT in problem.meta, finish is not Finish.ERROR,
    )  # fmt: skip
