"""The studies' scripts: what they compute from stored outcomes, and the short SQL problems."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.schema import instantiate
from rlvrlab.registry import name_own
from rlvrlab.train.lab import build_lab

STUDIES = Path(__file__).parents[2] / "studies"
sys.path[:0] = [str(STUDIES / "interference"), str(STUDIES / "paper_a_credit_assignment")]
import code_runs  # noqa: E402
import nano_report  # noqa: E402
import nano_runs  # noqa: E402
import nano_worlds  # noqa: E402
import second_guards  # noqa: E402
import tables  # noqa: E402


def outcome(*right: int) -> dict[str, str]:
    """So many of ten problems of gen, numbers and sql."""
    return {skill: "1" * n + "0" * (10 - n) for skill, n in zip(("gen", "numbers", "sql"), right, strict=True)}


def row(arm: str, *stages: dict[str, str]) -> dict:
    return {"world": "tasks", "arm": arm, "seed": 0, "rights": list(stages), "seconds": 1.0}


def test_intransigence_is_what_training_alone_reaches_above_the_skills_own_stage() -> None:
    start = outcome(2, 2, 2)
    plain = row("sequential", start, outcome(8, 2, 2), outcome(6, 5, 2), outcome(5, 4, 4))
    mixed = row("mixed", start, start, start, outcome(7, 5, 4))
    by = {("sequential", 0): plain, ("alone:numbers", 0): row("alone:numbers", start, outcome(2, 9, 2))}
    by[("alone:sql", 0)] = row("alone:sql", start, outcome(1, 2, 6))
    found = nano_report.retained(plain, by)
    assert found["intransigence"] == pytest.approx((0.0 + 0.4 + 0.2) / 3)
    assert found["forgetting"] == pytest.approx((0.3 + 0.1) / 2) and found["learning"] == pytest.approx(1.7 / 3)
    together = nano_report.retained(mixed, by)
    assert together["intransigence"] == pytest.approx((0.1 + 0.4 + 0.2) / 3) and np.isnan(together["forgetting"])


def test_an_arm_is_compared_with_grpo_at_both_budgets_on_the_seeds_it_has() -> None:
    def arm(name: str, seed: int, tokens: str, **more: str) -> dict:
        spent = {"step": 5, "tokens": 1, "calls": 1, "accuracy": 0.0}
        found = {at: {**spent, "right": right} for at, right in {"tokens": tokens, **more}.items()}
        return {"arm": name, "seed": seed, "examined": found}

    rows = [arm("grpo", s, "0011", calls="0011") for s in (0, 1)] + [arm("rloo", 0, "0111", calls="0001")]
    text = code_runs.report(rows)
    assert (
        "| rloo | tokens | 1 | 5 | 1 | 1 | 75.0 | +25.0" in text
        and "| rloo | calls | 1 | 5 | 1 | 1 | 25.0 | -25.0" in text
    )


def test_the_stored_results_give_the_tables() -> None:
    kept = json.loads((STUDIES / "paper_a_credit_assignment" / "code_results.json").read_text())
    assert {one["arm"] for one in kept} == set(code_runs.ARMS)
    lines = (STUDIES / "interference" / "results" / "nano.jsonl").read_text().splitlines()
    assert {json.loads(line)["world"] for line in lines} == set(nano_worlds.WORLDS)


@pytest.mark.slow
def test_a_start_of_nano_is_a_model_that_runs_begin_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="nano needs torch")
    monkeypatch.setattr(nano_runs, "WORK", tmp_path)
    monkeypatch.setattr(nano_runs, "START", ("sft.steps=1", "sft.batch_size=4"))
    monkeypatch.setattr(nano_runs, "HELD_OUT", 2)
    nano_runs.start("minicode", 0)
    assert build_lab(nano_runs.recipe("minicode", 0, [f"engine.model={tmp_path / 'minicode_0'}"])).engine.version == 0


@pytest.mark.slow
def test_short_sql_is_judged_as_sql() -> None:
    named = f"{STUDIES / 'interference' / 'short_sql.py'}:ShortSql"
    name_own(named)
    env = instantiate("env", {"type": named, "levels": [1]}, Path())
    problems = env.problems("train", 3, 0)
    assert all(one.prompt.startswith("#sql ") and "CREATE" not in one.prompt for one in problems)
    assert [v.correct for v in env.verify_many([(one, env.gold(one)) for one in problems])] == [True] * 3
    assert [v.correct for v in env.verify_many([(one, "SELECT 1\n") for one in problems])] == [False] * 3


def toy_line(name: str, learning: float, kept: float) -> dict:
    """Three skills learnt to one height; forgetting is what the first two lose on average."""
    lost = 1 - kept
    stages = [[learning] * 3, [learning] * 3, [learning] * 3, [learning - lost, learning - lost, learning]]
    return {"name": name, "seed": 100, "table": stages}


def test_a_guard_gets_the_four_strengths_that_span_the_largest_area() -> None:
    points = {"plain": (0.7, 0.65), "l2 0.1": (0.69, 0.7), "l2 0.3": (0.68, 0.8), "l2 1.0": (0.6, 0.9)}
    points |= {"l2 3.0": (0.5, 0.95), "l2 0.2": (0.5, 0.7)}  # the last is dominated by all others
    names = ["plain", *(name for name in points if name != "plain")]
    chosen = tables.best_curves([toy_line(name, *at) for name, at in points.items()], names, (0.4, 0.6))
    assert chosen == ["l2 0.1", "l2 0.3", "l2 1.0", "l2 3.0"]


def second_lines(seeds: tuple[int, ...]) -> list[dict]:
    """Every candidate on every seed: the k-th of a mechanism learns less and keeps more, exact KL keeps most of all."""
    rows = []
    for seed in seeds:
        rows.append({**toy_line("plain", 0.7, 0.65), "seed": seed, "cpu_s": 1.0})
        for mechanism, own in second_guards.MECHANISMS.items():
            for k, name in enumerate(own):
                better = 0.05 * (mechanism == "exact KL") + 0.001 * (seed % 5)
                row = toy_line(f"{mechanism}: {name}", 0.7 - 0.02 * k, 0.7 + 0.02 * k + better)
                rows.append({**row, "seed": seed, "cpu_s": 1.0})
    return rows


def test_the_second_comparison_is_as_declared() -> None:
    """Thirteen mechanisms with eight settings each, no seed of an earlier round, every arm a valid recipe."""
    assert len(second_guards.MECHANISMS) == 13 and {len(own) for own in second_guards.MECHANISMS.values()} == {8}
    used = {json.loads(line)["seed"] for line in (second_guards.RESULTS / "guards.jsonl").read_text().splitlines()}
    assert len(second_guards.FRESH) == 48 and not used & {*second_guards.FRESH, *second_guards.TUNING}
    assert not {*second_guards.FRESH} & {*second_guards.TUNING}
    chosen = {mechanism: list(own)[-1:] for mechanism, own in second_guards.MECHANISMS.items()}
    for _, _, seed, words in second_guards.jobs(chosen, second_guards.TUNING[:1]):
        load_recipe(STUDIES / "interference" / "toy.toml", [f"seed={seed}", *words]).build("guard")


def test_the_second_comparison_chooses_on_tuning_seeds_and_finds_what_is_ahead() -> None:
    chosen = second_guards.choose(second_lines(second_guards.TUNING))
    assert {len(names) for names in chosen.values()} == {4}
    kept = {f"{mechanism}: {name}" for mechanism, names in chosen.items() for name in names} | {"plain"}
    text = second_guards.report([row for row in second_lines(tuple(range(200, 206))) if row["name"] in kept])
    [ahead] = [line for line in text.splitlines() if line.startswith("| exact KL − l2 ")]
    [level] = [line for line in text.splitlines() if line.startswith("| safe − l2 ")]
    assert ahead.endswith("| 0.000 |") and "+0.000 [" in level


def test_a_report_waits_for_every_arm_of_every_seed() -> None:
    rows = second_lines(second_guards.TUNING)
    assert second_guards.whole(rows, second_guards.TUNING) == rows
    for cut in ([], rows[:-1], [row for row in rows if row["seed"] != 108]):
        with pytest.raises(SystemExit, match="nothing is reported"):
            second_guards.whole(cut, second_guards.TUNING)
