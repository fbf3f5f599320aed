"""rlvr credit: a solution, or the answers of a run, with the credit of each line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rlvrlab.cli.names import RUN_OR_OTHER
from rlvrlab.cli.options import ACCEPT_CODE, AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import UserError, writing_to
from rlvrlab.judge.extract import program_in
from rlvrlab.shares import signed
from rlvrlab.types import Completion, ErrorKind, Problem, Request, Reward, Rollout, Sampling, Tokenizer, Verdict

if TYPE_CHECKING:
    from rlvrlab.train.credit.credited import Credited, StepCredits

ESTIMATORS = ("leave_one_out", "prefix", "tail", "shapley", "banzhaf", "bisect")
INTERVENTIONS = ("delete", "truncate", "null", "reorder")
"""Interventions that need no policy."""
SEGMENTATIONS = ("auto", "python", "sql", "turns", "text", "words")
UNKNOWN, NO_STEP = "?", ""
"""Shown in place of a line's credit where it is unknown, and where the line belongs to no step."""
BAR = 8
"""Characters of the longest bar."""


@click.command("credit", short_help="Show which lines of an answer earned its reward.")
@click.argument("given", metavar="FILE|RUN", type=RUN_OR_OTHER)
@click.option("-p", "--problem", type=click.Path(path_type=Path), help="Task of FILE, as for `rlvr judge`.")
@click.option("--step", type=click.IntRange(0), help="Step of RUN; default the last one recorded.")
@click.option("--take", default=3, show_default=True, type=click.IntRange(1), help="Answers of RUN, best first.")
@click.option("--estimator", type=click.Choice(ESTIMATORS), default="leave_one_out", show_default=True)
@click.option("--intervention", multiple=True, type=click.Choice(INTERVENTIONS), default=("delete",), show_default=True)
@click.option("-k", "budget", default=0, show_default=True, type=click.IntRange(0),
              help="Steps examined per answer; 0 all.")  # fmt: skip
@click.option("--segmentation", type=click.Choice(SEGMENTATIONS), default="auto", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Data of the heat map; RUN has analysis/credit.json.")
@ACCEPT_CODE
@AS_JSON
def command(
    given: str, problem: Path | None, step: int | None, take: int, estimator: str, intervention: tuple[str, ...],
    budget: int, segmentation: str, output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Show which lines of an answer earned its reward.

    \b
    rlvr credit solution.py -p task.json              delete each statement, judge again
    rlvr credit solution.py -p task.json --estimator shapley
    rlvr credit experiments/RUN --step 100            answers of a training step

    A line's number is what the reward loses without it. `?` is unknown: the altered program does not run, or was not
    judged. The reward of FILE is its share of tests passed; that of RUN is the recipe's.
    """
    from rlvrlab.recipe.schema import instantiate
    from rlvrlab.record.files import place_in, write_json

    table = {"type": "counterfactual", "estimator": estimator, "intervention_types": list(intervention)}
    plugin = instantiate("credit", {**table, "counterfactual_k": budget, "segmentation": segmentation}, Path())
    path = Path(given)
    if path.is_dir():
        output = output or place_in(path, "analysis") / "credit.json"
        credits = _of_run(plugin, path, step, take)
    else:
        credits = _of_file(plugin, path, problem)
    answers = [_answer(name, one) for name, one in credits.answers.items()]
    data = {"estimator": estimator, "label": plugin.label, "cost": credits.metrics, "answers": answers}
    if output is not None:
        with writing_to(output, "choose another --output"):
            write_json(output, data)
    if as_json:
        print_json(data)
        return
    for answer in answers:
        _show(answer)
    calls, replays = credits.metrics["credit/verifier_calls"], credits.metrics["credit/replays"]
    click.echo(f"{estimator} ({plugin.label}): {replays:.0f} replays, {calls:.0f} judged")


def _of_file(plugin: Any, path: Path, problem: Path | None) -> StepCredits:
    """One solution under one task of the judge."""
    from rlvrlab.cli.judge import PROSE, read_task, read_text
    from rlvrlab.evals.recovery import score
    from rlvrlab.judge.judge import Judge
    from rlvrlab.train.credit.methods import credit_of

    text = read_text(path)
    if problem is None:
        raise UserError(f"{path}: name its task with -p task.json, or give the folder of a run")
    task = read_task(problem)
    with Judge() as judge:
        env = _Judged(judge, task, path.suffix in PROSE)
        asked = Problem(path.name, "file", "file", "")
        [verdict] = env.verify_many([(asked, text)])
        if verdict.correct is None:
            raise UserError(f"{path}: could not be judged ({verdict.detail})")
        rollout = _rollout(path.name, asked, text, verdict, verdict.score)
        return credit_of(plugin, [rollout], env, score, NoPolicy(), Sampling())  # type: ignore[arg-type]


def _of_run(plugin: Any, folder: Path, step: int | None, take: int) -> StepCredits:
    """Recorded answers, replayed under the run's own environment and reward."""
    from rlvrlab.record.files import read_lines
    from rlvrlab.record.run import rollout_files
    from rlvrlab.train.credit.methods import credit_of
    from rlvrlab.train.session import resolved_of

    resolved = resolved_of(folder)
    env, data = resolved.build("env"), resolved.recipe.data
    recorded = rollout_files(folder)
    if not recorded:
        raise UserError(f"{folder}: no recorded answers; train with record.rollouts=all")
    chosen = max(recorded) if step is None else step
    if chosen not in recorded:
        raise UserError(f"{folder}: no answers of step {chosen}; recorded: {min(recorded)} to {max(recorded)}")
    known = {problem.id: problem for problem in env.problems("train", data.train_size, data.seed)}
    rollouts: dict[tuple[str, str], Rollout] = {}
    judged = [row for row in read_lines(recorded[chosen], answers=True) if row["reward"] is not None]
    for row in sorted(judged, key=lambda row: -row["reward"]):  # what earned nothing has little to lose
        if len(rollouts) >= take or (row["problem"], row["completion"]) in rollouts:
            continue
        stored = Problem(row["problem"], env.name, row["skill"], row["prompt"], row["reference"])
        verdict = Verdict(row["correct"], row["score"], ErrorKind(row["error"]), detail=row["detail"])
        problem = known.get(row["problem"], stored)
        key = row["problem"], row["completion"]
        rollouts[key] = _rollout(row["id"], problem, row["completion"], verdict, row["reward"])
    if not rollouts:
        raise UserError(f"{recorded[chosen]}: no judged answers in it; choose another --step")
    return credit_of(plugin, list(rollouts.values()), env, resolved.build("reward"), NoPolicy(), Sampling())


def _rollout(name: str, problem: Problem, text: str, verdict: Verdict, value: float) -> Rollout:
    completion = Completion(text, tuple(map(ord, text)), ())
    return Rollout(name, name, problem, (), completion, verdict, Reward(value))


class Characters:
    """A tokenizer whose tokens are code points, one per character."""

    vocab_size, end, ends = 0x110000, -1, frozenset({-1})

    def encode(self, text: str) -> tuple[int, ...]:
        """The code points of a text."""
        return tuple(map(ord, text))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of code points."""
        return "".join(map(chr, tokens))


class NoPolicy:
    """A sampler for answers whose policy is not at hand: it has a tokenizer and refuses to sample."""

    def __init__(self) -> None:
        self.tokenizer: Tokenizer = Characters()

    def sample(self, requests: Sequence[Request]) -> NoReturn:
        """Refuse, since there is no policy here."""
        raise UserError("credit that asks the policy again is only measured in training")


class _Judged:
    """The judge's task as an environment."""

    name, version = "file", "1"

    def __init__(self, judge: Any, task: Any, prose: bool) -> None:
        self.judge, self.task, self.prose = judge, task, prose

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge each text, or the program in it where the file is prose; prose without a program is no answer."""
        codes = [(program_in(text).code or "") if self.prose else text for _, text in items]
        return self.judge.verify_many([(self.task, code) for code in codes])


def _answer(name: str, one: Credited) -> dict[str, Any]:
    """What a heat map needs: the text, its steps by character with their credit, and its lines.

    A line has the credit of the step in which its first character that is not space stands.
    """
    rollout, steps = one.trajectory.rollout, one.trajectory.segments.steps
    known_S = [None if math.isnan(value) else round(float(value), 6) for value in one.raw_S]
    owner = {place: step.index for step in steps for place in range(*step.span)}
    lines, at = [], 0
    for line in rollout.completion.text.splitlines(keepends=True):
        index = owner.get(at + len(line) - len(line.lstrip()))
        credit = NO_STEP if index is None else UNKNOWN if known_S[index] is None else known_S[index]
        lines.append({"text": line.rstrip("\r\n"), "credit": credit})
        at += len(line)
    return {
        "id": name,
        "problem": rollout.problem.id,
        "correct": rollout.verdict.correct,
        "reward": None if rollout.reward is None else rollout.reward.value,
        "text": rollout.completion.text,
        "steps": [
            {"start": step.span[0], "end": step.span[1], "kind": step.kind, "credit": credit}
            for step, credit in zip(steps, known_S, strict=True)
        ],
        "lines": lines,
    }


def _show(one: dict[str, Any]) -> None:
    """Print an answer line by line, each after its credit as a number and a bar."""
    mark = {True: "✓", False: "✗", None: "?"}[one["correct"]]
    click.echo(printable(f"{mark} {one['id']}  reward {one['reward']:g}"))
    most = max((abs(line["credit"]) for line in one["lines"] if isinstance(line["credit"], float)), default=0.0) or 1.0
    for line in one["lines"]:
        credit = line["credit"]
        number, colour, bar = str(credit), None, ""
        if isinstance(credit, float):
            number, bar = signed(credit), "█" * round(BAR * abs(credit) / most)
            colour = "green" if credit > 0 else "red" if credit < 0 else None
        click.echo(click.style(f"{number:>6} {bar:<{BAR}} ", fg=colour) + "│ " + printable(line["text"].expandtabs(4)))
    click.echo()
