"""Keep the record of a finished study beside its file, and recompute its decisions from what was kept.

    python studies/study_records.py keep experiments/studies/NAME studies/…/results
    python studies/study_records.py check studies/…/results/NAME.study.json

`keep` writes NAME.study.json (the study's own document: every trial, decision and look at test problems, with seeds)
and NAME.scores.json (metric -> trial -> score of every problem, in one order for all trials). `check` compares the arms
again from the scores, prints each stage's arms as Markdown rows, the outcome of each decision and the differences on
test problems, and fails where a decision or a difference would be another one today.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.evals.statistics import compare_seeds, estimate
from rlvrlab.study.board import Board
from rlvrlab.study.folder import find_study
from rlvrlab.study.measures import describe, is_cost
from rlvrlab.study.schema import Select
from rlvrlab.study.select import Candidate, choose


def keep(folder: Path, target: Path) -> None:
    """Copy the document and gather the scores of every metric that a table shows."""
    made = json.loads((folder / "study.json").read_text())
    board = Board.read(find_study(folder)[0], folder.resolve())
    scores: dict[str, dict[str, list[float]]] = {}
    for trial, facts in made["trials"].items():
        for metric in facts["metrics"]:
            column = board.scores(trial, metric)
            scores.setdefault(metric, {})[trial] = [round(column[key], 4) for key in sorted(column)]
    stages = board.chain.file.study.stages
    made["weights"] = {stage.name: dict(stage.select.metrics) for stage in stages}
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{made['name']}.study.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    lines = [f" {json.dumps(metric)}: {json.dumps(by_trial)}" for metric, by_trial in scores.items()]
    (target / f"{made['name']}.scores.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def check(path: Path) -> int:
    """Print what was found and whether the same decisions follow from the scores."""
    made = json.loads(path.read_text())
    scores = json.loads(path.with_name(path.name.replace(".study.", ".scores.")).read_text())
    wrong = 0
    for stage in made["stages"]:
        for arm in stage["arms"]:
            print(f"| {stage['name']} | {arm['name']} | {' | '.join(cells(arm, scores))} |")
        decision = next((one for one in made["decisions"] if one["id"] == stage["decision"]), None)
        if decision is not None and len(decision["candidates"]) > 1:
            rule = Select(rule=decision["rule"], alpha=decision["alpha"], margin=decision["margin"],
                          extend=decision["looks"] - 1, cost=decision["cost"])  # fmt: skip
            again = choose(rule, weights(decision, stage, made), rivals(decision, scores), len(stage["arms"]))
            same = (again.chosen, again.outcome) == (decision["recommended"], decision["outcome"])
            wrong += not same
            print(
                f"decision {decision['id']} ({again.outcome}): {again.words}{'' if same else ' (RECORDED OTHERWISE)'}"
            )
        for one in stage.get("comparisons", ()):
            words, same = on_test(one, stage, scores)
            wrong += not same
            print(words + ("" if same else " (RECORDED OTHERWISE)"))
    looks = made["test_looks"]
    print(f"seeds {made['seeds']}; looks at test problems: {len(looks)}; code of commit {made['code']['commit']}")
    return wrong


def on_test(recorded: dict[str, Any], stage: dict[str, Any], scores: dict[str, Any]) -> tuple[str, bool]:
    """A difference on test problems in words, adjusted for all pairs of arms; and whether it is the recorded one."""
    trials, column = {arm["name"]: arm["trials"] for arm in stage["arms"]}, scores[recorded["metric"]]
    before, after = ([column[trial] for trial in trials[recorded[side]]] for side in ("versus", "arm"))
    found = compare_seeds(before, after).adjusted(len(trials) * (len(trials) - 1) // 2)
    mean, low, high = (f"{100 * value:+.1f}" for value in (found.mean, found.low, found.high))
    words = (
        f"{recorded['arm']} − {recorded['versus']}: {mean} [{low}, {high}], p = {found.p_words} ({recorded['metric']})"
    )
    return words, np.allclose(found[:3], [recorded[name] for name in ("mean", "low", "high")], atol=1e-3)


def cells(arm: dict[str, Any], scores: dict[str, Any]) -> list[str]:
    """`52.1 [40.0, 64.0] ± 3.2 (here.accepted)` for each metric, from the scores of the arm's trials."""
    found = []
    for metric in arm["metrics"]:
        share = describe(metric)["unit"] == "share"
        one = estimate([scores[metric][trial] for trial in arm["trials"] if trial in scores[metric]], share=share)
        scale = 100 if share else 1
        low, value, high = (f"{scale * number:.1f}" for number in (one.low, one.value, one.high))
        spread = "" if one.spread is None else f" ± {scale * one.spread:.1f}"
        found.append(f"{value} [{low}, {high}]{spread} ({metric})")
    return found


def weights(decision: dict[str, Any], stage: dict[str, Any], made: dict[str, Any]) -> dict[str, float]:
    """The rule's metrics with their weights, as the study file has them."""
    metrics = list(decision["candidates"][0]["metrics"])
    declared = made["weights"].get(stage["name"].removeprefix("confirm_"), {})
    return {metric: declared.get(metric, 1.0) for metric in metrics}


def rivals(decision: dict[str, Any], scores: dict[str, Any]) -> list[Candidate]:
    """The decision's arms with their scores and costs."""
    made = []
    for one in decision["candidates"]:
        sampled = [metric for metric in one["metrics"] if not is_cost(metric)]
        columns = {m: [dict(enumerate(scores[m][trial])) for trial in one["trials"]] for m in sampled}
        costs = {m.partition(".")[2]: one["metrics"][m] for m in one["metrics"] if is_cost(m)}
        named = {m: [{str(k): v for k, v in column.items()} for column in own] for m, own in columns.items()}
        made.append(Candidate(one["arm"], tuple(one["trials"]), named, costs | {decision["cost"]: one["cost"]}))
    return made


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(1 if sum(check(Path(name)) for name in sys.argv[2:]) else 0)
