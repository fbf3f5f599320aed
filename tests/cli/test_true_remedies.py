"""What is refused is refused for its true reason, with a remedy that works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import errors, inside, tiny

from rlvrlab.data.presets import how_to_make


@pytest.fixture
def run(monkeypatch, capsys, tmp_path: Path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return lambda *words: inside(monkeypatch, capsys, *words, folder=tmp_path)


@pytest.mark.parametrize("guard", ["skill_safe", "l2"])
def test_a_guard_of_one_skill_is_told_that_there_is_one(run, tmp_path: Path, guard: str) -> None:
    tiny(tmp_path)
    [told] = errors(run("train", "tiny.toml", "protocol.type=mixed", f"guard.type={guard}"))
    assert "all training problems have one skill, countdown" in told and "leave the guard out" in told
    assert "skill_safe" not in told


@pytest.mark.parametrize("name", ["verl_coding_grpo", "verl_credit_7b"])
def test_a_recipe_without_its_data_is_told_the_key_that_names_them(run, name: str) -> None:
    done = run("check", "recipe", name)
    assert done.returncode == 1
    asked = json.loads(run("check", "recipe", name, "--json").stdout)["recipe"]["data"]["train_size"]
    told = done.stderr
    assert f"{asked} train problems" in told and "name your rows by data.train_file (`rlvr data prepare`" in told


def test_missing_files_are_told_with_the_commands_that_write_them_there(run) -> None:
    done = run("check", "recipe", "code_skills")
    [told] = [line for line in done.stderr.splitlines() if "data.train_file" in line]
    folder = told.partition("/mbpp_train.jsonl")[0].split()[-1]
    for command in ("mbpp", "mbpp --env code_repair", "mbpp --env code_reasoning", "sql"):
        assert f"`rlvr data prepare {command} -o {folder}`" in told
    assert how_to_make([Path("a b/rows_of_nobody.parquet")]) == "`rlvr data prepare WHAT --to parquet -o 'a b'`"


def test_a_run_whose_file_is_missing_says_the_same(run, tmp_path: Path) -> None:
    tiny(tmp_path)
    [told] = errors(run("train", "tiny.toml", "data.train_file=there/countdown_train.jsonl"))
    assert "`rlvr data prepare countdown -o there`" in told


def test_prepared_rows_given_as_published_ones_are_known(run, tmp_path: Path) -> None:
    assert run("data", "prepare", "countdown", "--size", "20", "-o", "data").returncode == 0
    words = ("eval", "code", "path=data/countdown_test.jsonl", "--server", "http://127.0.0.1:9")
    [told] = errors(run(*words))
    assert "these are prepared rows" in told and f"use `--data {tmp_path / 'data' / 'countdown_test.jsonl'}`" in told
    assert "shapes" not in told


@pytest.mark.parametrize("verb", [["check", "recipe"], ["train"]])
def test_a_plan_of_a_baseline_is_no_recipe(run, tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "plan.toml").write_text('[model]\nserve = "m"\n[[data]]\nname = "humaneval"\n')
    [told] = errors(run(*verb, "plan.toml"))
    assert "is the plan of a baseline, not a recipe; run it with `rlvr phase0" in told and "unknown key" not in told
