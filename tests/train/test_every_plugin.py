"""Every registered plug-in: the plan counts the answers it draws, its health is watched, verl takes or refuses it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import runs
from test_protocols import SKILLS
from test_repair import FEEDBACK_ENV, TURNS

from rlvrlab.engines.toy.engine import ToyEngine
from rlvrlab.errors import RecipeError
from rlvrlab.evals.monitors import ranges_of
from rlvrlab.recipe import load_recipe
from rlvrlab.registry import find, keys_of, names
from rlvrlab.scale.verl.refusals import refusals
from rlvrlab.train.plan import phase_plans

SMALL = {
    "sft": {"steps": 3, "batch_size": 8}, "more_sft": {"steps": 2, "batch_size": 8},
    "rft": {"problems": 17, "steps": 2, "batch_size": 8},
    "dpo": {"problems": 13, "steps": 2, "batch_size": 4}, "repair": {"problems": 19, "steps": 2, "batch_size": 6},
}  # fmt: skip
ONLINE = {"steps": 2, "batch_size": 4}


def drawn_in(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> tuple[Path, int]:
    """A run, and how many answers it sampled; evaluations are greedy and do not count."""
    count, sample = [0], ToyEngine.sample

    def counted(self, requests):
        count[0] += sum(request.n for request in requests if request.sampling.temperature > 0)
        return sample(self, requests)

    monkeypatch.setattr(ToyEngine, "sample", counted)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "again.py").write_text(FEEDBACK_ENV)
    return runs.run(folder, *words, text=text).folder, count[0]


@pytest.mark.parametrize("name", names("phase"))
def test_the_plan_counts_what_a_phase_draws_and_its_health_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    phases = [name] if name == "sft" else ["sft", name]
    settings = [f"{name}.{key}={value}" for key, value in SMALL.get(name, ONLINE).items()]
    words = [f"phases={phases}".replace("'", '"'), "sft.steps=12", "stop.no_signal_steps=0", *settings]
    folder, drawn = drawn_in(tmp_path / "run", monkeypatch, TURNS, *words)
    planned = phase_plans(runs.recipe(tmp_path / "run", *words, text=TURNS))[-1]
    assert planned.answers <= drawn <= planned.most_answers
    if find("phase", name).tries == 1 or not find("phase", name).online:
        assert drawn == planned.answers == planned.most_answers
    rows = [row for row in runs.read_metrics(folder) if row["phase"] == name and row["phase_step"]]
    health = find("phase", name).health
    assert health and set(health) <= {watched.metric for watched in ranges_of("toy")}
    assert set(health) & {key for row in rows for key in row}, "not one of its ranges has a metric"


OF_PROGRAMS = [name for name in names("credit") if find("credit", name)().follows]
"""Credits that run programs, which the skills below are none of; tests/credit/test_trace_credit.py trains with them."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in ("guard", "credit", "surgery", "protocol")
        for name in names(kind)
        if kind != "credit" or name not in OF_PROGRAMS
    ],
)
def test_the_plan_says_who_else_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    words = ["filter.dead_groups=drop", "grpo.batch_size=5"] + (["protocol.type=sequential"] if kind == "guard" else [])
    words += [f"{kind}.type={name}"]
    words += ["guard.memory_per_skill=4"] if "memory_per_skill" in keys_of(find(kind, name)) else []
    _, drawn = drawn_in(tmp_path / "run", monkeypatch, SKILLS, *words)
    planned = phase_plans(runs.recipe(tmp_path / "run", *words, text=SKILLS))
    counted = sum(plan.answers for plan in planned)
    if any(plan.also_draw for plan in planned):
        assert drawn >= counted
    else:
        assert drawn == counted


VERL = """
phases = ["{phase}"]
[env]
type = "countdown"
numbers = [2]
style = "bare"
[engine]
type = "verl"
model = "owner/model"
gpus = 2
[data]
train_size = 40
dev_size = 8
[rollout]
n = 4
max_tokens = 16
[{phase}]
steps = 6
batch_size = 8
"""
REFUSED = {
    ("phase", "sft"), ("phase", "more_sft"), ("phase", "rft"), ("phase", "dpo"), ("phase", "repair"),
    ("phase", "grpo_turns"), ("objective", "sft"), ("objective", "dpo"), ("protocol", "sequential"),
    ("guard", "average"), ("credit", "tree"), ("credit", "doubly_robust"),
}  # fmt: skip
"""What verl cannot honour as it stands by default; everything else it takes."""


@pytest.mark.parametrize("guard", [name for name in names("guard") if find("guard", name).needs_answers])
def test_on_verl_guards_are_planned_with_references(tmp_path: Path, guard: str) -> None:
    """Nothing can be drawn in the middle of its step, so what it trains with must be there before."""
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(VERL.format(phase="grpo") + f'[guard]\ntype = "{guard}"\nprotected = ["countdown"]\n')
    [on_verl] = phase_plans(load_recipe(recipe))
    recipe.write_text(recipe.read_text().replace('type = "verl"\nmodel = "owner/model"\ngpus = 2', 'type = "toy"'))
    [here] = phase_plans(load_recipe(recipe))
    assert (on_verl.also_draw, on_verl.by_references) == ((), (f"guard {guard}",))
    assert (here.also_draw, here.by_references) == ((f"guard {guard}",), ())


def test_verl_takes_every_plug_in_or_refuses_it_by_name(tmp_path: Path) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for kind in ("phase", "objective", "advantage", "credit", "surgery", "guard", "protocol"):
        for name in names(kind):
            text = VERL.format(phase=name if kind == "phase" else "grpo")
            recipe = tmp_path / "recipe.toml"
            recipe.write_text(text if kind == "phase" else f'{text}[{kind}]\ntype = "{name}"\n')
            try:
                problems = refusals(load_recipe(recipe))
            except RecipeError as error:
                problems = error.problems
            if problems:
                assert any(kind in problem or name in problem for problem in problems), problems
                found[kind, name] += 1
    assert set(found) == REFUSED


@pytest.mark.parametrize(
    "table",
    [
        '[credit]\ntype = "counterfactual"\nreplay = "resample"\n',
        '[credit]\ntype = "counterfactual"\nintervention_types = ["substitute"]\n',
        '[guard]\ntype = "skill_safe"\ngradient = "kl"\n',
        '[guard]\ntype = "penalty"\nloss = "accepted"\n',
    ],
)
def test_verl_refuses_what_must_sample_in_the_middle_of_a_step(tmp_path: Path, table: str) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(VERL.format(phase="grpo") + table)
    [problem] = refusals(load_recipe(recipe))
    assert "draws new answers" in problem


def test_verl_refuses_what_needs_whole_distributions(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(VERL.format(phase="grpo") + '[guard]\ntype = "gem"\nloss = "kl_full"\n')
    assert any("compares whole distributions" in problem for problem in refusals(load_recipe(recipe)))
