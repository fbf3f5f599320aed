"""What a folder holds, as one plain-JSON document that a page or a server can show.

    document = gather(Path("experiments/my_run_…"))          several paths: a comparison

The document:

    schema    1
    kind      run | evaluation | comparison | study | audit | probe | credit
    title     the thing's name                         subtitle  one line about it
    path      the folder or file as it was named       status    running | finished | failed | …
    made      when this document was gathered (UTC)
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
"""Plain JSON, see above."""
SCHEMA = 1
KINDS = "a run, an evaluation, a study, a probe or a data audit"


def gather(paths: Sequence[Path] | Path) -> Document:
    """Everything there is to show about a folder; about several: how they differ."""
    found = [paths] if isinstance(paths, Path) else list(paths)
    if not found:
        raise UserError(f"report: name {KINDS}")
    kinds = [kind_of(path) for path in found]
    facts = _one(found[0], kinds[0]) if len(found) == 1 else _several(found, kinds)
    made = utc_now()
    return {"schema": SCHEMA, **facts, "path": " ".join(map(str, found)), "made": made}


def kind_of(path: Path) -> str:
    """What a folder or file holds, by the files in it."""
    if path.is_file():
        if path.suffix == ".json":
            return (
                "probe file" if path.name == "probe.json" else "study file" if path.name == "study.json" else "credit"
            )
        raise UserError(f"{path}: a file; name the folder of {KINDS}")
    if not path.is_dir():
        raise UserError(f"{path}: no such folder; `rlvr runs` lists yours")
    for kind, names in _SIGNS.items():
        if any((path / name).exists() for name in names):
            return kind
    if not any(not one.name.startswith(".") for one in path.iterdir()):
        return "empty"
    inside = sorted(one.parent.name for one in path.glob("*/config.json"))
    if inside:
        raise UserError(
            f"{path}: holds {len(inside)} runs; name some of them ({inside[0]}, …), or `rlvr serve report {path}`"
        )
    raise UserError(f"{path}: neither of {KINDS}; nothing in it was written by rlvr")


_SIGNS = {
    "study": ("study.json",),
    "audit": ("duplicates_crosssplit.jsonl", "reports/data_audit_report.md"),
    "probe": ("probe.json",),
    "evaluation": ("samples.jsonl", "problems.jsonl"),
    "run": ("config.json", "logs/metrics.jsonl", "logs/events.jsonl", "rollouts", "run_info.json"),
    "results": ("matrix.jsonl", "guards.jsonl"),
    "results below": ("results/matrix.jsonl", "results/guards.jsonl"),
}
"""Kind -> files that show it, the first that fits; run_info.json alone is a run's that lost the rest."""


def _one(path: Path, kind: str) -> Document:
    from rlvrlab.report.gather import audit, credit, evaluation, probe, results, run, study

    makers: dict[str, Callable[[Path], Document]] = {
        "run": run.gather_run,
        "evaluation": evaluation.gather_evaluation,
        "study": study.gather_study,
        "study file": lambda file: study.gather_study(file.parent),
        "audit": audit.gather_audit,
        "probe": probe.gather_probe,
        "probe file": lambda file: probe.gather_probe(file.parent),
        "credit": credit.gather_credit,
        "results": results.gather_results,
        "results below": lambda folder: results.gather_results(folder / "results"),
        "empty": _empty,
    }
    return makers[kind](path)


def _several(paths: Sequence[Path], kinds: Sequence[str]) -> Document:
    from rlvrlab.report.gather.comparison import gather_evaluations, gather_runs

    if set(kinds) == {"run"}:
        return gather_runs(paths)
    if set(kinds) == {"evaluation"}:
        return gather_evaluations(paths)
    told = ", ".join(f"{path} is {kind}" for path, kind in zip(paths, kinds, strict=True))
    raise UserError(f"report: only runs with runs, or evaluations with evaluations, can be put side by side ({told})")


def _empty(path: Path) -> Document:
    names = ("config.json", "run_info.json", "logs/metrics.jsonl", "logs/events.jsonl", "rollouts/")
    missing = [{"what": name, "why": "the folder is empty"} for name in names]
    return {"kind": "run", "title": path.resolve().name, "subtitle": "an empty folder", "status": "not started",
            "missing": missing, "sections": []}  # fmt: skip
