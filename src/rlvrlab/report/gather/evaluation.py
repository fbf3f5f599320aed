"""An evaluation folder: pass@k, errors, cost and every answer; finished or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError
from rlvrlab.evals.judged import from_row
from rlvrlab.evals.metrics import COSTS, Sample, at_k, dataset_metrics
from rlvrlab.record.evaluation import INFO, SAMPLES, SCHEMA, Stored, read_evaluation
from rlvrlab.record.final import checkpoint_words
from rlvrlab.report.gather.rollouts import MOST, Answers, evaluation_answers
from rlvrlab.report.reading import (
    STRANGE,
    Fact,
    Folder,
    Section,
    as_table,
    document,
    place,
    rounded,
    section,
    words,
)

SHARES = ("accepted_at_1", "mean_accuracy", "format_rate", "accuracy_given_format", "truncated_rate", "recovery_rate")


class EvaluationRecord:
    """An evaluation folder, read once; what cannot be read is noted in the folder's `missing`."""

    def __init__(self, folder: Folder, below: str = "") -> None:
        self.folder, self.below = folder, below
        self.root = folder.root / below
        self.info = folder.table(f"{below}{INFO}", "what was examined is not recorded")
        folder.refuse_version(f"{below}{INFO}", self.info, SCHEMA)
        who = as_table(self.examined.get("who"))
        step = who.get("step")
        model = words(who.get("model") or who.get("engine") or self.root.resolve().name, 60)
        self.side = checkpoint_words(step) or model
        """A short name of who answered."""
        self.stored: Stored | None = None
        self.samples: list[Sample] = []
        try:
            self.stored = read_evaluation(self.root)
            problems = {problem.id: problem for problem in self.stored.problems}
            self.samples = [from_row(row, problems[row["problem"]]).as_sample() for row in self.stored.rows]
        except (LabError, OSError, *STRANGE) as error:
            folder.miss(f"{below}{SAMPLES}", f"no numbers from it ({words(str(error), 120)})")

    @property
    def protocol(self) -> str:
        """The protocol's name, `EVAL@1` for instance."""
        return words(as_table(self.examined.get("protocol")).get("name") or "?", 40)

    @property
    def examined(self) -> dict[str, Any]:
        """What decides the result: data, protocol, scorer and who answered."""
        return as_table(self.info.get("examined"))

    def curve(self) -> Fact | None:
        """pass@k with intervals over problems, for powers of two."""
        first = [s for s in self.samples if s.turn == 0 and s.accepted is not None]
        per_problem = Counter(s.problem_id for s in first)
        n = max(per_problem.values(), default=0)
        if n < 2:
            return None
        ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256) if k <= n]
        ks += [n] if n not in ks else []
        measured = at_k(self.samples, ks)
        return {
            "name": self.side,
            "x": ks,
            "y": [rounded(measured[f"pass@{k}"]) for k in ks],
            "low": [rounded(measured[f"pass@{k}_low"]) for k in ks],
            "high": [rounded(measured[f"pass@{k}_high"]) for k in ks],
            "all": [rounded(measured[f"pass^{k}"]) for k in ks],
            "points": True,
            "from": place(f"{self.below}{SAMPLES}"),
        }

    def numbers(self) -> dict[str, Any]:
        """metrics.json where it is written, else the same from the answers so far."""
        kept = self.folder.value(f"{self.below}metrics.json", "")
        table = next(iter(kept.values()), None) if isinstance(kept, dict) and kept else None
        if isinstance(table, dict):
            return table
        budget = as_table(self.examined.get("protocol")).get("budget")
        return dataset_metrics(self.samples, until_solved=budget is not None) if self.samples else {}


def tell_apart(sides: list[EvaluationRecord]) -> list[EvaluationRecord]:
    """Add the protocol, and then the folder, to the names of sides that would share one."""
    for by_folder in (False, True):
        counts = Counter(one.side for one in sides)
        for one in sides:
            if counts[one.side] > 1:
                one.side = f"{one.side} · {one.root.resolve().name if by_folder else one.protocol}"
    return sides


def gather_evaluation(path: Path) -> dict[str, Any]:
    """The document of one evaluation folder."""
    folder = Folder(path)
    one = EvaluationRecord(folder)
    answers = Answers()
    evaluation_answers(folder, answers, one.side)
    sections = [
        *folder.attempt("overview", lambda: summary(one)),
        *folder.attempt("pass@k", lambda: pass_at_k([one])),
        *folder.attempt("errors", lambda: error_bars([one])),
        *folder.attempt("cost", lambda: costs([one])),
        *folder.attempt("rollouts", lambda: answers.section("Answers", SAMPLES)),
        *folder.attempt("facts", lambda: section("facts", "facts", "What was examined", one.info, INFO)),
    ]
    examined = one.examined
    title = f"{words(examined.get('data') or path.resolve().name, 80)} · {one.protocol}"
    told = f"{one.side} · {words(examined.get('problems', '?'), 20)} problems"
    status = words(one.info.get("status") or "unknown", 40)
    return document(folder, "evaluation", title, sections, subtitle=told, status=status)


def summary(one: EvaluationRecord) -> Section | None:
    """The shares that matter, each with its interval."""
    numbers = one.numbers()
    if not numbers:
        return None
    source = _source(one)
    tiles = [
        {"name": name.replace("_", " "), "value": rounded(numbers[name]), "low": rounded(numbers.get(f"{name}_low")),
         "high": rounded(numbers.get(f"{name}_high")), "from": place(source, key=name)}
        for name in SHARES
        if numbers.get(name) is not None
    ]  # fmt: skip
    summary_file = as_table(one.folder.value(f"{one.below}summary.json", ""))
    findings = summary_file.get("findings")
    parts = []
    for kind in ("skill", "level"):
        table = as_table(summary_file.get(f"by_{kind}"))
        for name, row in table.items() if len(table) > 1 else ():
            if isinstance(row, dict):
                shares = {k: rounded(row.get(k)) for k in ("accepted_at_1", "accepted_at_1_low", "accepted_at_1_high")}
                parts.append({"kind": kind, "name": words(name, 60), "problems": row.get("problems"), **shares})
    data = {
        "tiles": tiles,
        "unjudged": numbers.get("unjudged"),
        "bounds": [numbers.get("accepted_at_1_if_unjudged_wrong"), numbers.get("accepted_at_1_if_unjudged_right")],
        "problems": numbers.get("problems"),
        "samples": numbers.get("samples"),
        "findings": [words(text, 500) for text in findings] if isinstance(findings, list) else [],
        "by": parts,
        "source": source,
    }
    return section("overview", "summary", "Overview", data, source, "Shares with 95 % intervals over problems.")


def pass_at_k(sides: list[EvaluationRecord]) -> Section | None:
    """pass@k over k, one curve per evaluation of the newest one's problems."""
    drawn = [(one.examined.get("data_hash"), curve) for one in sides if (curve := one.curve()) is not None]
    curves = [curve for data, curve in drawn if data == drawn[-1][0]]  # other problems would be another axis
    if not curves:
        return None
    note = (
        "The chance that one of k answers is right: 1 − C(n−c, k)/C(n, k), mean over problems; "
        "95 % intervals over problems."
    )
    return section("passk", "passk", "pass@k", {"curves": curves}, curves[0]["from"]["file"], note)


def error_bars(sides: list[EvaluationRecord]) -> Section | None:
    """Answers by outcome, one bar per evaluation."""
    bars: list[Fact] = []
    for one in sides:
        first = [s for s in one.samples if s.turn == 0]
        counts = Counter("unjudged" if s.accepted is None else "right" if s.accepted else s.error_type for s in first)
        if counts:
            bars.append({"x": one.side, "counts": dict(counts), "from": place(f"{one.below}{SAMPLES}")})
    if not bars:
        return None
    source = bars[0]["from"]["file"]
    return error_section([{"name": "all", "unit": "answers by outcome", "bars": bars, "source": source}], source)


def error_section(groups: list[Fact], source: str) -> Section:
    """Stacked bars of outcomes, one picture per group."""
    note = "Numbers of answers by what kept them from being right; unjudged answers are counted apart, never as wrong."
    return section("errors", "errors", "Errors", {"groups": groups}, source, note)


def costs(sides: list[EvaluationRecord], name: str = "cost", title: str = "Cost") -> Section | None:
    """Tokens and judge seconds, in all and per solved problem."""
    measured = [(one, one.numbers()) for one in sides]
    keys = [key for key in COSTS if any(numbers.get(key) is not None for _, numbers in measured)]
    if not keys:
        return None
    cells = [
        [{"value": rounded(numbers.get(key)), "plain": True, "from": place(_source(one), key=key)}
         for one, numbers in measured]
        for key in keys
    ]  # fmt: skip
    if len(sides) > 1:
        data = {"columns": [one.side for one in sides], "rows": [COSTS[key] for key in keys], "cells": cells}
        return section(name, "grid", title, data, "metrics.json")
    rows = [
        {"name": COSTS[k], "unit": "s" if k.endswith("judge_time") else "", "how": "", **c[0]}
        for k, c in zip(keys, cells, strict=True)
    ]
    return section(name, "cost", title, {"rows": rows, "series": None}, "metrics.json")


def _source(one: EvaluationRecord) -> str:
    """The file that `numbers` come from: metrics.json, or the answers while there is none."""
    return f"{one.below}{'metrics.json' if (one.root / 'metrics.json').exists() else SAMPLES}"


def evaluations_below(folder: Folder) -> list[EvaluationRecord]:
    """A run's evaluations, oldest first and unfinished ones included."""
    paths = sorted((folder.root / "evaluations").glob(f"*/{INFO}"))
    records = [EvaluationRecord(folder, f"evaluations/{path.parent.name}/") for path in paths]
    return tell_apart(sorted(records, key=lambda one: str(one.info.get("started", ""))))


def shown_answers(sides: list[EvaluationRecord], answers: Answers) -> None:
    """Add the answers of several evaluations, each with an even share of half the page."""
    for one in sides:
        evaluation_answers(one.folder, answers, one.side, one.below, max(200, MOST // (2 * len(sides))))
