"""Every `rlvr train` line of "From a laptop to a cluster" becomes settings of verl, as far as a CPU can show it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rlvrlab.cli.train import command as train
from rlvrlab.scale.verl import keys, launch, spelling
from rlvrlab.scale.verl.convert import recipe_for_verl

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
BLOCKS = "".join(re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")
LINES = [line.partition("  #")[0] for line in BLOCKS.splitlines() if line.startswith("rlvr train verl_")]


def test_the_page_has_its_lines() -> None:
    assert len(LINES) >= 6
    options = {name for option in train.params for name in option.opts}
    asked = {word for line in BLOCKS.splitlines() if line.startswith("rlvr train") for word in line.split()}
    assert {word for word in asked if word.startswith("--")} <= options


@pytest.mark.parametrize("line", LINES)
def test_a_line_becomes_settings_of_verl(line: str) -> None:
    words = shlex.split(line.replace("FOLDER", "owner/model"))[2:]
    address = words[words.index("--address") + 1] if "--address" in words else None
    given = [word for word in words[1:] if "=" in word]
    resolved = recipe_for_verl(ROOT / "recipes" / f"{words[0]}.toml", given)
    engine = resolved.recipe.engine
    found = launch._addressed(keys.settings(resolved, "/home"), address)
    assert all(map(spelling.is_known, found))
    assert (found["trainer.nnodes"], found["trainer.n_gpus_per_node"]) == (engine["nodes"], engine["gpus"])
    assert (address is not None) == (engine["nodes"] > 1), "more than one node needs a cluster"
    assert found.get("ray_kwargs.ray_init.address") == address
