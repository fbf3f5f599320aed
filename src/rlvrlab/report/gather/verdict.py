"""What a study found: the winner in a sentence, and every arm of each stage with its seeds, in the order they ran."""

from __future__ import annotations

from typing import Any

from rlvrlab.report.reading import Fact, Section, as_list, as_table, number, place, rounded, section, words
from rlvrlab.shares import percent

STUDY = "study.json"
TONES = {"better": "good", "undecided": "unclear", "equivalent": "unclear"}
NOT_BETTER = {"equivalent": "no better than another within the margin", "alone": "compared with nothing"}
"""How an arm goes on that won nothing, where it is not because the comparison is undecided."""


def verdict(study: dict[str, Any]) -> Section | None:
    """The top of a study's page."""
    stages = [as_table(stage) for stage in as_list(study.get("stages"))]
    decisions = {str(one.get("id")): one for one in map(as_table, as_list(study.get("decisions")))}
    forests = [forest for i, stage in enumerate(stages) if (forest := _forest(study, stage, i, decisions))]
    if not forests:
        return None
    chosen = [one for one in forests if one["chosen"]]
    contested = [one for one in chosen if len(one["rows"]) > 1]  # a stage of one arm measures and decides nothing
    last = next(reversed(contested or chosen), None)
    # What decided the last contested stage, then what the later ones found.
    reason = f"{last['words'].rstrip('.')}." if last and last["words"] else ""
    later = chosen[chosen.index(last) + 1 :] if last else []
    data = {
        "tone": last["tone"] if last else "waiting",
        "word": f"{last['chosen']} wins {last['name']}" if last and last["tone"] == "good" else
                f"{last['chosen']} goes on from {last['name']}, {last['how']}" if last else "Not yet decided",
        "sentence": " ".join(filter(None, [reason, *map(_measured, later)])),
        "forests": forests,
        **cautions(study),
    }  # fmt: skip
    note = "Means with 95 % intervals; every dot is one seed. ★ is the arm that was chosen."
    return section("verdict", "verdict", "What came out", data, STUDY, note)


def cautions(study: dict[str, Any]) -> Fact:
    """What not to conclude, and which trials failed."""
    failures = map(as_table, as_list(study.get("failures")))
    return {
        "caveats": [words(as_table(one).get("text") or one, 500) for one in as_list(study.get("caveats"))],
        "failures": [f"{words(one.get('trial'), 40)}: {words(one.get('why'), 300)}" for one in failures],
    }


def _measured(forest: Fact) -> str:
    """What a later stage of one arm found."""
    [row] = forest["rows"]
    if row["value"] is None or not forest["share"]:
        return ""
    return f"Then measured in {forest['name']}: {row['name']} {percent(row['value'], row['low'], row['high'])}."


def _forest(study: dict[str, Any], stage: dict[str, Any], index: int, decisions: dict[str, Any]) -> Fact | None:
    """The arms of one stage by the first metric that its rule looks at."""
    arms = [as_table(arm) for arm in as_list(stage.get("arms"))]
    metric = next((key for arm in arms for key in as_table(arm.get("metrics"))), None)
    if metric is None:
        return None
    decision = as_table(decisions.get(str(stage.get("decision"))))
    chosen = next((words(arm.get("name") or "?", 80) for arm in arms if arm.get("chosen") is True), "")
    rows = [
        {"name": words(arm.get("name") or "?", 80), "chosen": arm.get("chosen") is True,
         **{side: rounded(as_table(as_table(arm.get("metrics")).get(metric)).get(side))
            for side in ("value", "low", "high")},
         "seeds": _seeds(study, arm, metric), "dropped": words(arm.get("dropped") or "", 200),
         "from": place(STUDY, key=f"stages[{index}].arms[].metrics.{metric}")}
        for arm in arms
    ]  # fmt: skip
    share = as_table(as_table(study.get("metrics")).get(metric)).get("unit", "share") == "share"
    return {"name": words(stage.get("name") or f"stage {index + 1}", 60), "metric": words(metric, 60), "share": share,
            "rows": rows, "chosen": chosen, "words": words(decision.get("words") or "", 500),
            "tone": TONES.get(str(decision.get("outcome")), "unclear") if chosen else "waiting",
            "how": _how(decision)}  # fmt: skip


def _how(decision: dict[str, Any]) -> str:
    """How the chosen arm goes on where it is not shown to be better."""
    person = decision.get("by") == "person"
    return "chosen by a person" if person else NOT_BETTER.get(str(decision.get("outcome")), "undecided")


def _seeds(study: dict[str, Any], arm: dict[str, Any], metric: str) -> list[Fact]:
    """One value per seed; a seed that was run again does not become a second one."""
    found: dict[str, Fact] = {}
    for name in as_list(arm.get("trials")):
        trial = as_table(as_table(study.get("trials")).get(str(name)))
        value = number(as_table(as_table(trial.get("metrics")).get(metric)).get("value"))
        if value is not None:
            seed = words(trial.get("seed"), 20)
            found.setdefault(seed, {"seed": seed, "value": rounded(value)})
    return list(found.values())
