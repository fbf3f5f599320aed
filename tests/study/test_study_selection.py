"""Selection rules, and the statistics under them against exact variances."""

from __future__ import annotations

import numpy as np
import pytest
from study_lab import columns

from rlvrlab.evals.statistics import Difference, compare_seeds
from rlvrlab.study.schema import Select
from rlvrlab.study.select import Candidate, choose, compare_blocks


def variance(found: Difference) -> float:
    """Of the difference, because of seeds and problems."""
    return found.noise.seeds + max(0.0, found.noise.problems - found.noise.shared)


def candidate(name: str, cost: float = 1.0, **shares: float) -> Candidate:
    """Exactly that share of 400 problems right, the same ones first: differences are as certain as they get."""
    scores = {f"{k}.accepted": [{str(i): float(i < round(v * 400)) for i in range(400)}] for k, v in shares.items()}
    return Candidate(name, (name,), scores, {"tokens": cost, "answers": cost, "seconds": cost})


def verdict(rule: str, *candidates: Candidate, metrics=None, **keys):
    found = metrics or dict.fromkeys(candidates[0].scores, 1.0)
    return choose(Select(rule=rule, **keys), found, candidates)


def test_weighted_takes_the_better_where_it_is_really_better() -> None:
    found = verdict("weighted", candidate("a", x=0.5), candidate("b", x=0.6), candidate("c", x=0.4))
    assert (found.chosen, found.runner_up, found.significant) == ("b", "a", True)
    assert [one.versus for one in found.comparisons] == ["a", "c"] and not any(one.tied for one in found.comparisons)
    assert found.comparisons[0].difference.mean == pytest.approx(0.1)


def test_ties_go_to_the_cheaper_and_say_so() -> None:
    found = verdict("weighted", candidate("a", 5, x=0.5), candidate("b", 9, x=0.505), candidate("c", 1, x=0.2))
    assert (found.chosen, found.runner_up, found.significant) == ("a", "b", False)
    assert "not distinguishable from b (b leads" in found.words and "cheaper (tokens)" in found.words
    equal = verdict("weighted", candidate("a", 5, x=0.5), candidate("b", 5, x=0.505))
    assert equal.chosen == "b" and "highest among the cheapest" in equal.words


def test_below_the_smallest_effect_is_a_tie_even_when_significant() -> None:
    arms = candidate("a", 1, x=0.5), candidate("b", 2, x=0.55)
    assert verdict("weighted", *arms).chosen == "b"
    found = verdict("weighted", *arms, min_effect=0.06)
    assert found.chosen == "a" and found.comparisons[0].p_holm < 0.05 and found.comparisons[0].tied


def test_weights_decide_between_domains() -> None:
    inner, outer = candidate("inner", x=0.7, y=0.3), candidate("outer", x=0.5, y=0.55)
    assert verdict("weighted", inner, outer, metrics={"x.accepted": 0.9, "y.accepted": 0.1}).chosen == "inner"
    found = verdict("weighted", inner, outer, metrics={"x.accepted": 0.3, "y.accepted": 0.7})
    assert found.chosen == "outer" and found.score["outer"] == pytest.approx(0.3 * 0.5 + 0.7 * 0.55)


def test_lexicographic_asks_the_second_metric_only_among_ties() -> None:
    a, b, c = candidate("a", x=0.60, y=0.2), candidate("b", x=0.595, y=0.5), candidate("c", x=0.3, y=0.9)
    assert verdict("lexicographic", a, b, c).chosen == "b"
    assert verdict("lexicographic", a, b, c, metrics={"y.accepted": 1, "x.accepted": 1}).chosen == "c"
    cheap = candidate("cheap", 1, x=0.6, y=0.5), candidate("dear", 9, x=0.6, y=0.5)
    assert verdict("lexicographic", *cheap).chosen == "cheap"


def test_a_lower_cost_is_a_reason_and_no_finding() -> None:
    both = candidate("slow", 9, x=0.5), candidate("fast", 2, x=0.505)
    costs = {"x.accepted": 1, "cost.tokens": 1}
    found = verdict("lexicographic", *both, metrics=costs)
    assert found.chosen == "fast" and not found.significant and "taken for its lower cost.tokens" in found.words
    found = verdict("pareto", *both, metrics=costs)
    assert found.front == ("fast",) and not found.significant and "for its cost" in found.words


def test_less_is_better_where_it_is() -> None:
    def with_tokens(name: str, tokens: float) -> Candidate:
        return Candidate(
            name, (name,), {"x.gen_tokens": [{str(i): tokens + i % 3 for i in range(300)}]}, {"tokens": 1.0}
        )

    assert verdict("weighted", with_tokens("short", 10), with_tokens("long", 20)).chosen == "short"


def test_pareto_keeps_what_nobody_dominates() -> None:
    a, b, c = candidate("a", 3, x=0.8, y=0.3), candidate("b", 2, x=0.3, y=0.8), candidate("c", 1, x=0.25, y=0.25)
    found = verdict("pareto", a, b, c)
    assert found.front == ("a", "b") and found.chosen == "b" and not found.significant
    alone = verdict("pareto", candidate("a", x=0.8, y=0.8), b)
    assert alone.front == ("a",) and alone.significant
    costs = verdict("pareto", a, b, c, metrics={"x.accepted": 1, "y.accepted": 1, "cost.tokens": 1})
    assert set(costs.front) == {"a", "b", "c"} and costs.chosen == "c"


def test_arms_are_compared_on_shared_problems_only() -> None:
    a, b = candidate("a", x=0.5), candidate("b", x=0.5)
    part = Candidate("b", ("b",), {"x.accepted": [dict(list(b.scores["x.accepted"][0].items())[:100])]}, b.costs)
    found = verdict("weighted", a, part)
    assert found.comparisons[0].difference.problems == 100
    other = Candidate("b", ("b",), {"x.accepted": [{"elsewhere": 1.0}]}, b.costs)
    with pytest.raises(Exception, match="share no judged problem"):
        verdict("weighted", a, other)


def test_one_arm_is_no_comparison() -> None:
    found = verdict("weighted", candidate("a", x=0.5))
    assert found.chosen == "a" and not found.significant and "nothing was compared" in found.words


def test_one_block_is_the_laboratory_s_own_comparison() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.random((2, 50)), rng.random((3, 50))
    assert compare_blocks([before], [after]) == compare_seeds(before, after)


def test_strata_have_the_exact_variance() -> None:
    """One seed: Var = Σ_suites var(d_suite)/n_suite. Unstratified pooling would add the suites' difference of means."""
    rng = np.random.default_rng(1)
    before = [rng.random((1, 80)), 5 + rng.random((1, 40))]
    after = [rng.random((1, 80)) + 0.2, 9 + rng.random((1, 40))]
    deltas = [a[0] - b[0] for a, b in zip(after, before, strict=True)]
    exact = sum(delta.var() / len(delta) for delta in deltas)
    found = compare_blocks(before, after)
    assert variance(found) == pytest.approx(exact, rel=0.06)
    assert found.mean == pytest.approx(sum(delta.mean() for delta in deltas)) and found.low > 0 and found.p < 0.001


def test_a_seed_is_drawn_once_for_all_suites() -> None:
    """Seeds that are good everywhere: their effects add up instead of averaging out."""
    shift = np.array([[0.0], [1.0]])
    flat = [np.zeros((1, 30)), np.zeros((1, 30))]
    moved = [shift + np.zeros((2, 30)), shift + np.zeros((2, 30))]
    # The mean of two seeds at 0 and 1 has variance 1/4; both suites move together: 4 · 1/4, not 2 · 1/4.
    assert variance(compare_blocks(flat, moved)) == pytest.approx(1.0, rel=0.06)


@pytest.mark.slow
def test_equal_arms_are_told_apart_as_often_as_alpha_says() -> None:
    rng, wrong = np.random.default_rng(2), 0
    for trial in range(200):
        scores = [columns(rng, 0.5, 60, 1) for _ in range(3)]
        arms = [Candidate(f"{trial}{i}", ("t",), {"x.accepted": s}, {"tokens": 1.0}) for i, s in enumerate(scores)]
        wrong += verdict("weighted", *arms).significant
    assert wrong <= 14  # the leader against all others at once: rarer than one comparison's 10
