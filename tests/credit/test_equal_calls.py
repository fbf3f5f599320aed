"""The declared comparison at equal calls: sound recipes, equal numbers of candidates, seeds as units."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rlvrlab.recipe.schema import instantiate
from rlvrlab.rollout.segment import segment

sys.path.insert(0, str(Path(__file__).parents[2] / "studies" / "paper_a_credit_assignment"))
import equal_calls
import equal_calls_report
import spending
from equal_calls_design import CANDIDATES, DESIGNS, SINGLE

LARGE, LANGUAGE, QUERIES = (DESIGNS[f"equal_calls{name}"] for name in ("", "_smollm2", "_sql"))


def test_every_candidate_is_a_sound_recipe_and_every_arm_has_as_many() -> None:
    assert {len(CANDIDATES[arm]) for arm in SINGLE} == {3}
    seeds = [(design.start, seed) for design in DESIGNS.values() for seed in (*design.tuning, *design.final)]
    assert len(set(seeds)) == len(seeds) and min(len(one.final) for one in DESIGNS.values()) >= 6
    for design in DESIGNS.values():
        same = set()
        for arm in design.arms:
            for number in range(design.candidates):
                recipe = design.recipe(arm, number, 3).recipe
                tables = recipe.phase_tables
                same.add((recipe.rollout.n, tables["grpo"]["batch_size"], tables["sft"]["steps"], str(recipe.data)))
                assert (recipe.credit is None) == (arm == "grpo") and recipe.data.seed == recipe.seed == 3
        assert len(same) == 1
    assert {arm for design in DESIGNS.values() for arm in design.arms} == {*CANDIDATES}


def ended(arm: str, candidate: int, seed: int, accuracy: float) -> dict:
    end = {"step": 100, "tokens": 1000, "accuracy": accuracy, "whole": True}
    return {"arm": arm, "candidate": candidate, "seed": seed, "end": end}


def test_settings_are_chosen_on_tuning_seeds_and_judged_by_differences_of_seeds() -> None:
    rows = [
        ended(arm, number, seed, 0.5 + 0.1 * (arm == "tree" and number == 1))
        for arm in LARGE.arms
        for number in range(3)
        for seed in LARGE.tuning
    ]
    settings = equal_calls.chosen(rows, LARGE)
    assert settings == {"grpo": 0, "tree": 1, "trace": 0, "doubly_robust": 0}
    with pytest.raises(SystemExit, match="tuning seeds"):
        equal_calls.chosen(rows[1:], LARGE)
    gaps = np.array([0.01, 0.03, 0.02, 0.05, 0.02, 0.04, 0.03, 0.02])
    final = [ended("grpo", 0, seed, 0.4) for seed in range(8)]
    final += [ended("tree", 1, seed, 0.4 + gap) for seed, gap in enumerate(gaps)]
    final += [ended("tree", 0, seed, 0.9) for seed in range(8)]
    with pytest.raises(SystemExit, match="no final seed"):
        equal_calls.report(rows + final, settings, LARGE)
    final += [ended(arm, 0, seed, 0.4) for arm in ("trace", "doubly_robust") for seed in range(8)]
    line = next(
        line for line in equal_calls.report(rows + final, settings, LARGE).splitlines() if line.startswith("| tree")
    )
    assert "+2.8 [+1.7, +3.8]" in line and "0.008 (0.023)" in line


def test_sign_flips_and_the_interval_by_hand() -> None:
    assert equal_calls_report.sign_flips(np.array([1.0, 1.0, 1.0])) == 0.25
    assert equal_calls_report.sign_flips(np.array([1.0, -1.0])) == 1.0
    mean, low, high = equal_calls_report.difference(np.array([0.0, 2.0]))
    assert mean == 1.0 and high - mean == pytest.approx(12.706, abs=1e-3) == mean - low


class Env:
    def verify_many(self, items: list) -> list:
        return list(items)


def test_what_is_spent_is_counted_once_and_only_inside_the_block() -> None:
    """A process makes several runs, one after the other."""
    whole, answers = Env.verify_many, [[SimpleNamespace(tokens=(1, 2, 3))] * 2]
    for _ in range(2):
        lab = SimpleNamespace(env=Env(), engine=SimpleNamespace(sample=lambda requests: answers))
        with spending.spending(lab) as spent:
            assert lab.engine.sample([]) == answers and lab.env.verify_many([1, 2]) == [1, 2]
            spent.counting = False
            lab.env.verify_many([3])
        assert (spent.tokens, spent.calls) == (6, 2) and Env.verify_many is whole


def test_a_run_that_fails_twice_counts_with_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def attempt(job: equal_calls.Job) -> dict:
        tried.append(job)
        raise RuntimeError("no memory")

    monkeypatch.setattr(equal_calls, "attempt", attempt)
    monkeypatch.setattr("equal_calls_design.WORK", tmp_path)
    LARGE.starts.write_text('{"seed": 3, "accuracy": 0.25}\n')
    row = equal_calls.run((LARGE, "tree", 1, 3, 1000))
    assert len(tried) == 2 and row["end"]["accuracy"] == 0.25 and row["failed"].count("no memory") == 2
    assert equal_calls.whole([row]) == [row]


def test_the_language_model_has_the_settings_chosen_on_nano_one_rate_and_their_sum() -> None:
    settings = LANGUAGE.settings()
    assert settings == {**LARGE.settings(), "sum": 0} and tuple(settings) == LANGUAGE.arms
    recipes = {arm: LANGUAGE.recipe(arm, number, 5).recipe for arm, number in settings.items()}
    for recipe in recipes.values():
        grpo = recipe.phase_tables["grpo"]
        assert (recipe.engine["model"], recipe.seed, recipe.rollout.n) == ("smollm2-135m", 5, 8)
        assert (grpo["learning_rate"], grpo["batch_size"]) == (4e-5, 32)
    single = [instantiate("credit", recipes[arm].credit) for arm in SINGLE[1:]]
    assert list(LANGUAGE.recipe("sum", 0, 5).build("credit").parts) == single
    assert LANGUAGE.setting("grpo", 0) == "" and LARGE.setting("grpo", 0) == "grpo.learning_rate=5e-4"


def spent_both(arm: str, seed: int, at_calls: float, at_tokens: float) -> dict:
    facts = {"step": 10, "tokens": 9000.0, "calls": 700, "whole": True}
    ends = {"end": facts | {"accuracy": at_calls}, "tokens_end": facts | {"accuracy": at_tokens}}
    return {"arm": arm, "candidate": LANGUAGE.settings()[arm], "seed": seed, **ends}


def test_calls_and_tokens_have_a_table_each_and_few_seeds_are_not_tested() -> None:
    rows = [spent_both(arm, seed, 0.4 + 0.1 * (arm == "sum"), 0.4) for seed in range(8) for arm in LANGUAGE.arms]
    rows[3]["end"]["accuracy"] = 0.39  # doubly_robust of seed 0
    calls, tokens = equal_calls.report(rows, LANGUAGE.settings(), LANGUAGE).split("\n\n**At")
    by_calls, by_tokens = ([line for line in text.splitlines() if line.startswith("| sum")] for text in (calls, tokens))
    assert (
        calls.startswith(f"**At {LANGUAGE.calls:,} verdicts") and "+10.0 [+10.0, +10.0] | 0.008 (0.031)" in by_calls[0]
    )
    assert f"{LANGUAGE.tokens:,} tokens" in tokens and "+0.0 [+0.0, +0.0] | 1.000 (1.000)" in by_tokens[0]
    few = equal_calls.report(rows[: 5 * len(LANGUAGE.arms) + 2], LANGUAGE.settings(), LANGUAGE)
    assert few.startswith("5 of the 6 seeds") and "(0." not in few and "| sum |  | 5 | 10 | 9,000 | 700 |" in few


def test_queries_are_credited_by_clauses_at_the_recipes_own_settings() -> None:
    assert QUERIES.settings() == dict.fromkeys(QUERIES.arms, 0) and QUERIES.budgets.keys() == {"end", "tokens_end"}
    assert (len(QUERIES.final), QUERIES.least, QUERIES.tuning) == (8, 6, ())
    credits = {arm: QUERIES.recipe(arm, 0, 40).build("credit") for arm in QUERIES.arms[1:]}
    assert replace(credits["earning"], examined="all") == credits["counterfactual"]
    env = QUERIES.recipe("grpo", 0, 40).build("env")
    [problem] = env.problems("dev", 1, 40)
    for credit in credits.values():
        text, found = env.gold(problem), segment(env.gold(problem), credit.segmentation)
        clauses = [text[begin:end] for begin, end in found.spans]
        assert found.kind == "sql" and len(clauses) == 2, "what is selected, and the condition"
    assert len(env.problems("dev", 150, QUERIES.final[0])) == 150


def test_a_planted_gain_of_clauses_is_found_at_tokens_alone() -> None:
    facts = {"step": 10, "tokens": 9000.0, "calls": 700, "whole": True}
    rows = [
        {"arm": arm, "candidate": 0, "seed": seed, "end": facts | {"accuracy": 0.4},
         "tokens_end": facts | {"accuracy": 0.4 + (arm == "earning") * (0.1 + 0.01 * (seed % 2))}}
        for seed in QUERIES.final
        for arm in QUERIES.arms
    ]  # fmt: skip
    calls, tokens = equal_calls.report(rows, QUERIES.settings(), QUERIES).split("\n\n**At")
    assert "| earning |" in calls and "+0.0 [+0.0, +0.0] | 1.000 (1.000)" in calls
    assert "+10.5 [+10.1, +10.9] | 0.008 (0.023)" in tokens


class Lab(SimpleNamespace):
    """Steps that write 100 tokens and ask for 10 verdicts each."""

    def steps(self, spent: spending.Spent) -> Iterator[SimpleNamespace]:
        for _ in range(self.most):
            spent.calls += 10
            answer = SimpleNamespace(completion=SimpleNamespace(tokens=range(100)))
            yield SimpleNamespace(rollouts=[answer], metrics={})


@pytest.mark.parametrize(
    ("calls", "tokens", "cap", "most", "ends", "are_whole"),
    [
        (30, 500, 80, 80, (3, 5), True),
        (50, 300, 80, 80, (5, 3), True),
        (30, 300, 80, 80, (3, 3), True),
        (30, 5000, 7, 7, (3, 7), True),
        (30, 5000, 80, 7, (3, 7), False),
    ],
)
def test_a_run_goes_on_until_both_are_spent_and_is_examined_at_each(
    calls: int,
    tokens: int,
    cap: int,
    most: int,
    ends: tuple[int, int],
    are_whole: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    design, spent, looked = replace(LANGUAGE, calls=calls, tokens=tokens, cap=cap), spending.Spent(), []
    lab = Lab(most=most, engine=SimpleNamespace(freeze_reference=lambda: None))
    lab.resolved = SimpleNamespace(phase=lambda name: name)
    monkeypatch.setattr(equal_calls, "build_lab", lambda resolved: lab)
    monkeypatch.setattr(equal_calls, "start_accuracy", lambda design, seed: 0.3)
    monkeypatch.setattr(equal_calls, "spending", lambda lab: nullcontext(spent))
    monkeypatch.setattr(equal_calls, "bare_steps", lambda lab, phase, work: lab.steps(spent))
    monkeypatch.setattr(equal_calls, "examined", lambda lab, spent, step: looked.append(step) or {"step": step})
    row = equal_calls.attempt((design, "grpo", 0, 1, most))
    assert (row["end"]["step"], row["tokens_end"]["step"]) == ends and looked == sorted(set(ends))
    assert (equal_calls.whole([row]) == [row]) is are_whole and row["start"] == 0.3


def test_sft_ends_where_enough_is_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = iter([0.0, 0.1, 0.3, 0.9])
    engine = SimpleNamespace(publish=lambda: None, save=lambda folder: None)
    recipe = SimpleNamespace(rollout=SimpleNamespace(max_tokens=8))
    resolved = SimpleNamespace(phase=lambda name: name)
    lab = SimpleNamespace(engine=engine, env=None, dev=(), recipe=recipe, resolved=resolved)
    monkeypatch.setattr(spending, "build_lab", lambda resolved: lab)
    monkeypatch.setattr(spending, "bare_steps", lambda lab, phase, work: iter(range(18)))
    monkeypatch.setattr(spending, "evaluate_skills", lambda *_: SimpleNamespace(value=next(solved)))
    assert spending.pretrained(resolved, tmp_path, 0.25) == (3 * spending.LOOK_EVERY, 0.3)
    assert spending.pretrained(resolved, tmp_path) == (18, 0.9), "without a limit nobody looks before the end"


def test_runs_of_a_gpu_are_processes_seed_by_seed_that_wait_for_their_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[equal_calls.job_processes.Job] = []
    monkeypatch.setattr("equal_calls_design.WORK", tmp_path)
    monkeypatch.setattr(equal_calls, "WORK", tmp_path)
    monkeypatch.setattr(equal_calls.signal, "signal", lambda *_: None)
    monkeypatch.setattr(equal_calls.job_processes.Queue, "run", lambda queue, some: seen.extend(some) or [])
    assert equal_calls.run_apart(LANGUAGE, equal_calls.jobs(LANGUAGE, "final", 80), 6, 100.0) == 0
    assert [one.name for one in seen][:7] == ["start_0", *(f"run_{arm}_0" for arm in LANGUAGE.arms), "start_1"]
    assert len(seen) == 8 * 6 and seen[0].ready() and not seen[0].done() and not seen[1].ready()
    equal_calls.note(LANGUAGE.starts, {"seed": 0, "accuracy": 0.3})
    assert seen[0].done() and seen[1].ready() and not seen[1].done() and not seen[7].ready()
    equal_calls.note(LANGUAGE.runs, {"arm": "grpo", "candidate": 0, "seed": 0})
    assert seen[1].done() and not seen[2].done()


def test_a_report_without_runs_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equal_calls_design.WORK", tmp_path)
    monkeypatch.setattr("equal_calls_design.HERE", tmp_path)
    with pytest.raises(SystemExit, match="run `final` first"):
        equal_calls.told(LANGUAGE)
