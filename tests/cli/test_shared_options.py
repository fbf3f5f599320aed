"""Options that several verbs have mean the same in each of them."""

from __future__ import annotations

import importlib
from pathlib import Path

import click
import pytest
from command_line import errors, inside

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


@pytest.mark.parametrize("option", ["-o", "--output", "--folder"])
@pytest.mark.parametrize("verb", ["status", "report"])
def test_a_study_folder_is_an_output_like_others(monkeypatch, capsys, tmp_path: Path, verb: str, option: str) -> None:
    (tmp_path / "recipe.toml").write_text('[env]\ntype = "countdown"\n')
    stage = '[[stages]]\nname = "a"\n'
    (tmp_path / "s.toml").write_text(f'name = "s"\nrecipe = "recipe.toml"\n[suites.here]\n{stage}')
    done = inside(monkeypatch, capsys, "study", verb, "s.toml", option, "elsewhere", folder=tmp_path)
    assert errors(done) == ["error: elsewhere: this study has not been run yet; `rlvr study run s.toml` does"]
