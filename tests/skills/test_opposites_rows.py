"""The second chapter of the contradicting pair: arms as declared, and an arm that keeps all three aims is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "studies"
sys.path[:0] = [str(STUDIES), str(STUDIES / "interference")]
import nano_opposites  # noqa: E402
import nano_opposites_rows as chapter  # noqa: E402

CHEAP, COSTLY = "exact KL: rows=8", "exact KL: rows=all"


def line(name: str, seed: int, up: int, down: int, cpu_s: float) -> dict:
    rights = {"up": "1" * up + "0" * (100 - up), "down": "1" * down + "0" * (100 - down)}
    return {"name": name, "seed": seed, "rights": rights, "cpu_s": cpu_s}


def planted() -> list[dict]:
    """Plain training forgets 70 of 90; one arm forgets nothing for 10 % more, one for 200 % more, the others half."""
    rows = []
    for *arm, seed in chapter.jobs().values():
        name = nano_opposites.label(*arm)
        if name == "plain":
            begun = [line("start", seed, up, down, 0.0)["rights"] for up, down in ((50, 50), (90, 30))]
            rows.append({"name": "start", "seed": seed, "rights": begun})
        up = {"plain": 20, CHEAP: 90, COSTLY: 90}.get(name, 50) - seed % 3
        cost = {CHEAP: 1.10, COSTLY: 3.0}.get(name, 1.05 if name != "plain" else 1.0) + 0.01 * (seed % 2)
        rows.append(line(name, seed, up, 92 - seed % 2, 10 * cost))
    return rows


def test_the_second_chapter_is_as_declared_and_every_arm_is_a_valid_recipe() -> None:
    assert tuple(range(20, 30)) == chapter.SEEDS and len(chapter.jobs()) == 8 * 10
    assert not {*chapter.SEEDS} & {*nano_opposites.FRESH, *nano_opposites.TUNING, 100}
    rows = {}
    for mechanism, names in chapter.MECHANISMS.items():
        for name, words in names.items():
            guard = nano_opposites.recipe(20, *words, 'guard.protected=["up"]').build("guard") if words else None
            rows[nano_opposites.label(mechanism, name)] = getattr(guard, "rows", None), getattr(guard, "coef", None)
    kl = {f"exact KL: rows={count or 'all'}": (count, 3.0) for count in (4, 8, 16, 0)}
    penalty = {f"penalty: rows={count or 'all'}": (count, 3.0) for count in (8, 0)}
    assert rows == {"plain": (None, None), "l2: coef=0.3": (None, 0.3), **kl, **penalty}


def test_the_setting_that_keeps_all_three_aims_is_found_and_what_costs_too_much_is_not() -> None:
    text = chapter.report(chapter.complete(planted()))
    aims = text.split("Beyond the aims")[1]
    shown = {row.split(" | ")[0].strip("| "): row for row in aims.splitlines() if row.startswith("| ")}
    assert shown[CHEAP].endswith("| yes | 0.000 |")
    assert shown[COSTLY].endswith("| no | 1.000 |") and "+184.0 [" in shown[COSTLY]
    assert shown["l2: coef=0.3"].endswith("| no | 1.000 |"), "it forgets half of what plain training does"
    assert "| exact KL: rows=8 |" in text.split("Beyond the aims")[0]


def test_nothing_is_reported_of_fewer_runs() -> None:
    with pytest.raises(SystemExit, match="1 of 80 runs are missing"):
        chapter.complete(planted()[:-1])


def test_one_sided_p_by_hand() -> None:
    """Student's t with one degree of freedom is Cauchy: P(T ≤ −1) = 1/4."""
    assert chapter.below_zero([-2.0, 0.0]) == pytest.approx(0.25)
    assert chapter.below_zero([2.0, 0.0]) == pytest.approx(0.75)
    assert chapter.below_zero([-1.0, -1.0]) == 0.0 and chapter.below_zero([0.0, 0.0]) == 1.0


@pytest.mark.slow
def test_a_short_run_with_few_rows_leaves_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = nano_opposites.recipe
    few = ("sft.steps=2", "data.dev_size=20", "data.train_size=200", "grpo.batch_size=4")
    monkeypatch.setattr(nano_opposites, "recipe", lambda seed, *words: whole(seed, *words, *few))
    monkeypatch.setattr(nano_opposites, "STAGE", 2)
    monkeypatch.setattr(nano_opposites, "WORK", tmp_path)
    nano_opposites.start(20)
    for mechanism, name in (("exact KL", "rows=4"),):
        row = chapter.run((mechanism, name, 20))
        assert row["name"] == nano_opposites.label(mechanism, name) and len(row["rights"]["down"]) == 10
