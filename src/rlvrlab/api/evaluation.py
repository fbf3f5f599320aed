"""Examine a policy from Python."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from rlvrlab import plain_files
from rlvrlab.api.recipes import RecipeLike, is_toml_text, refuse_unnamed_env, with_functions
from rlvrlab.api.short_errors import short_errors
from rlvrlab.api.shown import frame, html_table
from rlvrlab.api.stopped import tell_kept
from rlvrlab.cli.eval import AnswersBar
from rlvrlab.cli.examined import name_of, problems_of, subject_of_recipe
from rlvrlab.cli.names import run_folder
from rlvrlab.cli.waiting import patient
from rlvrlab.engines.base import Engine
from rlvrlab.errors import AskedToStop, RunError, UserError, suggestion
from rlvrlab.evals.answering import AT_ONCE, EngineAnswerer
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import Protocol, Spent, named_protocol
from rlvrlab.plain_files import file_name, parsed
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.shipped import ENDING, files, named_file
from rlvrlab.record.evaluation import read_evaluation
from rlvrlab.record.files import place_in, stamp_now
from rlvrlab.record.final import checkpoint_words, split_run
from rlvrlab.shares import percent
from rlvrlab.train.lab import engine_alone
from rlvrlab.train.policy import policy_of
from rlvrlab.types import Role

Folder = str | PathLike[str]
NO_DEADLINE = 0.0
"""Whoever waits in Python sees it, and can interrupt."""


class Evaluation:
    """A finished evaluation, read from its folder."""

    @short_errors
    def __init__(self, folder: Folder) -> None:
        self.folder = Path(folder)
        self._stored = read_evaluation(self.folder)
        try:
            self._summary: dict[str, Any] = parsed(plain_files.read_text(self.folder / "summary.json"))
        except (OSError, ValueError):
            by_command = "request" in self._stored.info
            again = f"`rlvr eval --resume {self.folder}`" if by_command else "the same call and output= this folder"
            raise RunError(f"{self.folder}: not finished; go on with {again}") from None

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
        shown = percent(self.accuracy, *self.interval)
        return f"Evaluation({self.data}, {self.protocol}, {self.checkpoint}, {self.problems} problems: {shown})"

    def _repr_html_(self) -> str:
        parts = {self.data: self.metrics} | (self.by_skill if len(self.by_skill) > 1 else {})
        keys = ("accepted_at_1", "accepted_at_1_low", "accepted_at_1_high")
        rows = [(name, m["problems"], percent(*(m[key] for key in keys))) for name, m in parts.items()]
        return html_table(
            f"{self.data} · {self.protocol} · {self.checkpoint}", ("", "problems", "accepted@1 [95 %]"), rows
        )


@short_errors
def evaluate(
    what: RecipeLike,
    *,
    reward: Any = None,
    env: Any = None,
    data: Any = None,
    protocol: Literal["@1", "@k", "@budget"] | None = None,
    n: int | None = None,
    ks: Sequence[int] = (),
    temperature: float | None = None,
    budget: tuple[Spent, float] | None = None,
    size: int | None = None,
    role: Role = "test",
    seed: int = 0,
    output: Folder | None = None,
    progress: bool = True,
) -> Evaluation:
    """Examine a run ("DIR", "DIR@best", Run) or a recipe's untrained policy; `n` answers per problem mean @k.

    `reward`, `env` and `data` are those of `train`; a run is asked by the environment given here in place of its own.
    A file as `data` without `env` holds prepared problems (`rlvr data prepare`), and all of them are asked.
    `budget` is ("tokens", 2000), ("judge_s", 5) or ("wall_s", 60). The folder lies below the run, or in evaluations/.
    Ctrl-C and SIGTERM are raised as by `train`; what was judged by then is kept.
    """
    file = Path(data) if env is None and isinstance(data, str | PathLike) else None
    home, resolved, engine, facts = _examined(what, reward, env, None if file else data)
    subject = subject_of_recipe(resolved)
    wanted = _protocol(protocol, resolved.recipe.rollout.max_tokens, n, ks, temperature, budget)
    asks, in_force = wanted.applied(subject.env, subject.chosen)
    problems, name, more = problems_of(subject, role, size, file)
    answerer = EngineAnswerer(engine, facts, AT_ONCE, entropy=True)
    if output is None:
        stamp = f"{stamp_now()}_{secrets.token_hex(2)}"
        who = f"step_{facts['step']}" if "step" in facts else file_name(name_of(answerer.identity()))
        asked = name if file else f"{name}_{role}"
        place = place_in(home, "evaluations") if "step" in facts else home / "evaluations"
        output = place / f"{file_name(asked)}_{in_force.name}_{who}_{stamp}"
    total = len(problems) * (1 if in_force.budget else in_force.n)
    try:
        with patient("the evaluation", NO_DEADLINE) as alive, AnswersBar(total, not progress, alive) as bar:
            evaluate_into(
                Path(output), answerer, asks, problems, in_force,
                seed=seed, data=name, facts={**more, **subject.facts}, observe=bar.observe,
                run=home if "run" in facts else None,
                reward=subject.reward,
            )  # fmt: skip
    except KeyboardInterrupt:
        tell_kept(Path(output))
        raise
    except AskedToStop as asked_to:
        tell_kept(Path(output))
        raise SystemExit(asked_to.exit_code) from None
    return Evaluation(output)


def _protocol(
    name: str | None, max_tokens: int, n: int | None, ks: Sequence[int], temperature: float | None, budget: Any
) -> Protocol:
    """The protocol that was asked for by name, or that the other words mean."""
    kind = name or ("@budget" if budget else "@k" if n and n > 1 else "@1")
    if kind == "@budget" and budget is None:
        raise UserError("evaluate: protocol '@budget' needs one, e.g. budget=('tokens', 2000)")
    try:
        return named_protocol(
            kind, max_tokens=max_tokens, n=None if kind == "@1" and n == 1 else n, ks=ks,
            budget="=".join(map(str, budget)) if budget else "", temperature=temperature,
        )  # fmt: skip
    except UserError as error:
        raise UserError(f"evaluate: {error}") from None


def _examined(what: RecipeLike, reward: Any, env: Any, data: Any) -> tuple[Path, Resolved, Engine, dict[str, Any]]:
    """Where results go, the recipe with what the call gives in place of its own, the policy and its record."""
    if isinstance(what, str | PathLike) and not is_toml_text(what):
        run, which = split_run(fspath(what))
        if run.suffix != ENDING and named_file(run) is None and not run.is_file():
            run = _run_named(run)
            policy = policy_of(run, which)
            return run, with_functions(policy.resolved, reward, env, data, ()), policy.engine, policy.facts
    resolved = refuse_unnamed_env(with_functions(what, reward, env, data, ()))
    return Path(), resolved, engine_alone(resolved), {"keys": resolved.recipe.engine, "weights": "fresh"}


def _run_named(word: Path) -> Path:
    """A run by its folder or a part of its name, as every verb takes it; `word` is no recipe."""
    try:
        return run_folder(str(word))
    except UserError as error:
        near = suggestion(str(word), files())
        near = f" ({near.removeprefix('; ')})" if "did you mean" in near else ""
        raise UserError(f"{word}: no such run folder, and no recipe of that name{near}: {error}") from None
