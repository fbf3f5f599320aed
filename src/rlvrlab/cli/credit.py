"""rlvr credit: a solution, or the answers of a run, with the credit of each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rlvrlab.cli import printable
from rlvrlab.errors import UserError

if TYPE_CHECKING:
    from rlvrlab.train.credit import Credited, StepCredits
    from rlvrlab.types import Completion, Problem, Request, Reward, Rollout, Tokenizer, Verdict

ESTIMATORS = ("leave_one_out", "prefix", "tail", "shapley", "banzhaf")
INTERVENTIONS = ("delete", "truncate", "null", "reorder")
"""Those that need no policy."""
UNKNOWN, GLUE = "?", ""
BAR = 8


@click.command("credit", short_help="Show which lines of an answer earned its reward.")
@click.argument("path", metavar="FILE|RUN", type=click.Path(path_type=Path))
@click.option("-p", "--problem", type=click.Path(path_type=Path), help="Task of FILE, as for `rlvr judge`.")
@click.option("--step", type=int, help="Step of RUN; default the last one recorded.")
@click.option("--take", default=3, show_default=True, help="Different answers of RUN to show.")
@click.option("--estimator", type=click.Choice(ESTIMATORS), default="leave_one_out", show_default=True)
@click.option("--intervention", multiple=True, type=click.Choice(INTERVENTIONS), default=("delete",), show_default=True)
@click.option("-k", "budget", default=0, show_default=True, help="Steps examined per answer; 0 all.")
@click.option("--segmentation", default="auto", show_default=True, help="auto, python, sql, turns, text or words.")
@click.option("--output", type=click.Path(path_type=Path), help="Data of the heat map; RUN has analysis/credit.json.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    path: Path,
    problem: Path | None,
    step: int | None,
    take: int,
    estimator: str,
    intervention: tuple[str, ...],
    budget: int,
    segmentation: str,
    output: Path | None,
    as_json: bool,
) -> int:
    """Show which lines of an answer earned its reward.

    \b
    rlvr credit solution.py -p task.json              delete each statement, judge again
    rlvr credit solution.py -p task.json --estimator shapley
    rlvr credit experiments/RUN --step 100            answers of a training step

    A line's number is what the reward loses without it. `?` is unknown: the altered program does not run, or was not
    judged. The reward of FILE is its share of tests passed; that of RUN is the recipe's.
    """
    from rlvrlab.cli import print_json
    from rlvrlab.recipe.load import instantiate
    from rlvrlab.record.files import write_json

    table = {"type": "counterfactual", "estimator": estimator, "intervention_types": list(intervention)}
    try:
        plugin = instantiate("credit", {**table, "counterfactual_k": budget, "segmentation": segmentation}, Path())
    except ValueError:
        raise UserError(f"segmentation {segmentation!r} or k {budget}: see `rlvr credit --help`") from None
    if path.is_dir():
        found = _of_run(plugin, path, step, take)
        output = output or path / "analysis" / "credit.json"
    else:
        found = _of_file(plugin, path, problem)
    data = {"estimator": estimator, "label": plugin.label, "cost": found.metrics, "answers": _data(found)}
    if output is not None:
        write_json(output, data)
    if as_json:
        print_json(data)
        return 0
    for one in data["answers"]:
        _show(one)
    calls, replays = found.metrics["credit/verifier_calls"], found.metrics["credit/replays"]
    click.echo(f"{estimator} ({plugin.label}): {replays:.0f} replays, {calls:.0f} judged")
    return 0


def _of_file(plugin: Any, path: Path, problem: Path | None) -> StepCredits:
    """One solution under one task of the judge."""
    from rlvrlab.cli.judge import PROSE, read_task, read_text
    from rlvrlab.judge.judge import Judge
    from rlvrlab.train.credit import credit_of
    from rlvrlab.types import Problem, Sampling

    if problem is None:
        raise UserError(f"{path}: name its task with -p task.json, or give the folder of a run")
    text, task = read_text(path), read_task(problem)
    with Judge(stop_on_first_failure=False) as judge:
        env = _Judged(judge, task, path.suffix in PROSE)
        asked = Problem(path.name, "file", "file", "")
        [verdict] = env.verify_many([(asked, text)])
        if verdict.correct is None:
            raise UserError(f"{path}: could not be judged ({verdict.detail})")
        rollout = _rollout(path.name, asked, text, verdict, verdict.score)
        return credit_of(plugin, [rollout], env, _score, NoPolicy(), Sampling())  # type: ignore[arg-type]


def _of_run(plugin: Any, folder: Path, step: int | None, take: int) -> StepCredits:
    """Recorded answers, replayed under the run's own environment and reward."""
    from rlvrlab.record.files import read_lines
    from rlvrlab.train.credit import credit_of
    from rlvrlab.train.session import resolved_of
    from rlvrlab.types import ErrorKind, Problem, Sampling, Verdict

    resolved = resolved_of(folder)
    env, data = resolved.build("env"), resolved.recipe.data
    path = _rollouts_file(folder, step)
    known = {problem.id: problem for problem in env.problems("train", data.train_size, data.seed)}
    rollouts: dict[tuple[str, str], Rollout] = {}
    for row in read_lines(path):
        if row["reward"] is None or len(rollouts) >= take or (row["problem"], row["completion"]) in rollouts:
            continue
        stored = Problem(row["problem"], env.name, row["skill"], row["prompt"], row["reference"])
        verdict = Verdict(row["correct"], row["score"], ErrorKind(row["error"]), detail=row["detail"])
        problem = known.get(row["problem"], stored)
        key = row["problem"], row["completion"]
        rollouts[key] = _rollout(row["id"], problem, row["completion"], verdict, row["reward"])
    if not rollouts:
        raise UserError(f"{path}: no judged answers in it; choose another --step")
    return credit_of(plugin, list(rollouts.values()), env, resolved.build("reward"), NoPolicy(), Sampling())


def _rollouts_file(folder: Path, step: int | None) -> Path:
    found = {int(path.stem.removeprefix("step_")): path for path in (folder / "rollouts").glob("step_*.jsonl")}
    if not found:
        raise UserError(f"{folder}: no recorded answers; train with record.rollouts=all")
    chosen = max(found) if step is None else step
    if chosen not in found:
        raise UserError(f"{folder}: no answers of step {chosen}; recorded: {min(found)} to {max(found)}")
    return found[chosen]


def _rollout(name: str, problem: Problem, text: str, verdict: Verdict, value: float) -> Rollout:
    from rlvrlab.types import Completion, Reward, Rollout

    completion = Completion(text, tuple(map(ord, text)), ())
    return Rollout(name, name, problem, (), completion, verdict, Reward(value))


def _score(problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
    from rlvrlab.types import Reward

    return Reward(verdict.score)


class Characters:
    """Code points as tokens."""

    vocab_size, end = 0x110000, -1

    def encode(self, text: str) -> tuple[int, ...]:
        """Of each character."""
        return tuple(map(ord, text))

    def decode(self, tokens: Sequence[int]) -> str:
        """Back."""
        return "".join(map(chr, tokens))


class NoPolicy:
    """Nobody to ask for more."""

    def __init__(self) -> None:
        self.tokenizer: Tokenizer = Characters()

    def sample(self, requests: Sequence[Request]) -> NoReturn:
        """There is no policy here."""
        raise UserError("credit that asks the policy again is only measured in training")


class _Judged:
    """The judge's task as an environment."""

    name, version = "file", "1"

    def __init__(self, judge: Any, task: Any, prose: bool) -> None:
        self.judge, self.task, self.prose = judge, task, prose

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge each text, or the program in it where the file is prose; prose without a program is no answer."""
        from rlvrlab.judge.extract import program_in

        codes = [(program_in(text).code or "") if self.prose else text for _, text in items]
        found: list[Verdict] = self.judge.verify_many([(self.task, code) for code in codes])
        return found


def _data(found: StepCredits) -> list[dict[str, Any]]:
    """What a heat map needs: the text, its steps by character with their credit, and its lines."""
    rows = []
    for name, one in found.answers.items():
        rollout = one.trajectory.rollout
        steps = [
            {"start": step.span[0], "end": step.span[1], "kind": step.kind, "credit": _number(credit)}
            for step, credit in zip(one.trajectory.segments.steps, one.raw_S, strict=True)
        ]
        lines = [{"text": text, "credit": credit} for text, credit in _lines(one)]
        reward = None if rollout.reward is None else rollout.reward.value
        facts = {"id": name, "problem": rollout.problem.id, "correct": rollout.verdict.correct, "reward": reward}
        rows.append({**facts, "text": rollout.completion.text, "steps": steps, "lines": lines})
    return rows


def _lines(one: Credited) -> Iterator[tuple[str, float | str]]:
    """Each line with the credit of the step in which its first character that is not space stands."""
    text, at = one.trajectory.rollout.completion.text, 0
    owner = {place: step.index for step in one.trajectory.segments.steps for place in range(*step.span)}
    for line in text.splitlines(keepends=True):
        step = owner.get(at + len(line) - len(line.lstrip()))
        credit = None if step is None else _number(one.raw_S[step])
        yield line.rstrip("\r\n"), GLUE if step is None else UNKNOWN if credit is None else credit
        at += len(line)


def _number(value: float) -> float | None:
    return None if value != value else round(float(value), 6)  # NaN differs from itself


def _show(one: dict[str, Any]) -> None:
    mark = {True: "✓", False: "✗", None: "?"}[one["correct"]]
    click.echo(printable(f"{mark} {one['id']}  reward {one['reward']:g}"))
    most = max((abs(line["credit"]) for line in one["lines"] if isinstance(line["credit"], float)), default=0.0) or 1.0
    for line in one["lines"]:
        credit = line["credit"]
        number, colour, bar = str(credit), None, ""
        if isinstance(credit, float):
            number, bar = f"{credit:+.2f}", "█" * round(BAR * abs(credit) / most)
            colour = "green" if credit > 0 else "red" if credit < 0 else None
        click.echo(click.style(f"{number:>6} {bar:<{BAR}} ", fg=colour) + "│ " + printable(line["text"].expandtabs(4)))
    click.echo()
