"""The real verl trainer on a local Ray cluster on a CPU, from recipe to evaluation. `make verl-test`; takes minutes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from verl_runs import RECIPE, evaluated, merged, needs_verl, rlvr

from rlvrlab.record.run import read_info, read_metrics

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FOUR = """
name = "four_skills"
phases = ["grpo"]
[env]
type = "minicode"
levels = [1]
[reward]
type = "random"
[engine]
type = "verl"
model = "nano"
gpus = 1
rollout = "cpu"
gradient_checkpointing = false
prompt_tokens = 128
[protocol]
type = "mixed"
[guard]
type = "skill_safe"
memory_per_skill = 4
[data]
train_size = 40
dev_size = 8
[rollout]
n = 4
max_tokens = 8
[grpo]
steps = 2
batch_size = 8
learning_rate = 2e-4
[checkpoint]
every = 2
"""
"""Writing, mending, shortening and predicting programs; no surgery, so that the guard alone asks for groups."""
SKILLS = ("gen", "fix", "min", "out")


@needs_verl
def test_adapters_surgery_and_guard_from_recipe_to_evaluation(tmp_path: Path) -> None:
    """In verl's own trainer, in one run, since each takes a minute to start: adapters are trained, merged and examined,
    skills are weighed, and each update is corrected so that neither skill loses by it, to first order."""
    (tmp_path / "recipe.toml").write_text(RECIPE + '[guard]\ntype = "skill_safe"\nmemory_per_skill = 4\n')
    words = ["engine.lora_rank=8", "checkpoint.every=2", "grpo.learning_rate=0.01", "surgery.noise_every=1"]
    # With eight answers each, one group in 128 has no signal: both halves of both skills have some.
    done = rlvr(tmp_path, "train", "recipe.toml", *words, "rollout.n=8", "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    run = tmp_path / json.loads(done.stdout)["folder"]
    assert read_info(run)["status"] == "finished"
    rows = read_metrics(run)
    assert [row["step"] for row in rows] == [0, 1, 2] and "val-core/mixture/acc" in rows[0]
    updates = rows[1:]
    assert any(abs(row["surgery/weight/large"] - row["surgery/weight/small"]) > 1e-3 for row in updates)
    assert any("surgery/permutation_z" in row for row in updates), "a skill of two live problems has halves"
    for row in updates:
        assert "reward/random" in row and "advantage/unjudged_rows" in row
        assert row["guard/protected"] == 2.0 and row["guard/violation"] < 1e-5 <= row["actor/grad_norm"]
        assert {"guard/small/memory", "guard/large/memory", "guard/correction"} <= row.keys()
    merged(run, 2)
    assert not list((run / "checkpoints" / "global_step_2" / "actor" / "huggingface").glob("*adapter*"))
    evaluated(tmp_path, run)


@needs_verl
def test_each_of_four_skills_is_protected_from_the_others_that_are_trained_with_it(tmp_path: Path) -> None:
    """What the guard foretells of the first update, to first order, the second one finds on the actor's shards."""
    (tmp_path / "recipe.toml").write_text(FOUR)
    done = rlvr(tmp_path, "train", "recipe.toml", "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    run = tmp_path / json.loads(done.stdout)["folder"]
    assert read_info(run)["status"] == "finished"
    _, *updates = read_metrics(run)
    assert len(updates) == 2
    for row in updates:
        assert row["guard/protected"] == 4.0 and row["guard/violation"] < 1e-5 <= row["actor/grad_norm"]
        assert [row[f"guard/{skill}/memory"] for skill in SKILLS] == [4.0] * 4
        bounds = zip(of_skills(row, "change"), of_skills(row, "epsilon"), strict=True)
        assert all(change >= -epsilon - 1e-6 for change, epsilon in bounds)
    assert any(row["guard/active"] and row["guard/correction"] > 0 for row in updates), "no step had to be corrected"
    foretold, found = of_skills(updates[0], "change"), of_skills(updates[1], "surplus")
    assert max(foretold) > 0 and found == pytest.approx(foretold, abs=0.1 * max(foretold))


def of_skills(row: dict[str, Any], name: str) -> list[float]:
    """A number of the guard's for each skill."""
    return [row[f"guard/{skill}/{name}"] for skill in SKILLS]
