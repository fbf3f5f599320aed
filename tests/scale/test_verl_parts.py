"""A recipe of several phases on verl: which parts verl trains, which the hf engine, and that the commands are good."""

from __future__ import annotations

import json
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import errors, rlvr

from rlvrlab.errors import RecipeError, UserError
from rlvrlab.judge.isolation import probe
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import files
from rlvrlab.scale.verl.convert import recipe_for_verl
from rlvrlab.scale.verl.keys import settings
from rlvrlab.scale.verl.parts import Part, parts
from rlvrlab.train import lookups

FIVE = files()["coding_five_phase"]
VERLS_OWN = ("engine.gpus=1", "engine.prompt_tokens=1024")
SMALL = """name = "small"
phases = ["sft", "grpo", "grpo_turns"]
[env]
type = "minicode"
skills = ["gen"]
levels = [1]
[engine]
type = "hf"
model = "nano"
[data]
train_size = 24
dev_size = 4
[rollout]
n = 2
max_tokens = 6
[eval]
every = 0
test_size = 4
[sft]
steps = 1
batch_size = 4
references = 8
[grpo_turns]
steps = 1
batch_size = 2
[grpo]
steps = 1
batch_size = 2
"""


def train_words(part: Part) -> tuple[Path, list[str]]:
    """Recipe and keys of a part's first command, as a shell reads it."""
    rlvr_, train, path, *words = shlex.split(part.commands[0])
    assert (rlvr_, train) == ("rlvr", "train")
    assert (words[:2] == ["--engine", "verl"]) == (part.engine == "verl")
    return Path(path), words[2:] if part.engine == "verl" else words


def test_the_five_phases_are_three_parts_each_from_the_model_before() -> None:
    """Card 0 is the baseline; of the other four phases verl trains the on-line one."""
    found = parts(FIVE, VERLS_OWN)
    assert [(part.engine, part.phases) for part in found] == [
        ("hf", ["sft", "dpo"]), ("verl", ["grpo"]), ("hf", ["repair"]),
    ]  # fmt: skip
    assert [bool(part.why) for part in found] == [True, False, True] and "dpo trains on answers" in found[0].why
    assert [bool(part.left_out) for part in found] == [False, True, False]
    assert found[1].left_out[0].startswith("data.test_file: ")
    for before, part in zip((None, *found), found, strict=False):
        path, words = train_words(part)
        resolved = recipe_for_verl(path, words) if part.engine == "verl" else load_recipe(path, words)
        assert resolved.recipe.phases == part.phases and resolved.recipe.engine["type"] == part.engine
        assert part.commands[1] == f"rlvr model export latest@last -o {resolved.recipe.name}"
        assert before is None or before.commands[1].endswith(f" -o {resolved.recipe.engine['model']}")
        if part.engine == "verl":
            assert settings(resolved, "/home")["data.max_prompt_length"] == 1024
        else:
            assert resolved.recipe.data.test_file, "cards are made where they can be"


def test_what_verl_cannot_do_at_all_is_refused_in_the_plan_too() -> None:
    with pytest.raises(RecipeError) as caught:
        parts(FIVE, ["optimizer.type=sgd", "stop.target=0.5"])
    words = "\n".join(caught.value.problems)
    assert "optimizer.type" in words and "stop.target" in words and "phases" not in words


def test_a_recipe_for_verl_with_other_phases_sends_those_to_hf() -> None:
    found = parts(files()["verl_countdown"], ['phases=["sft", "grpo"]'])
    assert [(part.engine, part.phases) for part in found] == [("hf", ["sft"]), ("verl", ["grpo"])]
    path, words = train_words(found[0])
    assert load_recipe(path, words).recipe.engine["type"] == "hf"


def test_the_command_line_prints_the_parts_and_a_refusal_names_it(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    told = rlvr("train", "small.toml", "engine.gpus=1", "--engine", "verl", "--plan", folder=tmp_path)
    assert told.returncode == 0, told.stderr
    for line in ("1 hf: sft", "2 verl: grpo", "3 hf: grpo_turns", "rlvr model export latest@last -o small_2"):
        assert line in told.stdout
    assert any("--plan" in line for line in errors(rlvr("train", "small.toml", "--engine", "verl", folder=tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"], "a plan writes nothing"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="could not import 'torch'")
@pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
def test_the_parts_on_hf_run_as_printed_and_verls_would_start_from_their_model(tmp_path: Path) -> None:
    """The part on verl itself: tests/scale/test_verl_phases.py, with verl's environment."""
    (tmp_path / "small.toml").write_text(SMALL)
    words = ("engine.gpus=1", "engine.rollout=cpu", "--engine", "verl", "--plan", "--json")
    first, second, third = json.loads(rlvr("train", "small.toml", *words, folder=tmp_path).stdout)["parts"]
    for command in first["commands"]:
        done = rlvr(*shlex.split(command)[1:], folder=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
    told = rlvr(*shlex.split(second["commands"][0])[1:], "--plan", folder=tmp_path)
    assert f"actor_rollout_ref.model.path={tmp_path / 'small_1'}" in told.stdout.splitlines(), told.stderr
    last = third["commands"][0].replace("engine.model=small_2", "engine.model=small_1")
    done = rlvr(*shlex.split(last)[1:], folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (run,) = (tmp_path / "experiments").glob("small_3_*")
    assert json.loads((run / "config.json").read_text())["recipe"]["engine"]["model"] == str(tmp_path / "small_1")


def test_the_plan_of_a_recipe_for_verl_tells_ours_and_then_verls(tmp_path: Path) -> None:
    """Groups and guards are no settings of verl's, so its own would be the same whatever a recipe says of them."""
    told = [
        rlvr("train", "verl_skill_safe_7b", f"guard.type={guard}", "--plan", folder=tmp_path).stdout.splitlines()
        for guard in ("skill_safe", "ewc")
    ]
    for guard, lines in zip(("skill_safe", "ewc"), told, strict=True):
        assert any(line.split()[:2] == ["guard.type", guard] for line in lines), lines
        assert any(line.startswith("Phases (") for line in lines), "the volumes"
        first = lines.index("data.train_files=RUN/artifacts/verl/train.parquet")
        assert all("=" in line for line in lines[first:]), "verl's own come last, one on a line"
    both = json.loads(rlvr("train", "verl_skill_safe_7b", "--plan", "--json", folder=tmp_path).stdout)
    assert {"settings", "phases", "warnings", "verl"} <= both.keys()
    assert both["phases"][0]["answers"] > 0


def last_error(done: subprocess.CompletedProcess[str]) -> str:
    """What a command was refused for; on a slow machine lines before it say that problems are drawn."""
    *_, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "") and last.startswith("error: "), done.stderr
    return last


def test_a_plan_for_verl_refuses_what_the_export_refuses_in_the_same_words(tmp_path: Path) -> None:
    """Groups by tool where no problem has one: the plan printed settings that the export would not write."""
    words = ("verl_countdown", "surgery.type=pcgrad", "surgery.group_strategy=tool")
    words += ("data.train_size=600", "data.dev_size=8")
    told = [
        last_error(rlvr(*verb, *words, *more, folder=tmp_path))
        for verb, more in ((("train",), ("--plan",)), (("export", "verl"), ("-o", str(tmp_path / "exported"))))
    ]
    assert told[0] == told[1] and 'surgery.group_strategy = "tool": problem countdown:' in told[0]
    looked = rlvr("check", "recipe", *words, folder=tmp_path)
    assert told[0].removeprefix("error: ") in looked.stderr and looked.returncode != 0
    several = (*words, 'phases=["sft", "grpo"]')
    assert told[0] == last_error(rlvr("train", *several, "--plan", folder=tmp_path))
    agent = ("train", "verl_agent", "surgery.group_strategy=tool", "data.train_size=600", "--plan")
    assert rlvr(*agent, folder=tmp_path).returncode == 0, "its problems have tools, and verl's rows are problems"


def test_problems_that_take_long_to_draw_are_asked_for_their_group_by_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "MOST_S", 0.0)
    groups = ["surgery.type=pcgrad", "surgery.group_strategy=tool"]
    with pytest.raises(UserError, match="group_strategy"):
        lookups.refuse_wrong(load_recipe(files()["verl_countdown"], groups))
    (later,) = lookups.refuse_wrong(load_recipe(files()["verl_agent"], groups))
    assert "a run checks them before it begins" in later


def test_a_plan_for_verl_may_come_before_its_files_and_says_so(tmp_path: Path) -> None:
    told = rlvr("train", "verl_coding_grpo", "data.train_file=none.parquet", "--plan", "--json", folder=tmp_path)
    assert told.returncode == 0, told.stderr
    assert any("none.parquet" in words for words in json.loads(told.stdout)["warnings"])
    files = ("data.train_file=none.parquet", "data.dev_file=none.parquet", "data.test_file=none_2.parquet")
    parts = rlvr("train", "coding_five_phase", *files, "--engine", "verl", "--plan", "--json", folder=tmp_path)
    assert parts.returncode == 0, parts.stderr
    warned = json.loads(parts.stdout)["warnings"]
    assert [one.partition(":")[0] for one in warned] == ["data.train_file", "data.dev_file", "data.test_file"], warned
