"""The study of two skills that contradict each other: problems, what was declared, and tables of planted results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "studies"
sys.path[:0] = [str(STUDIES), str(STUDIES / "interference")]
import nano_opposites  # noqa: E402
import opposites  # noqa: E402


def line(name: str, seed: int, up: int, down: int) -> dict:
    """So many of 100 problems right at the end."""
    rights = {"up": "1" * up + "0" * (100 - up), "down": "1" * down + "0" * (100 - down)}
    return {"name": name, "seed": seed, "rights": rights, "cpu_s": 2.0}


def lines(seeds: tuple[int, ...], best: str) -> list[dict]:
    """Plain training keeps 20 of 90; of each mechanism the third setting keeps most, and one mechanism keeps all."""
    rows = []
    for seed in seeds:
        begun = [line("start", seed, 50, 50)["rights"], line("start", seed, 90, 30)["rights"]]
        rows += [{"name": "start", "seed": seed, "rights": begun}, line("plain", seed, 20 + seed % 3, 92)]
        for mechanism, names in nano_opposites.MECHANISMS.items():
            for k, name in enumerate(names):
                kept = (90 if mechanism == best else 40) if k == 2 else 25
                rows.append(line(f"{mechanism}: {name}", seed, kept - seed % 2, 91))
    return rows


def test_every_set_of_digits_is_asked_of_both_skills_and_belongs_to_one_role() -> None:
    env = opposites.Opposites()
    train, dev = (env.problems(role, 60, seed=1) for role in ("train", "dev"))
    assert [one.prompt.split(" ", 1)[1] for one in train[::2]] == [one.prompt.split(" ", 1)[1] for one in train[1::2]]
    assert not {one.prompt.split(" ", 1)[1] for one in train} & {one.prompt.split(" ", 1)[1] for one in dev}
    for problem in train[:6]:
        own, other = env.gold(problem), env.cheats(problem)["the other order"]
        assert env.verify(problem, own).correct is True and env.verify(problem, other).correct is False


def test_the_comparison_is_as_declared_and_every_arm_is_a_valid_recipe() -> None:
    assert len(nano_opposites.MECHANISMS) == 10 and {len(one) for one in nano_opposites.MECHANISMS.values()} == {4}
    assert not {*nano_opposites.TUNING, 100} & {*nano_opposites.FRESH} and len(nano_opposites.FRESH) == 10
    for names in nano_opposites.MECHANISMS.values():
        for words in names.values():
            nano_opposites.recipe(0, *words, 'guard.protected=["up"]').build("guard")


def test_tuning_chooses_and_the_report_finds_the_guard_that_keeps_everything() -> None:
    chosen = nano_opposites.choose(lines(nano_opposites.TUNING, "safe"))
    assert chosen == {mechanism: [list(names)[2]] for mechanism, names in nano_opposites.MECHANISMS.items()}
    arms = {"start", "plain", *(f"{mechanism}: {names[0]}" for mechanism, names in chosen.items())}
    text = nano_opposites.report([row for row in lines(nano_opposites.FRESH, "safe") if row["name"] in arms])
    shown = {row.split(" | ")[0].strip("| "): row for row in text.splitlines() if row.startswith("|")}
    assert "| 99 % | 0.5 % |" in shown[f"safe: {chosen['safe'][0]}"]
    assert shown["safe − l2"].endswith("| 0.000 |") and "+0.000 [" in shown["proximal − l2"]


SHORT = ("penalty", "safe", "average")
"""Mechanisms of three kinds: a term of the loss, a changed step, changed weights."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanisms", [SHORT, pytest.param((*nano_opposites.MECHANISMS,), marks=pytest.mark.long)], ids=["some", "all"]
)
def test_a_short_run_of_a_mechanism_leaves_a_line(
    mechanisms: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = nano_opposites.recipe
    few = ("sft.steps=2", "data.dev_size=20", "data.train_size=200", "grpo.batch_size=4")
    monkeypatch.setattr(nano_opposites, "recipe", lambda seed, *words: whole(seed, *words, *few))
    monkeypatch.setattr(nano_opposites, "STAGE", 2)
    monkeypatch.setattr(nano_opposites, "WORK", tmp_path)
    begun = nano_opposites.start(0)
    assert [len(stage["up"]) for stage in begun["rights"]] == [10, 10]
    for mechanism in mechanisms:
        row = nano_opposites.run((mechanism, next(iter(nano_opposites.MECHANISMS[mechanism])), 0))
        assert row["name"].startswith(mechanism) and len(row["rights"]["down"]) == 10
