"""What an arm's runs kept of their skills: in study.json's arms, REPORT.md, retention.csv and on the page."""

from __future__ import annotations

import json
from pathlib import Path

from rlvrlab.report.gather import gather
from rlvrlab.study.document import over_seeds
from rlvrlab.study.report import report_page, retention_rows


def made() -> dict:
    runs = [{"worst": 0.2, "forgetting": 0.1}, {"worst": 0.3}]
    kept = {name: over_seeds(runs, name) for name in ("worst", "forgetting")}
    arm = {"chosen": False, "metrics": {}, "budget": None, "dropped": None, "trials": []}
    arms = [{**arm, "name": "plain", "retention": kept}, {**arm, "name": "old record"}]
    stage = {"name": "guard", "question": "", "note": "", "kind": "stage", "status": "running", "decision": None,
             "arms": arms, "reused": [], "comparisons": []}  # fmt: skip
    facts = {
        "schema": 2,
        "kind": "study",
        "name": "s",
        "question": "",
        "status": "running",
        "seeds": [0],
        "metrics": {},
    }
    empty = {"metrics": {}, "decisions": [], "test_looks": [], "caveats": [], "failures": [], "trials": {}}
    return {**facts, **empty, "launcher": "local", "code": {"version": "0"}, "stages": [stage]}


def test_the_report_and_its_table_have_worst_skill_and_forgetting() -> None:
    page = report_page(made())
    assert "± the standard deviation of the runs over seeds" in page
    assert "| arm | worst | forgetting |" in page and "| old record | – | – |" in page
    assert "| plain | 25.0 [0.0, 88.5] | 10.0 |" in page, "no share is below 0"
    assert "Intervals are cut at the least and the most that a number can be." in page
    rows = retention_rows(made())
    assert [row[:4] for row in rows] == [["guard", "plain", "worst", 0.25], ["guard", "plain", "forgetting", 0.1]]


def test_a_difference_may_be_below_zero_and_no_interval_leaves_what_there_can_be() -> None:
    runs = [{"average": one, "lost": one, "backward_transfer": -one} for one in (0.02, 0.9)]
    found = {name: over_seeds(runs, name) for name in runs[0]}
    assert [(found[name]["low"], found[name]["high"]) for name in found] == [(0, 1), (0, 1), (-1, 1)]


def test_the_page_has_them_too(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(json.dumps(made()))
    [grid] = [one for one in gather(tmp_path)["sections"] if one["id"] == "retention_0"]
    assert grid["data"]["columns"] == ["worst", "forgetting"] and grid["data"]["cells"][0][0]["value"] == 0.25
