"""The SQL recipes for a language model make real steps with it: SFT shows the form, GRPO has groups to learn from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.errors import LabError
from rlvrlab.models import resolve, smollm2
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import files
from rlvrlab.train.session import start

WORDS = [
    "env.levels=[1]", "data.train_size=4", "data.dev_size=2", "eval.every=0", "rollout.max_tokens=48", "sft.steps=5",
    "sft.batch_size=4", "sft.references=4", "sft.learning_rate=2e-3", "grpo.steps=2", "grpo.batch_size=4",
    "record.log_interval=1",
]  # fmt: skip
"""Four short questions, shown five times: right now and then. After ten times they were nearly known by heart."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["sql_grpo", "sql_counterfactual"])
def test_two_real_steps_of_smollm2(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="could not import 'torch'")
    try:
        resolve(smollm2.NAME)
    except LabError as error:
        pytest.skip(f"no package index has given the model yet: {error}")
    recipe = files()[f"paper_a_credit_assignment/{name}"]
    ended = start(load_recipe(recipe, [*WORDS, f"output_dir={tmp_path}"]), lambda *_: None)
    assert ended.status == "finished"
    rows = [json.loads(line) for line in (ended.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["phase"] == "grpo" and "train/acc" in row]
    assert len(steps) == 2
    learnt = [row for row in steps if row["groups/zero_variance"] < 1]
    assert learnt and all(row["actor/grad_norm"] > 0 for row in learnt), "some group had right and wrong answers"
    if name == "sql_counterfactual":
        assert sum(row["credit/replays"] for row in steps) > 0
