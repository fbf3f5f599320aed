"""rlvr suite: every model of a folder on a named collection of data sets, in one table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.model_folders import engine_of_model, is_model
from rlvrlab.cli.names import RUN_AT_OR_OTHER
from rlvrlab.cli.options import ACCEPT_CODE, AS_JSON, DEADLINE, SERVERS
from rlvrlab.cli.printing import print_json, printable, table, telling_data
from rlvrlab.cli.waiting import patient
from rlvrlab.errors import LabError, UnknownName, UserError, writing_to
from rlvrlab.record.files import STAMP, stamp_now
from rlvrlab.shares import cell, difference, hundredths

if TYPE_CHECKING:
    from rlvrlab.evals.answering import Answerer
    from rlvrlab.evals.suites.base import Member, Ready, Skipped
    from rlvrlab.evals.suites.examine import Examined, Model

FACTS = ("member", "metric", "problems")
"""The columns of a table of results before those of the models."""


@click.command("suite", short_help="Examine every model of a folder on a suite of data sets.")
@click.argument("name", required=False)
@click.argument("overrides", nargs=-1, type=click.UNPROCESSED, metavar="[MEMBER.KEY=VALUE]…")
@click.option("--tier", type=click.Choice(["fast", "full"]), default="fast", show_default=True)
@click.option("--models", type=RUN_AT_OR_OTHER, metavar="DIR[@STEP]",
              help="A folder of runs or models (Hugging Face layout), or one of them; of runs the last checkpoint, or "
                   "@best, @9.")  # fmt: skip
@SERVERS
@click.option("--baseline", help="The model that the others are compared with; else the first by name.")
@click.option("--only", multiple=True, metavar="MEMBER", help="Only this member; may be given several times.")
@click.option("--data", type=click.Path(path_type=Path), help="Where data files lie; else $RLVRLAB_DATA, else ./data.")
@click.option("--size", type=click.IntRange(1), help="Problems per member, in place of the tier's.")
@click.option("--max-tokens", type=click.IntRange(1), help="Longest answer, in place of the members'.")
@click.option("--seed", default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for answers and results [a new one].")
@DEADLINE
@click.option("--contamination", is_flag=True, help="Ask instead how much of each data set is known by heart.")
@ACCEPT_CODE
@AS_JSON
def command(name: str | None, overrides: tuple[str, ...], **options: Any) -> None:
    """Examine every model of a folder on a suite of data sets.

    Prints one table with intervals, and comparisons to the first model.

    \b
    rlvr suite                                              what there is, and which data is missing
    rlvr suite graphs --models experiments/                 the fast tier
    rlvr suite graphs --models experiments/my_run_…@best    one run, at its best checkpoint
    rlvr suite math,logic --tier full --models experiments/ --data ~/data -o results/
    """
    from rlvrlab.evals.suites import SUITES, members_of
    from rlvrlab.evals.suites.base import Ready, data_folder, prepare, refuse_nothing
    from rlvrlab.plain_files import file_name

    data = data_folder(options["data"])
    if name is None:
        _list(SUITES, data, options["as_json"])
        return
    members = members_of(name)
    known = [member.name for member in members]
    for one in options["only"]:
        if one not in known:
            raise UnknownName("member", one, known)
    members = [member for member in members if not options["only"] or member.name in options["only"]]
    changes = _changes(overrides, members)
    if options["models"] is None and not options["servers"]:
        raise UserError("name what to examine: --models DIR (a folder of run folders) or --server URL")
    limits = {"max_tokens": options["max_tokens"], "size": options["size"]}
    with telling_data():
        prepared = [prepare(one, options["tier"], data, changes.get(one.name, {}), **limits) for one in members]
    refuse_nothing(f"suite {name}", prepared, [one for one in prepared if isinstance(one, Ready)], "data set")
    with ExitStack() as stack:
        models, left_out = _models(options, stack)
        if options["contamination"]:
            from rlvrlab.cli.suite_contamination import show_contamination

            chat = bool(options["servers"]) and not options["completions"]
            show_contamination(models, prepared, left_out, chat, options["as_json"])
            return
        # Beside the other evaluations that belong to no run; the time keeps two examinations apart.
        stamp = stamp_now()
        output = options["output"] or Path("evaluations") / f"suite_{file_name(name)}_{options['tier']}_{stamp}"
        examined = _examined(models, prepared, left_out, output, options, stack)
    if options["as_json"]:
        print_json({"suite": name, "tier": options["tier"], "folder": str(output), **examined.facts()})
        return
    _show(examined, list(dict.fromkeys(cell.model for cell in examined.cells)), f"{name}, {options['tier']} tier")
    ready = [one for one in prepared if isinstance(one, Ready)]
    asked = [(one.member.name, len(one.problems), options["size"] or one.member.size(options["tier"])) for one in ready]
    short = [f"{member} {there} of {wanted}" for member, there, wanted in asked if there < wanted]
    if short:
        click.secho(f"all there are, fewer than asked for: {', '.join(short)}", dim=True)
    click.secho(f"Everything: {printable(output)}", dim=True)


def _changes(overrides: tuple[str, ...], members: Sequence[Member]) -> dict[str, dict[str, Any]]:
    """Overrides by member: `countdown.style=bare` -> {"countdown": {"style": "bare"}}."""
    from rlvrlab.recipe.parse import parse_overrides

    changes: dict[str, dict[str, Any]] = {}
    known = [member.name for member in members]
    for key, value in parse_overrides(overrides).items():
        member, _, leaf = key.partition(".")
        if member not in known or not leaf:
            raise UnknownName("member in override", member, known)
        changes.setdefault(member, {})[leaf] = value
    return changes


def _models(options: dict[str, Any], stack: ExitStack) -> tuple[list[Model], list[Skipped]]:
    """Models by name, the baseline first; what cannot be one is named with its reason."""
    from rlvrlab.cli.examined import name_of, served
    from rlvrlab.evals.suites.base import Skipped
    from rlvrlab.evals.suites.examine import Model
    from rlvrlab.record.final import split_run

    models, left_out = [], []
    home, which = split_run(options["models"] or "")
    folders = []
    if options["models"]:
        if not home.is_dir():
            raise UserError(f"{home}: no such folder; name one that holds run folders, e.g. experiments/")
        below = (path for path in home.iterdir() if path.is_dir() and not path.name.startswith("."))
        folders = [home] if (home / "config.json").is_file() else sorted(below)
    for folder in folders:
        why = _defect(folder)
        if why:
            left_out.append(Skipped(folder.name, why))
        else:
            opened = partial(_answerer, folder, which, chat=not options["completions"])
            models.append(Model(folder.name, opened, None if is_model(folder) else folder))
    if options["servers"]:
        answerer = stack.enter_context(served(options))
        models.append(Model(name_of(answerer.identity()), lambda: answerer))
    if not models:
        reasons = "; ".join(f"{one.name}: {one.why}" for one in left_out[:3])
        raise UserError(f"{options['models']}: no model to examine{f' ({reasons})' if reasons else ''}")
    first = options["baseline"]
    if first is not None and first not in {model.name for model in models}:
        raise UnknownName("model", first, [model.name for model in models])
    return sorted(models, key=lambda model: model.name != first) if first else models, left_out


def _defect(folder: Path) -> str:
    """Why a folder cannot be examined, or nothing."""
    from rlvrlab.record.run import read_config

    if not (folder / "config.json").is_file():
        return "no run folder (no config.json)"
    if is_model(folder):
        return ""
    try:
        read_config(folder)
    except LabError as error:
        return str(error)
    return "" if any((folder / "checkpoints").glob("global_step_*")) else "no checkpoint yet"


def _answerer(folder: Path, which: str, *, chat: bool) -> Answerer:
    """Load a model or a run's checkpoint."""
    from rlvrlab.evals.answering import EngineAnswerer
    from rlvrlab.train.policy import policy_of

    if is_model(folder):
        return EngineAnswerer(*engine_of_model(folder, chat=chat))
    policy = policy_of(folder, which)
    return EngineAnswerer(policy.engine, policy.facts)


def _examined(
    models: list[Model], prepared: Sequence[Ready | Skipped], left_out: list[Skipped], output: Path,
    options: dict[str, Any], stack: ExitStack,
) -> Examined:  # fmt: skip
    from rlvrlab.evals.suites.base import refuse_nothing
    from rlvrlab.evals.suites.examine import examine
    from rlvrlab.record.files import write_json

    status = stack.enter_context(Console(stderr=True).status("examining"))

    def progress(model: str, member: str) -> None:
        status.update(f"{printable(model)} on {member}")

    alive = stack.enter_context(patient("the examination", options["deadline"]))
    try:
        examined = examine(
            models, prepared, seed=options["seed"], output=output, progress=progress, observe=lambda batch: alive()
        )
    except BaseException:
        if output.is_dir():
            click.echo(f"what is judged is kept; go on with the same command and -o {printable(output)}", err=True)
        raise
    refuse_nothing("suite", [*examined.skipped, *left_out], examined.cells, "model")
    examined = replace(examined, skipped=(*examined.skipped, *left_out))
    with writing_to(output, f"free space; the same command with -o {output} then goes on from what is judged"):
        write_json(output / "suite.json", examined.facts())
    return examined


def _list(suites: dict[str, Any], data: Path, as_json: bool) -> None:
    rows = []
    for suite in suites.values():
        for m in suite.members:
            found = m.file_in(data)
            file = found.relative_to(data).as_posix() if found else f"missing: {m.source}"
            rows.append({"suite": suite.name, "member": m.name, "group": m.group, "environment": m.env, "role": m.role,
                         "fast": f"{m.fast} × {m.n}", "full": f"{m.full} × {m.n}",
                         "data": file if m.files else "made here"})  # fmt: skip
    if as_json:
        print_json(rows)
        return
    head, console = ("suite", "member", "fast", "full", "data"), Console()
    console.print(table(head, [[row[key] for key in head] for row in rows]))
    console.print(
        Text(f"Problems × answers each; data under {printable(data)}. What is missing is skipped, and said so.")
    )


def _show(examined: Examined, models: list[str], title: str) -> None:
    console = Console()
    if examined.cells:
        # Run folders without their time stamp, where that still tells them apart.
        short = [printable(re.sub(rf"_{STAMP}_([0-9a-f]{{4}})[0-9a-f]{{4}}$", r" \1", name)) for name in models]
        bare = [name.rpartition(" ")[0] or name for name in short]
        head = [one if bare.count(one) == 1 else whole for one, whole in zip(bare, short, strict=True)]
        look: dict[str, Any] = {"title": printable(title), "title_justify": "left", "padding": (0, 2, 0, 0)}
        for part in _abreast(examined, models, head, console.width):
            names, some = [head[i] for i in part], [models[i] for i in part]
            console.print(table((*FACTS, *names), _rows(examined, some), no_wrap=(*FACTS, *names), **look))
            look["title"] = None
        compared = sum(cell.versus is not None for cell in examined.cells)
        metrics = {cell.metric for cell in examined.cells}
        words = "In %, with 95 % intervals."
        words += " @1: answered right by its one answer." if "accepted@1" in metrics else ""
        words += " pass@k: by one of k answers at least." if metrics - {"accepted@1"} else ""
        if compared:
            least = max(cell.versus.detectable or 0.0 for cell in examined.cells if cell.versus)
            words += f" Δ to {head[0]}, paired by problem; * beyond chance, adjusted for {compared} comparisons."
            words += f" Differences under {hundredths(least, 0)} points may stay unseen." if least >= 0.005 else ""
        console.print(Text(printable(words)))
    for one in examined.skipped:
        console.print(Text(printable(f"skipped {one.name}: {one.why}"), "yellow"))


def _abreast(examined: Examined, models: list[str], head: Sequence[str], width: int) -> Iterator[list[int]]:
    """The numbers of the models that fit beside each other, table by table; the facts of a row stand in each."""
    columns = zip(*(row for row in _rows(examined, models) if len(row) > 1), strict=True)
    words = ((name, *(cell.plain for cell in column)) for name, column in zip((*FACTS, *head), columns, strict=True))
    wide = [2 + max(len(line) for text in texts for line in text.splitlines()) for texts in words]
    facts, part, taken = sum(wide[: len(FACTS)]), list[int](), 0
    for i, own in enumerate(wide[len(FACTS) :]):
        if part and facts + taken + own > width:
            yield part
            part, taken = [], 0
        part.append(i)
        taken += own
    yield part


def _rows(examined: Examined, models: list[str]) -> Iterator[list[Text]]:
    """One line per member, a column per model, below the group's name; averages last, if there are several members."""
    averages = examined.averages if len({cell.member for cell in examined.cells}) > 1 else ()
    cells = {(cell.member, cell.model): cell for cell in (*examined.cells, *averages)}
    before = ""
    for member in dict.fromkeys(member for member, _ in cells):
        first = cells[member, models[0]]
        if first.group not in ("", before):
            yield [Text(first.group, "dim")]
        before = first.group
        texts = [member, first.metric.removeprefix("accepted"), str(first.problems)]
        for one in (cells[member, model] for model in models):
            text = cell(one.value, one.low, one.high)
            if one.versus is not None:
                text += f"\nΔ {difference(one.versus.mean)}{'*' if one.significant else ''}"
            if one.unjudged:
                low, high = map(hundredths, one.bounds)
                text += f"\n{one.unjudged} unjudged: {low} to {high}"
            texts.append(text)
        yield list(map(Text, texts))
