"""From stages to trials: what is the same trial, what a stage inherits, what a budget is."""

from __future__ import annotations

import pytest
from study_lab import write_study

from rlvrlab.recipe import load_recipe
from rlvrlab.study.chain import Chain, budget_of
from rlvrlab.study.identity import identity_of
from rlvrlab.study.load import load_study
from rlvrlab.study.plan import plan_study
from rlvrlab.study.settings import layered, rung_settings, words
from rlvrlab.train.lab import build_lab

CHAIN = """
[[stages]]
name = "volume"
[stages.arms]
small = { "data.train_size" = 10, "grpo.steps" = 5 }
middle = { "data.train_size" = 20, "grpo.steps" = 10 }
large = { "data.train_size" = 30, "grpo.steps" = 15 }
[[stages]]
name = "schedule"
base = 'best("volume")'
parity = ["steps", "answers"]
arms = { mixed = { "protocol.type" = "mixed" }, curriculum = { "protocol.type" = "curriculum" } }
[[stages]]
name = "reward"
base = 'best("schedule")'
factors = { "reward.type" = ["binary", "binary_format", "partial", "complicated", "ratio_quality_format_repeat"] }
[[stages]]
name = "again"
base = 'best("reward")'
arms = { mixed = { "protocol.type" = "mixed" }, curriculum = { "protocol.type" = "curriculum" } }
[[stages]]
name = "models"
base = 'best("again")'
factors = { "engine.buckets" = [8, 16, 32] }
"""
MIXED = '[protocol]\ntype = "mixed"\n'


def chain(tmp_path, text: str, extra: str = "") -> Chain:
    from study_lab import RECIPE

    return Chain(load_study(write_study(tmp_path, text, RECIPE + extra)))


def test_a_chain_of_fifteen_trainings_needs_eleven(tmp_path) -> None:
    """3 + 2 + 5 + 2 + 3 asked for; a stage's winner is a trial of the next one, and again holds one arm of reward."""
    found = plan_study(chain(tmp_path, CHAIN, MIXED).file, tmp_path / "none", cost=False)
    stages = [one for one in found.stages if one.kind == "compare"]
    assert [one.trials for one in stages] == [3, 2, 5, 2, 3]
    assert [one.new for one in stages] == [
        3,
        1,
        4,
        0,
        2,
    ]  # binary wins by assumption: both arms of again are known
    assert found.plain()["total"]["reused"] == 5
    moved = chain(tmp_path, CHAIN, MIXED)
    choices = {"volume": "large", "schedule": "mixed", "reward": "type=partial"}
    again = [moved.trials(moved.file.stage("again"), arm, choices)[0].id for arm in ("mixed", "curriculum")]
    reward = moved.trials(moved.file.stage("reward"), "type=partial", choices)[0].id
    assert again[0] == reward != again[1]


def test_the_same_recipe_said_otherwise_is_the_same_trial(tmp_path) -> None:
    path = write_study(tmp_path, '[[stages]]\nname = "a"\n').parent / "recipe.toml"

    def ident(*given: str, seed: int = 0) -> dict:
        return identity_of(load_recipe(path, given), seed, "version")

    assert ident() == ident("reward.type=binary", "name=other", "output_dir=x", "record.rollouts=none", "rollout.n=2")
    for other in ("rollout.n=3", "reward.type=partial", "data.train_size=41", "grpo.steps=5", "engine.buckets=9"):
        assert ident(other)["recipe"] != ident()["recipe"]
    assert ident(seed=1) != ident()


def test_data_files_and_own_plugins_count_by_content(tmp_path) -> None:
    write_study(tmp_path, '[[stages]]\nname = "a"\n')
    path = tmp_path / "recipe.toml"
    plugin = tmp_path / "own.py"
    text = (
        "from dataclasses import dataclass\nfrom rlvrlab.registry import register\n"
        "from rlvrlab.rewards.binary import Binary\n"
        '@register("reward", "own_of_study")\n@dataclass(frozen=True)\nclass Own(Binary):\n    pass\n'
    )
    plugin.write_text(text)
    data = tmp_path / "train.jsonl"
    data.write_text("{}\n")
    given = ["reward.type=own.py:Own", "data.train_file=train.jsonl"]
    before = identity_of(load_recipe(path, given), 0, "version")
    data.write_text("{}\n{}\n")
    after = identity_of(load_recipe(path, given), 0, "version")
    assert before["data"] != after["data"] and before["code"] == after["code"] and before["recipe"] == after["recipe"]
    plugin.write_text(text + "# changed\n")
    assert identity_of(load_recipe(path, given), 0, "version")["code"] != after["code"]


def test_the_weights_of_a_folder_count_by_content(tmp_path) -> None:
    write_study(tmp_path, '[[stages]]\nname = "a"\n')
    model = tmp_path / "base"
    model.mkdir()
    (model / "config.json").write_text("{}")
    found = []
    for weights in (b"one", b"another"):
        (model / "model.safetensors").write_bytes(weights)
        given = ["engine.type=hf", f"engine.model={model}"]
        found.append(identity_of(load_recipe(tmp_path / "recipe.toml", given), 0, "version"))
    assert found[0]["data"] != found[1]["data"] and found[0]["recipe"] == found[1]["recipe"]


def test_inputs_take_a_winner_s_value_also_a_default(tmp_path) -> None:
    text = (
        '[[stages]]\nname = "a"\nfactors = { "grpo.steps" = [2, 3] }\n[[stages]]\nname = "b"\n'
        'inputs = { "grpo.steps" = \'best("a").grpo.steps\', "sft.steps" = \'best("a").sft.steps\' }\n'
        'fixed = { "data.train_size" = 12 }\n'
    )
    made = chain(tmp_path, text)
    settings = made.settings(made.file.stage("b"), "as_is", {"a": "steps=3"})
    assert settings == {"grpo.steps": 3, "sft.steps": 2, "data.train_size": 12}
    bad = chain(tmp_path, text.replace('best("a").sft.steps', 'best("a").sft.stepz'))
    assert "no such key; did you mean 'sft.steps'" in " ".join(bad.check(bad.file.stage("b"), {"a": "steps=3"}))


def test_another_plugin_takes_the_old_one_s_keys_away() -> None:
    first = {"reward.type": "binary_format", "reward.format": 0.3, "rollout.n": 4}
    assert layered(first, {"reward.type": "binary"}) == {"reward.type": "binary", "rollout.n": 4}
    assert layered(first, {"reward.type": "binary_format"}) == first
    assert words({"env.levels": [1, 2], "protocol.type": 'a"b', "x.y": True}) == [
        'protocol.type="a\\"b"', "env.levels=[1, 2]", "x.y=true"
    ]  # fmt: skip


def test_words_come_back_as_they_were() -> None:
    from rlvrlab.recipe.parse import parse_overrides

    given = {
        "a.b": [1, [2.5, "x"]],
        "a.c": "täxt\n\t\"'\\ =",
        "a.d": False,
        "a.e": [{"type": "countdown", "n": [1]}],
        "a.f": 1e-7,
    }
    assert parse_overrides(words(given)) == given


def test_arms_and_factors_are_crossed(tmp_path) -> None:
    text = (
        '[[stages]]\nname = "a"\narms = { x = { "sft.steps" = 1 }, y = {} }\n'
        'factors = { "grpo.steps" = [2, 3], "rollout.n" = [2, 4] }\n'
    )
    made = chain(tmp_path, text)
    arms = made.arms(made.file.stage("a"))
    assert len(arms) == 8 and arms[1].name == "x, steps=2, n=4"
    assert arms[1].own == {"sft.steps": 1, "grpo.steps": 2, "rollout.n": 4}


def test_a_length_schedule_is_counted_as_it_is(tmp_path) -> None:
    write_study(tmp_path, '[[stages]]\nname = "a"\n')
    path = tmp_path / "recipe.toml"
    plain = budget_of(load_recipe(path))
    assert plain == (6, 4 * 2 * 2, 4 * 2 * 2 * 8)
    lengths = ["protocol.type=curriculum", "protocol.lengths=[4, 8]"]
    assert budget_of(load_recipe(path, lengths)).tokens == 2 * 4 * 4 + 2 * 4 * 8
    uneven = [*lengths, "protocol.shares=[3, 1]"]
    assert budget_of(load_recipe(path, uneven)).tokens == 3 * 4 * 4 + 1 * 4 * 8
    assert budget_of(load_recipe(path, lengths)).answers == plain.answers


def test_curriculum_volume_and_lengths_are_factors_of_graph_problems(tmp_path) -> None:
    """Five levels by size, mixed against curriculum at one budget, lengths per level, volumes."""
    recipe = (
        'phases = ["grpo"]\n[env]\ntype = "graph"\ntasks = ["MIS"]\n[protocol]\ntype = "mixed"\n'
        "[data]\ntrain_size = 10\ndev_size = 5\n[rollout]\nn = 2\nmax_tokens = 16\n[grpo]\nsteps = 5\nbatch_size = 2\n"
    )
    text = """
[[stages]]
name = "volume"
arms = { v10 = { "data.train_size" = 10, "grpo.steps" = 5 }, v20 = { "data.train_size" = 20, "grpo.steps" = 10 } }
[[stages]]
name = "schedule"
base = 'best("volume")'
parity = ["steps", "answers"]
[stages.arms.mixed]
[stages.arms.curriculum]
protocol = { type = "curriculum", levels = [1, 2, 3, 4, 5] }
[stages.arms.lengths]
protocol = { type = "curriculum", lengths = [8, 10, 12, 14, 16] }
"""
    made = Chain(load_study(write_study(tmp_path, text, recipe)))
    stage = made.file.stage("schedule")
    assert made.check(stage, {"volume": "v20"}) == []
    budgets = {arm.name: made.trials(stage, arm.name, {"volume": "v20"})[0].budget for arm in made.arms(stage)}
    assert budgets["mixed"] == budgets["curriculum"] == (10, 40, 640) and budgets["lengths"].tokens == 40 * 12
    lab = build_lab(made.resolved(made.settings(stage, "lengths", {"volume": "v20"})))
    stages = lab.stages(lab.resolved.phase("grpo").steps)
    assert [(one.last - one.first, one.max_tokens) for one in stages] == [(2, 8), (2, 10), (2, 12), (2, 14), (2, 16)]
    unfair = write_study(tmp_path, text.replace('"answers"]', '"tokens"]'), recipe)
    problems = Chain(load_study(unfair)).check(stage.model_copy(update={"parity": ["tokens"]}), {"volume": "v20"})
    assert "parity asks for equal tokens, but: mixed 640" in problems[0]


def test_the_ladder_adds_up_and_halves() -> None:
    ladder = [{"engine.micro_batch": "/2"}, {"engine.micro_batch": "/2", "rollout.n": 4}]
    now = {"engine.micro_batch": 8}
    assert rung_settings(ladder, 0, now) == {}
    assert rung_settings(ladder, 1, now) == {"engine.micro_batch": 4}
    assert rung_settings(ladder, 2, now) == {"engine.micro_batch": 2, "rollout.n": 4}
    with pytest.raises(Exception, match="cannot be halved"):
        rung_settings(ladder, 2, {"engine.micro_batch": 2})


def test_a_rung_keeps_what_was_set_in_a_list() -> None:
    now = {"engine.overrides": ["actor.sp=4", "ref.offload=True"]}
    ladder = [{"engine.overrides": ["actor.sp=8", "ref.sp=8"]}, {"engine.overrides": ["actor.offload=True"]}]
    assert rung_settings(ladder, 1, now) == {"engine.overrides": ["actor.sp=8", "ref.offload=True", "ref.sp=8"]}
    assert rung_settings(ladder, 2, now)["engine.overrides"][1:] == [
        "ref.offload=True",
        "ref.sp=8",
        "actor.offload=True",
    ]
