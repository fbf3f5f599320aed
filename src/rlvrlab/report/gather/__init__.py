"""What a folder holds, as one plain-JSON document that a page or a server can show.

    document = gather(Path("experiments/my_run_…"))          several paths: a comparison

The document:

    schema    1
    kind      run | evaluation | suite | comparison | study | audit | probe | credit
    title     the thing's name                         subtitle  one line about it
    path      the folder or file as it was named       status    running | finished | failed | …
    made      when gathering this document began (UTC)
    missing   [{"what": "logs/metrics.jsonl", "why": "not there yet"}]: what a complete record would have
    sections  [{"id", "view", "title", "note", "source", "data"}]

A section is complete in itself: `view` names the script function that draws it, `data` is all it needs, `source` is the
file (below `path`) its numbers come from, and `note` says in a sentence how to read it. Numbers keep the step or line
they came from beside them. A run in progress, a torn last line, a missing file, an older schema or unknown fields never
stop it: what cannot be shown is named in `missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.record.files import utc_now

Document = dict[str, Any]
"""Plain JSON in the shape described above."""
SCHEMA = 1
KINDS = "a run, an evaluation, a suite, a study, a probe or a data audit"


SIGNS = {
    "study": ("study.json",),
    "audit": ("duplicates_crosssplit.jsonl", "reports/data_audit_report.md"),
    "probe": ("probe.json",),
    "evaluation": ("samples.jsonl", "problems.jsonl"),
    "suite": ("plan.toml", "suite.json"),
    "run": ("config.json", "logs/metrics.jsonl", "logs/events.jsonl", "rollouts", "run_info.json"),
    "results": ("matrix.jsonl", "guards.jsonl"),
    "results below": ("results/matrix.jsonl", "results/guards.jsonl"),
}
"""Kind of folder -> files, any one of which gives it away; the first kind that fits counts. A run that has lost
everything but its run_info.json is still a run."""


def gather(paths: Sequence[Path] | Path) -> Document:
    """Everything there is to show about one folder, or how several runs or evaluations differ."""
    chosen = [paths] if isinstance(paths, Path) else list(paths)
    if not chosen:
        raise UserError(f"report: name {KINDS}")
    made = utc_now()  # before anything is read: what is written while it gathers is newer
    kinds = [kind_of(path) for path in chosen]
    if len(chosen) == 1:
        facts = _gather_one(chosen[0], kinds[0])
    else:
        from rlvrlab.report.gather.comparison import gather_evaluations, gather_runs

        if set(kinds) == {"run"}:
            facts = gather_runs(chosen)
        elif set(kinds) == {"evaluation"}:
            facts = gather_evaluations(chosen)
        else:
            told = ", ".join(f"{path} is {kind}" for path, kind in zip(chosen, kinds, strict=True))
            raise UserError(
                f"report: only runs with runs, or evaluations with evaluations, can be put side by side ({told})"
            )
    return {"schema": SCHEMA, **facts, "path": " ".join(map(str, chosen)), "made": made}


def kind_of(path: Path) -> str:
    """What a folder or file holds, judged by the names of the files in it."""
    if path.is_file():
        if path.suffix == ".json":
            return {"probe.json": "probe file", "study.json": "study file"}.get(path.name, "credit")
        raise UserError(f"{path}: a file; name the folder of {KINDS}")
    if not path.is_dir():
        raise UserError(f"{path}: no such folder; `rlvr runs` lists yours")
    for kind, names in SIGNS.items():
        if any((path / name).exists() for name in names):
            return kind
    if all(entry.name.startswith(".") for entry in path.iterdir()):
        return "empty"
    runs = sorted(config.parent.name for config in path.glob("*/config.json"))
    if runs:
        raise UserError(
            f"{path}: holds {len(runs)} runs; name some of them ({runs[0]}, …), or `rlvr serve report {path}`"
        )
    raise UserError(f"{path}: neither of {KINDS}; nothing in it was written by rlvr")


def _gather_one(path: Path, kind: str) -> Document:
    from rlvrlab.report.gather import audit, credit, evaluation, probe, results, run, study, suite

    if kind == "empty":
        names = ("config.json", "run_info.json", "logs/metrics.jsonl", "logs/events.jsonl", "rollouts/")
        missing = [{"what": name, "why": "the folder is empty"} for name in names]
        return {"kind": "run", "title": path.resolve().name, "subtitle": "an empty folder", "status": "not started",
                "missing": missing, "sections": []}  # fmt: skip
    makers: dict[str, Callable[[Path], Document]] = {
        "run": run.gather_run,
        "suite": suite.gather_suite,
        "evaluation": evaluation.gather_evaluation,
        "study": study.gather_study,
        "study file": lambda file: study.gather_study(file.parent),
        "audit": audit.gather_audit,
        "probe": probe.gather_probe,
        "probe file": lambda file: probe.gather_probe(file.parent),
        "credit": credit.gather_credit,
        "results": results.gather_results,
        "results below": lambda folder: results.gather_results(folder / "results"),
    }
    return makers[kind](path)
