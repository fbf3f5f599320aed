"""The coding recipes, scaled down to a few steps of nano on a few problems: they start, train and make their cards."""

from __future__ import annotations

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from code_data import data_file

from rlvrlab.data.prepare import Prepared, from_environment, from_preset, write
from rlvrlab.data.presets import PRESETS
from rlvrlab.judge.isolation import probe
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.schema import instantiate
from rlvrlab.record.files import write_rows
from rlvrlab.scale.verl.keys import settings
from rlvrlab.train.lab import build_problems
from rlvrlab.train.plan import phase_plans
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
NUMBERS = (*range(20, 24), *range(520, 526), *range(700, 712))
"""Problems of test, dev and train by MBPP's own division."""
SHORT = 300
"""Characters of a solution: nano reads 2,048 tokens, most of them single letters."""
FIVE = {"generation", "repair", "refactoring", "reasoning", "sql"}
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
    prepared(home, [row(n) for n in NUMBERS])
    return home


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a few of MBPP's own problems, where they are at hand."""
    home = tmp_path_factory.mktemp("published")
    with gzip.open(data_file("mbpp/mbpp.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    prepared(home, [one for one in rows if one["task_id"] in NUMBERS and len(one["code"]) < SHORT])
    return home


def prepared(home: Path, rows: list[dict[str, object]]) -> None:
    """What `rlvr data prepare` writes of these problems and of the made ones, into data/ beside the recipes."""
    for path in RECIPES:
        (home / path.name).write_text(path.read_text())
    write_rows(home / "mbpp.jsonl", rows)
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


@pytest.mark.parametrize("name", ["code_skills", "verl_code_skills"])
@pytest.mark.parametrize("data", ["folder", "published"])
def test_five_skills_as_one_mixture(data: str, name: str, request: pytest.FixtureRequest) -> None:
    """Two updates on nano, of the recipe for one GPU and of that for verl; each skill is trained and examined."""
    home: Path = request.getfixturevalue(data)
    words = [*NANO, "engine.type=hf", f"output_dir={home / 'runs'}", "grpo.steps=2", "grpo.batch_size=10"]
    words.append("eval.every=0")
    if name == "verl_code_skills":
        words.append("eval.test_size=0")  # it has no test files: they are examined afterwards
    ended = start(load_recipe(home / f"{name}.toml", words), lambda *_: None)
    assert ended.status == "finished"
    rows = [json.loads(line) for line in (ended.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2]
    examined = {key.split("/")[2] for key in rows[-1] if key.startswith("val-core/mixture/") and key.endswith("/acc")}
    assert examined >= FIVE
    texts = [path.read_text() for path in (ended.folder / "rollouts").iterdir()]
    asked = [json.loads(line) for text in texts for line in text.splitlines()]
    assert {one["skill"] for one in asked} <= FIVE and len({one["skill"] for one in asked}) >= 3
    assert all(one["correct"] is not None for one in asked), "every answer was judged"


@pytest.mark.parametrize("data", ["folder", "published"])
def test_the_same_mixture_is_planned_for_verl(data: str, request: pytest.FixtureRequest) -> None:
    resolved = load_recipe(request.getfixturevalue(data) / "verl_code_skills.toml", [])
    assert {p.skill for p in build_problems(resolved)["train"]} == FIVE
    [plan] = phase_plans(resolved)
    assert (plan.answers_per_step, plan.steps) == (64 * 8, 200)
    asked = settings(resolved, "/home")
    assert (asked["data.train_batch_size"], asked["reward.reward_manager.name"]) == (64, "rlvr")
