"""Every mistake at once, each with its key, its place and a remedy."""

from __future__ import annotations

import pytest
from recipe_cases import SMALL, load, problem, problems

from rlvrlab.errors import UserError
from rlvrlab.recipe import Recipe
from rlvrlab.recipe.parse import parse_toml
from rlvrlab.recipe.schema import core_keys, sections


def test_the_defaults_are_a_valid_recipe(tmp_path) -> None:
    resolved = load(tmp_path)
    assert resolved.recipe.phases == ["grpo"] and resolved.recipe.rollout == Recipe().rollout
    assert resolved.build("env").name == "countdown" and resolved.phase("grpo").steps == 200


def test_there_are_at_most_sixty_core_keys() -> None:
    assert 40 <= len(core_keys()) <= 60
    assert len(set(core_keys())) == len(core_keys())


def test_every_core_key_says_what_it_is() -> None:
    fields = [
        *Recipe.model_fields.items(),
        *(pair for model in sections().values() for pair in model.model_fields.items()),
    ]
    silent = [name for name, info in fields if not info.description and name not in sections()]
    assert silent == []


@pytest.mark.parametrize(
    ("text", "place", "nearest"),
    [
        ("kl_coef = 0.1", "recipe.toml:1: kl_coef", "'kl.coef'"),
        ("[rolout]\nn = 3", "recipe.toml:2: rolout.n", "'rollout.n'"),
        ("[rolout]\ntemperature = 3", "recipe.toml:2: rolout.temperature", "'rollout.temperature'"),
        ("[grpo]\nlerning_rate = 1.0", "recipe.toml:2: grpo.lerning_rate", "'grpo.learning_rate'"),
        ("[grop]\nsteps = 1", "recipe.toml:2: grop.steps", "'grpo.steps'"),
        ("[grpo]\nn = 1", "recipe.toml:2: grpo.n", "'rollout.n'"),
        ("learning_rate = 1.0", "recipe.toml:1: learning_rate", "'grpo.learning_rate'"),
        ("[optimizer]\nmax_gradnorm = 1.0", "recipe.toml:2: optimizer.max_gradnorm", "'optimizer.max_grad_norm'"),
        ("[env]\ntype = 'countdown'\nhihg = 3", "recipe.toml:3: env.hihg", "'env.high'"),
        ("[reward]\ntype = 'binary'\nwieght = 3", "recipe.toml:3: reward.wieght", ""),
        (
            "[credit]\ntype = 'counterfactual'\nnormalization_scale = 'all'",
            "recipe.toml:3: credit.normalization_scale",
            "did you mean 'credit.examined'?",
        ),
        ("[dpo]\nbeat = 0.1", "recipe.toml:2: dpo.beat", "'dpo.beta'"),
        ("rollout.nn = 3", "recipe.toml:1: rollout.nn", "'rollout.n'"),
        ("rollout = {nn = 3}", "recipe.toml:1: rollout.nn", "'rollout.n'"),
        ("[eval]\nsometimes = 3", "recipe.toml:2: eval.sometimes", "allowed: eval.every, eval.test_size, eval.test_n"),
    ],
)
def test_an_unknown_key_names_the_nearest(tmp_path, text: str, place: str, nearest: str) -> None:
    line = problem(tmp_path, text)
    assert line.startswith(f"{place}: unknown key") and nearest in line


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[rollout]\nn = '8'", "rollout.n"),
        ("[rollout]\nn = true", "rollout.n"),
        ("[rollout]\nn = 8.0", "rollout.n"),
        ("[rollout]\nn = 0", "rollout.n"),
        ("[rollout]\nn = 99999999999", "rollout.n"),
        ("[rollout]\ntemperature = 0.0", "rollout.temperature"),
        ("[rollout]\ntop_p = 1.5", "rollout.top_p"),
        ("[optimizer]\nbeta1 = -0.1", "optimizer.beta1"),
        ("[optimizer]\nepsilon = nan", "optimizer.epsilon"),
        ("[optimizer]\nmax_grad_norm = inf", "optimizer.max_grad_norm"),
        ("[optimizer]\ntype = 'adamw'", "optimizer.type"),
        ("[grpo]\nlearning_rate = -0.01", "grpo.learning_rate"),
        ("[grpo]\nlearning_rate = nan", "grpo.learning_rate"),
        ("[grpo]\nsteps = true", "grpo.steps"),
        ("[grpo]\nsteps = 2020-01-01", "grpo.steps"),
        ("[env]\ntype = 'countdown'\nhigh = 'ten'", "env.high"),
        ("[env]\ntype = 'countdown'\nhigh = 1979-05-27", "env.high"),
        ("[stop]\ntarget = 80", "stop.target"),
        ("[record]\nsinks = 'wandb'", "record.sinks"),
        ("seed = -1", "seed"),
        ("name = 5", "name"),
        ("rollout = 5", "rollout"),
        ("grpo = 5", "grpo"),
        ("env = 'countdown'", "env"),
        ("[env]\ntype = 'countdown'\nhigh = '30'", "env.high"),
        ("[env]\ntype = 'countdown'\nhigh = 30.0", "env.high"),
        ("phases = 'grpo'", "phases"),
        ("phases = []", "phases"),
        ("phases = [1]", "phases"),
    ],
)
def test_a_wrong_value_is_one_line_with_its_place(tmp_path, text: str, key: str) -> None:
    found = problems(tmp_path, text)
    assert found[0].startswith(f"recipe.toml:{text.count(chr(10)) + 1}: {key}: "), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("phases = ['gpro']", "unknown phase 'gpro'; did you mean 'grpo'?"),
        ("[env]\ntype = 'countdwon'", "unknown env 'countdwon'; did you mean 'countdown'?"),
        ("[engine]\ntype = 'toi'", "unknown engine 'toi'; did you mean 'toy'?"),
        ("[reward]\ntype = 'binray'", "unknown reward 'binray'; did you mean 'binary'?"),
        ("[advantage]\ntype = 'grop'", "unknown advantage 'grop'; did you mean 'grpo'?"),
        ("[objective]\ntype = 'ppo'", "unknown objective 'ppo'"),
        ("[env]\nhigh = 3", "needs `type = NAME`, one of: "),
        ('[engine]\nmodel = "nano"', "needs `type = NAME`, one of: hf, toy, verl; `engine.type=hf` has model"),
        ('[reward]\ntype = "brief.py"', "reward 'brief.py': say which one of the file, brief.py:NAME"),
        ("[record]\nsinks = ['wandbb']", "unknown sink 'wandbb'; did you mean 'wandb'?"),
        ("phases = ['grpo', 'grpo']", "names a phase twice"),
        ("[grpo]\nbatch_size = 16\n[data]\ntrain_size = 10", "but data.train_size is 10"),
        ("[rollout]\nn = 1", "needs n ≥ 2"),
        ("[rollout]\ntemperature = 0.7", "set correction.level"),
        (
            "[kl]\ncoef = 0.1\nestimator = 'k1'",
            'recipe.toml:3: kl.estimator: "k1" in the loss has expected gradient 0 and does not pull to the reference; '
            'allowed there: k2, k3; use one of them, or set kl.place = "reward"',
        ),
        ("[env]\ntype = 'countdown'\nnumbers = [9]", "give distinct levels from 2 to"),
        ("[entropy]\nfloor = 0.3", "entropy.floor: 0.3 has no effect without a bonus; set entropy.coef"),
        ("output_dir = 'a\\u0000b'".replace("'", '"'), "NUL"),
    ],
)
def test_names_and_contradictions(tmp_path, text: str, expected: str) -> None:
    assert expected in problem(tmp_path, text)


def test_k1_is_fine_in_the_reward_and_where_kl_is_off(tmp_path) -> None:
    assert load(tmp_path, "[kl]\ncoef = 0.1\nestimator = 'k1'\nplace = 'reward'").recipe.kl.estimator == "k1"
    assert load(tmp_path, "[kl]\nestimator = 'k1'").recipe.kl.coef == 0


def test_a_table_of_a_phase_that_does_not_run_is_checked_too(tmp_path) -> None:
    assert "dpo.beta" in problem(tmp_path, "[dpo]\nbeta = -1.0")
    resolved = load(tmp_path, "[dpo]\nbeta = 1.0")
    assert list(resolved.recipe.phase_tables) == ["grpo"] and "dpo.beta" not in resolved.origins


def test_all_mistakes_at_once(tmp_path) -> None:
    text = """name = "../x"
kl_coef = 0.1
phases = ["gpro", "sft"]

[rollout]
n = 0
temprature = 1.0

[env]
type = "countdown"
high = -1

[sft]
lerning_rate = 0.1

[reward]
type = "binray"
"""
    found = problems(tmp_path, text)
    assert len(found) == 8
    wanted = {"name": 1, "kl_coef": 2, "phases": 3, "rollout.n": 6, "rollout.temprature": 7, "env.high": 11,
              "sft.lerning_rate": 14, "reward.type": 17}  # fmt: skip
    for key, line in wanted.items():
        assert any(p.startswith(f"recipe.toml:{line}: {key}: ") for p in found), (key, found)


def test_contradictions_come_with_the_other_mistakes(tmp_path) -> None:
    found = problems(tmp_path, "phases = ['grpo', 'grpo']\n[env]\ntype = 'nothing'\n[rollout]\nn = 1")
    assert len(found) == 3


def test_a_mistake_in_an_override_is_not_blamed_on_the_file(tmp_path) -> None:
    assert problem(tmp_path, SMALL, "rollout.n=0").startswith("override rollout.n: ")
    assert problem(tmp_path, SMALL, "rolout.n=2").startswith("override rolout.n: unknown key; did you mean 'rollout.n'")


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/b", "a\nb", "x" * 300, "-x", "", "con", "CON", "nul", "ünï", ".hidden", "a b", "a\0b"]
)
def test_hostile_names_cannot_name_a_folder(tmp_path, name: str) -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in name)
    line = problem(tmp_path, f'name = "{escaped}"')
    assert line.startswith("recipe.toml:1: name: cannot name a run folder") and len(line) < 300


@pytest.mark.parametrize("name", ["a", "Toy_countdown-v1.2", "0", "x" * 80, "console"])
def test_plain_names_are_fine(tmp_path, name: str) -> None:
    assert load(tmp_path, f'name = "{name}"').recipe.name == name


def test_a_text_that_would_take_the_parser_long_is_refused() -> None:
    with pytest.raises(UserError, match="1000000 characters; at most 300000"):
        parse_toml("\n" * 1_000_000, "big.toml")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("optimizer.beta1", 1.0),
        ("optimizer.beta2", 1.0),
        ("optimizer.beta1", -0.1),
        ("optimizer.epsilon", 2.0),
        ("optimizer.weight_decay", 1e9),
        ("rollout.temperature", 1e-9),
        ("rollout.temperature", 1e9),
        ("dpo.label_smoothing", 0.5),
    ],
)
def test_a_value_that_no_training_survives_is_refused(tmp_path, key: str, value: float) -> None:
    table, _, leaf = key.partition(".")
    text = f'phases = ["dpo"]\n[correction]\nlevel = "token"\n[{table}]\n{leaf} = {value}'
    assert problem(tmp_path, text).startswith(f"recipe.toml:5: {key}: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [("", ["grpo.steps=+20"]), ("", ["--grpo.steps", "+20"]), ('[grpo]\nsteps = "+20"', []), ("", ["rollout.n=+4"])],
)
def test_a_number_added_to_nothing_is_refused(tmp_path, text: str, words: list[str]) -> None:
    line = problem(tmp_path, text, *words)
    assert " lengthens a run that there is, `rlvr train --resume RUN " in line and "for a new one write" in line


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        (
            "[env]\ntype = 'countdown'\nhigh = 12",
            ["env.low=20", "env.high=10"],
            "override env.high, env.low: env: countdown: low = 20",
        ),
        ("[env]\ntype = 'countdown'\nhigh = 10", ["env.low=20"], "override env.low: env: countdown: low = 20"),
        (
            "[env]\ntype = 'countdown'\nlow = 20\nhigh = 10",
            ["env.style=bare"],
            "recipe.toml:1: env: countdown: low = 20",
        ),
        ("[grpo]\nbatch_size = 24", ["data.train_size=10"], "override data.train_size: grpo.batch_size: 24 problems"),
        ("[data]\ntrain_size = 10\n[grpo]\nbatch_size = 24", [], "recipe.toml:4: grpo.batch_size: 24 problems"),
    ],
)
def test_an_override_that_takes_part_is_named_not_a_line_of_the_file(tmp_path, text, words, place) -> None:
    assert problem(tmp_path, text, *words).startswith(place)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["engine.type=verl"],
            "engine.model: has no default; write engine.model=nano on a command line, "
            'model = "nano" below [engine] of a file: A model on hand (`rlvr model list`)',
        ),
        (["phases=sft"], """override phases: must be a list, got "sft"; write 'phases=["sft"]'"""),
        (["reward.type=mine.py:pay"], "and on a command line to the working directory first: "),
    ],
)
def test_what_to_give_is_said_and_where_it_is_looked_for(tmp_path, words: list[str], says: str) -> None:
    assert says in problem(tmp_path, "", *words)
