"""Examine a policy from Python, and compare two examinations."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from rlvrlab.api.recipes import RecipeLike, is_toml_text, load_recipe, refuse_unnamed_env
from rlvrlab.api.short_errors import short_errors
from rlvrlab.api.shown import frame, html_table, share
from rlvrlab.cli.eval import AnswersBar
from rlvrlab.cli.examined import AT_ONCE, name_of, problems_of, subject_of_recipe
from rlvrlab.cli.names import RUN_AT, run_folder
from rlvrlab.engines.base import Engine
from rlvrlab.errors import RunError, UserError, suggestion
from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.compare import Comparison as Compared
from rlvrlab.evals.compare import compare_folders
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.matching import matching
from rlvrlab.evals.protocol import MOST_ANSWERS, Budget, Protocol, Spent, eval_at_1, eval_at_budget, eval_at_k
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.shipped import ENDING, files, named_file
from rlvrlab.record.evaluation import file_name, read_evaluation
from rlvrlab.record.files import parsed
from rlvrlab.record.final import checkpoint_words, split_run, standing
from rlvrlab.train.lab import engine_alone
from rlvrlab.train.policy import policy_of
from rlvrlab.types import Role

Folder = str | PathLike[str]


class Evaluation:
    """A finished evaluation, read from its folder."""

    @short_errors
    def __init__(self, folder: Folder) -> None:
        self.folder = Path(folder)
        self._stored = read_evaluation(self.folder)
        try:
            self._summary: dict[str, Any] = parsed((self.folder / "summary.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise RunError(f"{self.folder}: not finished; go on with `rlvr eval --resume {self.folder}`") from None

    @property
    def data(self) -> str:
        """The data set's name."""
        return str(self._summary["data"])

    @property
    def protocol(self) -> str:
        """EVAL@1, EVAL@k or EVAL@budget."""
        return str(self._summary["protocol"])

    @property
    def checkpoint(self) -> str:
        """Which checkpoint answered: `base` or `step 50`; the model or engine where it was none of a run."""
        who = self._stored.examined["who"]
        return checkpoint_words(who.get("step")) or name_of(who)

    @property
    def problems(self) -> int:
        """How many problems were asked."""
        return int(self.metrics["problems"])

    @property
    def accuracy(self) -> float:
        """Share of problems whose first answer was accepted."""
        return float(self.metrics["accepted_at_1"])

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the accuracy."""
        return float(self.metrics["accepted_at_1_low"]), float(self.metrics["accepted_at_1_high"])

    @property
    def metrics(self) -> dict[str, Any]:
        """Every number by name, e.g. `accepted_at_1` and `pass@8`."""
        return dict(self._summary["total"])

    @property
    def by_skill(self) -> dict[str, dict[str, Any]]:
        """The main numbers of each skill."""
        return dict(self._summary["by_skill"])

    def samples(self, as_frame: bool = False) -> Any:
        """Every judged answer as a dict, or all of them as a pandas DataFrame."""
        rows = [dict(row) for row in self._stored.rows]
        return frame(rows) if as_frame else rows

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {"folder": str(self.folder), "checkpoint": self.checkpoint, **self._summary}

    def __fspath__(self) -> str:
        return fspath(self.folder)

    def __repr__(self) -> str:
        shown = share(self.accuracy, *self.interval)
        return f"Evaluation({self.data}, {self.protocol}, {self.checkpoint}, {self.problems} problems: {shown})"

    def _repr_html_(self) -> str:
        parts = {self.data: self.metrics} | (self.by_skill if len(self.by_skill) > 1 else {})
        keys = ("accepted_at_1", "accepted_at_1_low", "accepted_at_1_high")
        rows = [(name, m["problems"], share(*(m[key] for key in keys))) for name, m in parts.items()]
        return html_table(
            f"{self.data} · {self.protocol} · {self.checkpoint}", ("", "problems", "accepted@1 [95 %]"), rows
        )


@dataclass(frozen=True)
class Comparison:
    """Two evaluations of the same problems; `accepted` is what most want to know."""

    data: str
    problems: int
    """Problems judged on both sides."""
    before: float
    """Share accepted on the first side."""
    after: float
    """Share accepted on the second side."""
    difference: float
    """after − before."""
    interval: tuple[float, float]
    """95 % interval of the difference."""
    p: float | None
    """Two-sided p value of the difference in `accepted`; None with two seeds on a side, too few to test."""
    verdict: str
    """higher, lower or not shown."""
    compared: Compared
    """All measures, by skill and by level."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to mind: sides that were examined differently, or not to the end."""
        return self.compared.notes

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        facts: dict[str, Any] = json.loads(json.dumps(self.compared.facts()))
        return facts

    def __repr__(self) -> str:
        low, high = (100 * value for value in self.interval)
        points = f"{100 * self.difference:+.1f} points [{low:+.1f}, {high:+.1f}]"
        points += "" if self.p is None else f", p = {self.p:.2g}"
        return f"Comparison({self.data}, {self.problems} problems{self.compared.stages}: {points}, {self.verdict})"

    def _repr_html_(self) -> str:
        head = ("", "before", "after", "difference [95 %]", "p", "")
        rows = []
        for row in (*self.compared.measures, *self.compared.by_skill):
            gap = f"{row.difference.mean:+.3g} [{row.difference.low:+.3g}, {row.difference.high:+.3g}]"
            rows.append((row.what, f"{row.before:.3g}", f"{row.after:.3g}", gap, row.difference.p_words, row.verdict))
        return html_table(self.compared.about, head, rows, self.notes)


@short_errors
def evaluate(
    what: RecipeLike,
    *,
    protocol: Literal["@1", "@k", "@budget"] | None = None,
    n: int | None = None,
    ks: Sequence[int] = (),
    temperature: float | None = None,
    budget: tuple[Spent, float] | None = None,
    size: int | None = None,
    role: Role = "test",
    data: Folder | None = None,
    seed: int = 0,
    output: Folder | None = None,
    progress: bool = True,
) -> Evaluation:
    """Examine a run ("DIR", "DIR@best", Run) or a recipe's untrained policy; `n` answers per problem mean @k.

    `budget` is ("tokens", 2000), ("judge_s", 5) or ("wall_s", 60). The folder lies below the run, or in evaluations/.
    """
    home, resolved, engine, facts = _examined(what)
    subject = subject_of_recipe(resolved)
    wanted = _protocol(protocol, n, ks, temperature, budget, resolved.recipe.rollout.max_tokens)
    env, in_force = wanted.applied(subject.env, subject.chosen)
    problems, name, more = problems_of(subject, role, size, None if data is None else Path(data))
    answerer = EngineAnswerer(engine, facts, AT_ONCE, entropy=True)
    if output is None:
        stamp = f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime())}_{secrets.token_hex(2)}"
        who = f"step_{facts['step']}" if "step" in facts else file_name(name_of(answerer.identity()))
        asked = name if data else f"{name}_{role}"
        output = home / "evaluations" / f"{file_name(asked)}_{in_force.name}_{who}_{stamp}"
    with AnswersBar(len(problems) * (1 if in_force.budget else in_force.n), quiet=not progress) as bar:
        kept = evaluate_into(
            Path(output), answerer, env, problems, in_force,
            seed=seed, data=name, facts={**more, **subject.facts}, observe=bar.observe,
            run=home if "run" in facts else None,
            reward=subject.reward,
        )  # fmt: skip
    return Evaluation(kept.folder)


@short_errors
def compare(
    before: Folder | Sequence[Folder],
    after: Folder | Sequence[Folder],
    *,
    anyway: bool = False,
    paired: bool | None = None,
) -> Comparison:
    """A paired comparison of two evaluations or runs; several on a side are seeds.

    A run stands for its last checkpoint, "DIR@20", "DIR@best" or "DIR@base" for another one; of its evaluations there,
    those on the most test problems are taken that ask the same of both sides. A checkpoint that has not been evaluated
    yet is evaluated on its run's test problems first.
    """
    sides: list[list[str]] = []
    for side in (before, after):
        named = [side] if isinstance(side, str | PathLike) else list(side) if isinstance(side, Sequence) else [side]
        if odd := [one for one in named if not isinstance(one, str | PathLike)]:
            raise UserError(f"compare: an evaluation, a run, a folder or a list of them, not {odd[0]!r:.60}")
        sides.append([fspath(one) for one in named])
    if not all(sides):
        raise UserError("compare: name two evaluations or runs")
    sides = [[RUN_AT.convert(one, None, None) for one in side] for side in sides]
    for run, which in [split_run(one) for side in sides for one in side]:
        if (run / "config.json").is_file() and not standing(run, which):
            evaluate(f"{run}@{which}", progress=False)
    first, second = ([Path(one) for one in side] for side in sides)
    compared = compare_folders(*matching(first, second, anyway), anyway, paired)
    accepted = compared.measures[0]
    gap = accepted.difference
    return Comparison(
        compared.data, compared.problems, accepted.before, accepted.after, gap.mean, (gap.low, gap.high),
        gap.p, accepted.verdict, compared,
    )  # fmt: skip


def _examined(what: RecipeLike) -> tuple[Path, Resolved, Engine, dict[str, Any]]:
    """Where results go, the recipe, the policy and what is recorded about it."""
    if isinstance(what, str | PathLike) and not is_toml_text(what):
        run, which = split_run(fspath(what))
        if run.suffix != ENDING and named_file(run) is None and not run.is_file():
            run = _run_named(run)
            policy = policy_of(run, which)
            return run, policy.resolved, policy.engine, policy.facts
    resolved = refuse_unnamed_env(load_recipe(what))
    return Path(), resolved, engine_alone(resolved), {"keys": resolved.recipe.engine, "weights": "fresh"}


def _run_named(word: Path) -> Path:
    """A run by its folder or a part of its name, as every verb takes it; `word` is no recipe."""
    try:
        return run_folder(str(word))
    except UserError as error:
        near = suggestion(str(word), files())
        near = f" ({near.removeprefix('; ')})" if "did you mean" in near else ""
        raise UserError(f"{word}: no such run folder, and no recipe of that name{near}: {error}") from None


def _protocol(
    name: str | None,
    n: int | None,
    ks: Sequence[int],
    temperature: float | None,
    budget: tuple[Spent, float] | None,
    longest: int,
) -> Protocol:
    name = name or ("@budget" if budget else "@k" if n and n > 1 else "@1")
    usual = 1.0 if temperature is None else temperature
    if name == "@1":
        if (n or 1) > 1 or ks or temperature or budget:
            raise UserError("evaluate: @1 is one greedy answer; take protocol='@k' for n, ks and temperature")
        return eval_at_1(longest)
    if name == "@k":
        n = n or 8
        return eval_at_k(n, ks or sorted({1, n}), usual, max_tokens=longest)
    if name != "@budget" or budget is None:
        raise UserError(f"evaluate: protocol {name!r} with budget {budget!r}; @1, @k, or @budget with ('tokens', 2000)")
    return eval_at_budget(Budget(*budget), usual, max_tokens=longest, n=n or MOST_ANSWERS)
