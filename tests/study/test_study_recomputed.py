"""The committed records of studies again, from the score of every problem, with scipy and code of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_statistics import Expected, arm_interval

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "studies"))
import study_records  # noqa: E402

RECORDS = sorted(ROOT.glob("studies/*/results/*.study.json"))


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    scores = path.with_name(path.name.replace(".study.", ".scores."))
    return json.loads(path.read_text(encoding="utf-8")), json.loads(scores.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_every_arm_has_the_mean_spread_and_interval_of_its_scores(path: Path) -> None:
    made, scores = read(path)
    for arm in (arm for stage in made["stages"] for arm in stage["arms"]):
        for metric, told in arm["metrics"].items():
            trials = [trial for trial in arm["trials"] if trial in scores[metric]]
            table = np.array([scores[metric][trial] for trial in trials])
            assert (told["seeds"], told["problems"]) == table.shape
            assert told["value"] == pytest.approx(table.mean(), abs=1e-4)
            if len(table) > 1 and table.max() <= 1:
                assert told["spread"] == pytest.approx(table.mean(axis=1).std(ddof=1), abs=1e-4)
                assert (told["low"], told["high"]) == pytest.approx(arm_interval(table), abs=2e-4), (
                    arm["name"],
                    metric,
                )


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_every_comparison_on_test_follows_from_the_scores(path: Path) -> None:
    made, scores = read(path)
    for stage in made["stages"]:
        trials = {arm["name"]: arm["trials"] for arm in stage["arms"]}
        pairs = len(trials) * (len(trials) - 1) // 2
        for told in stage.get("comparisons", ()):
            column = scores[told["metric"]]
            sides = [np.array([column[trial] for trial in trials[told[side]]]) for side in ("versus", "arm")]
            rules = {one["stage"]: one.get("paired", False) for one in made["decisions"]}
            want = Expected(*sides, share=True, paired=rules[stage["name"].removeprefix("final_")])
            half = want.half(1 - 0.05 / pairs)
            ends = (max(-1.0, want.centre - half), min(1.0, want.centre + half))
            assert (told["low"], told["high"]) == pytest.approx(ends, abs=2e-4)
            p = want.p(pairs)
            assert told["p"] == (None if p is None else pytest.approx(p, rel=0.02))
            assert told["outcome"] == ("better" if ends[0] > 0 else told["outcome"])


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_every_decision_takes_what_its_rule_says(path: Path) -> None:
    """The means, costs and chosen arm of each decision; its intervals are decided again by studies/study_records.py."""
    made, scores = read(path)
    for one in made["decisions"]:
        for rival in one["candidates"]:
            for metric, value in rival["metrics"].items():
                if metric in scores:
                    table = np.array([scores[metric][trial] for trial in rival["trials"]])
                    assert value == pytest.approx(table.mean(), abs=1e-4)
        best = max(one["candidates"], key=lambda rival: rival["score"])
        if one["rule"] == "weighted" and one["outcome"] == "undecided" and len(one["candidates"]) > 1:
            assert one["recommended"] == best["arm"], "an undecided stage goes on with the highest mean"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_what_could_have_been_shown_follows_from_the_scores(path: Path) -> None:
    made, scores = read(path)
    assert list(study_records.power_differs(made, study_records.with_power(made, scores))) == []


def test_a_record_that_tells_another_power_is_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = next(path for path in RECORDS if path.name == "paper_a_code.study.json")
    made, scores = read(source)
    kept = tmp_path / source.name
    kept.with_name("paper_a_code.scores.json").write_text(json.dumps(scores), encoding="utf-8")
    right = made["decisions"][0]["comparisons"][0]["detectable"]
    made["decisions"][0]["comparisons"][0]["detectable"] = 0.8 * right
    kept.write_text(json.dumps(made), encoding="utf-8")
    assert study_records.check(kept) == 1 and "RECORDED OTHERWISE" in capsys.readouterr().out
    study_records.write_power(kept)
    assert study_records.check(kept) == 0
    again = json.loads(kept.read_text(encoding="utf-8"))
    assert again["decisions"][0]["comparisons"][0]["detectable"] == pytest.approx(right, abs=1e-3)
