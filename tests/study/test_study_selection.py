"""Selection rules: better, equivalent or undecided, and how often they are wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from study_lab import columns

from rlvrlab.study.caveats import unseen
from rlvrlab.study.contest import Candidate
from rlvrlab.study.schema import Select
from rlvrlab.study.select import Recommendation, choose


def candidate(name: str, cost: float = 1.0, seeds: int = 1, **shares: float) -> Candidate:
    """Exactly that share of 400 problems right, the same ones first: differences are as certain as they get."""
    scores = {
        f"{k}.accepted": [{str(i): float(i < round(v * 400)) for i in range(400)}] * seeds for k, v in shares.items()
    }
    return Candidate(name, (name,) * seeds, scores, {"tokens": cost, "answers": cost, "seconds": cost})


def verdict(rule: str, *candidates: Candidate, metrics=None, **keys) -> Recommendation:
    found = metrics or dict.fromkeys(candidates[0].scores, 1.0)
    return choose(Select(rule=rule, **keys), found, candidates)


def test_weighted_takes_the_better_where_it_is_really_better() -> None:
    found = verdict("weighted", candidate("a", x=0.5), candidate("b", x=0.6), candidate("c", x=0.4))
    assert (found.chosen, found.runner_up, found.outcome) == ("b", "a", "better")
    assert [(one.versus, one.outcome) for one in found.comparisons] == [("a", "better"), ("c", "better")]
    assert found.comparisons[0].mean == pytest.approx(0.1) and found.comparisons[0].low > 0


def test_within_the_margin_the_cheaper_is_taken_and_both_bounds_are_shown() -> None:
    arms = candidate("a", 5, x=0.5), candidate("b", 9, x=0.505), candidate("c", 1, x=0.2)
    found = verdict("weighted", *arms, margin=0.05)
    assert (found.chosen, found.runner_up, found.outcome) == ("a", "b", "equivalent")
    row = found.comparisons[0]
    assert row.versus == "a" and -0.05 < row.low < row.mean < row.high < 0.05
    assert "equivalent to b" in found.words and "cheaper (tokens)" in found.words
    told = (
        f"leads by {100 * row.mean:+.1f} [{100 * row.low:+.1f}, {100 * row.high:+.1f}] points, within the margin of 5 "
    )
    assert told.replace("-", "−") in found.words


def test_without_a_margin_a_lower_cost_never_buys_a_worse_mean() -> None:
    """0.488 against 0.400 with the spread of two nano seeds: nothing is shown, and the higher mean goes on."""
    rng = np.random.default_rng(0)
    high = columns(rng, 0.42, 200, 1) + columns(rng, 0.56, 200, 1)
    low = columns(rng, 0.33, 200, 1) + columns(rng, 0.47, 200, 1)
    arms = [Candidate("dear", ("s", "t"), {"x.accepted": high}, {"tokens": 9.0}),
            Candidate("cheap", ("s", "t"), {"x.accepted": low}, {"tokens": 1.0})]  # fmt: skip
    for margin in (0.0, 0.01, 0.05):
        found = verdict("weighted", *arms, margin=margin)
        assert (found.chosen, found.outcome) == ("dear", "undecided")
        assert found.words.startswith("undecided: dear has the highest mean and goes on")


def test_undecided_says_what_would_decide() -> None:
    rng = np.random.default_rng(1)
    arms = [Candidate(name, ("s",) * 3, {"x.accepted": [
                {str(i): float(hit) for i, hit in enumerate(rng.random(400) < share + shift)}
                for shift in (-0.05, 0.0, 0.05)]}, {"tokens": 1.0})
            for name, share in (("a", 0.5), ("b", 0.58))]  # fmt: skip
    row = verdict("weighted", *arms).comparisons[0]
    assert row.outcome == "undecided" and row.enough is not None and row.enough.seeds > 3
    assert f"about {row.enough.seeds} seeds instead of 3" in verdict("weighted", *arms).words


def test_a_difference_within_the_margin_is_equivalent_even_when_it_is_certain() -> None:
    arms = candidate("a", 1, x=0.5), candidate("b", 2, x=0.55)
    assert verdict("weighted", *arms).chosen == "b"
    found = verdict("weighted", *arms, margin=0.09)
    assert found.chosen == "a" and found.comparisons[0].low > 0 and found.outcome == "equivalent"


def test_arms_that_answer_alike_are_not_equal_to_the_last_digit() -> None:
    """Two arms without a single different answer still have an interval: other problems might tell them apart."""
    row = verdict("weighted", candidate("a", x=0.0), candidate("b", x=0.0), margin=0.001).comparisons[0]
    assert row.low < 0 < row.high and row.outcome == "undecided"


@pytest.mark.parametrize("rule", ["weighted", "lexicographic", "balanced"])
def test_arms_that_scored_the_same_everywhere_are_no_rivals(rule: str) -> None:
    """Both are behind the leader by as much, and the seeds that would decide that would not tell the two apart."""
    rng = np.random.default_rng(1)
    lead, behind = columns(rng, 0.53, 60, 3), columns(rng, 0.5, 60, 3)
    arms = [Candidate(name, ("s",) * 3, {"x.accepted": scores}, {"tokens": 1.0})
            for name, scores in (("a", lead), ("b", behind), ("c", behind))]  # fmt: skip
    found = verdict(rule, *arms)
    told = "b and c scored the same on every problem in every trial, so more seeds are not expected to tell them apart"
    assert found.alike == verdict(rule, *arms[1:]).alike == (("b", "c"),)
    assert found.words.count(told) == verdict(rule, *arms[1:]).words.count(told) == 1
    assert verdict(rule, *arms[:2]).alike == () and "same on every problem" not in verdict(rule, *arms[:2]).words


def test_arms_are_alike_by_all_metrics_only() -> None:
    both = [candidate("a", x=0.5, y=0.5), candidate("b", x=0.5, y=0.6)]
    assert verdict("weighted", *both).alike == ()


def test_shares_are_told_in_points_and_all_else_in_its_own_unit() -> None:
    long, short = candidate("a", x=0.5), candidate("b", x=0.25)
    assert verdict("weighted", long, short).comparisons[0].text.startswith("b +25.0 [")
    tokens = [replace(one, scores={"x.gen_tokens": one.scores["x.accepted"]}) for one in (long, short)]
    row = verdict("weighted", *tokens).comparisons[0]
    assert row.text.startswith("a +0.250 [") and "points" not in row.text and not row.share
    undecided = {"metric": "x.accepted", "outcome": "undecided", "problems": 9, "detectable": 0.0594}
    assert "differences below 5.9 points could" in unseen([undecided])
    assert "differences below 0.0594 could" in unseen([undecided | {"metric": "x.gen_tokens"}])
    assert "differences below 0.0594 could" in unseen([undecided | {"share": False}])
    few = {"outcome": "undecided", "problems": 100, "metric": "score", "share": True, "seeds": 2, "detectable": None}
    assert "with so few seeds no difference, however large" in unseen([few]), "records that did not keep the scatter"
    told = "undecided; with 2 seeds that scatter by 11.0 points, as here, no difference, however large, is seen"
    assert unseen([few | {"scatter": 0.11}], 0.05) == (
        f"{told} 4 times in 5; the plan assumed that seeds scatter by 5 points (`seed_spread`)"
    )


def test_two_seeds_are_little_and_the_interval_says_so() -> None:
    """Seeds that scatter by 14 points: 400 problems alone would call a lead of 10 points certain."""
    scores = {"a": (0.43, 0.57), "b": (0.53, 0.67)}
    arms = [
        Candidate(name, ("s", "t"), {"x.accepted": [candidate("", x=one).scores["x.accepted"][0] for one in shares]},
                  {"tokens": 1.0})
        for name, shares in scores.items()
    ]  # fmt: skip
    found = verdict("weighted", *arms)
    assert found.outcome == "undecided" and found.comparisons[0].low < -0.1
    assert found.comparisons[0].p is None
    alone = verdict("weighted", candidate("a", x=0.5), candidate("b", x=0.6))
    assert alone.outcome == "better"


def test_weights_decide_between_domains() -> None:
    inner, outer = candidate("inner", x=0.7, y=0.3), candidate("outer", x=0.5, y=0.55)
    assert verdict("weighted", inner, outer, metrics={"x.accepted": 0.9, "y.accepted": 0.1}).chosen == "inner"
    found = verdict("weighted", inner, outer, metrics={"x.accepted": 0.3, "y.accepted": 0.7})
    assert found.chosen == "outer" and found.score["outer"] == pytest.approx(0.3 * 0.5 + 0.7 * 0.55)


def test_lexicographic_asks_the_second_metric_only_among_equivalent_arms() -> None:
    a, b, c = candidate("a", x=0.60, y=0.2), candidate("b", x=0.595, y=0.5), candidate("c", x=0.3, y=0.9)
    assert verdict("lexicographic", a, b, c, margin=0.05).chosen == "b"
    undecided = verdict("lexicographic", a, b, c)
    assert (undecided.chosen, undecided.outcome) == ("a", "undecided")
    swapped = verdict("lexicographic", a, b, c, metrics={"y.accepted": 1, "x.accepted": 1}, margin=0.05)
    assert (swapped.chosen, swapped.outcome) == ("c", "better")
    cheap = candidate("cheap", 1, x=0.6, y=0.5), candidate("dear", 9, x=0.6, y=0.5)
    assert verdict("lexicographic", *cheap, margin=0.05).chosen == "cheap"


def test_a_lower_cost_is_a_reason_and_no_finding() -> None:
    both = candidate("slow", 9, x=0.5), candidate("fast", 2, x=0.505)
    costs = {"x.accepted": 1, "cost.tokens": 1}
    found = verdict("lexicographic", *both, metrics=costs, margin=0.05)
    assert found.chosen == "fast" and found.outcome == "equivalent" and "taken for its lower cost.tokens" in found.words
    found = verdict("pareto", *both, metrics=costs, margin=0.05)
    assert found.front == ("fast",) and found.outcome == "equivalent" and "for its cost" in found.words


def test_less_is_better_where_it_is() -> None:
    def with_tokens(name: str, tokens: float) -> Candidate:
        return Candidate(
            name, (name,), {"x.gen_tokens": [{str(i): tokens + i % 3 for i in range(300)}]}, {"tokens": 1.0}
        )

    assert verdict("weighted", with_tokens("short", 10), with_tokens("long", 20)).chosen == "short"


def test_pareto_keeps_what_nobody_dominates_and_takes_the_higher_score() -> None:
    a, b, c = candidate("a", 3, x=0.9, y=0.3), candidate("b", 2, x=0.3, y=0.8), candidate("c", 1, x=0.25, y=0.25)
    found = verdict("pareto", a, b, c)
    assert found.front == ("a", "b") and found.chosen == "a"
    alone = verdict("pareto", candidate("a", x=0.8, y=0.8), b)
    assert alone.front == ("a",) and alone.outcome == "better"
    costs = verdict("pareto", a, b, c, metrics={"x.accepted": 1, "y.accepted": 1, "cost.tokens": 1})
    assert set(costs.front) == {"a", "b", "c"} and costs.chosen == "a"  # the cheapest, c, is far behind


def test_balanced_takes_the_arm_that_loses_least_where_it_loses_most() -> None:
    """By their sums the specialists win; the even arm is 10 points behind each of them and never 30."""
    arms = candidate("inside", x=0.9, y=0.3), candidate("even", x=0.8, y=0.5), candidate("outside", x=0.5, y=0.6)
    found = verdict("balanced", *arms)
    assert (found.chosen, found.outcome) == ("even", "better")
    assert {one.versus: one.metric for one in found.comparisons} == {"inside": "y.accepted", "outside": "x.accepted"}
    assert all(one.mean > 0 for one in found.comparisons) and "loses at most 10.0 points" in found.words
    assert verdict("weighted", *arms, metrics={"x.accepted": 0.9, "y.accepted": 0.1}).chosen == "inside"


def test_balanced_never_takes_a_weaker_arm_for_its_cost_alone() -> None:
    arms = candidate("dear", 9, x=0.6, y=0.6), candidate("cheap", 1, x=0.6, y=0.4)
    assert verdict("balanced", *arms, margin=0.05).chosen == "dear"
    same = candidate("dear", 9, x=0.6, y=0.6), candidate("cheap", 1, x=0.6, y=0.595)
    found = verdict("balanced", *same, margin=0.05)
    assert (found.chosen, found.outcome) == ("cheap", "equivalent")


def test_arms_are_compared_on_shared_problems_only() -> None:
    a, b = candidate("a", x=0.5), candidate("b", x=0.5)
    part = Candidate("b", ("b",), {"x.accepted": [dict(list(b.scores["x.accepted"][0].items())[:100])]}, b.costs)
    found = verdict("weighted", a, part)
    assert found.comparisons[0].problems == 100
    other = Candidate("b", ("b",), {"x.accepted": [{"elsewhere": 1.0}]}, b.costs)
    with pytest.raises(Exception, match="share no judged problem"):
        verdict("weighted", a, other)


def test_one_arm_is_no_comparison() -> None:
    found = verdict("weighted", candidate("a", x=0.5))
    assert found.chosen == "a" and found.outcome == "alone" and "nothing was compared" in found.words
