"""Options that several verbs have mean the same in each of them."""

from __future__ import annotations

import importlib
from pathlib import Path

import click
import pytest
from command_line import errors, every_parameter, inside

SERVED = {"servers", "model", "key_env", "completions", "concurrency", "timeout"}


def options(verb: str) -> dict[str, click.Option]:
    command = importlib.import_module(f"rlvrlab.cli.{verb}").command
    return {one.name: one for one in command.params if isinstance(one, click.Option)}


@pytest.mark.parametrize(
    ("verb", "shared"), [("probe", SERVED | {"run", "engine", "deadline"}), ("suite", SERVED | {"deadline"})]
)
def test_policies_are_named_alike(verb: str, shared: set[str]) -> None:
    here, there = options("eval"), options(verb)
    assert {name: (there[name].opts, there[name].help, there[name].default) for name in shared} == {
        name: (here[name].opts, here[name].help, here[name].default) for name in shared
    }


def test_every_whole_number_has_a_range() -> None:
    numbers = [(words, one) for words, one in every_parameter() if isinstance(one.type, type(click.INT))]
    assert len(numbers) > 40
    without = [f"{words} {one.opts[0]}" for words, one in numbers if not isinstance(one.type, click.IntRange)]
    assert {word.rpartition(" ")[2] for word in without} == {"--seed"}


@pytest.mark.parametrize(("option", "value"), [("--take", "0"), ("--take", "-1"), ("-k", "-1"), ("--step", "-1")])
def test_a_number_out_of_its_range_is_told_by_its_option(
    monkeypatch, capsys, tmp_path, option: str, value: str
) -> None:
    [line] = errors(inside(monkeypatch, capsys, "credit", ".", option, value, folder=tmp_path))
    assert f"'{option}': {value} is not in the range" in line


@pytest.mark.parametrize("option", ["-o", "--output", "--folder"])
@pytest.mark.parametrize("verb", ["status", "report"])
def test_a_study_folder_is_an_output_like_others(monkeypatch, capsys, tmp_path: Path, verb: str, option: str) -> None:
    (tmp_path / "recipe.toml").write_text('[env]\ntype = "countdown"\n')
    stage = '[[stages]]\nname = "a"\n'
    (tmp_path / "s.toml").write_text(f'name = "s"\nrecipe = "recipe.toml"\n[suites.here]\n{stage}')
    done = inside(monkeypatch, capsys, "study", verb, "s.toml", option, "elsewhere", folder=tmp_path)
    assert errors(done) == ["error: elsewhere: this study has not been run yet; `rlvr study run s.toml` does"]
