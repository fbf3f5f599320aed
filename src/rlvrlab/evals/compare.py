"""Two evaluations of the same problems: how much better, how sure, and what could have been seen at all.

Each side is one folder or several (seeds). Problems are paired by content. The protocol's question (`accepted@1`,
`pass@1` where several answers were drawn, or what a budget solved) stands alone; all other rows of a table are so many
more chances of a false finding, so their intervals and p values are adjusted together. A verdict is read off the
interval that stands beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.errors import NotAlike, and_more
from rlvrlab.evals.judged import problems_of_roles, sample_of
from rlvrlab.evals.metrics import Sample, grouped, solved_within
from rlvrlab.evals.replicates import pairs, refuse_repeats
from rlvrlab.evals.statistics import Difference, compare_seeds
from rlvrlab.recipe.parse import flatten
from rlvrlab.record.evaluation import Stored
from rlvrlab.record.final import checkpoint_words
from rlvrlab.record.settings import Setting, between_examined
from rlvrlab.shares import difference, pass_at_k

Score = Callable[[Sequence[Sample]], float | None]
"""The number that a problem's answers earn; None where they have no value."""


def _mean(value: Callable[[Sample], float | None]) -> Score:
    def over_answers(answers: Sequence[Sample]) -> float | None:
        if len(answers) == 1:
            return value(answers[0])
        values = [number for one in answers if (number := value(one)) is not None]
        return sum(values) / len(values) if values else None

    return over_answers


def _if_judged(value: Callable[[Sample], float]) -> Score:
    return _mean(lambda one: None if one.accepted is None else value(one))


def _if_answered(value: Callable[[Sample], float]) -> Score:
    return _mean(lambda one: None if not one.answered else value(one))


def pass_at(k: int) -> Score:
    """Unbiased pass@k of a problem; none where fewer than k of its answers were judged."""

    def estimate(answers: Sequence[Sample]) -> float | None:
        judged = [one for one in answers if one.accepted is not None]
        if len(judged) < k:
            return None
        return pass_at_k(len(judged), sum(one.accepted is True for one in judged), k)

    return estimate


def _solved(answers: Sequence[Sample], kind: str, amount: float) -> float | None:
    """Whether a problem was solved within the budget; none where a failure hides that."""
    known = solved_within(sorted(answers, key=lambda one: one.sample), kind, amount)
    return None if known is None else float(known)


ACCEPTED = _if_judged(lambda one: float(one.accepted is True))
"""The share of right answers: accepted@1 of one answer, pass@1 of several."""


def _of_first(score: Score) -> Score:
    """The same of a problem's first answer: where answers are drawn until one is right, a mean over them flatters."""
    return lambda answers: score([one for one in answers if one.sample == 0])


MEASURES: dict[str, Score] = {
    "accepted": ACCEPTED,
    "mean_accuracy": _if_judged(lambda one: one.accuracy_or_ratio),
    "format_rate": _if_judged(lambda one: float(one.error_type not in ("format", "syntax"))),
    "truncated": _if_answered(lambda one: float(one.truncated)),
    "gen_tokens": _if_answered(lambda one: float(one.gen_tokens)),
    "avg_entropy": _mean(lambda one: one.entropy),
}
"""What is compared, the first also by skill and by level; EVAL@k adds its pass@k, EVAL@budget what was solved."""
PROBLEMS = {"keys.data", "keys.path"}
"""Keys of environments that say which problems there are, not how answers to them are judged."""
QUESTIONS = (("data set", "data", "data"), ("scorer", "scorer", "scorer"), ("protocol", "protocol_hash", "protocol"))
"""What both sides must have been asked alike: in words, the fact that tells, and the fact with its names."""
NOBODY_JUDGED = "compare: no problem was judged on both sides; evaluate both with the same size and seed"
ASKED_BY = {
    "sampling.max_tokens": "rollout.max_tokens (rlvr eval --max-tokens)",
    "sampling.temperature": "temperature (rlvr eval --temperature)",
    "sampling.top_p": "top_p (rlvr eval --top-p)",
    "n": "n (rlvr eval --n)",
    "tries": "tries (rlvr eval --tries)",
}
"""Keys of a protocol, and where a user sets them: in the recipe, or as an option."""
ANYWAY = "--anyway, in Python anyway=True"
NOT_SHOWN = "not shown: the interval includes zero, so a difference is neither shown nor ruled out."
MOST_SETTINGS = 12
"""Settings that differ are shown up to this number."""
PLAIN = {"gen_tokens": "tokens", "avg_entropy": "nats"}
"""Measures that are no shares, with their units; by themselves neither good nor bad when they move."""
LESS_IS_BETTER = frozenset({"truncated"})
"""Measures whose fall is good."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    """What is compared: `accepted@1`, `skill chat`, `level 3`."""
    before: float
    after: float
    difference: Difference
    """Interval and p; both alone or both adjusted, as its `tests` says."""

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.verdict != "not shown"

    @property
    def verdict(self) -> str:
        """`higher`, `lower` or `not shown`."""
        return self.difference.verdict


@dataclass(frozen=True)
class Comparison:
    """Everything `rlvr compare` says."""

    data: str
    roles: tuple[str, ...]
    """What the problems are for: `test`, or `dev`, which also choose checkpoints and settings."""
    runs: tuple[tuple[str, ...], tuple[str, ...]]
    """The names of what was compared on each side: runs, or evaluations of policies that are none of a run."""
    checkpoints: tuple[str, str]
    """Which checkpoints answered on each side: `base`, `step 50`, `step 40, step 50`; empty where it is not known."""
    problems: int
    """Problems that were answered and judged on both sides."""
    left_out: int
    """Problems that are on one side only, or unjudged."""
    bounds: tuple[float, float] | None
    """The least and the most that the first difference would be with everything unjudged counted; None: all judged."""
    seeds: tuple[int, int]
    spread: tuple[float | None, float | None]
    """Standard deviation of the first measure over seeds, where there are several."""
    paired: bool
    """Whether the i-th runs of both sides were compared with each other: stages of one run, or as asked."""
    over: str
    """What the intervals hold for: `problems` (one run on each side), or `seeds and problems`."""
    measures: tuple[Row, ...]
    by_skill: tuple[Row, ...]
    by_level: tuple[Row, ...]
    notes: tuple[str, ...]
    settings: tuple[Setting, ...] | None = None
    """In which settings the recipes of both sides differ; None where they are the same runs, or not all are here."""

    @property
    def caution(self) -> str:
        """What a reader must know about the seeds, in words."""
        return self.measures[0].difference.caution

    @property
    def about(self) -> str:
        """The heading: data, how many problems, of which role, and which checkpoints answered."""
        left = f", {self.left_out} left out" if self.left_out else ""
        return f"{self.data} · {self.problems} {problems_of_roles(self.roles)} on both sides{left}{self.stages}"

    @property
    def stages(self) -> str:
        """The checkpoints in words, to end a heading with: ` · base against step 50`."""
        if not any(self.checkpoints):
            return ""
        before, after = (side or "no run" for side in self.checkpoints)
        return f" · {before} against {after}"

    @property
    def who(self) -> str:
        """Both sides by name, and how many seeds: `before: a_s0, a_s1 (2 seeds); after: b_s0, b_s1 (2 seeds)`."""
        told = [", ".join(names) + (f" ({len(names)} seeds)" if len(names) > 1 else "") for names in self.runs]
        return f"before: {told[0]}; after: {told[1]}"

    @property
    def adjustment(self) -> str:
        """Which rows stand alone and which are adjusted, in words."""
        first, rest = self.measures[0].what, len(self.measures) - 1
        words = f"{first} is the main question: its interval and p are not adjusted."
        if rest > 1:
            words += f" Intervals and p of the other {rest} rows are adjusted together (Bonferroni)"
            words += ", as are those of each further table." if self.by_skill or self.by_level else "."
        return words

    @property
    def not_shown(self) -> str:
        """What `not shown` means, where it is said of a row; else nothing."""
        rows = (*self.measures, *self.by_skill, *self.by_level)
        return NOT_SHOWN if any(not row.significant for row in rows) else ""

    @property
    def settings_words(self) -> list[str]:
        """A heading and a line for each setting that differs, the first of very many; nothing where none are known."""
        if self.settings is None:
            return []
        if not self.settings:
            return ["settings that differ: none, names aside"]
        lines = [f"  {one.words}" for one in self.settings[:MOST_SETTINGS]]
        more = and_more(len(self.settings), len(lines))
        return ["settings that differ:", *lines, *([f"  {more} (--json has all)"] if more else [])]

    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        facts = asdict(self) | {"caution": self.caution, "adjustment": self.adjustment, "not_shown": self.not_shown}
        facts["settings"] = None if self.settings is None else [one._asdict() for one in self.settings]
        for table in ("measures", "by_skill", "by_level"):
            rows: tuple[Row, ...] = getattr(self, table)
            facts[table] = [
                {**asdict(row), "difference": row.difference.facts(), "verdict": row.verdict} for row in rows
            ]
        return facts


def compare_folders(
    before: Sequence[Stored], after: Sequence[Stored], anyway: bool = False, paired: bool | None = None
) -> Comparison:
    """Two sides on the same problems; refused where they were not examined alike, unless `anyway`.

    Several folders on a side are seeds. `paired` compares the i-th of both sides with each other; None does so where
    they are stages of the same runs.
    """
    notes = refuse_unlike([*before, *after], anyway)
    notes += refuse_repeats(before, after) + other_stages(before, after)
    after, paired = pairs(before, after, paired)
    sides = [[first_turns(stored) for stored in side] for side in (before, after)]
    names = {one.keys[problem.id]: problem for one in (*before, *after) for problem in one.problems}
    (question, score), others = _measures(before[0].examined["protocol"])
    asked = _scores(sides, score)
    if not asked.common:
        raise NotAlike(NOBODY_JUDGED)
    if len({one.info.get("partial_credit") for one in (*before, *after)}) > 1:
        del others["mean_accuracy"]  # two yardsticks; the notes say so
    tables = {name: _scores(sides, score) for name, score in others.items()}
    accepted = tables.get("accepted@1", asked)
    # Without partial credit, accepted and mean accuracy are one.
    told = {
        name: one for name, one in tables.items() if one.common and (one is accepted or one.sides != accepted.sides)
    }
    empty = [name for name, one in tables.items() if not one.common and name not in PLAIN]
    notes += [f"{name} is left out: no problem has enough judged answers in every folder." for name in empty]
    rows = [_row(name, scores, paired) for name, scores in told.items()]
    first = _row(question, asked, paired)
    bounds = _bounds(sides, score)
    notes += bounds_note(question, bounds)
    return Comparison(
        data=before[0].examined["data"],
        roles=tuple(sorted({role for one in (*before, *after) for role in one.examined.get("roles", ())})),
        runs=(tuple(map(name_of, before)), tuple(map(name_of, after))),
        checkpoints=(checkpoints_of(before), checkpoints_of(after)),
        problems=len(asked.common),
        left_out=len(names) - len(asked.common),
        bounds=bounds,
        seeds=(len(before), len(after)),
        spread=(spread(asked.matrix(0)), spread(asked.matrix(1))),
        paired=paired,
        over=first.difference.over,
        measures=(first, *_adjusted(rows)),
        by_skill=_split("skill", asked, lambda key: names[key].skill, paired),
        by_level=_split("level", asked, lambda key: str(names[key].meta.get("level", "")), paired),
        notes=tuple(notes),
        settings=between_examined(before, after),
    )


def _measures(protocol: Mapping[str, Any]) -> tuple[tuple[str, Score], dict[str, Score]]:
    """The question that a protocol asks, which is tested alone; and the other measures, adjusted together."""
    others = {name: score for name, score in MEASURES.items() if name != "accepted"}
    if protocol["budget"] is not None:
        first = {name: _of_first(score) for name, score in {"accepted@1": ACCEPTED, **others}.items()}
        return ("solved_at_budget", partial(_solved, **protocol["budget"])), first
    others |= {f"pass@{k}": pass_at(k) for k in protocol["ks"] if k > 1}
    return ("pass@1" if protocol["n"] > 1 else "accepted@1", ACCEPTED), others


Answers = dict[str, list[Sample]]
"""Problem key -> its first-turn answers, for one folder."""


def first_turns(stored: Stored) -> Answers:
    """The answers of an evaluation folder, problem by problem, without repairs after feedback."""
    problems = {problem.id: problem for problem in stored.problems}
    answers: Answers = defaultdict(list)
    for row in stored.rows:
        problem = problems[row["problem"]]
        if row.get("turn", 0) == 0:
            answers[stored.keys[problem.id]].append(sample_of(row, problem))
    return dict(answers)


@dataclass(frozen=True)
class _Scores:
    """What every problem earned under one measure: one table per folder, sides apart."""

    sides: tuple[tuple[dict[str, float | None], ...], ...]
    common: tuple[str, ...]
    """Problems with a value in every folder of both sides, in the first one's order."""

    def matrix(self, side: int, keys: Sequence[str] | None = None) -> Floats:
        """One row per seed and one column per problem."""
        chosen = self.common if keys is None else keys
        return np.array([[folder[key] for key in chosen] for folder in self.sides[side]], dtype=np.float64)


def _scores(sides: Sequence[Sequence[Answers]], score: Score) -> _Scores:
    made = tuple(tuple({key: score(answers) for key, answers in folder.items()} for folder in side) for side in sides)
    folders = [folder for side in made for folder in side]
    return _Scores(made, tuple(key for key in folders[0] if all(f.get(key) is not None for f in folders)))


def _bounds(sides: Sequence[Sequence[Answers]], score: Score) -> tuple[float, float] | None:
    """The first difference on the problems of all folders, were everything unjudged wrong after and right before, and
    the other way round."""
    folders = [folder for side in sides for folder in side]
    shared = [key for key in folders[0] if all(key in folder for folder in folders)]
    if all(one.accepted is not None for folder in folders for key in shared for one in folder[key]):
        return None

    def mean(side: int, right: bool) -> float:
        answers = [folder[key] for folder in sides[side] for key in shared]
        made = [score([replace(s, accepted=right) if s.accepted is None else s for s in own]) for own in answers]
        return sum(value if value is not None else float(right) for value in made) / len(made)

    return mean(1, False) - mean(0, True), mean(1, True) - mean(0, False)


def bounds_note(question: str, bounds: tuple[float, float] | None) -> list[str]:
    """What `Comparison.bounds` says, in words; nothing where everything was judged."""
    if bounds is None:
        return []
    low, high = map(difference, bounds)
    return [f"What could not be judged leaves the difference of {question} between {low} and {high} points."]


def _row(what: str, scores: _Scores, paired: bool, keys: Sequence[str] | None = None) -> Row:
    before, after = scores.matrix(0, keys), scores.matrix(1, keys)
    share = False if what in PLAIN else None
    difference = compare_seeds(before, after, paired=paired, share=share)
    return Row(what, float(before.mean()), float(after.mean()), difference)


def _adjusted(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(replace(row, difference=row.difference.adjusted(len(rows))) for row in rows)


def _split(kind: str, accepted: _Scores, group: Callable[[str], str], paired: bool) -> tuple[Row, ...]:
    """A table by skill or level, where there is more than one."""
    members = grouped(accepted.common, group)
    if len(members) < 2:
        return ()
    return _adjusted([_row(f"{kind} {name}", accepted, paired, keys) for name, keys in sorted(members.items())])


def spread(score_SP: Floats) -> float | None:
    """Standard deviation over seeds of the mean over problems; None where there is one seed."""
    return float(score_SP.mean(axis=1).std(ddof=1)) if len(score_SP) > 1 else None


def _contrast(name: str, one: Any, two: Any) -> str:
    """In what two sides differ: its name, and the values on both; of two environments their names say enough."""
    if not isinstance(one, dict) or not isinstance(two, dict):
        return f"{name}: {one} and {two}"
    if one.get("environment") != two.get("environment"):
        return f"{name}: {one.get('environment')} and {two.get('environment')}"
    first, second = dict(flatten(one)), dict(flatten(two))
    keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    if keys and PROBLEMS.issuperset(keys):
        name = "problems"
    values = "; ".join(f"{ASKED_BY.get(key, key)} {first.get(key)} and {second.get(key)}" for key in keys)
    return f"{name}: {values or 'their versions'}"


def name_of(stored: Stored) -> str:
    """The run that answered, or the evaluation where the policy is none of a run."""
    return str(stored.examined["who"].get("run") or stored.folder.name)


def checkpoints_of(side: Sequence[Stored]) -> str:
    """The checkpoints of a side in words, as in `Comparison.checkpoints`."""
    steps = {one.examined["who"].get("step") for one in side}
    return ", ".join(checkpoint_words(step) for step in sorted(step for step in steps if step is not None))


def other_stages(before: Sequence[Stored], after: Sequence[Stored]) -> list[str]:
    """A note where different runs are compared at different steps: part of the difference may be how long they ran."""
    runs = [{one.examined["who"].get("run") for one in side} for side in (before, after)]
    first, second = checkpoints_of(before), checkpoints_of(after)
    if not first or not second or first == second or runs[0] == runs[1]:
        return []
    return [f"The sides are at different stages of training: {first} before, {second} after."]


def refuse_unlike(folders: Sequence[Stored], anyway: bool) -> list[str]:
    """Notes on where protocol, data set or scorer differ; a refusal unless `anyway`."""
    first, notes = folders[0].examined, []
    for other in folders[1:]:
        for name, one, told in QUESTIONS:
            if other.examined[one] != first[one]:
                differ = _contrast(name, first[told], other.examined[told])
                notes.append(f"{folders[0].folder} and {other.folder} differ in their {differ}")
    if notes and not anyway:
        raise NotAlike(f"compare: {notes[0]}; evaluate both alike, or compare anyway ({ANYWAY})")
    if len({one.info.get("partial_credit") for one in folders}) > 1:
        notes.append("mean_accuracy is left out: partial credit was given by different rewards")
    unfinished = [str(one.folder) for one in folders if one.info.get("status") != "finished"]
    return notes + [f"{name}: not finished; compared as far as it goes" for name in unfinished]
