"""Where the time of a step went: the parts add up to the whole, and the largest brings the advice that fits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlvrlab
from rlvrlab.notes import watching
from rlvrlab.recipe import load_recipe
from rlvrlab.record.faster import advice
from rlvrlab.record.profile import PARTS, REST, profile_of
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps

SOURCES = Path(rlvrlab.__file__).parent
RECIPES = Path(__file__).parents[2] / "recipes"
seconds = st.floats(0.001, 100)


def row(phase: str, step_s: float, **parts: float) -> dict[str, object]:
    return {"phase": phase, "time/step_s": step_s, **{f"time/{name}_s": s for name, s in parts.items()}}


@given(st.lists(st.dictionaries(st.sampled_from([p for p in PARTS if p != "record"]), seconds), min_size=1), seconds)
def test_parts_add_up(steps: list[dict[str, float]], more: float) -> None:
    rows = [row("grpo", sum(parts.values()) + more, **parts) for parts in steps]
    found = profile_of(rows)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert sum(one.seconds for one in found) == pytest.approx(sum(float(str(r["time/step_s"])) for r in rows))


def test_phases_are_told_apart_and_what_is_not_known_is_the_rest() -> None:
    rows = [{"phase": "sft", "step": 0}, row("sft", 2.0, update=1.5), row("grpo", 4.0, judge=3.0), row("grpo", 4.0)]
    found = {(one.phase, one.words): (one.seconds, one.share, one.per_step) for one in profile_of(rows)}
    assert found == {
        ("sft", "update"): (1.5, 0.75, 1.5),
        ("sft", REST): (0.5, 0.25, 0.5),
        ("grpo", "waiting for verdicts"): (3.0, 0.375, 1.5),
        ("grpo", REST): (5.0, 0.625, 2.5),
    }
    assert profile_of([{"phase": "sft", "step": 0}]) == []


def test_the_parts_of_a_step_by_verl_are_known_under_its_names() -> None:
    """Its checkpoints are made within the step, so they are not added to it."""
    steps = {"time/rollout_s": 2.0, "timing_s/old_log_prob": 1.0, "timing_s/adv": 0.5, "time/update_s": 4.0}
    found = profile_of([{"phase": "grpo", "time/step_s": 10.0, "time/checkpoint_s": 2.0, **steps}])
    shares = {one.part: round(one.share, 6) for one in found}
    assert shares == {"sample": 0.2, "score": 0.15, "update": 0.4, "record": 0.2, "": 0.05}


def test_whatever_is_timed_has_words() -> None:
    """A part without words would be told as everything else."""
    timed = {name for file in SOURCES.rglob("*.py") for name in re.findall(r'\btimed\("(\w+)"\)', file.read_text())}
    assert {"problems", "limits", "critic", "guard", "publish"} <= timed <= set(PARTS)


@pytest.mark.parametrize(
    ("recipe", "overrides", "phase", "parts"),
    [
        ("toy_pipeline", ("dpo.steps=1", "dpo.problems=60"), "dpo", {"score", "update", "publish"}),
        ("toy_ppo", ("ppo.steps=1",), "ppo", {"problems", "sample", "judge", "score", "update", "critic"}),
        ("toy_countdown", ("grpo.steps=1", 'pipeline.limits="learnt"', 'guard.type="replay"'), "grpo",
         {"problems", "limits", "sample", "judge", "guard"}),
    ],
)  # fmt: skip
def test_what_a_step_does_is_timed_by_name(
    recipe: str, overrides: tuple[str, ...], phase: str, parts: set[str], tmp_path: Path
) -> None:
    resolved = load_recipe(RECIPES / f"{recipe}.toml", overrides)
    lab = build_lab(resolved)
    sft = resolved.phase("sft")
    list(bare_steps(lab, replace(sft, steps=20), tmp_path))
    lab.engine.freeze_reference()
    with watching() as spent:
        steps = list(bare_steps(lab, resolved.phase(phase), tmp_path))
    assert len(steps) == 1 and parts <= set(spent)


def told(recipe: str, phase: str, part: str, *overrides: str) -> list[str]:
    """The advice on steps of which this part takes nearly all; phases on-line draw a little."""
    resolved = load_recipe(RECIPES / f"{recipe}.toml", overrides)
    drawn = {"sample": 0.05} if resolved.phase(phase).online else {}
    return advice(profile_of([row(phase, 1.0, **{**drawn, part: 0.9})]), resolved.plain())


@pytest.mark.parametrize(
    ("recipe", "phase", "part", "overrides", "words", "silent_on"),
    [
        ("toy_pipeline", "sft", "update", (), "lower sft.batch_size", ("rollout", "LoRA", "micro_tokens")),
        ("toy_pipeline", "dpo", "update", (), "lower dpo.batch_size", ("rollout", "LoRA", "micro_tokens")),
        ("toy_countdown", "grpo", "update", (), "lower rollout.n", ("LoRA", "micro_tokens", "batch_size")),
        ("toy_ppo", "ppo", "update", (), "lower ppo.epochs", ("LoRA",)),
        ("toy_ppo", "ppo", "critic", (), "lower ppo.value_epochs", ()),
        ("nano_tools", "grpo", "update", (), "engine.lora_rank", ()),
        ("nano_tools", "grpo", "update", ("engine.lora_rank=8",), "micro_tokens", ("LoRA",)),
        ("nano_tools", "sft", "update", (), "engine.lora_rank", ("rollout",)),
        ("toy_countdown", "grpo", "sample", (), "rollout.max_tokens", ("engine.sampler",)),
        ("nano_tools", "grpo", "sample", (), "engine.sampler, which take a LoRA adapter", ()),
        ("toy_countdown", "grpo", "judge", (), "a faster verify", ("pipeline", "cores")),
        ("code_skills", "grpo", "judge", (), 'pipeline.limits = "learnt"', ("lag",)),
        ("code_skills", "grpo", "judge", ("pipeline.limits=learnt",), "pipeline.lag = 1", ("limits",)),
        ("code_skills", "grpo", "judge", ("pipeline.limits=learnt", "filter.dead_groups=refill"), "cores", ("lag",)),
        ("code_skills", "grpo", "judge", ("pipeline.limits=learnt", "pipeline.lag=1"), "rlvr serve judge", ("lag",)),
        ("verl_coding_grpo", "grpo", "judge", (), "rlvr serve judge", ("pipeline",)),
        ("toy_countdown", "grpo", "record", (), 'record.rollouts = "none"', ("sinks",)),
        ("toy_countdown", "grpo", "record", ("record.rollouts=none",), "raise checkpoint.every", ("rollouts",)),
        ("toy_countdown", "sft", "record", (), "raise checkpoint.every", ("rollouts",)),
        ("toy_countdown", "sft", "record", ("checkpoint.every=30",), "raise eval.every", ("checkpoint",)),
        ("toy_countdown", "grpo", "evaluate", (), "raise eval.every", ()),
        ("toy_countdown", "grpo", "evaluate", ("eval.every=0",), "lower data.dev_size", ("eval.every",)),
        ("toy_countdown", "grpo", "score", ("kl.coef=0.1",), "kl.coef = 0", ()),
    ],
)  # fmt: skip
def test_advice_fits_phase_engine_and_what_is_set(
    recipe: str, phase: str, part: str, overrides: tuple[str, ...], words: str, silent_on: tuple[str, ...]
) -> None:
    [line] = told(recipe, phase, part, *overrides)
    assert line.startswith(f"{phase}: ") and words in line
    assert not [word for word in silent_on if word in line.partition(";")[2]]


def test_nothing_is_advised_where_nothing_is_left_to_set() -> None:
    assert not told("toy_countdown", "sft", "record", "checkpoint.every=99", "eval.every=0")
    assert not told("toy_countdown", "grpo", "score")


@pytest.mark.parametrize("recipe", [path.stem for path in sorted(RECIPES.glob("*.toml"))])
def test_every_key_that_is_advised_is_a_key_of_the_recipe(recipe: str) -> None:
    resolved = load_recipe(RECIPES / f"{recipe}.toml")
    tables = resolved.plain()
    for phase in resolved.recipe.phases:
        for part in PARTS:
            for line in told(recipe, phase, part):
                for table, key in re.findall(r"\b([a-z_]+)\.([a-z_]+)\b", line.partition(";")[2]):
                    assert key in tables[table], line


def test_a_recorded_recipe_brings_the_same_advice() -> None:
    """config.json keeps the tables of phases apart."""
    resolved = load_recipe(RECIPES / "toy_countdown.toml")
    spent = profile_of([row("sft", 1.0, update=0.9)])
    assert advice(spent, resolved.recipe.model_dump()) == advice(spent, resolved.plain()) != []


def test_nothing_is_said_of_a_step_without_a_large_part() -> None:
    assert not advice(profile_of([row("grpo", 1.0, judge=0.1, sample=0.4, update=0.4)]), {})


def test_a_short_phase_is_left_alone() -> None:
    """A second of SFT before a minute of GRPO: lowering its batch would save nothing."""
    rows = [row("sft", 1.0, update=0.9), row("grpo", 60.0, sample=55.0, update=5.0)]
    resolved = load_recipe(RECIPES / "toy_countdown.toml", ())
    assert [line.partition(":")[0] for line in advice(profile_of(rows), resolved.plain())] == ["grpo"]


def test_a_phase_without_a_value_function_spends_no_time_on_one(tmp_path: Path) -> None:
    lab = build_lab(load_recipe(RECIPES / "toy_countdown.toml", ['phases=["grpo"]', "reward.type=random"]))
    with watching() as spent:
        list(bare_steps(lab, replace(lab.resolved.phase("grpo"), steps=1), tmp_path))
    assert "update" in spent and "critic" not in spent
