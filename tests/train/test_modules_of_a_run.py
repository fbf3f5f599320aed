"""How much of the package a run brings along: what its recipe names, and nothing of what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 100
"""Modules of rlvrlab in a toy run, its packages counted; whoever raises this makes every start longer."""
UNUSED = (
    "rlvrlab.credit", "rlvrlab.train.credit", "rlvrlab.surgery", "rlvrlab.train.surgery", "rlvrlab.judge.jail",
    "rlvrlab.judge.modes", "rlvrlab.rollout.tree", "rlvrlab.rollout.replay", "rlvrlab.rollout.turns",
    "rlvrlab.rollout.trial", "rlvrlab.data", "rlvrlab.envs.data_files", "rlvrlab.train.phases.dpo",
    "rlvrlab.train.phases.ppo", "rlvrlab.objectives.dpo", "rlvrlab.report.runs", "rlvrlab.evals.compare",
    "rlvrlab.report.story.skills", "rlvrlab.report.story.conflict", "rlvrlab.report.story.credit",
    "rlvrlab.skills", "rlvrlab.train.guards", "rlvrlab.train.protocols", "rlvrlab.train.phases.rft",
    "rlvrlab.rollout.trainable", "rlvrlab.rollout.episodes", "rlvrlab.envs.tool_calls", "rlvrlab.objectives.kl",
    "rlvrlab.objectives.regularise", "rlvrlab.objectives.correction", "rlvrlab.evals.pooled", "rlvrlab.report.status",
    "rlvrlab.record.seal", "rlvrlab.train.integrity",
    "rlvrlab.own_code", "rlvrlab.record.sinks", "rlvrlab.record.evaluation", "rlvrlab.engines.toy.arrays",
    "rlvrlab.report.gather", "rlvrlab.train.pipeline",
    "rlvrlab.recipe.wording", "rlvrlab.recipe.remedies", "rlvrlab.recipe.meant",
)  # fmt: skip
"""Credit, surgery, guards, stages, programs, tools, trees, second tries, data files, KL, importance weights, pipelines,
other phases, trackers, files of the user's own, evaluations after the run, pages of reports, what is said of mistakes,
and what a resume asks and reads: the recipe and the command name none of them."""
TRAIN = """
import json, sys
from rlvrlab.cli import main
try:
    main()
finally:
    json.dump([name for name in sys.modules if name.partition(".")[0] == "rlvrlab"], open("modules.json", "w"))
"""
ASK = """
import sys
from rlvrlab.errors import UnknownName
from rlvrlab.registry import HOMES, find, names
before = set(sys.modules)
known = {kind: names(kind) for kind in HOMES}
try:
    find("env", "cuontdown")
except UnknownName as error:
    print(error)
print(*sorted(name for name in set(sys.modules) - before if name.startswith("rlvrlab.")))
"""


@pytest.mark.slow
def test_a_toy_run_imports_what_its_recipe_names(tmp_path: Path) -> None:
    settings = ["sft.steps=20", "grpo.steps=2", "data.train_size=100", "data.dev_size=20", "eval.test_size=20"]
    words = [sys.executable, "-c", TRAIN, "train", "toy_countdown", *settings]
    subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert {"rlvrlab.train.loop", "rlvrlab.envs.countdown", "rlvrlab.report.story.write"} <= set(modules)
    assert [name for name in modules if f"{name}.".startswith(tuple(f"{one}." for one in UNUSED))] == []
    assert len(modules) <= MOST, "\n".join(sorted(modules))


def test_asking_for_names_imports_no_plug_in() -> None:
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=300, check=True)
    error, loaded = done.stdout.splitlines()
    assert "did you mean 'countdown'" in error
    # Only what finding a sub-package takes: the packages around it.
    assert loaded.split() == ["rlvrlab.envs", "rlvrlab.record", "rlvrlab.train"]
