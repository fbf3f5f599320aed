"""Several environments as one: proportions, judging by the right member, and members that cannot be built."""

from __future__ import annotations

from collections import Counter

import pytest

from rlvrlab.envs.mixture import Mixture
from rlvrlab.errors import UserError

PLUS = {"type": "countdown", "label": "plus", "numbers": [2], "high": 20, "operators": "+", "style": "bare"}
TIMES = {**PLUS, "label": "times", "operators": "*"}
OWN = {key: value for key, value in TIMES.items() if key != "label"}


def test_problems_come_in_proportion_also_at_the_beginning() -> None:
    env = Mixture(members=(PLUS, TIMES), ratios=(3.0, 1.0))
    problems = env.problems("train", 40, 0)
    assert Counter(p.skill for p in problems) == {"plus": 30, "times": 10}
    assert Counter(p.skill for p in problems[:8]) == {"plus": 6, "times": 2}
    assert env.problems("train", 8, 0) == problems[:8], "a shorter list is the beginning of a longer one"
    assert len({p.id for p in problems}) == 40
    assert not {p.key for p in problems} & {p.key for p in env.problems("dev", 12, 0)}


def test_each_problem_is_judged_by_its_own_member() -> None:
    env = Mixture(members=(PLUS, TIMES))
    problems = env.problems("train", 12, 0)
    golds = [env.gold(p) for p in problems]
    assert all(v.correct for v in env.verify_many(list(zip(problems, golds, strict=True))))
    other = str.maketrans("+*", "*+")
    swapped = [(p, gold.translate(other)) for p, gold in zip(problems, golds, strict=True)]
    verdicts = env.verify_many(swapped)
    assert [v.correct for v in verdicts] == [env.verify(p, text).correct for p, text in swapped]
    assert not any(v.correct for v in verdicts), "the other member's operator breaks the rule"


def test_self_check_and_version_name_the_members() -> None:
    env = Mixture(members=(PLUS, OWN))
    assert all(check.ok for check in env.self_check()) and len(env.self_check()) > 4
    assert env.version == "1(countdown:2,countdown:2)"
    assert {p.skill for p in env.problems("train", 4, 0)} == {"plus", "countdown"}, "without a label, the member's own"


@pytest.mark.parametrize(
    ("members", "ratios", "message"),
    [
        ((), (), "members is empty"),
        (({"numbers": [2]},), (), r"members\[0\] needs `type"),
        (({"type": "cuontdown"},), (), "did you mean 'countdown'"),
        (({"type": "countdown", "hihg": 3},), (), r"members\[0\] \(countdown\)"),
        (({"type": "countdown", "low": 9, "high": 3},), (), "low = 9"),
        ((PLUS, TIMES), (1.0,), "1 ratios for 2 members"),
    ],
)
def test_members_that_cannot_be(members, ratios, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        Mixture(members=members, ratios=ratios)
    assert "\n" not in str(caught.value)
