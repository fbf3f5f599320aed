"""Every number of an evaluation and a comparison again, from the stored lines alone, with code of its own and scipy.

The formulas are those that docs/statistics.md states in words. Nothing of rlvrlab.evals is used to compute what is
expected; the stored answers are read as plain JSON.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from click.testing import CliRunner
from own_statistics import Expected, jeffreys_or_wilson
from scripted import FAILED, Scripted, Sums, answer

from rlvrlab.cli.compare import command as compare_command
from rlvrlab.evals.answering import Ask
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import Budget, eval_at_1, eval_at_budget, eval_at_k

ENV = Sums()
Solves = Callable[[int, int], str]
"""Problem and sample -> right, wrong, half (one off: half a point), format, broken (unjudged) or failed (no answer)."""
WORDS = {"wrong": "99999", "format": "no number", "broken": "broken"}


def examined(folder: Path, solves: Solves, size: int = 40, protocol: Any = None) -> Path:
    def reply(ask: Ask) -> Any:
        how = solves(int(ask.problem.id[1:]), ask.sample)
        if how == "failed":
            return FAILED
        value = ask.problem.reference + {"half": 1}.get(how, 0)
        return answer(WORDS.get(how, str(value)), tokens=3 + int(ask.problem.id[1:]) % 5)

    evaluate_into(folder, Scripted(reply, who=folder.name), ENV, ENV.problems("test", size), protocol or eval_at_1())
    return folder


def lines(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Problem -> its stored first-turn answers in order."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in (folder / "samples.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row.get("turn", 0) == 0:
            found[row["problem"]].append(row)
    return {problem: sorted(rows, key=lambda row: row["sample"]) for problem, rows in found.items()}


def right_share(rows: list[dict[str, Any]]) -> float | None:
    judged = [row for row in rows if row["correct"] is not None]
    return sum(row["correct"] for row in judged) / len(judged) if judged else None


def mean_score(rows: list[dict[str, Any]]) -> float | None:
    judged = [row for row in rows if row["correct"] is not None]
    return sum(row["score"] for row in judged) / len(judged) if judged else None


def pass_at(k: int) -> Callable[[list[dict[str, Any]]], float | None]:
    """By drawing every set of k answers."""

    def share(rows: list[dict[str, Any]]) -> float | None:
        judged = [bool(row["correct"]) for row in rows if row["correct"] is not None]
        drawn = list(itertools.combinations(judged, k))
        return sum(map(any, drawn)) / len(drawn) if drawn else None

    return share


def tokens(rows: list[dict[str, Any]]) -> float | None:
    given = [row["gen_tokens"] for row in rows if not row.get("sampler_error")]
    return sum(given) / len(given) if given else None


MEASURES = {"accepted@1": right_share, "pass@1": right_share, "mean_accuracy": mean_score, "gen_tokens": tokens,
            "pass@2": pass_at(2), "pass@4": pass_at(4)}  # fmt: skip


def matrices(before: list[Path], after: list[Path], measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Runs × problems on both sides, on the problems that have a value in every folder."""
    sides = [[{p: MEASURES[measure](rows) for p, rows in lines(f).items()} for f in side] for side in (before, after)]
    folders = [folder for side in sides for folder in side]
    common = [p for p in folders[0] if all(folder.get(p) is not None for folder in folders)]
    first, second = (np.array([[folder[p] for p in common] for folder in side], dtype=float) for side in sides)
    return first, second


def compared(before: list[Path], after: list[Path], *more: str) -> dict[str, Any]:
    done = CliRunner().invoke(compare_command, [",".join(map(str, before)), ",".join(map(str, after)), "--json", *more])
    assert done.exit_code == 0, done.output + str(done.exception)
    return json.loads(done.output)


def check(before: list[Path], after: list[Path], *more: str, paired: bool = False) -> dict[str, Any]:
    """Every row of a comparison, against the stored lines."""
    told = compared(before, after, *more)
    for row in told["measures"]:
        if row["what"] not in MEASURES:
            continue
        first, second = matrices(before, after, row["what"])
        want, got = Expected(first, second, row["what"] != "gen_tokens", paired), row["difference"]
        assert (row["before"], row["after"]) == pytest.approx((first.mean(), second.mean())), row["what"]
        assert (got["mean"], got["problems"]) == (pytest.approx(want.mean, abs=1e-12), first.shape[1])
        half, bound = want.half(1 - 0.05 / got["tests"]), 1.0 if row["what"] != "gen_tokens" else math.inf
        ends = max(-bound, want.centre - half), min(bound, want.centre + half)
        assert (got["low"], got["high"]) == pytest.approx(ends, abs=1e-9), row["what"]
        expected_p = want.p(got["tests"])
        assert got["p"] == (None if expected_p is None else pytest.approx(expected_p, rel=1e-4, abs=1e-9)), row["what"]
        assert row["verdict"] == ("higher" if ends[0] > 0 else "lower" if ends[1] < 0 else "not shown")
        if got["p"] is not None:
            assert (got["p"] < 0.05) == (row["verdict"] != "not shown"), "interval and p disagree"
    return told


def drawn(seed: int, chance: float, kinds: tuple[str, ...] = ("right", "wrong")) -> Solves:
    """Answers at random, keyed by problem and sample, so that a run gives the same twice."""

    def solves(problem: int, sample: int) -> str:
        rng = np.random.default_rng([seed, problem, sample])
        return kinds[0] if rng.random() < chance else str(rng.choice(kinds[1:]))

    return solves


CASES: dict[str, tuple[list[Solves], list[Solves]]] = {
    "one run each": ([drawn(1, 0.4)], [drawn(2, 0.7)]),
    "all equal": ([lambda p, s: "wrong"], [lambda p, s: "right" if s < 0 else "wrong"]),
    "none against all": ([lambda p, s: "wrong"], [lambda p, s: "right"]),
    "ties: as many won as lost": (
        [lambda p, s: "right" if p % 2 else "wrong"], [lambda p, s: "wrong" if p % 2 else "right"]),
    "partial credit": ([drawn(3, 0.3, ("right", "half", "wrong"))], [drawn(4, 0.5, ("right", "half", "format"))]),
    "unjudged and failed": ([drawn(5, 0.5, ("right", "wrong", "broken"))], [drawn(6, 0.6, ("right", "failed"))]),
    "two seeds": ([drawn(7, 0.4), drawn(8, 0.5)], [drawn(9, 0.6), drawn(10, 0.7)]),
    "three seeds": ([drawn(s, 0.4) for s in (11, 12, 13)], [drawn(s, 0.7) for s in (14, 15, 16)]),
    "one against four": ([drawn(17, 0.4)], [drawn(s, 0.5) for s in (18, 19, 20, 21)]),
    "seeds without spread": (
        [lambda p, s, i=i: "right" if (p + i) % 2 else "wrong" for i in range(3)],
        [lambda p, s, i=i: "right" if (p + i) % 4 else "wrong" for i in range(3)],
    ),
    "three seeds with partial credit": (
        [drawn(s, 0.2, ("right", "half", "wrong", "broken")) for s in (22, 23, 24)],
        [drawn(s, 0.4, ("right", "half", "wrong")) for s in (25, 26, 27)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_comparison_follows_from_the_stored_lines(name: str, tmp_path: Path) -> None:
    sides = [
        [examined(tmp_path / f"{side}{i}", solves) for i, solves in enumerate(runs)]
        for side, runs in zip("ab", CASES[name], strict=True)
    ]
    told = check(*sides)
    assert (told["over"] == "problems") == (max(map(len, sides)) == 1)
    if name == "all equal":
        assert told["measures"][0]["difference"]["low"] < 0 < told["measures"][0]["difference"]["high"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_handful_of_problems(size: int, tmp_path: Path) -> None:
    told = check(
        [examined(tmp_path / "a", lambda p, s: "wrong", size)], [examined(tmp_path / "b", lambda p, s: "right", size)]
    )
    assert told["measures"][0]["verdict"] == "not shown", "a handful of problems shows nothing"


def test_unequal_sets_of_problems_are_compared_on_those_they_share(tmp_path: Path) -> None:
    sides = [examined(tmp_path / "a", drawn(1, 0.4), 25)], [examined(tmp_path / "b", drawn(2, 0.7), 40)]
    told = check(*sides)
    assert (told["problems"], told["left_out"]) == (25, 15)


def test_several_answers_a_problem(tmp_path: Path) -> None:
    kinds = ("right", *["wrong"] * 7, "broken")
    protocol = eval_at_k(n=5, ks=(1, 2, 4))
    before = [examined(tmp_path / f"a{s}", drawn(s, 0.3, kinds), 20, protocol) for s in range(3)]
    after = [examined(tmp_path / f"b{s}", drawn(s + 9, 0.5, kinds), 20, protocol) for s in range(3)]
    told = check(before, after)
    assert {"pass@1", "pass@2", "pass@4"} <= {row["what"] for row in told["measures"]}
    check(before, after, "--paired", paired=True)


@pytest.mark.parametrize("right", [0, 1, 3, 4, 5, 17, 36, 38, 39, 40])
def test_the_numbers_of_an_evaluation_follow_from_its_lines(right: int, tmp_path: Path) -> None:
    folder = examined(tmp_path / "e", lambda p, s: "right" if p < right else ("half" if p % 3 else "broken"))
    told, rows = json.loads((folder / "metrics.json").read_text())["sums"], lines(folder)
    judged = [one for (one,) in rows.values() if one["correct"] is not None]
    low, high = jeffreys_or_wilson(right, len(judged))
    assert told["accepted_at_1"] == right / len(judged)
    assert (told["accepted_at_1_low"], told["accepted_at_1_high"]) == pytest.approx((low, high), abs=1e-7)
    assert told["mean_accuracy"] == pytest.approx(sum(one["score"] for one in judged) / len(judged))
    assert told["mean_accuracy_low"] <= told["mean_accuracy"] <= told["mean_accuracy_high"]
    assert told["unjudged"] == 40 - len(judged) and told["accepted_at_1_if_unjudged_wrong"] == right / 40
    assert told["accepted_at_1_if_unjudged_right"] == (right + 40 - len(judged)) / 40


def test_pass_at_k_and_budgets_follow_from_the_lines(tmp_path: Path) -> None:
    folder = examined(tmp_path / "k", drawn(3, 0.25), 30, eval_at_k(n=6, ks=(1, 2, 4)))
    told, rows = json.loads((folder / "metrics.json").read_text())["sums"], lines(folder)
    for k in (1, 2, 4):
        every = [pass_at(k)(one) for one in rows.values()]
        assert told[f"pass@{k}"] == pytest.approx(np.mean(every))
        spread = scipy.stats.t.ppf(0.975, 29) * np.std(every, ddof=1) / math.sqrt(30)
        assert told[f"pass@{k}_high"] - told[f"pass@{k}_low"] == pytest.approx(2 * spread, rel=0.2), (
            "about a t interval"
        )
    folder = examined(tmp_path / "b", drawn(4, 0.4), 30, eval_at_budget(Budget("tokens", 9), n=3))
    told, rows = json.loads((folder / "metrics.json").read_text())["sums"], lines(folder)
    solved = 0
    for answers in rows.values():
        spent = list(itertools.accumulate(one["gen_tokens"] for one in answers))
        solved += any(one["correct"] and cost <= 9 for one, cost in zip(answers, spent, strict=True))
    assert told["solved_at_budget"] == solved / 30
    ends = jeffreys_or_wilson(solved, 30)
    assert (told["solved_at_budget_low"], told["solved_at_budget_high"]) == pytest.approx(ends, abs=1e-7)
    assert told["spent_tokens"] == sum(one["gen_tokens"] for answers in rows.values() for one in answers)


def test_a_measure_without_a_common_problem_is_named(tmp_path: Path) -> None:
    protocol = eval_at_k(n=4, ks=(1, 4))
    sides = [examined(tmp_path / name, lambda p, s: "broken" if s == p % 4 else "right", 8, protocol) for name in "ab"]
    told = compared([sides[0]], [sides[1]])
    assert "pass@4" not in [row["what"] for row in told["measures"]]
    assert any(note.startswith("pass@4 is left out") for note in told["notes"])


def test_plus_minus_says_what_it_is(tmp_path: Path) -> None:
    sides = [[examined(tmp_path / f"{name}{s}", drawn(s, 0.5)) for s in range(2)] for name in "ab"]
    words = [",".join(map(str, side)) for side in sides]
    told = CliRunner().invoke(compare_command, words).output
    before = matrices(*sides, "accepted@1")[0].mean(axis=1).std(ddof=1)
    assert f"(± standard deviation of accepted@1, in points): 2 ± {100 * before:.1f} before" in " ".join(told.split())
