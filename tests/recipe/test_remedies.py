"""A remedy that is offered works when it is pasted; where none would, what is allowed is named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from recipe_cases import load, problem, problems

from rlvrlab.errors import UserError
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.parse import parse_overrides, parse_toml

TOY = Path(__file__).resolve().parents[2] / "recipes" / "toy_countdown.toml"


def mistake(*words: str) -> str:
    """The only line that this override of the trial recipe is answered with."""
    with pytest.raises(UserError) as caught:
        load_recipe(TOY, words)
    told = str(caught.value)
    assert "\n" not in told
    return told


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("phases=[sft,grpo]", ['phases=["sft", "grpo"]']),
        ("phases=sft,gpro", ['phases=["sft", "grpo"]']),
        ('phases=["sft" "grpo"]', ['phases=["sft", "grpo"]']),
        ("phases=gpro", ['phases=["grpo"]']),
        ("env.numbers=2", ["env.numbers=[2]"]),
        ("env.numbers=2,3", ["env.numbers=[2, 3]"]),
        ("env.numbers=[2,", ["env.numbers=[2]"]),
        ("record.sinks=wandb", ['record.sinks=["wandb"]']),
        ('env.numbers=["2"]', ["env.numbers=[2]"]),
        ('data.train_file=["a", 3]', ['data.train_file=["a", "3"]']),
        ("env=answers", ["env.type=answers"]),
        ("reward=partial", ["reward.type=partial"]),
        ("reward=partal", ["reward.type=partial"]),
        ("engine=hf", ["engine.type=hf", "engine.model=nano"]),
        ("grpo=5", ["grpo.steps=5"]),
        ("env.use_all=True", ["env.use_all=true"]),
        ("env.use_all=yes", ["env.use_all=true"]),
        ("env.use_all=1", ["env.use_all=true"]),
        ("env.use_all=Off", ["env.use_all=false"]),
        ("env.style=Bare", ["env.style=bare"]),
        ("data.train_size=None", ["data.train_size=null"]),
        ("data.train_size=1,000", ["data.train_size=1000"]),
        ('grpo.steps="20"', ["grpo.steps=20"]),
        ("grpo.steps=2e1", ["grpo.steps=20"]),
        ("grpo.steps=[20]", ["grpo.steps=20"]),
        ('grpo.learning_rate="1e-3"', ["grpo.learning_rate=0.001"]),
        ("stop.deadline_s=1h", ["stop.deadline_s=3600"]),
        ("stop.target=80%", ["stop.target=0.8"]),
        ("name=5", ['name="5"']),
        ("grpo.steps = 20", ["grpo.steps=20"]),
    ],
)
def test_an_override_of_another_type_is_answered_with_one_that_is_accepted(word: str, remedy: list[str]) -> None:
    told = mistake(word)
    assert told.startswith("override ") and "toml:" not in told
    written = shlex.split(told.rpartition("; write ")[2])
    assert written == remedy, told
    load_recipe(TOY, written)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("phases=sft,nothing", 'must be a list, got "sft,nothing"; allowed: dpo, grpo, grpo_turns'),
        ("env.numbers=99", "must be a list, got 99"),
        ("rollout=5", "is a table, got 5; write rollout.KEY=VALUE, KEY one of: type, n, max_tokens"),
        ("env=5", "is a table, got 5; write env.type=NAME, NAME one of: agent, answers"),
        ("rollout.n=many", 'must be a whole number, got "many"'),
    ],
)
def test_where_nothing_would_be_accepted_what_is_allowed_is_named(word: str, says: str) -> None:
    told = mistake(word)
    assert says in told and "; write '" not in told


def test_a_value_in_the_place_of_a_table_is_not_blamed_on_the_lines_of_that_table(tmp_path) -> None:
    text = "[env]\ntype = 'countdown'\nnumbers = [2]\n[grpo]\nsteps = 3"
    assert problem(tmp_path, text, "env=answers").startswith("override env: is a table")
    assert problem(tmp_path, text, "grpo=often").startswith("override grpo: is a table")
    assert problem(tmp_path, text, "grpo.steps.more=3").startswith("override grpo.steps: must be a whole number")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[grpo]\nsteps = "20"', 'recipe.toml:2: grpo.steps: must be a whole number, got "20"; write `steps = 20`'),
        ('grpo.steps = "20"', "write `grpo.steps = 20`"),
        ('[grpo]\nlearning_rate = "1e-3"', "write `learning_rate = 0.001`"),
        ("phases = 'sft,grpo'", 'write `phases = ["sft", "grpo"]`'),
        ("reward = 'partial'", 'recipe.toml:1: reward: is a table, got "partial"; write `reward.type = "partial"`'),
        ('[data]\ntrain_size = "none"', "; leave the line out"),
    ],
)
def test_the_remedy_for_a_file_is_toml_that_works(tmp_path, text: str, says: str) -> None:
    told = problem(tmp_path, text)
    assert told.startswith("recipe.toml:") and says in told
    lines, number = text.split("\n"), int(told.split(":")[1])
    found = re.search(r"; write `(.+)`$", told)
    lines[number - 1] = found[1] if found else ""
    load(tmp_path, "\n".join(lines))


def test_a_remedy_stands_beside_other_mistakes(tmp_path) -> None:
    found = problems(tmp_path, "kl_coef = 0.1\n[grpo]\nsteps = '20'")
    assert len(found) == 2 and found[1].endswith("write `steps = 20`")


def test_a_place_is_named_by_a_path_that_can_be_opened(tmp_path, monkeypatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "base.toml").write_text("[rollout]\nn = 'x'\n")
    (tmp_path / "mine" / "over.toml").write_text("extends = 'base.toml'\nkl_coef = 1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        load_recipe(Path("mine/over.toml"))
    places = [line.split(":")[0] for line in str(caught.value).split("\n")]
    assert sorted(places) == ["mine/base.toml", "mine/over.toml"]
    with pytest.raises(UserError, match=r"^mine: is a folder.*name a file of it: mine/base.toml, mine/over.toml"):
        load_recipe(Path("mine"))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("type = countdown", 'bad.toml:3: not TOML: invalid value; text stands in quotes: type = "countdown"'),
        ("use_all = True", "true and false are written small: use_all = true"),
        ('type = "countdown', 'a quotation mark is missing: type = "countdown"'),
        ("type: 3", "a key and its value have = between them: type = 3"),
        ("seed = None", "leave out a key that has no value"),
        ("numbers = [2, 3", "bad.toml:3: not TOML: "),
    ],
)
def test_a_line_that_is_no_toml_is_named_with_how_it_is_written(line: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_toml(f'name = "a"\n[env]\n{line}\n', "bad.toml")
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["grpo.steps = +20"], "grpo.steps=+20"),
        (["grpo.steps=", "20"], "grpo.steps=20"),
        (["grpo.steps", "=", "20"], "grpo.steps=20"),
        (["phases=[sft,", "grpo]"], 'phases=["sft", "grpo"]'),
        (['phases=["sft",', '"grpo"]'], 'phases=["sft", "grpo"]'),
        (["env.numbers=[2,", "3]"], "env.numbers=[2, 3]"),
    ],
)
def test_spaces_that_cut_an_override_are_named(words: list[str], remedy: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_overrides(words)
    told = str(caught.value)
    assert "space" in told and shlex.split(told.rpartition("; write ")[2]) == [remedy]
    parse_overrides([remedy])


def test_an_empty_value_and_spaces_within_one_are_fine() -> None:
    assert parse_overrides(["question=", "seed=3"]) == {"question": "", "seed": 3}
    assert parse_overrides(["env.system= Answer: "]) == {"env.system": " Answer: "}
