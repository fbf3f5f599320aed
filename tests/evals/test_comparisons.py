"""Two evaluations side by side, against scipy and numbers counted by hand; and stored answers judged again."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy
from scripted import FAILED, Scripted, Sums, answer

from rlvrlab.errors import UserError
from rlvrlab.evals.answering import Ask
from rlvrlab.evals.compare import Comparison, compare_folders
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.matching import matching
from rlvrlab.evals.protocol import Budget, eval_at_1, eval_at_budget, eval_at_k
from rlvrlab.evals.rescore import rescore
from rlvrlab.evals.statistics import compare, compare_seeds
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
    accepted = row(found, "accepted@1")
    assert (found.problems, found.left_out) == (60, 0)
    assert (accepted.before, accepted.after) == pytest.approx((20 / 60, 35 / 60))
    assert accepted.difference.mean == pytest.approx(15 / 60)
    t = (15 / 62) / (((19 / 62) - (15 / 62) ** 2) / 62) ** 0.5  # 16 won and 1 lost of 60, and one more of each
    assert accepted.difference.p == pytest.approx(2 * scipy.stats.t.sf(t, 59))
    assert accepted.difference.low < 15 / 60 < accepted.difference.high and accepted.verdict == "higher"
    assert {r.what for r in found.by_skill} == {"skill even", "skill odd"}
    assert accepted.difference.tests == 1 and "accepted@1 is the main question" in found.adjustment
    assert {r.difference.tests for r in found.measures[1:]} == {len(found.measures) - 1}
    assert {r.difference.tests for r in found.by_level} == {len(found.by_level)} and len(found.by_level) > 1
    assert found.over == "problems" and found.caution.startswith("One run on each side")
    assert found.facts()["measures"][0]["difference"]["over"] == "problems"


def test_a_gain_in_form_alone_is_seen_as_that(tmp_path: Path) -> None:
    before = stored(tmp_path / "a", lambda i, _: i < 30)

    def reply(ask: Ask):
        index = int(ask.problem.id[1:])
        return answer(str(ask.problem.reference) if index < 30 else "no number")

    evaluate_into(tmp_path / "b", Scripted(reply), ENV, ENV.problems("test", 60), eval_at_1())
    found = compare_folders([before], [read_evaluation(tmp_path / "b")])
    assert row(found, "accepted@1").verdict == "not shown" and row(found, "format_rate").verdict == "lower"


def test_unjudged_and_one_sided_problems_are_left_out(tmp_path: Path) -> None:
    before = stored(tmp_path / "a", lambda i, _: None if i == 5 else i < 20, size=40)
    after = stored(tmp_path / "b", lambda i, _: i < 30, size=60)
    found = compare_folders([before], [after])
    assert (found.problems, found.left_out) == (39, 21)
    assert found.bounds == pytest.approx(((30 - 20) / 40, (30 - 19) / 40))
    assert "between +25.0 and +27.5 points" in found.notes[-1]


def test_a_budget_that_failures_hide_is_left_out(tmp_path: Path) -> None:
    protocol = eval_at_budget(Budget("tokens", 8), n=3)
    sides = [
        stored(tmp_path / "a", lambda i, _: None if i < 10 else i < 40, protocol=protocol),
        stored(tmp_path / "b", lambda i, _: i < 40, protocol=protocol),
    ]
    found = compare_folders([sides[0]], [sides[1]])
    solved = row(found, "solved_at_budget")
    assert (found.problems, found.left_out, solved.difference.problems) == (50, 10, 50)
    assert (solved.before, solved.after) == (0.6, 0.6)
    assert found.bounds == pytest.approx((0.0, 10 / 60))


def test_answers_until_one_is_right_are_compared_by_the_first(tmp_path: Path) -> None:
    """Both sides are right from the second answer on: before, the mean over a problem's answers was half right."""
    protocol = eval_at_budget(Budget("tokens", 8), n=3)
    sides = [stored(tmp_path / name, lambda i, number: number > 0, protocol=protocol) for name in ("a", "b")]
    found = compare_folders([sides[0]], [sides[1]])
    assert row(found, "solved_at_budget").after == 1.0
    assert row(found, "accepted@1").after == 0.0
    assert "mean_accuracy" not in [one.what for one in found.measures], "the same as accepted@1 here"


def test_the_heading_says_of_which_role_the_problems_are(tmp_path: Path) -> None:
    sides = [[stored(tmp_path / name, lambda i, _: True, size=5)] for name in ("a", "b")]
    assert compare_folders(*sides).about == "sums · 5 test problems on both sides"


def test_sampled_answers_compare_by_problem(tmp_path: Path) -> None:
    protocol = eval_at_k(4, (1, 4))
    before = stored(tmp_path / "a", lambda i, j: (i + j) % 4 == 0, protocol=protocol)
    after = stored(tmp_path / "b", lambda i, j: i % 2 == 0, protocol=protocol)
    found = compare_folders([before], [after])
    assert found.measures[0].what == "pass@1" and found.measures[0].difference.mean == pytest.approx(0.25)
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


def test_what_differs_is_told_by_name_and_not_by_hash(tmp_path: Path) -> None:
    one = stored(tmp_path / "a", lambda i, _: i < 20, size=8)
    longer = stored(tmp_path / "b", lambda i, _: True, size=8, protocol=eval_at_1(max_tokens=77))
    with pytest.raises(
        UserError, match=r"differ in their protocol: rollout.max_tokens \(rlvr eval --max-tokens\) \d+ and 77; eval"
    ):
        compare_folders([one], [longer])
    task = {**one.examined, "scorer": {"environment": "sql", "version": "2", "keys": {"levels": [1]}}}
    with pytest.raises(UserError, match=rf"differ in their scorer: {ENV.name} and sql;"):
        compare_folders([one], [replace(one, info={**one.info, "examined": task})])


def test_seeds_are_averaged_and_their_spread_is_told(tmp_path: Path) -> None:
    base = [stored(tmp_path / f"a{s}", lambda i, _, s=s: (i + s) % 3 == 0) for s in range(3)]
    better = [stored(tmp_path / f"b{s}", lambda i, _, s=s: (i + s) % 3 != 0 or i < 10 * s) for s in range(2)]
    found = compare_folders(base, better)
    means = [np.mean([(i + s) % 3 != 0 or i < 10 * s for i in range(60)]) for s in range(2)]
    assert found.seeds == (3, 2) and found.spread[0] == pytest.approx(0.0)
    assert found.spread[1] == pytest.approx(np.std(means, ddof=1))
    assert row(found, "accepted@1").after == pytest.approx(np.mean(means))
    assert row(found, "accepted@1").significant


def test_two_levels_of_chance_make_wider_intervals() -> None:
    rng = np.random.default_rng(0)
    shifts = rng.normal(0, 0.3, (3, 1))  # seeds that differ by far more than problems do
    before, after = rng.normal(0, 0.1, (3, 200)) + shifts, rng.normal(0.1, 0.1, (3, 200)) + shifts[::-1]
    seeds, problems = compare_seeds(before, after), compare(before.mean(0), after.mean(0))
    assert seeds.mean == pytest.approx(problems.mean)
    assert seeds.high - seeds.low > 3 * (problems.high - problems.low)
    assert seeds.p > problems.p and seeds.detectable > problems.detectable
    assert compare_seeds(before[:1], after[:1]) == compare(before[0], after[0])
    with pytest.raises(UserError):
        compare_seeds(before, after[:, :5])


def test_the_same_thing_twice_is_no_second_seed(tmp_path: Path) -> None:
    """Listing folders again made p = 0.0084 of 0.062."""
    base = [stored(tmp_path / f"a{s}", lambda i, _, s=s: (i + s) % 3 == 0) for s in range(2)]
    after = [stored(tmp_path / f"b{s}", lambda i, _, s=s: (i + s) % 3 != 0) for s in range(2)]
    with pytest.raises(UserError, match="are the same folder; give every run once"):
        compare_folders(base, [*after, after[0]])
    with pytest.raises(UserError, match=r"stands on both sides, so there is nothing to compare; .*RUN@base"):
        compare_folders(base, base)
    copied = read_evaluation(Path(shutil.copytree(after[0].folder, tmp_path / "elsewhere")))
    with pytest.raises(UserError, match="hold the same answers"):
        compare_folders(base, [*after, copied])


def test_a_copy_on_the_other_side_is_noted(tmp_path: Path) -> None:
    one = stored(tmp_path / "a", lambda i, _: i < 20)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    [note] = compare_folders([one], [read_evaluation(tmp_path / "b")]).notes
    assert "hold the same answers" in note


def of_run(one: Stored, run: str, seed: int) -> Stored:
    examined = one.examined | {"who": {"run": run, "training_seed": seed}}
    return replace(one, info=one.info | {"examined": examined})


def test_one_run_or_one_seed_is_no_two_seeds(tmp_path: Path) -> None:
    base, *three = [stored(tmp_path / f"a{s}", lambda i, _, s=s: (i + s) % 5 == 0) for s in range(4)]
    with pytest.raises(UserError, match="are evaluations of one run, first"):
        compare_folders([base], [of_run(three[0], "first", 0), of_run(three[1], "first", 0)])
    with pytest.raises(UserError, match="are runs of the same seed, 0"):
        compare_folders([base], [of_run(three[0], "first", 0), of_run(three[1], "second", 0)])
    found = compare_folders([base], [of_run(three[0], "first", 0), of_run(three[1], "second", 1)])
    assert found.seeds == (1, 2) and found.measures[0].difference.p is None
    assert "one policy it is" in found.caution and "Two seeds are too few" in found.caution


def test_stages_of_the_same_runs_are_compared_in_pairs(tmp_path: Path) -> None:
    before = [of_run(stored(tmp_path / f"a{s}", lambda i, _, s=s: i % 7 < s), f"r{s}", s) for s in range(3)]
    after = [of_run(stored(tmp_path / f"b{s}", lambda i, _, s=s: i % 7 <= s), f"r{s}", s) for s in range(3)]
    found = compare_folders(before, after[::-1])
    assert found.paired and found.measures[0].verdict == "higher" and "in pairs" in found.caution
    apart = compare_folders(before, after, paired=False)
    assert not apart.paired and apart.measures[0].verdict == "not shown"
    others = [of_run(one, f"other{s}", s) for s, one in enumerate(after)]
    assert not compare_folders(before, others).paired and compare_folders(before, others[::-1], paired=True).paired
    with pytest.raises(UserError, match="same seeds on both sides"):
        compare_folders(before, [of_run(one, f"other{s}", s + 1) for s, one in enumerate(after)], paired=True)


def test_a_run_is_compared_by_its_newest_evaluation_that_matches(tmp_path: Path) -> None:
    runs = [tmp_path / "one", tmp_path / "two"]
    for run in runs:
        (run / "evaluations").mkdir(parents=True)
        (run / "config.json").write_text("{}")
        stored(run / "evaluations" / "first", lambda i, _, run=run: i % 3 == len(run.name) % 3 or run.name == "two")
    for name, size in (("size", 6), ("long", 60)):  # newer, and of one side only
        protocol = eval_at_1(9) if name == "long" else None
        stored(runs[1] / "evaluations" / name, lambda i, _: True, size, protocol)
    before, after = matching(runs[:1], runs[1:])
    assert [one.folder.name for one in (*before, *after)] == ["first", "first"]
    assert compare_folders(before, after).problems == 60
    shutil.rmtree(runs[1] / "evaluations" / "first")
    before, after = matching(runs[:1], runs[1:])
    assert after[0].folder.name == "size", "the same question of fewer problems"
    shutil.rmtree(runs[1] / "evaluations" / "size")
    stored(runs[1] / "evaluations" / "other", lambda i, _: True, 6, eval_at_1(8))
    with pytest.raises(UserError, match=r"no evaluation asks the same of all .*make one: `rlvr eval --run"):
        matching(runs[:1], runs[1:])


def checkpointed(run: Path, steps: dict[str, tuple[int, int]]) -> Path:
    """A run of 50 steps with evaluations by name: step and number of problems."""
    (run / "checkpoints" / "global_step_50").mkdir(parents=True)
    (run / "checkpoints" / "global_step_50" / "manifest.json").write_text("{}")
    (run / "config.json").write_text("{}")
    for name, (step, size) in steps.items():
        stored(run / "evaluations" / name, lambda i, _, step=step: i % 50 < step, size)
        path = run / "evaluations" / name / "run_info.json"
        info = json.loads(path.read_text())
        info["examined"]["who"] = {"run": run.name, "step": step}
        path.write_text(json.dumps(info))
    return run


def test_a_run_stands_for_its_final_checkpoint_whatever_was_evaluated_later(tmp_path: Path) -> None:
    one = checkpointed(tmp_path / "one", {"end": (50, 20), "look": (50, 6), "base": (0, 20), "early": (20, 20)})
    two = checkpointed(tmp_path / "two", {"end": (50, 20), "look": (50, 6), "early": (20, 20)})
    before, after = matching([one], [two])
    assert [part.folder.name for part in (*before, *after)] == ["end", "end"]
    assert compare_folders(before, after).about.endswith("step 50 against step 50")
    found = compare_folders(*matching([Path(f"{one}@base")], [Path(f"{two}@20")]))
    assert found.about.endswith("base against step 20") and found.facts()["checkpoints"] == ("base", "step 20")
    assert "different stages of training: base before, step 20 after" in found.notes[0]
    shutil.rmtree(one / "evaluations" / "end")
    shutil.rmtree(one / "evaluations" / "look")
    with pytest.raises(UserError, match=r"last checkpoint \(step 50\) has not been evaluated, only base, step 20"):
        matching([one], [two])


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
