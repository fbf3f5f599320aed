"""studies/coding_five_phase with a real model: its arms are recipes, and its tables say what the kept outcomes say."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from rlvrlab.recipe import load_recipe

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "coding_five_phase"
sys.path.insert(0, str(STUDY))
import keep_qwen  # noqa: E402

SETS = {"mbpp": [f"MBPP/{i}" for i in range(40)], "humaneval": [f"HumanEval/{i}" for i in range(20)]}
RIGHT = {"base": 10, "rft": 12, "dpo": 14, "grpo": 30, "random": 14, "repair": 30}
"""Problems of MBPP that a policy solves, the first ones; of HumanEval half as many. Seeds above 0 solve one more."""


def solved(kind: str, seed: int) -> dict[str, float]:
    counts = {"mbpp": RIGHT[kind] + seed, "humaneval": RIGHT[kind] // 2}
    return {name: float(i < counts[data]) for data, names in SETS.items() for i, name in enumerate(names)}


def answer(problem: str, turn: int, right: bool, told: str = "") -> dict:
    prompt = f"Write a function. It must pass this test:\n\nassert f() == 1\n{told}"
    words = f"```python\ndef f():\n    return {int(right)}\n\nassert f() == 1\n```"
    return {"problem": problem, "turn": turn, "prompt": prompt, "answer": words, "correct": right, "error": "none",
            "detail": "", "passed": int(right), "total": 1}  # fmt: skip


def write_card(folder: Path, index: int, name: str, kind: str, seed: int) -> None:
    cards = folder / "analysis" / "cards"
    cards.mkdir(parents=True, exist_ok=True)
    outcomes = solved(kind, seed)
    shares = {"accepted_at_1": 0.5, "exec_success_rate": 0.9, "pass_ratio_mean": 0.6}
    metrics = {f"{data}_test/{key}": value for data in SETS for key, value in shares.items()}
    card = {"phase": name, "step": 3, "metrics": metrics, "outcomes": outcomes, "control": False, "seed": seed}
    (cards / f"{index}_{name}.json").write_text(json.dumps(card))
    failed = [one for one, right in outcomes.items() if not right]
    rows = [answer(one, 0, bool(right)) for one, right in outcomes.items()]
    rows += [answer(one, 1, i % 2 == 0, "```\nIt is wrong. Try again.") for i, one in enumerate(failed)]
    rows += [answer(one, -1, False) for one in failed]
    (cards / f"{index}_{name}.answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_part(raw: Path, arm: str, part: str, started: float, cut: str = "") -> None:
    seed, folder = int(arm[-1]), raw / "results" / arm / f"{part}_2026"
    write_card(folder, 1, part, part, seed)
    if part == "rft" and seed == 0:
        write_card(folder, 0, "baseline", "base", seed)
    facts = {"arm": arm, "part": part, "folder": folder.name, "started": started, "steps": 3, "answers": 64, "cut": cut,
             "seconds": 60.0, "card_s": 9.0, "memory_gb": 20.0, "code": "a", "device": "b", "torch": "2"}  # fmt: skip
    (raw / "results" / arm / f"{part}.json").write_text(json.dumps(facts))
    row = {"phase_step": 1, "time/step_s": 2.0, "groups/zero_variance": 0.5, "actor/entropy": 0.3, "train/acc": 0.5}
    lines = json.dumps(row) + "\n" + json.dumps(row)[:20]  # the last line is torn, as where a machine is taken
    (raw / "results" / arm / f"{part}.metrics.jsonl").write_text(lines)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """What keep_qwen makes of three seeds; random 2 was cut by time."""
    for seed in range(3):
        for i, part in enumerate(["rft", "dpo", "grpo", *(["repair"] if seed == 0 else [])]):
            write_part(tmp_path, f"five_s{seed}", part, 10.0 * i + seed)
        write_part(tmp_path, f"random_s{seed}", "random", 90.0 + seed, cut="time" if seed == 2 else "")
    right = {name: 4 * int(one) for name, one in solved("grpo", 0).items()}
    samples = {"start": "five_s0/grpo", "n": 16, "sets": {"all": {"right": right}}}
    (tmp_path / "results/sampled_grpo_s0.sampled.json").write_text(json.dumps(samples))
    monkeypatch.setattr(sys, "argv", ["keep_qwen.py", str(tmp_path), str(tmp_path / "kept")])
    keep_qwen.main()
    return tmp_path / "kept"


def test_tables_say_what_the_outcomes_say(kept: Path) -> None:
    tables = runpy.run_path(str(STUDY / "qwen_tables.py"))
    exams = tables["Exams"](kept / "qwen_coder.json")
    found = dict(tables["every_table"](exams))
    assert "| base → grpo 0 | mbpp | 20 | 0 | 10 | 10 |" in found["Problems that changed sides"]
    # 30 + seed against 14 + seed of 40 problems: 40 points in every seed
    declared = found["What was declared"].splitlines()[2:]
    assert "+40.0 [+40.0, +40.0]; above zero in 3 of 3 | yes" in declared[0]
    assert declared[1].endswith("| too few seeds |")  # one of three controls was cut
    assert declared[2].endswith("| higher |") and "+50.0" in declared[2]
    assert declared[3].endswith("| yes |")
    second = next(line for line in found["Second tries, in %"].splitlines() if line.startswith("| repair 0 | mbpp"))
    assert second.startswith("| repair 0 | mbpp | 10 | 50.0 | 0.0 | +50.0 [")
    differences = found["Differences, in points"].splitlines()
    assert any("| repair − grpo | +0.0 | +0.0 |" in one and one.endswith("problems only |") for one in differences)
    assert any("| grpo − base | +50.0, +52.5, +55.0 |" in one and "only" not in one for one in differences)
    assert "pass@16" in found["Examined after the last update, in %"]
    assert "random 2 (cut by time)" in found["Examined after the last update, in %"]


def test_pairs_of_the_gallery_are_chosen_by_a_hash(kept: Path, tmp_path: Path, monkeypatch) -> None:
    rows = [json.loads(line) for line in (kept / "qwen_answers.jsonl").read_text().splitlines()]
    flipped = [row["problem"] for row in rows if row["kind"] == "became right"]
    assert len(flipped) == 5 and flipped == keep_qwen.in_hash_order(flipped)
    assert [row["answers"][0]["correct"] for row in rows if row["kind"] == "became right"] == [False] * 5
    monkeypatch.setattr(sys, "argv", ["make_answers.py", str(kept / "qwen_answers.jsonl"), str(tmp_path / "page.md")])
    runpy.run_path(str(ROOT / "docs/make_answers.py"), run_name="__main__")
    page = (tmp_path / "page.md").read_text()
    assert page.count("````") % 2 == 0 and "\n5 of " in page


def test_nothing_of_the_data_sets_is_kept(kept: Path) -> None:
    text = (kept / "qwen_answers.jsonl").read_text()
    assert "assert …" in text and "assert f()" not in text and "prompt" not in text and "HumanEval" not in text


ARMS = {
    "five": (), "grpo": ('phases=["rft","dpo","grpo"]',), "no_dpo": ('phases=["rft","grpo"]',),
    "random": ('phases=["rft","dpo","grpo"]', "reward.type=random", "reward.seed=1"),
    "more_sft": ('phases=["rft"]', "rft.steps=74"), "pass_ratio": ("reward.type=pass_ratio",),
}  # fmt: skip


@pytest.mark.parametrize("arm", ARMS)
def test_every_declared_arm_is_the_recipe_with_its_overrides(arm: str) -> None:
    declared = (STUDY / "DECLARATION.md").read_text()
    recipe = load_recipe(STUDY / "qwen_coder.toml", [*ARMS[arm], "seed=1"]).recipe
    assert all(word.replace("seed=1", "seed=S") in declared for word in ARMS[arm])
    steps = {name: load_recipe(STUDY / "qwen_coder.toml").phase(name).steps for name in ("rft", "dpo", "grpo")}
    assert sum(steps.values()) == 74 and recipe.optimizer.warmup_steps < min(steps.values())
