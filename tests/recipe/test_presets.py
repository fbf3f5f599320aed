"""Settings that fit the engine where a recipe sets none: which preset, told how, and what is unusual."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.models import parameters_of
from rlvrlab.recipe import Recipe, Resolved, load_recipe
from rlvrlab.recipe.explain import settings, unusual
from rlvrlab.recipe.load import vetted
from rlvrlab.recipe.presets import PRESETS, preset_for
from rlvrlab.registry import find, keys_of, names

ALL = 'phases = ["sft", "rft", "dpo", "grpo", "ppo", "repair"]\n'


def recipe(folder: Path, text: str, *words: str) -> Resolved:
    path = folder / "recipe.toml"
    path.write_text(text)
    return load_recipe(path, words)


def rate(resolved: Resolved, phase: str) -> float:
    return resolved.phase(phase).learning_rate


@pytest.mark.parametrize(
    ("engine", "name", "sft", "grpo", "warmup"),
    [
        ("type = 'toy'", "toy", 0.02, 0.01, 0),
        ("type = 'hf'\nmodel = 'nano'", "hf/full/nano", 3e-3, 5e-4, 0),
        ("type = 'hf'\nmodel = 'nano'\nlora_rank = 4", "hf/lora/nano", 1e-2, 2e-3, 0),
        ("type = 'hf'\nmodel = 'smollm2-135m'", "hf/full/100m", 5e-5, 1e-5, 10),
        ("type = 'hf'\nmodel = 'smollm2-135m'\nlora_rank = 16", "hf/lora/100m", 5e-4, 5e-5, 10),
        ("type = 'hf'\nmodel = 'Qwen/Qwen2.5-3B'", "hf/full/1b", 2e-5, 1e-6, 10),
        ("type = 'hf'\nmodel = 'Qwen/Qwen2.5-Coder-1.5B-Instruct'\nlora_rank = 8", "hf/lora/1b", 2e-4, 5e-5, 10),
        ("type = 'hf'\nmodel = 'somebody/something'", "hf/full/1b", 2e-5, 1e-6, 10),
        ("type = 'verl'\nmodel = 'Qwen/Qwen2.5-7B'", "hf/full/1b", 2e-5, 1e-6, 10),
    ],
)
def test_rates_fit_the_engine_and_say_so(
    tmp_path: Path, engine: str, name: str, sft: float, grpo: float, warmup: int
) -> None:
    resolved = recipe(tmp_path, f"{ALL}[engine]\n{engine}\n")
    assert (rate(resolved, "sft"), rate(resolved, "grpo")) == (sft, grpo)
    assert resolved.recipe.optimizer.warmup_steps == warmup, "only what was trained before is approached slowly"
    told = {row.key: row for row in settings(resolved)}
    assert told["grpo.learning_rate"].origin == f"preset {name}" and told["grpo.learning_rate"].source
    assert told["grpo.steps"].origin == "default" and not told["grpo.steps"].source
    assert not unusual(resolved)


def test_what_the_recipe_says_wins(tmp_path: Path) -> None:
    text = f'{ALL}[engine]\ntype = "hf"\nmodel = "nano"\n[grpo]\nlearning_rate = 1e-4\n[rollout]\nmax_tokens = 7\n'
    resolved = recipe(tmp_path, text, "sft.learning_rate=0.002")
    assert (rate(resolved, "grpo"), rate(resolved, "sft"), resolved.recipe.rollout.max_tokens) == (1e-4, 0.002, 7)
    assert resolved.origins["grpo.learning_rate"] == "recipe.toml" and resolved.origins["rollout.n"] != "default"
    again = recipe(tmp_path, f"{ALL}")
    assert rate(again, "dpo") == 0.005, "toy is the default engine"


def test_values_of_a_preset_count_as_not_given(tmp_path: Path) -> None:
    """So that a recipe whose engine is changed gets the rates of the new one."""
    resolved = recipe(tmp_path, '[engine]\ntype = "hf"\nmodel = "nano"\n')
    assert resolved.given() == {"engine": {"type": "hf", "model": "nano"}}


def test_the_rate_of_another_engine_is_warned_of(tmp_path: Path) -> None:
    resolved = recipe(tmp_path, '[engine]\ntype = "hf"\nmodel = "smollm2-135m"\n[grpo]\nlearning_rate = 0.01\n')
    (words,) = unusual(resolved)
    assert words.startswith("grpo.learning_rate = 0.01 is unusual for hf/full/100m: 5e-07 to 0.0002 is sane")
    assert "\n" not in words


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("org/Model-135M-Instruct", 135_000_000),
        ("Qwen/Qwen2.5-Coder-1.5B", 1_500_000_000),
        ("org/model-7b-v0.3", 7_000_000_000),
        ("org/model-v2", None),
        ("org/abc3base", None),
    ],
)
def test_a_size_is_read_from_the_name(name: str, count: int | None) -> None:
    assert parameters_of(name) == count


def test_a_size_is_read_from_the_weights(tmp_path: Path) -> None:
    from rlvrlab.models import resolve

    assert parameters_of(str(resolve("nano"))) == parameters_of("nano") == 701_312
    assert parameters_of(str(tmp_path)) is None


@pytest.mark.parametrize("name", PRESETS)
def test_every_value_lies_in_its_own_range_and_is_a_key(name: str) -> None:
    tables = {phase: dict.fromkeys(keys_of(find("phase", phase))) for phase in names("phase")}
    values = vetted(PRESETS[name], Recipe(phase_tables=tables))
    assert {f"{phase}.learning_rate" for phase in names("phase")} <= set(values)
    assert all(one.low <= one.value <= one.high and one.source for one in values.values())


def test_a_small_set_of_problems_is_no_contradiction(tmp_path: Path) -> None:
    text = '[engine]\ntype = "hf"\nmodel = "org/model-7b"\n[data]\ntrain_size = 20\n'
    assert recipe(tmp_path, text).phase("grpo").batch_size == 20


def test_sizes_have_borders() -> None:
    sizes = (9_999_999, 10_000_000, 999_999_999, 1_000_000_000)
    assert [preset_for(size, lora=True).name for size in sizes] == [
        "hf/lora/nano",
        "hf/lora/100m",
        "hf/lora/100m",
        "hf/lora/1b",
    ]


@pytest.mark.parametrize(("method", "told"), [("gradvac", True), ("equal", True), ("pcgrad", False)])
def test_a_threshold_that_changes_no_update_is_said(tmp_path: Path, method: str, told: bool) -> None:
    resolved = recipe(tmp_path, f"[surgery]\ntype = '{method}'\nconflict_threshold = 0.5\n")
    words = f"surgery.conflict_threshold = 0.5 changes no update: {method} acts in every step"
    assert any(one.startswith(words) for one in unusual(resolved)) is told
