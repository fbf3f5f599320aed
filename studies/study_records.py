"""Keep the record of a finished study beside its file, and recompute its decisions from what was kept.

    python studies/study_records.py keep experiments/studies/NAME studies/…/results
    python studies/study_records.py check studies/…/results/NAME.study.json
    python studies/study_records.py again studies/…/results/NAME.study.json

`keep` writes NAME.study.json (the study's own document: every trial, decision and look at test problems, with seeds)
and NAME.scores.json (metric -> trial -> score of every problem, in one order for all trials). `check` compares the arms
again from the scores, prints each stage's arms as Markdown rows, the outcome of each decision and the differences on
test problems, and fails where a decision, a difference or what a comparison could have shown would be another one
today. `again` writes what the comparisons could have shown, and which size would decide, anew.
"""

from __future__ import annotations

import copy
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from exam_tables import points

from rlvrlab.evals.statistics import compare_seeds, estimate
from rlvrlab.report.gather.stages import FINAL
from rlvrlab.study.board import Board
from rlvrlab.study.caveats import unseen
from rlvrlab.study.contest import Candidate, Contest
from rlvrlab.study.folder import find_study
from rlvrlab.study.measures import describe, is_cost
from rlvrlab.study.schema import Select
from rlvrlab.study.select import Recommendation, choose

ENOUGH = re.compile(r"about [^;]* would decide it|no affordable number [^;]* would decide a difference this small")


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


def write_power(path: Path) -> None:
    """Put what the comparisons could have shown into the record, where it is another one today."""
    made, scores = read(path)
    again = with_power(made, scores)
    if list(power_differs(made, again)):
        path.write_text(json.dumps(again, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document and the scores beside it."""
    scores = path.with_name(path.name.replace(".study.", ".scores."))
    return json.loads(path.read_text()), json.loads(scores.read_text())


def check(path: Path) -> int:
    """Print what was found and whether the same decisions follow from the scores."""
    made, scores = read(path)
    wrong = 0
    for stage in made["stages"]:
        for arm in stage["arms"]:
            print(f"| {stage['name']} | {arm['name']} | {' | '.join(cells(arm, scores))} |")
        decision = next((one for one in made["decisions"] if one["id"] == stage["decision"]), None)
        if decision is not None and len(decision["candidates"]) > 1:
            again = decided(decision, stage, made, scores)
            same = (again.chosen, again.outcome) == (decision["recommended"], decision["outcome"])
            wrong += not same
            print(
                f"decision {decision['id']} ({again.outcome}): {again.words}{'' if same else ' (RECORDED OTHERWISE)'}"
            )
            print("".join(f"  {in_points(one.plain())}\n" for one in again.comparisons), end="")
        for one in stage.get("comparisons", ()):
            paired = rule_at_end(stage, made).paired
            words, same = on_test(one, stage, scores, paired=paired)
            wrong += not same
            print(words + ("" if same else " (RECORDED OTHERWISE)"))
            print("".join(f"  {line}\n" for line in besides(one, stage, scores, paired=paired)), end="")
    wrong += len(unlike := list(power_differs(made, with_power(made, scores))))
    print("".join(f"{line} (RECORDED OTHERWISE)\n" for line in unlike), end="")
    looks = made["test_looks"]
    print(f"seeds {made['seeds']}; looks at test problems: {len(looks)}; code of commit {made['code']['commit']}")
    return wrong


def in_points(row: dict[str, Any]) -> str:
    """A comparison of shares as pages tell it: the difference, its interval, and from which size on it is seen."""
    interval = f"[{points(row['low'])}, {points(row['high'])}]"
    words = f"{row['arm']} − {row['versus']}: {points(row['mean'])} {interval} points"
    return words + (f", shown from {100 * row['detectable']:.1f}" if row.get("detectable") is not None else "")


def decided(
    decision: dict[str, Any], stage: dict[str, Any], made: dict[str, Any], scores: dict[str, Any]
) -> Recommendation:
    """The same decision from the scores."""
    seeds = {name: trial["seed"] for name, trial in made["trials"].items()}
    candidates = rivals(decision, scores, seeds)
    undeclared = decision.get("undeclared", 0)  # records from before looks were counted do not have it
    return choose(rule_of(decision), weights(decision, stage, made), candidates, len(stage["arms"]), undeclared)


def rule_of(decision: dict[str, Any]) -> Select:
    """The rule that a decision was made by."""
    paired = decision.get("paired", False)  # records from before pairs were compared do not have it
    return Select(rule=decision["rule"], alpha=decision["alpha"], margin=decision["margin"], paired=paired,
                  extend=decision["looks"] - 1, cost=decision["cost"])  # fmt: skip


def with_power(made: dict[str, Any], scores: dict[str, Any]) -> dict[str, Any]:
    """The document with what its comparisons could have shown, worked out from the scores."""
    made = copy.deepcopy(made)
    stages = {stage["name"]: stage for stage in made["stages"]}
    for decision in made["decisions"]:
        if len(decision["candidates"]) < 2:
            continue
        found = decided(decision, stages[decision["stage"]], made, scores)
        take_power(decision["comparisons"], [one.plain() for one in found.comparisons])
        sizes = ENOUGH.search(found.words)
        decision["words"] = ENOUGH.sub(sizes[0] if sizes else "", decision["words"])
        for caveat in made["caveats"]:
            if caveat["kind"] == "power" and caveat["stages"] == [decision["stage"]]:
                caveat["text"] = f"{decision['stage']}: {unseen(decision['comparisons'], made.get('seed_spread'))}"
    for stage in made["stages"]:
        for row in stage.get("comparisons", ()):
            take_power([row], [compared_on_test(row, stage, made, scores)])
    return made


def rule_at_end(stage: dict[str, Any], made: dict[str, Any]) -> Select:
    """The rule of the stage whose arms were asked test problems."""
    rules = {decision["stage"]: rule_of(decision) for decision in made["decisions"]}
    return rules.get(stage["name"].removeprefix(f"{FINAL}_"), Select())


def compared_on_test(
    row: dict[str, Any], stage: dict[str, Any], made: dict[str, Any], scores: dict[str, Any]
) -> dict[str, Any]:
    """A comparison on test problems again, by the rule of the stage whose winner was examined."""
    metric, arms = row["metric"], stage["arms"]
    candidates = []
    for arm in arms:
        seeds = tuple(made["trials"][trial]["seed"] for trial in arm["trials"])
        candidates.append(Candidate(arm["name"], tuple(arm["trials"]), {metric: named(metric, arm, scores)}, {}, seeds))
    contest = Contest(rule_at_end(stage, made), {metric: 1.0}, candidates, len(arms))
    return contest.versus(metric, row["arm"], [row["versus"]])[0].plain()


def take_power(recorded: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    """Put the two numbers that follow from power in the place of the recorded ones."""
    for old, new in zip(recorded, found, strict=True):
        assert (old["metric"], old["versus"]) == (new["metric"], new["versus"])
        old |= {"detectable": new["detectable"], "enough": new["enough"]}


def power_differs(one: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    """Comparisons, sentences and caveats that tell another power, in words; scores are kept with four digits."""
    for old, new in zip(one["decisions"] + one["stages"], other["decisions"] + other["stages"], strict=True):
        for was, now in zip(old.get("comparisons", ()), new.get("comparisons", ()), strict=True):
            then, today = (math.inf if row["detectable"] is None else row["detectable"] for row in (was, now))
            if was["enough"] != now["enough"] or not math.isclose(then, today, abs_tol=1e-3):
                yield f"{now['arm']} − {now['versus']}: shown from {now['detectable']}, enough: {now['enough']}"
    for key, words in (("decisions", "words"), ("caveats", "text")):
        yield from (new[words] for old, new in zip(one[key], other[key], strict=True) if old[words] != new[words])


def named(metric: str, arm: dict[str, Any], scores: dict[str, Any]) -> list[dict[str, float]]:
    """Problem -> score, for each trial of an arm."""
    return [{str(k): value for k, value in enumerate(scores[metric][trial])} for trial in arm["trials"]]


def on_test(
    recorded: dict[str, Any], stage: dict[str, Any], scores: dict[str, Any], *, paired: bool = False
) -> tuple[str, bool]:
    """A difference on test problems in words, adjusted for all pairs of arms; and whether it is the recorded one."""
    trials, column = {arm["name"]: arm["trials"] for arm in stage["arms"]}, scores[recorded["metric"]]
    before, after = ([column[trial] for trial in trials[recorded[side]]] for side in ("versus", "arm"))
    found = compare_seeds(before, after, paired=paired).adjusted(len(trials) * (len(trials) - 1) // 2)
    mean, low, high = (f"{100 * value:+.1f}" for value in (found.mean, found.low, found.high))
    words = f"{recorded['arm']} − {recorded['versus']}: {mean} [{low}, {high}], {found.p_told} ({recorded['metric']})"
    return words, np.allclose(found[:3], [recorded[name] for name in ("mean", "low", "high")], atol=1e-3)


def besides(recorded: dict[str, Any], stage: dict[str, Any], scores: dict[str, Any], *, paired: bool) -> Iterator[str]:
    """The same two arms in the shares that were measured beside the one that decides; not adjusted."""
    arms = {arm["name"]: arm for arm in stage["arms"]}
    before, after = (arms[recorded[side]] for side in ("versus", "arm"))
    for metric in after["metrics"]:
        if metric == recorded["metric"] or metric not in before["metrics"] or describe(metric)["unit"] != "share":
            continue
        old, new = ([scores[metric][trial] for trial in arm["trials"]] for arm in (before, after))
        found = compare_seeds(old, new, paired=paired)
        words = f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]"
        yield f"{recorded['arm']} − {recorded['versus']}: {words} ({metric}, decides nothing)"


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


def rivals(decision: dict[str, Any], scores: dict[str, Any], seeds: dict[str, int]) -> list[Candidate]:
    """The decision's arms with their scores and costs."""
    made = []
    for one in decision["candidates"]:
        sampled = [metric for metric in one["metrics"] if not is_cost(metric)]
        costs = {m.partition(".")[2]: one["metrics"][m] for m in one["metrics"] if is_cost(m)}
        columns = {metric: named(metric, one, scores) for metric in sampled}
        costs |= {decision["cost"]: one["cost"]}
        trials = tuple(one["trials"])
        made.append(Candidate(one["arm"], trials, columns, costs, tuple(seeds[trial] for trial in trials)))
    return made


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1] == "again":
        for name in sys.argv[2:]:
            write_power(Path(name))
    else:
        sys.exit(1 if sum(check(Path(name)) for name in sys.argv[2:]) else 0)
