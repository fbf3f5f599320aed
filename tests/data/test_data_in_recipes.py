"""A recipe with data files: they are trained on, recorded by hash, and refused when they must not be used."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.data.manifest import manifest_of, path_of, write_manifest
from rlvrlab.data.own_runs import rows_from_run
from rlvrlab.data.rows import write_problems
from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import UserError
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.schema import instantiate
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.session import resume, start
from rlvrlab.types import Role

ENV = Countdown(numbers=(2,), high=30, style="bare")
RECIPE = """
phases = ["sft"]
output_dir = "{folder}/runs"

[env]
type = "countdown"
numbers = [2]
high = 30
style = "bare"

[data]
train_file = "data/train.jsonl"
dev_file = "data/dev.jsonl"

[rollout]
n = 2
max_tokens = 6

[engine]
type = "toy"
buckets = 8

[sft]
steps = 2
batch_size = 4
"""


def prepared(folder: Path, **roles: Role) -> Path:
    """Files named as given, with problems of the role given."""
    for name, role in ({"train": "train", "dev": "dev"} | roles).items():
        path = folder / "data" / f"{name}.jsonl"
        problems = ENV.problems(role, 12, seed=0)
        write_problems(path, problems)
        write_manifest(manifest_of(path, problems, {"style": "bare"}), path_of(path))
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE.format(folder=folder))
    return recipe


def lab(path: Path, *overrides: str) -> Lab:
    return build_lab(load_recipe(path, overrides))


def test_files_are_used_and_their_hashes_recorded(tmp_path: Path) -> None:
    recipe = prepared(tmp_path)

    def ignore(*_: Any) -> None: ...

    ended = start(load_recipe(recipe), ignore)
    facts = json.loads((ended.folder / "run_info.json").read_text())["data"]
    manifest = path_of(tmp_path / "data" / "train.jsonl")
    header = json.loads(manifest.read_text().splitlines()[0])
    assert facts["files"]["train"]["sha256"] == header["sha256"] and facts["files"]["train"]["file"] == "train.jsonl"
    assert facts["files"]["dev"]["rows"] == facts["dev"]["size"] == 12
    assert resume(ended.folder, ignore).status == "finished"
    problems = ENV.problems("train", 12, seed=1)
    write_problems(tmp_path / "data" / "train.jsonl", problems)
    write_manifest(manifest_of(tmp_path / "data" / "train.jsonl", problems), manifest)
    with pytest.raises(UserError, match="the data is not what this run started with"):
        resume(ended.folder, ignore)


def test_sizes_take_a_share_only_when_set(tmp_path: Path) -> None:
    recipe = prepared(tmp_path)
    assert len(lab(recipe).train) == 12
    some = lab(recipe, "data.train_size=5")
    assert len(some.train) == 5 and some.data_facts()["files"]["train"]["rows"] == 12
    with pytest.raises(UserError, match="13 problems asked for, the file has 12"):
        lab(recipe, "data.dev_size=13")


def test_one_file_alone_leaves_the_rest_to_the_environment(tmp_path: Path) -> None:
    recipe = prepared(tmp_path)
    recipe.write_text(recipe.read_text().replace('dev_file = "data/dev.jsonl"', "dev_size = 7"))
    made = lab(recipe)
    assert len(made.dev) == 7 and set(made.data_facts()["files"]) == {"train"}


@pytest.mark.parametrize(
    ("roles", "overrides", "message"),
    [
        (
            {"train": "test"},
            [],
            r"train\.jsonl: 12 rows are not for training, which takes role train: countdown:.*\(test\)",
        ),
        ({"train": "dev"}, [], r"12 rows are not for training"),
        ({"dev": "test"}, [], r"dev\.jsonl: 12 rows are not for tuning, which takes role dev: countdown:.*\(test\)"),
        ({"dev": "train"}, [], r"12 rows are not for tuning"),
        ({}, ["env.style=think"], r"its prompts ask for style 'bare', but env.style is 'think'"),
        ({}, ["data.train_file=gone.jsonl"], r"gone\.jsonl: no such file"),
        ({}, ["data.train_file=data/dev.jsonl"], r"dev\.jsonl: 12 rows are not for training"),
    ],
)
def test_what_must_not_be_used_is_refused(tmp_path: Path, roles: dict, overrides: list[str], message: str) -> None:
    recipe = prepared(tmp_path, **roles)
    with pytest.raises(UserError, match=message):
        lab(recipe, *overrides)


def test_an_environment_of_another_kind_is_refused(tmp_path: Path) -> None:
    recipe = prepared(tmp_path)
    text = recipe.read_text().replace('type = "countdown"\nnumbers = [2]\nhigh = 30\nstyle = "bare"', 'type = "gsm8k"')
    recipe.write_text(text)
    with pytest.raises(UserError, match=r"environment 'gsm8k' cannot judge rows of another data_source"):
        lab(recipe)


def test_a_real_runs_answers_are_read_back(tmp_path: Path) -> None:
    """The rows a run stores are the rows own_runs reads."""
    recipe = prepared(tmp_path)
    recipe.write_text(
        recipe.read_text().replace('phases = ["sft"]', 'phases = ["grpo"]') + "\n[grpo]\nsteps = 1\nbatch_size = 2\n"
    )
    ended = start(load_recipe(recipe, ["env.high=9"]), lambda *_: None)
    with pytest.raises(UserError, match=r"no accepted answer among \d+ problems"):
        rows_from_run(ended.folder, "sft", 4, {})


def test_cards_examine_every_test_file_under_its_own_name(tmp_path: Path) -> None:
    recipe = prepared(tmp_path, one="test")
    others = Countdown(numbers=(2,), high=30, style="bare").problems("test", 20, seed=5)
    known = {p.key for p in ENV.problems("test", 12, seed=0)}
    write_problems(tmp_path / "data" / "two.jsonl", [p for p in others if p.key not in known][:5])
    files = 'data.test_file=["data/one.jsonl", "data/two.jsonl"]'
    folder = start(load_recipe(recipe, [files, "eval.test_n=2", "seed=3"]), lambda *_: None).folder
    card = json.loads((folder / "analysis" / "cards" / "1_sft.json").read_text())
    assert card["seed"] == 3
    counts = [card["metrics"][name] for name in ("problems", "one/problems", "two/problems")]
    assert counts == [17, 12, 5]
    both = (12 * card["metrics"]["one/accepted_at_1"] + 5 * card["metrics"]["two/accepted_at_1"]) / 17
    assert card["metrics"]["accepted_at_1"] == pytest.approx(both)
    assert {"one/pass@2", "two/pass@2"} <= card["metrics"].keys()
    page = (folder / "EXPERIMENT.md").read_text()
    assert "| two: accepted@1 |" in page and "17 test problems, seed 3" in page
    assert set(json.loads((folder / "run_info.json").read_text())["data"]["files"]["test"]) == {"one", "two"}
    few = build_lab(load_recipe(recipe, [files, "eval.test_size=4"]))
    assert [len(problems) for problems in few.tests.values()] == [4, 4]


def test_files_of_a_mixtures_parts_are_mixed_and_each_is_judged_by_its_own(tmp_path: Path) -> None:
    recipe = prepared(tmp_path)
    math = instantiate("env", {"type": "gsm8k"}, tmp_path).problems("train", 6, 0)
    write_problems(tmp_path / "data" / "math.jsonl", math)
    words = [
        "env.type=mixture", 'env.members=[{type="countdown", numbers=[2], high=30, style="bare"}, '
        '{type="gsm8k", label="math"}]', 'data.train_file=["data/train.jsonl", "data/math.jsonl"]',
    ]  # fmt: skip
    text = recipe.read_text().replace('numbers = [2]\nhigh = 30\nstyle = "bare"\n', "")
    recipe.write_text(text)
    lab = build_lab(load_recipe(recipe, words))
    assert Counter(p.skill for p in lab.train) == {"countdown": 12, "math": 6}
    assert Counter(p.skill for p in lab.train[:6]) == {"countdown": 4, "math": 2}, "mixed from the beginning"
    golds = [(p, str(lab.env.gold(p))) for p in lab.train]
    assert all(verdict.correct for verdict in lab.env.verify_many(golds))
    assert [facts["file"] for facts in lab.files["train"]["files"]] == ["train.jsonl", "math.jsonl"]
    even = build_lab(load_recipe(recipe, [*words, "env.ratios=[1, 1]"]))
    assert Counter(p.skill for p in even.train) == {"countdown": 7, "math": 6}, "until the scarcer one is used up"
    with pytest.raises(UserError, match="cannot judge rows of another data_source"):
        build_lab(load_recipe(recipe, [words[0], 'env.members=[{type="gsm8k"}]', words[2]]))
