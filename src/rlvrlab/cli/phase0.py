"""rlvr phase0: a baseline in one command: servers, data sets, protocols and judge from one file, into one folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from rlvrlab.cli.names import RUN_AT
from rlvrlab.cli.options import ACCEPT_CODE, AS_JSON
from rlvrlab.cli.printing import print_json, printable, say, table
from rlvrlab.errors import InfrastructureError, JudgeLost, LabError, UserError, writing_to
from rlvrlab.own_code import named_by_folder
from rlvrlab.shares import cell, hundredths

if TYPE_CHECKING:
    from rlvrlab.engines.openai.launch import Fleet
    from rlvrlab.evals.answering import Answerer
    from rlvrlab.evals.evaluate import Observer
    from rlvrlab.evals.suites.base import Ready
    from rlvrlab.evals.suites.joint import Joint
    from rlvrlab.evals.suites.plan_file import PlanFile
    from rlvrlab.evals.suites.plan_schema import ModelTable


@click.command("phase0", short_help="Measure a baseline: one file, one command, one folder.")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[PLAN.toml]")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder; one begun alike is gone on with.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with this folder; takes no other argument.")
@click.option("--plan", "plan_only", is_flag=True, help="Say what would be asked, and ask nothing.")
@ACCEPT_CODE
@AS_JSON
def command(file: Path | None, output: Path | None, resume: Path | None, plan_only: bool, as_json: bool) -> int:
    """Measure a baseline: one file, one command, one folder.

    The file names who answers (servers to use or to start, or a run), the data sets with their prompts, the protocols
    (@1, @k, @budget), the judge and the trackers. The folder holds joint metrics, a summary, what was run, answers to
    read, and a page. Killed, it goes on where it was.

    \b
    rlvr phase0 recipes/plans/phase0_coding.toml
    rlvr phase0 recipes/plans/phase0_coding.toml --plan
    rlvr phase0 --resume outputs/phase0_20260131_120000
    """
    from rlvrlab.evals.kept import track_numbers
    from rlvrlab.record.final import split_run
    from rlvrlab.record.sinks.base import sinks_of

    plan, folder = _wanted(file, output, resume)
    run = None if plan.plan.model.run is None else split_run(RUN_AT.convert(plan.plan.model.run, None, None))
    sinks = sinks_of(plan.plan.sinks, "sinks")
    members = plan.ready()
    if plan_only:
        _show_plan(plan, members, as_json)
        return 0
    joint = _examined(plan, folder, members, run, as_json)
    page = _page(folder)
    asked = {"plan": plan.plan.model_dump(mode="json")}
    for trouble in track_numbers(folder, folder.name, asked, joint.numbers, sinks):
        click.echo(f"warning: {printable(trouble)}", err=True)
    silent = [name for name, one in joint.kept.items() if one.metrics["unjudged"] == one.metrics["samples"]]
    if as_json:
        facts = {name: one.metrics for name, one in joint.kept.items()}
        print_json({"folder": str(folder), "page": str(page), "metrics": facts, "nothing_judged": silent})
    else:
        _show(joint, page)
    if silent:
        raise InfrastructureError(f"no answer could be judged: {', '.join(silent)}; summary.json has the reasons")
    return 0


def _wanted(file: Path | None, output: Path | None, resume: Path | None) -> tuple[PlanFile, Path]:
    """The plan and the folder it goes into."""
    from rlvrlab.evals.suites import joint
    from rlvrlab.evals.suites.plan_file import plan_from_text, read_plan
    from rlvrlab.record.files import read_facts

    if resume is not None:
        click.get_current_context().with_resource(named_by_folder())
        if file is not None or output is not None:
            raise UserError("--resume takes no other argument; the folder holds the plan it was begun with")
        info = read_facts(resume / joint.INFO, "restore it")
        if info is None or not (resume / joint.PLAN).is_file():
            raise UserError(f"{resume}: no folder of `rlvr phase0` (no {joint.PLAN} in it)")
        text = (resume / joint.PLAN).read_text(encoding="utf-8")
        return plan_from_text(text, resume / joint.PLAN, Path(str(info.get("plan_folder", resume)))), resume
    if file is None:
        raise UserError(
            "name a plan, e.g. `rlvr phase0 phase0_coding`, or a file of your own; docs/phase0.md has its keys"
        )
    from rlvrlab.recipe.shipped import plan_file
    from rlvrlab.record.files import stamp_now

    read = read_plan(plan_file(file))
    stamp = stamp_now()
    return read, output or Path(read.plan.output) / f"{read.plan.name}_{stamp}"


def _examined(
    plan: PlanFile, folder: Path, members: Sequence[Ready], run: tuple[Path, str] | None, quiet: bool
) -> Joint:
    from rlvrlab.cli.eval import AnswersBar
    from rlvrlab.envs.base import BaseEnvironment
    from rlvrlab.evals.suites import joint
    from rlvrlab.judge.fusion.addresses import judge_at

    asked = plan.plan
    judge_at(asked.judge.servers, asked.judge.plain_sandbox)
    for one in members:
        if isinstance(one.env, BaseEnvironment):
            try:
                one.env.refuse_judge(one.problems)
            except JudgeLost as error:
                raise JudgeLost(f"judge.servers: {error}") from None
    fleet = _fleet(asked.model)
    facts = {"plan": asked.model_dump(mode="json"), "plan_folder": str(plan.folder)}
    command = ["rlvr", *map(shlex.quote, sys.argv[1:])]
    joint.begin(folder, plan.text, {**facts, "command": command})

    @contextmanager
    def watch(name: str, one: Ready) -> Iterator[Observer]:
        if not quiet:
            click.echo(printable(f"{name}: {len(one.problems)} problems, {one.protocol.name}"), err=True)
        with AnswersBar(len(one.problems) * (1 if one.protocol.budget else one.protocol.n), quiet) as bar:
            yield bar.observe

    with _answerer(asked.model, fleet, run) as answerer:
        try:
            return joint.examine_all(
                folder, answerer, members, seed=asked.seed, facts={"command": command}, watch=watch,
                run=None if run is None else run[0],
            )  # fmt: skip
        except (KeyboardInterrupt, LabError):
            click.echo(f"what is judged is kept; go on with: rlvr phase0 --resume {folder}", err=True)
            raise


def _fleet(model: ModelTable) -> Fleet | None:
    """The servers to start, which are looked for and not yet started; a model that cannot be served is refused."""
    if model.serve is None:
        return None
    from rlvrlab.engines.openai.launch import Fleet, choose_backend
    from rlvrlab.models import resolve

    backend = choose_backend() if model.backend == "auto" else model.backend
    return Fleet(str(resolve(model.serve)), model.replicas, backend, "127.0.0.1", 0, model.arguments)


@contextmanager
def _answerer(model: ModelTable, fleet: Fleet | None, run: tuple[Path, str] | None) -> Iterator[Answerer]:
    """Who answers: servers started for it, servers that are there, or a run's policy in this process."""
    from rlvrlab.cli.examined import served
    from rlvrlab.evals.answering import AT_ONCE, EngineAnswerer

    asked = {
        "servers": model.servers, "model": model.name, "key_env": model.key_env, "concurrency": model.concurrency,
        "timeout": model.timeout_s, "completions": model.completions, "system_prompt": model.system_prompt,
    }  # fmt: skip
    if run is not None:
        from rlvrlab.train.policy import policy_of

        policy = policy_of(*run)
        yield EngineAnswerer(policy.engine, policy.facts, AT_ONCE, entropy=True, system=model.system_prompt)
        return
    with ExitStack() as stack:
        if fleet is not None:
            stack.enter_context(fleet)
            click.echo(printable(f"starting {model.replicas} × {fleet.served_name} ({fleet.backend})"), err=True)
            fleet.wait(model.wait_s)
            asked |= {"servers": [replica.url for replica in fleet.replicas], "model": fleet.served_name}
        yield stack.enter_context(served(asked))


def _page(folder: Path) -> Path:
    from rlvrlab.record.files import write_atomically
    from rlvrlab.report.gather import gather
    from rlvrlab.report.page import page

    document = gather(folder)
    document["base"] = "."
    with writing_to(folder, f"what was judged is kept; `rlvr report {folder} -o FILE` writes the page elsewhere"):
        write_atomically(folder / "report.html", page(document))
    return folder / "report.html"


def _show_plan(plan: PlanFile, members: Sequence[Ready], as_json: bool) -> None:
    from rlvrlab.evals.suites.joint import names_of

    rows = [
        {"data": name, "role": one.member.role, "problems": len(one.problems), "protocol": one.protocol.name,
         "answers": len(one.problems) * one.protocol.n, "tries": one.protocol.tries,
         "max_tokens": one.protocol.sampling.max_tokens, "file": Path(one.file).name}
        for name, one in zip(names_of(members), members, strict=True)
    ]  # fmt: skip
    if as_json:
        print_json({"plan": plan.plan.model_dump(mode="json"), "data": rows})
        return
    head = list(rows[0])
    Console(highlight=False).print(table(head, [[str(row[key]) for key in head] for row in rows]))


def _show(joint: Joint, page: Path) -> None:
    console = Console(highlight=False)
    head = (
        "data", "problems", "accepted@1", "tests passed", "ran to the end", "recovered", "tokens each",
        "answers per second", "unjudged", "further",
    )  # fmt: skip
    rows = []
    for name, one in joint.kept.items():
        m = one.metrics
        share = cell(*(m[f"accepted_at_1{end}"] for end in ("", "_low", "_high")))
        more = [f"{key} {_percent(m[key])}" for key in m if key.startswith("pass@") and key[5:].isdigit()]
        more += [f"solved {_percent(m['solved_at_budget'])}"] if "solved_at_budget" in m else []
        rows.append([
            name, str(m["problems"]), share, _percent(m["pass_ratio_mean"]),
            _percent(m.get("exec_success_rate")), _percent(m.get("recovery_rate")), f"{m['avg_gen_tokens']:.1f}",
            f"{m['throughput']:.2f}" if "throughput" in m else "–", f"{m['unjudged']:.0f}", ", ".join(more),
        ])  # fmt: skip
    console.print(table(head, rows, no_wrap=("data", "accepted@1"), padding=(0, 1, 0, 0)))
    say(console, "Shares in per cent; [ ]: 95 % intervals. Recovered: right at the second try, of those wrong.", "dim")
    reasons = {
        f"{name}: {count} unjudged: {reason}"
        for name, one in joint.kept.items()
        for reason, count in one.summary["unjudged_because"].items()
    }
    found = [f"{name}: {words}" for name, one in joint.kept.items() for words in one.summary["findings"]]
    for words in (*found, *sorted(reasons)):
        say(console, words, "yellow")
    say(console, f"Everything: {joint.folder}; to look at: {page}", "dim")


def _percent(value: Any) -> str:
    return "–" if value is None else hundredths(value)
