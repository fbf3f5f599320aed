"""verl's real FSDP engine with our hooks: two gloo ranks equal one, and one equals our own engine."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import verl_actor_rank as ranks

from rlvrlab.batch import batch_of, pad
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.scale.verl.export import export
from rlvrlab.surgery.conflict import conflict

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
RECIPE = """
phases = ["grpo"]
[env]
type = "minicode"
skills = ["gen", "out"]
levels = [1]
[engine]
type = "verl"
model = "nano"
gpus = 2
rollout = "cpu"
gradient_checkpointing = false
prompt_tokens = 64
[data]
train_size = 16
dev_size = 4
[rollout]
n = 4
max_tokens = 8
[grpo]
steps = 2
batch_size = 4
learning_rate = 1e-3
[optimizer]
epsilon = 1e-4  # Adam divides by a gradient's own size: where that is float32's rounding, so would the step be
"""
SURGERY = '[surgery]\ntype = "mgda"\nconflict_threshold = 1.0\ngroup_strategy = "task_type"\nnoise_every = 0\n'
GUARD = """[guard]
type = "skill_safe"
protected = ["out"]
memory_per_skill = 3
[protocol]
type = "single"
skill = "gen"
"""
L2, EWC = (
    f"""[guard]
type = "{name}"
protected = ["out"]
coef = {coef}
[protocol]
type = "single"
skill = "gen"
"""
    for name, coef in (("l2", 0.5), ("ewc", 3.0))
)


CASES = {"surgery": SURGERY, "guard": GUARD, "both": SURGERY + GUARD, "l2": L2, "ewc": EWC}
LORA = "lora_rank = 4\n"
WITH_LORA = ("both", "l2", "ewc")
Found = dict[str, dict[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What came out of every case, by the number of ranks."""
    for name in ("verl", "hydra", "tensordict", "ray", "peft"):
        if find_spec(name) is None:  # the script imports them, and this process need not
            pytest.skip(f"{name} is not installed; needs verl's environment: make verl-test")
    home = tmp_path_factory.mktemp("actor")
    recipes = {name: RECIPE + tables for name, tables in CASES.items()}
    recipes |= {f"{name}_lora": RECIPE.replace("gpus = 2\n", "gpus = 2\n" + LORA) + CASES[name] for name in WITH_LORA}
    folders = {}
    for name, text in recipes.items():
        (home / f"{name}.toml").write_text(text)
        folders[name] = export(load_recipe(home / f"{name}.toml"), home / name).folder
    script = str(Path(__file__).with_name("verl_actor_rank.py"))
    done = subprocess.run([sys.executable, script, *map(str, folders.values())], capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return {
        name: {
            world: {
                "seen": json.loads((folder / f"out{world}.json").read_text()),
                "parameters": np.load(folder / f"out{world}.npy"),
            }
            for world in ranks.WORLDS
        }
        for name, folder in folders.items()
    }


@pytest.mark.parametrize("world", ranks.WORLDS[1:])
@pytest.mark.parametrize("name", [*CASES, *(f"{case}_lora" for case in WITH_LORA)])
def test_several_ranks_equal_one(found: Found, name: str, world: int) -> None:
    one, several, case = found[name][1], found[name][world], name.removesuffix("_lora")
    for here, there in zip(one["seen"], several["seen"], strict=True):
        assert here.keys() == there.keys()
        for metric, value in here.items():
            assert there[metric] == pytest.approx(value, rel=2e-5, abs=2e-6), metric
        assert here["grad_norm"] > 0
        if "surgery" in CASES[case]:
            weights = [here[f"surgery/weight/{group}"] for group in "abc"]
            assert np.ptp(weights) > 1e-3, "the weights must not be uniform"
        if "skill_safe" in CASES[case]:
            assert here["guard/protected"] == 1.0 and here["guard/violation"] < 1e-6
    np.testing.assert_allclose(several["parameters"], one["parameters"], atol=1e-6)


def test_the_gradients_are_our_engines(found: Found) -> None:
    from rlvrlab.engines.hf import Hf
    from rlvrlab.models import resolve

    theirs = found["surgery"][1]["seen"][0]
    engine = Hf(str(resolve("nano")), dtype="float32", device="cpu").build(Optimizer())
    vectors = []
    for group in range(3):
        rows = [row for row in ranks.rows() if row["group"] == group]
        batch = batch_of(
            [row["prompt"] for row in rows],
            [row["answer"] for row in rows],
            old_BT=pad([row["old"] for row in rows]),
            advantage_BT=pad([row["advantage"] for row in rows]),
        )
        vectors.append(engine.gradient(batch, PpoClip())[0])
    gramian = engine.gramian(vectors)["global"]
    pairs = conflict(gramian, threshold=1.0)  # as in SURGERY
    assert pairs is not None
    for name, value in pairs.metrics().items():
        assert theirs[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name
    weights = np.array([theirs[f"surgery/weight/{name}"] for name in "abc"])
    assert theirs["grad_norm"] == pytest.approx(np.sqrt(weights @ gramian @ weights), rel=1e-3)
