"""rlvr probe: can training work here?"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.options import AS_JSON, FreeWords, examination
from rlvrlab.cli.printing import print_json, printable, table
from rlvrlab.cli.waiting import patient
from rlvrlab.errors import writing_to
from rlvrlab.plain_files import refuse_taken
from rlvrlab.registry import find
from rlvrlab.shares import about, bracket, hundredths, percent
from rlvrlab.types import RewardFunction, Sampling

if TYPE_CHECKING:
    from rlvrlab.evals.probe.report import Line, Measured, Report
    from rlvrlab.evals.probe.steps import StepReport
    from rlvrlab.evals.probe.verdict import Advice

USUAL_TOKENS = 2048
"""Longest answer where no recipe says."""
DOT = ["problem", "skill", "level", "accuracy", "variance", "useful"]
"""Columns of scatter.csv: a dot of the plot in each line."""


@click.command("probe", short_help="Ask whether there is signal to train on.", cls=FreeWords)
@examination(roles=("train", "dev"), role="train", logprobs=5)
@click.option("--n", default=16, show_default=True, type=click.IntRange(2), help="Answers per problem.")
@click.option("--size", default=100, show_default=True, type=click.IntRange(1), help="Problems.")
@click.option("--temperature", type=click.FloatRange(0, min_open=True), help="In place of the recipe's.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder for probe.json, scatter.svg and .csv, useful.jsonl."
)
@click.option("--steps/--no-steps", default=True, show_default=True,
              help="Alter some failed answers: can step credit pay?")  # fmt: skip
@AS_JSON
def command(**options: Any) -> None:
    """Ask whether there is signal to train on.

    Samples a policy on some problems and says in words whether training can work.

    \b
    rlvr probe recipes/toy_countdown.toml                     the recipe's policy, untrained
    rlvr probe --run experiments/my_run_…@best                a run's policy on its own problems
    rlvr probe gsm8k path=gsm8k --server http://127.0.0.1:8000
    """
    from rlvrlab.cli.examined import answerer_of, is_recipe, name_of, subject_of
    from rlvrlab.evals.probe.report import report, try_problems
    from rlvrlab.evals.probe.steps import look_at_steps
    from rlvrlab.evals.probe.verdict import advise
    from rlvrlab.train.lab import shows_answers

    n, size, output = options["n"], options["size"], options["output"]
    if output is not None:
        refuse_taken(output, empty_is_free=True)
    asked = subject_of(options["what"], options["words"], options["run"], options["engine"])
    usual = Sampling(USUAL_TOKENS)
    if asked.resolved:  # draw as training would
        rollout = asked.resolved.recipe.rollout
        usual = Sampling(rollout.max_tokens, rollout.temperature, rollout.top_p)
    longest, temperature = options["max_tokens"] or usual.max_tokens, options["temperature"] or usual.temperature
    sampling = replace(usual, max_tokens=longest, temperature=temperature)
    problems = asked.env.problems(options["role"], size, asked.resolved.recipe.data.seed if asked.resolved else 0)
    with patient("the probe", options["deadline"]) as alive, answerer_of(asked, options) as answerer:
        # A recipe or a run brings its own reward; an environment given by name is probed by right or wrong.
        own = asked.resolved if options["what"] is None or is_recipe(options["what"]) else None
        reward: RewardFunction = own.build("reward") if own else find("reward", "binary")()
        tries = try_problems(
            answerer, asked.env, reward, problems, n=n, sampling=sampling, seed=options["seed"], observe=alive
        )
        identity = answerer.identity()
        probed = report(tries)
        steps = look_at_steps(tries, probed, asked.env) if options["steps"] else None
    # A run's policy @base is the one before any phase.
    examined = asked.resolved if options["run"] and not options["run"].endswith("@base") else None
    taught = examined is not None and shows_answers(examined)
    to_come = 0
    if examined is None and own is not None and shows_answers(own, before=1):
        to_come = own.recipe.phase_tables[own.recipe.phases[0]]["steps"]
    advice = advise(probed, taught=taught, sft_steps=to_come)
    facts = {"environment": asked.env.name, "policy": identity, "sampling": asdict(sampling), "role": options["role"]}
    facts |= {**advice.facts(), **probed.facts(), "steps": steps.facts() if steps else None}
    if output is not None:
        _write(output, probed, facts)
    if options["as_json"]:
        print_json(facts)
    else:
        _show(probed, advice, steps, f"{asked.env.name} · {name_of(identity)}", output)


def _write(folder: Path, probed: Report, facts: dict[str, Any]) -> None:
    from rlvrlab.data.rows import write_problems
    from rlvrlab.evals.probe.picture import scatter
    from rlvrlab.record.files import write_atomically, write_json
    from rlvrlab.report.story.part import as_csv

    picture = scatter(probed.problems, f"{facts['environment']}: {facts['verdict']}")
    dots = [[p.problem.id, p.problem.skill, p.level, p.accuracy, p.variance, int(p.useful)] for p in probed.problems]
    with writing_to(folder, "choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "probe.json", facts)
        write_atomically(folder / "scatter.svg", picture)
        write_atomically(folder / "scatter.csv", as_csv(DOT, dots))
        write_problems(folder / "useful.jsonl", [p.problem for p in probed.problems if p.useful])


def _show(probed: Report, advice: Advice, steps: StepReport | None, title: str, output: Path | None) -> None:
    from rlvrlab.evals.probe.picture import bands
    from rlvrlab.evals.probe.report import USEFUL_VARIANCE

    console = Console(highlight=False)
    console.print(Text(f"{printable(title)} · {probed.total.problems} problems, {probed.n} answers each\n", "bold"))
    console.print(table(("", "value [95 % over problems]", "wanted"), _totals(probed.total)))
    groups = [(u.n, f"{'at least ' if u.at_least else ''}{_share(u.share)}") for u in probed.useful]
    tables = [table(("rollout.n", "expected share of groups with something to teach"), groups)]
    if len(probed.lines) > 1:
        by_level = [
            (f"{line.skill} {line.level}", line.problems, _share(line.accuracy, 0), _number(line.variance, 2),
             _share(line.mixed, 0), about(line.truncated.value), about(line.format_rate.value))
            for line in probed.lines
        ]  # fmt: skip
        tables.append(
            table(("skill level", "problems", "accuracy", "variance", "mixed groups", "cut off", "in form"), by_level)
        )
    scatter = [  # the plot in words
        (name, count, f"{variance:.3f}",
         Text("▇" * round(40 * count / max(1, len(probed.problems))), "green" if variance > 0 else "dim"))
        for name, count, variance in bands(probed.problems)
    ]  # fmt: skip
    for one in (*tables, table(("accuracy", "problems", "variance", ""), scatter)):
        console.print()
        console.print(one)
    console.print(Text(f"\n{advice.word}: {advice.text}", "bold green" if advice.go else "bold yellow"))
    for note in (*advice.notes, *([steps.advice] if steps else [])):
        console.print(Text(f"· {note}"))
    useful = sum(p.useful for p in probed.problems)
    where = f"see {output}" if output else "-o DIR writes them, a scatter plot and all numbers"
    told = f"{useful} of {len(probed.problems)} problems have enough to teach (variance above {USEFUL_VARIANCE:g})"
    console.print(Text(f"{told}; {where}", "dim"))


def _totals(line: Line) -> list[tuple[str, str, str]]:
    """Every measure over all problems, beside what is wanted of it."""
    from rlvrlab.evals.probe.report import USEFUL_VARIANCE
    from rlvrlab.evals.probe.verdict import ENTROPY, FORMED, IDEAL, TRUNCATED

    return [
        ("accuracy", _share(line.accuracy), f"{hundredths(IDEAL[0], 0)} to {about(IDEAL[1])}"),
        ("variance within a prompt", _number(line.variance), f"above {USEFUL_VARIANCE}"),
        ("mixed groups (rewards differ)", _share(line.mixed), ""),
        (
            "entropy (nats per token)",
            _number(line.entropy) if line.entropy else "not known",
            f"{ENTROPY[0]} to {ENTROPY[1]}",
        ),
        ("answers cut off", _share(line.truncated), f"below {about(TRUNCATED)}"),
        ("answers in the demanded form", _share(line.format_rate), f"above {about(FORMED)}"),
    ]


def _share(m: Measured, digits: int = 1) -> str:
    return percent(m.value, m.low, m.high, digits)


def _number(m: Measured, digits: int = 3) -> str:
    return f"{m.value:z.{digits}f}{bracket(m.low, m.high, digits=digits)}"
