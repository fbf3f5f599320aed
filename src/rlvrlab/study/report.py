"""REPORT.md and DECISIONS.md from study.json's plain data alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlvrlab.report.gather.stages import MEASURED, stage_state, trials_words
from rlvrlab.report.gather.study import KEPT
from rlvrlab.shares import markdown_cell, share_words
from rlvrlab.study.looks import number_words, sure
from rlvrlab.study.measures import difference_words, of_shares, size_words

SIGNS = (
    "Differences are turned so that plus is in the leader's favour, also where less is better. Intervals are for new "
    "seeds and new problems (Student's t), at a level shared by all pairs of arms, metrics and looks; p is adjusted "
    "alike. A look that the study file did not declare (`select.extend`) has a level of its own, which is told, and "
    "adds to the chance of a wrong finding: the heading of its table says how sure all looks are together. "
    "*better*: the interval lies above 0. *equivalent*: it lies within the margin, so the cheaper arm is taken. "
    "*undecided*: neither, so the highest mean goes on, and nothing is claimed."
)
CELLS = (
    "Cells: the mean, [95 % interval] for new seeds and new problems (of one seed: for new problems only), ± the "
    "standard deviation of the runs over seeds."
)
ON_TEST = "Test problems, asked once everything was decided; nothing was chosen from them."
RETENTION = ["stage", "arm", "what", "mean", "low", "high", "seeds"]
MARK = {"waiting": "waits for a person", "blocked": "waits for an input", "failed": "failed"}


def report_page(made: dict[str, Any]) -> str:
    """Question, stages as tables, caveats, failures, trials with their run folders."""
    lines = [f"# {made['name']}", "", made["question"], ""] if made["question"] else [f"# {made['name']}", ""]
    count = sum(one["status"] == "finished" for one in made["trials"].values())
    lines += [f"{made['status']} · {count} of {len(made['trials'])} trials finished · seeds {made['seeds']} · "
              f"launcher {made['launcher']} · rlvrlab {made['code']['version']}", "", CELLS, ""]  # fmt: skip
    for stage in made["stages"]:
        decision = next((one for one in made["decisions"] if one["id"] == stage["decision"]), None)
        lines += [f"## {stage['name']} — {_standing(stage, decision, made['status'] == 'running')}", ""]
        lines += [f"{stage['question']}", ""] if stage["question"] else []
        lines += [f"{stage['note']}", ""] if stage["note"] else []
        names = list(dict.fromkeys(m for arm in stage["arms"] for m in arm["metrics"]))
        rows = [
            (f"**{arm['name']}**" if arm["chosen"] else arm["name"],
             *(_metric(made, arm["metrics"].get(m), m) for m in names),
             _number((arm["budget"] or {}).get("tokens")),
             arm["dropped"] or trials_words(arm.get("finished"), len(arm["trials"])))
            for arm in stage["arms"]
        ]  # fmt: skip
        lines += [*_table(("arm", *names, "tokens ≤", "trials"), rows), ""]
        lines += _kept(stage)
        if decision:
            lines += [f"**Decision {decision['id']}** ({decision['rule']}): {decision['words']}.", ""]
        if stage["kind"] == "final":
            lines += [ON_TEST, "", *_compared(stage["comparisons"])]
        reused = [f"- trial {one['trial']} was run for {one['stage']} ({one['arm']})" for one in stage["reused"]]
        lines += [*reused, ""] if reused else []
    lines += [looks_line(made), ""]
    lines += ["## What not to conclude", ""] + [f"- {one['text']}" for one in made["caveats"]] + [""]
    if made["failures"]:
        lines += ["## Failed trials", "", *_table(("trial", "status", "why", "log"), (
            (f["trial"], f["status"], f["why"], f["log"]) for f in made["failures"])), ""]  # fmt: skip
    lines += ["## Trials", "", *_table(("trial", "asked for by", "seed", "status", "attempts", "seconds", "run"), (
        (name, "; ".join(f"{s['stage']}: {s['arm']}" for s in one["stages"]), one["seed"], one["status"],
         len(one["attempts"]), _number(one["seconds"]), _link(one["run"]))
        for name, one in made["trials"].items()))]  # fmt: skip
    return "\n".join(lines) + "\n"


def retention_rows(made: dict[str, Any]) -> list[list[Any]]:
    """One line for each stage, arm and number of what was kept, under the headings RETENTION."""
    return [
        [stage["name"], arm["name"], name, *(number[key] for key in ("value", "low", "high", "n"))]
        for stage in made["stages"]
        for arm in stage["arms"]
        for name, number in arm.get("retention", {}).items()
    ]


def _kept(stage: dict[str, Any]) -> list[str]:
    """A table of average, worst skill and forgetting, where runs examined several skills."""
    names = list(dict.fromkeys(name for arm in stage["arms"] for name in arm.get("retention", {})))
    if not names:
        return []
    kept = {arm["name"]: arm.get("retention", {}) for arm in stage["arms"]}
    rows = [(arm, *(share_words(own.get(name)) for name in names)) for arm, own in kept.items()]
    told = "Skills on dev problems at the end of training, in points, mean [95 % t interval over seeds]"
    head = ("arm", *(name.replace("_", " ") for name in names))
    return [f"{told}. {KEPT}", "", *_table(head, rows), ""]


def decisions_page(made: dict[str, Any]) -> str:
    """Every decision with its numbers, each number with its trials and their run folders."""
    lines = [f"# Decisions of {made['name']}", "", SIGNS, ""]
    for one in made["decisions"]:
        lines += [f"## {one['id']}. {one['stage']} ({one['kind']}, {one['time']})", "", f"{one['words']}.", ""]
        rule = f"rule {one['rule']}, α = {one['alpha']}, margin {one['margin']:g}, the cheaper by {one['cost']}"
        lines += [f"Outcome: **{_outcome(one)}**. By {one['by']}: {rule}; {number_words(one)}.", ""]
        if one["front"]:
            lines += [f"Pareto front: {', '.join(one['front'])}.", ""]
        if one["candidates"]:
            names = list(one["candidates"][0]["metrics"])
            lines += [*_table(("arm", "score", *names, f"cost ({one['cost']})", "trials"), (
                (c["arm"], _number(c["score"]), *(_number(c["metrics"][m]) for m in names), _number(c["cost"]),
                 ", ".join(_link((made["trials"].get(t) or {}).get("run"), t) for t in c["trials"]))
                for c in one["candidates"])), ""]  # fmt: skip
        lines += _compared(one["comparisons"], sure(one))
    if not made["decisions"]:
        lines.append("None yet.")
    return "\n".join(lines) + "\n"


def looks_line(made: dict[str, Any]) -> str:
    """How often test problems were looked at, in words."""
    looks = made["test_looks"]
    if not looks:
        return "Test problems were not looked at."
    trials = len({one["trial"] for one in looks})
    return f"Test problems were looked at {len(looks)} times, with {trials} trials (`test_looks` of study.json)."


def _standing(stage: dict[str, Any], decision: dict[str, Any] | None, going: bool) -> str:
    """The heading of a stage: how it was decided and what goes on, or what it waits for."""
    if decision is not None and stage["status"] == "decided":
        return f"{_outcome(decision)}: {decision['chosen']}"
    state = stage_state(stage["kind"], stage["status"], decision, going)
    return "measured on test problems" if state == MEASURED else MARK.get(state, state)


def _outcome(decision: dict[str, Any]) -> str:
    return str(decision["outcome"]) if decision["by"] == "rule" else "a person's choice"


def _compared(compared: list[dict[str, Any]], sureness: str = "simultaneous 95 %") -> list[str]:
    """Leader against other arm with both bounds, and what follows from them."""
    if not compared:
        return []
    head = ("metric", "leader − other", f"difference [{sureness}]", "outcome", "p", "detectable")
    rows = [
        (c["metric"], f"{c['arm']} − {c['versus']}", difference_words(c["mean"], c["low"], c["high"], of_shares(c)),
         c["outcome"], "–" if c["p"] is None else f"{c['p']:.2g}",
         size_words(c["detectable"], of_shares(c)) if c["problems"] and c["detectable"] is not None else "–")
        for c in compared
    ]  # fmt: skip
    return [*_table(head, rows), ""]


def _metric(made: dict[str, Any], numbers: dict[str, Any] | None, name: str) -> str:
    """62.5 [55.1, 69.2] ± 1.4 %: the mean, its interval for new seeds and problems, its spread over seeds."""
    if numbers is None:
        return "–"
    share = made["metrics"].get(name, {}).get("unit") == "share"
    scale, digits = (100.0, 1) if share else (1.0, 2)
    low, value, high = (f"{scale * numbers[key]:.{digits}f}" for key in ("low", "value", "high"))
    spread = f" ± {scale * numbers['spread']:.{digits}f}" if numbers["spread"] is not None else ""
    return f"{value} [{low}, {high}]{spread}{' %' if share else ''}"


def _link(path: str | None, text: str | None = None) -> str:
    return f"[{text or 'run'}]({path})" if path else (text or "–")


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1000 else f"{value:,.0f}"


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    columns = [markdown_cell(one) for one in head]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = [markdown_cell(one) for one in row]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
