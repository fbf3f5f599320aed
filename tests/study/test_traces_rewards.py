"""The runs of five rewards and a curriculum: which begin when, what is kept of them, and what is compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "studies"), str(ROOT / "studies/npg_muse")]
import traces_rewards  # noqa: E402
from exam_tables import Exams  # noqa: E402

from rlvrlab.recipe import load_recipe  # noqa: E402


def ran(work: Path, name: str, right: dict[str, bool]) -> None:
    """A run that came to its end, as far as it is read."""
    folder = work / f"{name}_s0"
    cards = folder / "analysis/cards"
    cards.mkdir(parents=True)
    (folder / "COMMIT").write_text("abc")
    facts = {"started": "2026-01-01T00:00:00Z", "machine": {"processor": "a processor"}, "packages": {"torch": "2"}}
    (folder / "run_info.json").write_text(json.dumps({**facts, "command": ["rlvr", "train", "a.toml", "seed=0"]}))
    (folder / "config.json").write_text(json.dumps({"recipe": {"rollout": {"n": 2}}}))
    card = cards / ("1_sft" if name == "sft" else "1_grpo")
    card.with_suffix(".json").write_text(json.dumps({"outcomes": right, "metrics": {}, "by_skill": {}}))
    rows = [{"problem": one, "turn": 0, "answer": "", "correct": mark, "error": "none"} for one, mark in right.items()]
    card.with_suffix(".answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    step = {"groups/collected": 3.0, "time/step_s": 2.0, "phase_step": 1}
    (folder / "metrics.jsonl").write_text("" if name == "sft" else json.dumps(step) + "\n")


def test_arms_wait_for_the_start_and_differ_by_what_was_declared(tmp_path: Path) -> None:
    first, *arms = traces_rewards.jobs(tmp_path, "MODEL", ["a=1"])
    assert first.name == "sft" and first.ready() and not first.done()
    assert [one.name for one in arms] == list(traces_rewards.ARMS) and not any(one.ready() for one in arms)
    assert "engine.model=MODEL" in first.words and f"engine.model={tmp_path / 'start'}" in arms[0].words
    assert all("a=1" in one.words for one in (first, *arms))
    ran(tmp_path, "sft", {"TSP:1": True})
    ran(tmp_path, "complicated", {"TSP:1": True})
    assert first.done() and all(one.ready() for one in arms)
    assert [one.name for one in arms if one.done()] == ["complicated"]


@pytest.mark.parametrize("name", list(traces_rewards.ARMS))
def test_every_arm_is_a_recipe(name: str) -> None:
    words = ['phases=["grpo"]', "engine.model=nano", "engine.chat=false", *traces_rewards.ARMS[name]]
    recipe = load_recipe(traces_rewards.RECIPE, words).recipe
    assert (recipe.grpo if hasattr(recipe, "grpo") else recipe.phase_tables["grpo"])["steps"] == 25
    assert recipe.reward["type"] == (name if name != "curriculum" else "binary")
    assert (recipe.protocol or {}).get("type") == ("curriculum" if name == "curriculum" else None)


def test_what_ran_is_kept_and_compared_with_right_or_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, right in (("sft", [0, 0]), ("binary", [1, 0]), ("complicated", [1, 1])):
        ran(tmp_path, name, dict(zip(("TSP:1:a", "MIS:1:b"), map(bool, right), strict=True)))
    monkeypatch.setattr(traces_rewards, "RESULTS", tmp_path / "kept.json")
    traces_rewards.keep(tmp_path)
    exams = Exams(tmp_path / "kept.json")
    assert {arm: exams.scores("np", "greedy", arm).mean() for arm in exams.arms} == {
        "sft_s0": 0.0, "binary_s0": 0.5, "complicated_s0": 1.0,
    }  # fmt: skip
    assert exams.arms["binary_s0"]["steps"] == 1 and exams.arms["binary_s0"]["device"] == "a processor"
    assert ("binary", "complicated") in exams.against and ("sft", "binary") in exams.against
