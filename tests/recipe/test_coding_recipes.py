"""The coding recipes, scaled down to a few steps of nano on a few problems: they start, train and make their cards."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlvrlab.data.prepare import Prepared, from_environment, from_preset, write
from rlvrlab.data.presets import PRESETS
from rlvrlab.judge.isolation import probe
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.load import instantiate
from rlvrlab.record.files import write_rows
from rlvrlab.train.lab import build_problems
from rlvrlab.train.session import start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="could not import 'torch'"),
    pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs"),
]
ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
RECIPES = [
    *(ROOT / "recipes").glob("*.toml"),
    STUDIES / "coding_five_phase" / "qwen_coder.toml",
    STUDIES / "interference" / "qwen_skills.toml",
]
SKILLS = ("code", "code_repair", "code_refactor", "code_reasoning")
NANO = ["engine.model=nano", "engine.chat=false", "engine.lora_rank=4", "rollout.n=2", "rollout.max_tokens=8",
        "eval.test_size=2", "stop.deadline_s=0"]  # fmt: skip


def row(number: int) -> dict[str, object]:
    code = f"def f{number}(x):\n    if x > 2:\n        return x + {number}\n    return x - 1\n"
    tests = [f"assert f{number}({x}) == {x + number if x > 2 else x - 1}" for x in (1, 3, 5)]
    return {"task_id": number, "text": f"Write a function, number {number}.", "code": code, "test_list": tests}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the recipes with prepared data beside them."""
    home = tmp_path_factory.mktemp("recipes")
    for path in RECIPES:
        (home / path.name).write_text(path.read_text())
    write_rows(home / "mbpp.jsonl", [row(n) for n in (*range(20, 24), *range(520, 526), *range(700, 712))])
    for env in SKILLS:
        name = "mbpp" if env == "code" else f"mbpp_{env}"
        judge = instantiate("env", {"type": env, "shape": "mbpp"}, home)
        made = from_preset(name, PRESETS["mbpp"], judge, home / "mbpp.jsonl")
        made.leave_out_bad_tasks()
        write(made, home / "data", "jsonl")
    for env in ("sql", "countdown"):
        made = from_environment(env, instantiate("env", {"type": env}, home), {"train": 8, "dev": 4, "test": 2}, 0)
        write(made, home / "data", "jsonl")
    other = Prepared("humaneval", instantiate("env", {"type": "code"}, home))
    other.problems["test"] = instantiate("env", {"type": "code"}, home).problems("test", 1, 0)
    write(other, home / "data", "jsonl")
    return home


def test_five_phases_on_one_gpu(folder: Path) -> None:
    words = [*NANO, f"output_dir={folder / 'runs'}", "sft.references=4", "dpo.problems=2", "repair.problems=2"]
    words += [f"{phase}.{key}" for phase in ("sft", "dpo", "grpo", "repair") for key in ("steps=1", "batch_size=2")]
    ended = start(load_recipe(folder / "coding_five_phase.toml", words), lambda *_: None)
    assert ended.status == "finished"
    info = json.loads((ended.folder / "run_info.json").read_text())
    assert set(info["skipped"]) == {"dpo", "repair"}, "an untrained nano has no right answer"
    card = json.loads((ended.folder / "analysis" / "cards" / "3_grpo.json").read_text())
    assert {"humaneval_test/accepted_at_1", "mbpp_test/recovery_rate"} <= card["metrics"].keys()


def test_five_phases_of_a_study_on_one_gpu(folder: Path) -> None:
    words = [*NANO, f"output_dir={folder / 'runs'}", "data.dev_size=2", "optimizer.warmup_steps=0"]
    words += [f"{phase}.{key}" for phase in ("rft", "dpo", "grpo", "repair") for key in ("steps=1", "batch_size=2")]
    words += [f"{phase}.problems=2" for phase in ("rft", "dpo", "repair")]
    ended = start(load_recipe(folder / "qwen_coder.toml", words), lambda *_: None)
    assert ended.status == "finished"
    card = json.loads((ended.folder / "analysis" / "cards" / "3_grpo.json").read_text())
    assert {"humaneval_test/accepted_at_1", "mbpp_test/recovery_rate"} <= card["metrics"].keys()


def test_three_skills_in_turn(folder: Path) -> None:
    words = [*NANO, f"output_dir={folder / 'runs'}", "data.dev_size=6", "grpo.steps=3", "grpo.batch_size=2"]
    guard = ["guard.type=skill_safe", 'guard.protected=["code", "sql"]', "guard.memory_per_skill=2"]
    ended = start(load_recipe(folder / "qwen_skills.toml", [*words, *guard]), lambda *_: None)
    assert ended.status == "finished"
    card = json.loads((ended.folder / "analysis" / "cards" / "1_grpo.json").read_text())
    assert "mbpp_test/recovery_rate" in card["metrics"]
    assert "countdown_test/recovery_rate" not in card["metrics"], "Countdown has no second tries"


def test_five_skills_as_one_mixture(folder: Path) -> None:
    words = [*NANO, f"output_dir={folder / 'runs'}", "grpo.steps=1", "grpo.batch_size=5", "eval.every=0"]
    ended = start(load_recipe(folder / "code_skills.toml", words), lambda *_: None)
    assert ended.status == "finished"
    row = [json.loads(line) for line in (ended.folder / "logs" / "metrics.jsonl").read_text().splitlines()][-1]
    skills = {key.split("/")[2] for key in row if key.startswith("val-core/mixture/") and key.endswith("/acc")}
    assert skills >= {"generation", "repair", "refactoring", "reasoning", "sql"}


def test_the_same_mixture_for_verl(folder: Path) -> None:
    problems = build_problems(load_recipe(folder / "verl_code_skills.toml", []))
    assert {p.skill for p in problems["train"]} == {"generation", "repair", "refactoring", "reasoning", "sql"}
