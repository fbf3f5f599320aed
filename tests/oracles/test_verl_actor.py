"""verl's real FSDP engine with our hooks: two gloo ranks equal one, and one equals our own engine."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

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


@pytest.fixture(scope="module", autouse=True)
def _verl_is_there() -> None:
    for name in ("verl", "hydra", "tensordict", "ray"):
        pytest.importorskip(name, reason="needs verl's environment: make verl-test")


def run(folder: Path, world: int) -> dict:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = folder / f"out{world}.json"
    script = str(Path(__file__).with_name("verl_actor_rank.py"))
    started = [
        subprocess.Popen(
            [sys.executable, script, str(folder), str(rank), str(world), str(port), str(out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world)
    ]
    said = [process.communicate(timeout=400)[0] for process in started]
    assert out.is_file(), said[0][-3000:]
    return json.loads(out.read_text())


@pytest.mark.parametrize(
    "tables", [SURGERY, GUARD, SURGERY + GUARD, L2, EWC], ids=["surgery", "guard", "both", "l2", "ewc"]
)
def test_two_ranks_equal_one(tmp_path: Path, tables: str) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE + tables)
    folder = export(load_recipe(tmp_path / "recipe.toml"), tmp_path / "out").folder
    one, two = run(folder, 1), run(folder, 2)
    for here, there in zip(one["seen"], two["seen"], strict=True):
        assert here.keys() == there.keys()
        for name, value in here.items():
            assert there[name] == pytest.approx(value, rel=2e-5, abs=2e-6), name
        assert here["grad_norm"] > 0
        if "surgery" in tables:
            weights = [here[f"surgery/weight/{name}"] for name in "abc"]
            assert np.ptp(weights) > 1e-3, "the weights must not be uniform"
        if "skill_safe" in tables:
            assert here["guard/protected"] == 1.0 and here["guard/violation"] < 1e-6
    np.testing.assert_allclose(two["parameters"], one["parameters"], atol=1e-6)


def test_the_gradients_are_our_engines(tmp_path: Path) -> None:
    from rlvrlab.engines.hf import Hf
    from rlvrlab.models import resolve

    (tmp_path / "recipe.toml").write_text(RECIPE + SURGERY)
    folder = export(load_recipe(tmp_path / "recipe.toml"), tmp_path / "out").folder
    theirs = run(folder, 1)["seen"][0]
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
    for name, value in conflict(gramian, threshold=1.0).metrics().items():  # as in SURGERY
        assert theirs[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name
    weights = np.array([theirs[f"surgery/weight/{name}"] for name in "abc"])
    assert theirs["grad_norm"] == pytest.approx(np.sqrt(weights @ gramian @ weights), rel=1e-3)
