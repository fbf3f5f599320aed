"""The loop really learns: shipped toy recipes from near nothing to 80 %, and every phase improves over its start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scaled_down import arms_of

from rlvrlab.envs.base import style_of
from rlvrlab.envs.mixture import Mixture
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import files
from rlvrlab.study.settings import words
from rlvrlab.train.lab import build_lab
from rlvrlab.train.session import Ended, start

RECIPES = sorted(Path(__file__).parents[2].glob("recipes/*toy*.toml"))
# Ascending numbers need not be compared, so that each phase gains within a few steps.
WARM = """name = "warm"
phases = ["sft", "PHASE"]

[env]
type = "countdown"
numbers = [2]
high = 20
style = "bare"
order = "ascending"

[data]
train_size = 60
dev_size = 30

[rollout]
n = 6
max_tokens = 8

[engine]
type = "toy"
buckets = 48

[sft]
steps = 30
batch_size = 16
references = 16
learning_rate = 0.03

[eval]
every = 0

[checkpoint]
every = 1000
"""


def run(path: Path, folder: Path, *overrides: str) -> tuple[Ended, list[str]]:
    """A whole run, and the problems it was trained on."""
    resolved = load_recipe(path, [f"output_dir={str(folder)!r}", *overrides])
    ended = start(resolved, lambda *_: None)
    lab = build_lab(resolved)
    asked = [
        json.loads(line)["prompt"]
        for file in (ended.folder / "rollouts").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    shown = [problem.prompt for problem in lab.train[: lab.recipe.phase_tables.get("sft", {}).get("references", 0)]]
    held_out = {problem.prompt for problem in lab.dev}
    assert len(held_out) == lab.recipe.data.dev_size
    assert not held_out & {*asked, *shown}, "a held-out problem was trained on"
    return ended, asked


def test_there_are_toy_recipes() -> None:
    assert RECIPES


@pytest.mark.parametrize("path", sorted(RECIPES[0].parent.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_recipes_are_valid_and_say_how_to_run_them(path: Path) -> None:
    assert load_recipe(path).recipe.question
    assert path.read_text().splitlines()[0] == f"# rlvr train recipes/{path.name}"


@pytest.mark.parametrize("name", sorted(files()))
def test_a_chat_model_is_never_asked_to_continue_bare_text(name: str) -> None:
    for _, path, settings in arms_of(files()[name]):
        resolved = load_recipe(path, words(settings))
        if resolved.recipe.engine.get("chat"):
            env = resolved.build("env")
            members = env.environments if isinstance(env, Mixture) else [env]
            assert "bare" not in {style_of(member) for member in members}


README_RUN = ("toy_countdown", 0)
RUNS = [
    pytest.param(path, seed, marks=pytest.mark.slow if (path.stem, seed) == README_RUN else pytest.mark.long)
    for path in RECIPES
    for seed in (0, 1)
]


@pytest.mark.parametrize(("path", "seed"), RUNS, ids=str)
def test_toy_recipes_learn_what_they_were_never_shown(path: Path, seed: int, tmp_path) -> None:
    """The run of the README to its end, the others until they are there."""
    to_its_end = (path.stem, seed) == README_RUN
    ended, asked = run(path, tmp_path, f"seed={seed}", *(() if to_its_end else ("stop.target=0.8",)))
    first, *_, last = ended.summary.values()
    assert ended.status == "finished" and asked
    assert first["before"]["accuracy"] <= 0.05
    assert last["last"]["accuracy"] >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "settings"),
    [
        ("grpo", ["grpo.steps=25", "grpo.batch_size=8", "grpo.learning_rate=0.03"]),
        ("ppo", ["ppo.steps=20", "ppo.batch_size=8", "ppo.learning_rate=0.02"]),
        ("reinforce", ["reinforce.steps=25", "reinforce.batch_size=8", "reinforce.learning_rate=0.03"]),
        ("dpo", ["dpo.steps=25", "dpo.problems=60", "dpo.learning_rate=0.01"]),
    ],
)
def test_every_phase_improves_over_its_start(phase: str, settings: list[str], tmp_path) -> None:
    path = tmp_path / "warm.toml"
    path.write_text(WARM.replace("PHASE", phase))
    ended, _ = run(path, tmp_path, "seed=1", *settings)
    assert ended.summary["sft"]["before"]["accuracy"] <= 0.05
    before, after = (ended.summary[phase][key]["accuracy"] for key in ("before", "last"))
    assert before > 0 and after >= before + 0.15
