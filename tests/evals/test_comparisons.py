"""Two evaluations side by side, against scipy and numbers counted by hand; and stored answers judged again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scripted import FAILED, Scripted, Sums, answer

from rlvrlab.errors import UserError
from rlvrlab.evals.answering import Ask
from rlvrlab.evals.compare import Comparison, compare_folders
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import eval_at_1, eval_at_k
from rlvrlab.evals.rescore import rescore
from rlvrlab.evals.statistics import compare, compare_seeds, holm
from rlvrlab.record.evaluation import Stored, read_evaluation

ENV = Sums()


def stored(folder: Path, solves, size: int = 60, protocol=None, env=ENV) -> Stored:
    """An evaluation in which the answer to problem i, sample j is right where solves(i, j); None fails."""

    def reply(ask: Ask):
        good = solves(int(ask.problem.id[1:]), ask.sample)
        return FAILED if good is None else answer(str(ask.problem.reference if good else 9999))

    evaluate_into(folder, Scripted(reply, who=folder.name), env, env.problems("test", size), protocol or eval_at_1())
    return read_evaluation(folder)


def row(found: Comparison, what: str):
    return next(r for r in (*found.measures, *found.by_skill, *found.by_level) if r.what == what)


def test_paired_on_the_same_problems(tmp_path: Path) -> None:
    before = stored(tmp_path / "a", lambda i, _: i < 20)
    after = stored(tmp_path / "b", lambda i, _: i < 36 and i != 3)
    found = compare_folders([before], [after])
    accepted = row(found, "accepted")
    assert (found.problems, found.left_out) == (60, 0)
    assert (accepted.before, accepted.after) == pytest.approx((20 / 60, 35 / 60))
    assert accepted.difference.mean == pytest.approx(15 / 60)
    assert accepted.difference.p == pytest.approx(stats.binomtest(1, 17, 0.5).pvalue)  # 1 lost, 16 won
    assert accepted.difference.low < 15 / 60 < accepted.difference.high and accepted.verdict == "higher"
    delta = np.array([float(i < 36 and i != 3) - float(i < 20) for i in range(60)])
    assert accepted.difference.detectable == pytest.approx((1.95996 + 0.84162) * delta.std(ddof=1) / 60**0.5, rel=1e-4)
    assert {r.what for r in found.by_skill} == {"skill even", "skill odd"}
    assert [r.p_holm for r in found.by_level] == pytest.approx(holm([r.difference.p for r in found.by_level]))


def test_a_gain_in_form_alone_is_seen_as_that(tmp_path: Path) -> None:
    before = stored(tmp_path / "a", lambda i, _: i < 30)

    def reply(ask: Ask):
        index = int(ask.problem.id[1:])
        return answer(str(ask.problem.reference) if index < 30 else "no number")

    evaluate_into(tmp_path / "b", Scripted(reply), ENV, ENV.problems("test", 60), eval_at_1())
    found = compare_folders([before], [read_evaluation(tmp_path / "b")])
    assert row(found, "accepted").verdict == "not shown" and row(found, "format_rate").verdict == "lower"


def test_unjudged_and_one_sided_problems_are_left_out(tmp_path: Path) -> None:
    before = stored(tmp_path / "a", lambda i, _: None if i == 5 else i < 20, size=40)
    after = stored(tmp_path / "b", lambda i, _: i < 30, size=60)
    found = compare_folders([before], [after])
    assert (found.problems, found.left_out) == (39, 21)


def test_sampled_answers_compare_by_problem(tmp_path: Path) -> None:
    protocol = eval_at_k(4, (1, 4))
    before = stored(tmp_path / "a", lambda i, j: (i + j) % 4 == 0, protocol=protocol)
    after = stored(tmp_path / "b", lambda i, j: i % 2 == 0, protocol=protocol)
    found = compare_folders([before], [after])
    assert row(found, "accepted").difference.mean == pytest.approx(0.25)
    assert (row(found, "pass@4").before, row(found, "pass@4").after) == (1.0, 0.5)


def test_unlike_is_refused_unless_wanted(tmp_path: Path) -> None:
    class Stricter(Sums):
        version = "2"

    before = stored(tmp_path / "a", lambda i, _: True, size=6)
    for name, other in {
        "protocol": stored(tmp_path / "b", lambda i, _: True, 6, eval_at_1(9)),
        "scorer": stored(tmp_path / "c", lambda i, _: True, 6, env=Stricter()),
    }.items():
        with pytest.raises(UserError, match=name):
            compare_folders([before], [other])
        assert compare_folders([before], [other], anyway=True).notes
    elsewhere = tmp_path / "d"
    evaluate_into(elsewhere, Scripted(lambda ask: answer("1")), ENV, ENV.problems("test", 5, seed=100), eval_at_1())
    with pytest.raises(UserError, match="no problem was judged on both sides"):
        compare_folders([before], [read_evaluation(elsewhere)])


def test_seeds_are_averaged_and_their_spread_is_told(tmp_path: Path) -> None:
    base = [stored(tmp_path / f"a{s}", lambda i, _, s=s: (i + s) % 3 == 0) for s in range(3)]
    better = [stored(tmp_path / f"b{s}", lambda i, _, s=s: (i + s) % 3 != 0 or i < 10 * s) for s in range(2)]
    found = compare_folders(base, better)
    means = [np.mean([(i + s) % 3 != 0 or i < 10 * s for i in range(60)]) for s in range(2)]
    assert found.seeds == (3, 2) and found.spread[0] == pytest.approx(0.0)
    assert found.spread[1] == pytest.approx(np.std(means, ddof=1))
    assert row(found, "accepted").after == pytest.approx(np.mean(means))
    assert row(found, "accepted").significant


def test_two_levels_of_chance_make_wider_intervals() -> None:
    rng = np.random.default_rng(0)
    shifts = rng.normal(0, 0.3, (3, 1))  # seeds that differ by far more than problems do
    before, after = rng.normal(0, 0.1, (3, 200)) + shifts, rng.normal(0.1, 0.1, (3, 200)) + shifts[::-1]
    seeds, problems = compare_seeds(before, after, "t"), compare(before.mean(0), after.mean(0), "t")
    assert seeds.mean == pytest.approx(problems.mean)
    assert seeds.high - seeds.low > 3 * (problems.high - problems.low)
    assert seeds.p > problems.p and seeds.detectable > problems.detectable
    assert compare_seeds(before[:1], after[:1], "t") == compare(before[0], after[0], "t")
    with pytest.raises(UserError):
        compare_seeds(before, after[:, :5], "t")


@pytest.mark.slow
def test_seed_intervals_cover_the_truth() -> None:
    rng, covered = np.random.default_rng(1), 0
    for trial in range(60):
        difficulty = rng.normal(0, 1, 80)
        before = difficulty + rng.normal(0, 0.2, (8, 1)) + rng.normal(0, 0.3, (8, 80))
        after = difficulty + 0.25 + rng.normal(0, 0.2, (8, 1)) + rng.normal(0, 0.3, (8, 80))
        found = compare_seeds(before, after, trial)
        covered += found.low <= 0.25 <= found.high
    assert covered >= 50


class TestRescore:
    def items(self, kept: Stored):
        problems = {p.id: p for p in kept.problems}
        return [(problems[r["problem"]], r) for r in kept.rows]

    def test_the_same_scorer_finds_the_same(self, tmp_path: Path) -> None:
        kept = stored(tmp_path / "a", lambda i, _: None if i == 1 else i % 2 == 0)
        found = rescore(ENV, self.items(kept))
        assert found.same and (found.answers, found.skipped, found.unjudged) == (59, 1, 0)

    def test_a_changed_scorer_is_found_out_answer_by_answer(self, tmp_path: Path) -> None:
        class Lenient(Sums):
            def verify(self, problem, text):
                return (
                    super().verify(problem, str(problem.reference))
                    if problem.id == "s7"
                    else super().verify(problem, text)
                )

        kept = stored(tmp_path / "a", lambda i, _: i % 2 == 0)
        found = rescore(Lenient(), self.items(kept))
        assert [change.problem for change in found.changes] == ["s7"]
        assert found.changes[0].fields["correct"] == (False, True)

    def test_a_judge_that_fails_now_is_no_difference(self, tmp_path: Path) -> None:
        class Down(Sums):
            def verify(self, problem, text):
                return super().verify(problem, "broken")

        found = rescore(Down(), self.items(stored(tmp_path / "a", lambda i, _: True)))
        assert found.same and found.unjudged == 60
