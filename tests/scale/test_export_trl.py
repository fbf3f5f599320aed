"""`rlvr export trl`: what TRL can honour arrives, what it cannot is refused by name, and the script really trains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import errors, inside

from rlvrlab.errors import InfrastructureError, RecipeError
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.recipe.schema import core_keys
from rlvrlab.registry import find
from rlvrlab.scale.exports.trl import MAPPED, OURS, REFUSED, export, refusals, settings
from rlvrlab.scale.exports.trl_reward import TrlReward
from rlvrlab.train.update import learning_rate
from rlvrlab.types import unjudged

RECIPE = """
name = "small"
phases = ["grpo"]
env = {type = "countdown", numbers = [2], high = 20, style = "bare"}
engine = {type = "hf", model = "nano"}
data = {train_size = 24, dev_size = 4}
rollout = {n = 4, max_tokens = 12}
optimizer = {warmup_steps = 2, decay = "cosine"}
filter = {dead_groups = "keep"}
advantage = {type = "grpo", epsilon = 1e-4}
grpo = {steps = 3, batch_size = 6, minibatches = 2, epochs = 2, learning_rate = 1e-3}
"""


def recipe(folder: Path, *overrides: str) -> Resolved:
    (folder / "r.toml").write_text(RECIPE)
    return load_recipe(folder / "r.toml", overrides)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An export that needs no torch: the model is a name on the hub."""
    export(recipe(tmp_path, "engine.model=some/model"), tmp_path / "out")
    return tmp_path / "out"


def test_every_key_has_its_place() -> None:
    listed = [OURS, MAPPED, {f"{key}.type" if "." not in key else key for key in REFUSED}]
    assert set().union(*listed) == set(core_keys())
    assert sum(map(len, listed)) == len(set(core_keys()))


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("phases=['reinforce']", "phases"),
        ("filter.dead_groups=drop", "filter.dead_groups"),
        ("advantage.epsilon=1e-6", "advantage.epsilon"),
        ("advantage.type=rloo", "advantage.type"),
        ("objective.type=reinforce", "objective.type"),
        ("objective={type='ppo_clip',aggregation='token-sum'}", "objective"),
        ("kl={coef=0.1,estimator='k2'}", "kl.estimator"),
        ("kl={coef=0.1,place='reward'}", "kl.place"),
        ("optimizer.type=sgd", "optimizer.type"),
        ("optimizer.weight_decay=0.1", "optimizer.weight_decay"),
        ("engine={type='toy'}", "engine.type"),
        ("engine.micro_tokens=100", "engine.micro_tokens"),
        ("engine.quantize=4bit", "engine.quantize"),
        ("engine.device=cuda:1", "engine.device"),
        ("surgery.type=pcgrad", "surgery"),
        ("protocol.type=mixed", "protocol"),
        ("stop.patience=3", "stop.patience"),
        ("eval.every=5", "eval.every"),
        ("record.rollouts=none", "record.rollouts"),
        ("grpo.minibatches=4", "grpo.minibatches"),
    ],
)
def test_what_trl_cannot_honour_is_refused_by_name(tmp_path: Path, override: str, key: str) -> None:
    found = refusals(recipe(tmp_path, override))
    assert len(found) == 1 and key in found[0].partition(":")[0], found
    with pytest.raises(RecipeError):
        export(recipe(tmp_path, override), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_all_refusals_at_once_and_the_remedies_work(monkeypatch, capsys, tmp_path: Path) -> None:
    bare = RECIPE.replace('filter = {dead_groups = "keep"}', "").replace(", epsilon = 1e-4", "")
    (tmp_path / "r.toml").write_text(bare)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return inside(monkeypatch, capsys, "export", "trl", "r.toml", "-o", "x", *words, folder=tmp_path)

    assert [line.split()[1] for line in errors(run())] == ["filter.dead_groups:", "advantage.epsilon"]
    words = ("filter.dead_groups=keep", "advantage.epsilon=1e-4", "engine.model=a/b")
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["problems"] == {"train": 24, "dev": 4}
    assert "is there already" in errors(run(*words))[0]


def test_sizes_and_losses(tmp_path: Path) -> None:
    found = settings(recipe(tmp_path))["config"]
    # 6 problems × 4 answers; two minibatches of 12 rows, seen twice: 4 updates per collection, 3 collections.
    assert (found["generation_batch_size"], found["max_steps"], found["num_iterations"]) == (24, 12, 2)
    assert (found["per_device_train_batch_size"], found["gradient_accumulation_steps"]) == (12, 1)
    many = settings(recipe(tmp_path, "rollout.n=12"))["config"]  # minibatches of 36 rows, at most 16 at once
    assert (many["per_device_train_batch_size"], many["gradient_accumulation_steps"]) == (12, 3)
    assert (found["loss_type"], found["epsilon_high"], found["scale_rewards"]) == ("dapo", 0.2, "group")
    gspo = settings(recipe(tmp_path, "objective.type=gspo"))["config"]
    assert (gspo["loss_type"], gspo["importance_sampling_level"], gspo["epsilon"]) == ("grpo", "sequence", 3e-4)
    cispo = settings(recipe(tmp_path, "objective.type=cispo", "advantage={type='dr_grpo'}"))["config"]
    assert (cispo["loss_type"], cispo["epsilon_high"], cispo["scale_rewards"]) == ("cispo", 5.0, "none")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


def test_the_reward_is_the_recipes_own_and_never_zero_for_a_failure(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = find("env", "countdown")(numbers=(2,), high=20, style="bare")
    problems = env.problems("train", 24, 0)[:3]
    asked = rows(made)[:3]
    assert [row["prompt"] for row in asked] == [problem.prompt for problem in problems]
    reward, logged = TrlReward(made), {}
    texts = [env.gold(problems[0]), "1+1", env.gold(problems[2])]
    columns = {"rlvr_problem": [row["rlvr_problem"] for row in asked], "skill": ["x"] * 3}
    say = logged.__setitem__
    assert reward(prompts=[""] * 3, completions=texts, completion_ids=[[1]] * 3, log_metric=say, **columns) == [1, 0, 1]
    assert logged["rlvr/acc"] == pytest.approx(2 / 3) and logged["rlvr/unjudged"] == 0
    spoken = [[{"role": "assistant", "content": text}] for text in texts]
    assert reward([""] * 3, spoken, None, **columns) == [1, 0, 1]
    judge, down = type(env).verify_many, 2

    def failing(self: Any, items: Any) -> Any:
        return [unjudged("down")] * down + judge(self, items[down:])

    monkeypatch.setattr(type(env), "verify_many", failing)
    assert reward([""] * 3, texts, None, **columns) == [None, None, 1]
    down = 3
    with pytest.raises(InfrastructureError, match="not one of 3 answers could be judged"):
        reward([""] * 3, texts, None, **columns)


@pytest.mark.slow
@pytest.mark.oracle
def test_the_script_trains_with_trl(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs TRL: pip install trl")
    resolved = recipe(tmp_path, "reward.type=random", "engine.lora_rank=4")
    export(resolved, tmp_path / "out")
    command = [sys.executable, str(tmp_path / "out" / "train.py"), "save_steps=4", "max_steps=8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    state = json.loads((tmp_path / "out/output/checkpoint-8/trainer_state.json").read_text())
    log = [row for row in state["log_history"] if "learning_rate" in row]
    assert len(log) == 8 and all(row["grad_norm"] > 0 for row in log)
    rates = [learning_rate(1e-3, update // 4, 3, resolved.recipe.optimizer) for update in range(8)]
    assert [row["learning_rate"] for row in log] == pytest.approx(rates)
    assert log[0]["rlvr/unjudged"] == 0 and 0 < log[0]["rewards/rlvr/mean"] < 1
    again = subprocess.run([*command[:2], "max_steps=9"], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert again.returncode == 0 and (tmp_path / "out/output/final/model.safetensors").is_file()
