"""Data-set metrics on samples small enough to count by hand."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from scripted import Scripted, answer

from rlvrlab.cli.tables import metrics_table
from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import OwnCodeError, UserError
from rlvrlab.evals.answering import Ask
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.metrics import Sample, at_budget, at_k, card_columns, dataset_metrics, majority
from rlvrlab.evals.protocol import Budget, eval_at_1, eval_at_budget
from rlvrlab.evals.statistics import wilson
from rlvrlab.rewards.binary import BinaryFormat
from rlvrlab.rewards.partial import Partial
from rlvrlab.types import Completion, ErrorKind, Problem, Reward, RewardFunction, Verdict


def sample(problem: str, number: int, accepted: bool | None, error: str, **facts) -> Sample:
    given = {"pass_ratio": float(bool(accepted)), "judge_time": 0.5, "gen_tokens": 10, "truncated": False, **facts}
    return Sample(problem, number, accepted, error_type=error, **given)


SAMPLES = [
    sample("a", 0, True, "none", entropy=0.2),
    sample("b", 0, False, "wrong_answer", pass_ratio=0.5, gen_tokens=30, entropy=0.4),
    sample("c", 0, False, "syntax", truncated=True),
    sample("d", 0, None, "infra", judge_time=9.0),
]


def test_the_bounds_of_mean_accuracy_are_those_of_the_reward() -> None:
    samples = [sample("a", 0, False, "wrong_answer", pass_ratio=0.8, accuracy=0.0), sample("b", 0, None, "infra")]
    found = dataset_metrics(samples)
    assert (found["mean_accuracy_if_unjudged_wrong"], found["mean_accuracy_if_unjudged_right"]) == (0.0, 0.5)
    console = Console(file=StringIO(), width=200)
    console.print(metrics_table(found))
    assert "mean accuracy between 0.0 % and 50.0 %" in console.file.getvalue()


def test_how_many_answers_ran_is_told_only_of_answers_that_are_run() -> None:
    run, compared = (dataset_metrics(SAMPLES, executed=executed) for executed in (True, False))
    assert "exec_success_rate" not in compared and run.items() >= compared.items()
    assert {"exec_success_rate", "syntax_error_rate"} <= set(card_columns(run)) and "format_rate" not in card_columns(
        run
    )
    assert set(card_columns(compared)) & {"exec_success_rate", "syntax_error_rate", "format_rate"} == {"format_rate"}


def test_where_no_answer_has_the_demanded_form_nothing_is_said_of_those_that_have_it() -> None:
    for kind, told in ((ErrorKind.FORMAT, False), (ErrorKind("wrong_answer"), True)):
        found = dataset_metrics([replace(one, accepted=False, error_type=kind) for one in SAMPLES])
        words = list(metrics_table(found).columns[0].cells)
        assert ("accuracy_given_format" in found) is told is ("accepted@1, of those" in words)


def test_by_hand() -> None:
    found = dataset_metrics(SAMPLES, wall_s=2.0)
    assert found["accepted_at_1"] == pytest.approx(1 / 3)
    assert (found["accepted_at_1_low"], found["accepted_at_1_high"]) == pytest.approx(wilson(1, 3))
    assert found["pass_ratio_mean"] == found["mean_accuracy"] == pytest.approx(0.5)
    assert found["zero_reward_rate"] == pytest.approx(1 / 3)
    assert found["exec_success_rate"] == pytest.approx(2 / 3)
    assert found["syntax_error_rate"] == pytest.approx(1 / 3)
    assert found["wrong_answer_error_rate"] == pytest.approx(1 / 3)
    assert found["format_rate"] == pytest.approx(2 / 3)
    assert found["accuracy_given_format"] == pytest.approx(1 / 2)
    assert found["truncated_rate"] == pytest.approx(1 / 4)
    assert found["avg_judge_time"] == pytest.approx(0.5)
    assert found["avg_entropy"] == pytest.approx(0.3)
    assert found["throughput"] == pytest.approx(2.0)


def test_cost_is_paid_for_all_and_shared_by_the_solved() -> None:
    found = dataset_metrics(SAMPLES)
    assert found["cost_per_solved_tokens"] == pytest.approx(50.0)
    assert found["cost_per_solved_judge_time"] == pytest.approx(1.5)
    assert dataset_metrics(SAMPLES[1:])["cost_per_solved_tokens"] is None


def test_what_could_not_be_judged_is_bounded_not_guessed() -> None:
    found = dataset_metrics(SAMPLES)
    assert found["unjudged"] == 1
    assert found["accepted_at_1_if_unjudged_wrong"] == pytest.approx(1 / 4)
    assert found["accepted_at_1_if_unjudged_right"] == pytest.approx(2 / 4)


def test_the_tasks_failures_and_tests_left_out_are_counted_apart() -> None:
    part = sample("f", 0, False, "timeout", pass_ratio=0.25, stopped_early=True, limited=True)
    lost = [sample("e", 0, None, "bad_task"), part]
    found = dataset_metrics([*SAMPLES, *lost])
    assert (found["unjudged"], found["bad_tasks"], found["stopped_early"], found["limited_tests"]) == (2, 1, 1, 1)
    assert found["pass_ratio_mean_if_unjudged_wrong"] == pytest.approx(1.75 / 6)
    assert found["pass_ratio_mean_if_unjudged_right"] == pytest.approx(3.75 / 6)
    assert "bad_task_error_rate" not in found and "infra_error_rate" not in found
    shown = StringIO()
    Console(file=shown, width=200).print(metrics_table(found))
    assert "2, 1 of them bad tasks; with them accepted@1 between 16.7 % and 50.0 %" in shown.getvalue()
    assert "mean accuracy between 29.2 % and 62.5 %" in shown.getvalue()
    assert "judged by a part of the tests" in shown.getvalue()


def test_nothing_at_all_gives_numbers() -> None:
    found = dataset_metrics([])
    assert found["problems"] == 0 and found["accepted_at_1"] == 0.0


def test_at_k_over_problems() -> None:
    samples = [sample("a", i, i == 0, "none" if i == 0 else "wrong_answer", answer=str(i)) for i in range(4)]
    samples += [sample("b", i, True, "none", answer="7") for i in range(4)]
    samples.append(sample("c", 0, None, "infra"))
    found = at_k(samples, (1, 2, 4))
    assert found["pass@1"] == pytest.approx((0.25 + 1) / 2)
    assert found["pass@2"] == pytest.approx((0.5 + 1) / 2)
    assert found["pass@4"] == 1.0
    assert (found["pass@4_low"], found["pass@4_high"]) == pytest.approx(wilson(2, 2)), "2 of 2 is no certainty"
    assert found["pass^2"] == pytest.approx(0.5)
    assert found["pass@1_low"] <= found["pass@1"] <= found["pass@1_high"]
    assert found["majority"] == pytest.approx((0.25 + 1) / 2)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [((("3", True), ("3", True), ("4", False)), 1.0), ((("3", False), ("4", True)), 0.5), (((None, False),), 0.0)],
)
def test_majority_shares_ties(answers: tuple[tuple[str | None, bool], ...], expected: float) -> None:
    group = [sample("a", i, right, "none", answer=answer) for i, (answer, right) in enumerate(answers)]
    assert majority(group) == pytest.approx(expected)


def test_a_failed_request_leaves_its_problem_out_of_large_k_and_bounds_it() -> None:
    samples = [sample("a", i, i == 0, "none") for i in range(3)] + [sample("a", 3, None, "infra")]
    samples += [sample("b", i, False, "wrong_answer") for i in range(4)]
    found = at_k(samples, (1, 4))
    assert found["pass@1"] == pytest.approx((1 / 3 + 0) / 2)
    assert found["pass@4"] == 0.0 and found["pass@4_left_out"] == 1  # b alone has four judged answers
    assert found["pass@1_if_unjudged_wrong"] == pytest.approx((1 / 4 + 0) / 2)
    assert found["pass@1_if_unjudged_right"] == pytest.approx((2 / 4 + 0) / 2)
    assert found["pass@4_if_unjudged_wrong"] == pytest.approx(0.5)
    with pytest.raises(UserError, match="k = 5 of 4"):
        at_k(samples, (5,))


def test_recovery_counts_only_what_had_failed_and_was_tried_again() -> None:
    tried = [sample("a", 0, True, "none"), sample("b", 0, False, "runtime"), sample("c", 0, False, "runtime")]
    tried += [sample("d", 0, False, "runtime"), sample("e", 0, None, "infra")]
    again = [sample("b", 0, False, "runtime", turn=1), sample("b", 0, True, "none", turn=2)]
    again += [sample("c", 0, False, "runtime", turn=1), sample("e", 0, True, "none", turn=1)]
    found = dataset_metrics(tried + again)
    assert found["recovery_rate"] == pytest.approx(1 / 2)  # b of b and c; d had no second turn, e no verdict
    assert found["accepted_after_repair"] == pytest.approx(2 / 4)
    assert found["accepted_at_1"] == pytest.approx(1 / 4) and found["samples"] == 5
    assert found["cost_per_solved_tokens"] == pytest.approx(80 / 3)  # every judged turn is paid for
    assert "recovery_rate" not in dataset_metrics(tried)


def test_what_a_budget_buys() -> None:
    samples = [sample("a", 0, False, "wrong_answer", gen_tokens=30), sample("a", 1, True, "none", gen_tokens=30)]
    samples += [sample("b", 0, True, "none", gen_tokens=20), sample("c", 0, False, "wrong_answer", gen_tokens=100)]
    found = at_budget(samples, "tokens", 100, 3)
    assert (found["most_answers"], found["given_up"]) == (2, 0)  # c has spent it all
    assert at_budget(samples, "tokens", 200, 1)["given_up"] == 1  # c was asked once and had 100 tokens left
    assert found["solved_at_budget"] == pytest.approx(2 / 3) and found["spent_tokens"] == 180
    assert found["solved_at_budget*0.5"] == found["solved_at_budget*0.25"] == pytest.approx(1 / 3)
    assert found["solved_at_budget*0.125"] == 0.0
    assert found["solved_per_tokens"] == pytest.approx(2 / 180)
    assert (found["solved_at_budget_low"], found["solved_at_budget_high"]) == pytest.approx(wilson(2, 3))


def test_rates_are_of_first_answers_where_answers_are_drawn_until_one_is_right() -> None:
    """A coin that is right half of the time, tossed until it is: the mean over the tosses of each problem is 0.69."""
    rng, samples = np.random.default_rng(0), list[Sample]()
    for problem in range(2000):
        right = int(rng.geometric(0.5)) - 1
        samples += [sample(str(problem), i, i == right, "none" if i == right else "syntax") for i in range(right + 1)]
    found = dataset_metrics(samples, wall_s=10.0, until_solved=True)
    for rate in ("accepted_at_1", "mean_accuracy", "pass_ratio_mean", "format_rate", "syntax_error_rate"):
        assert found[rate] == pytest.approx(0.5, abs=0.04), rate
    assert dataset_metrics(samples)["mean_accuracy"] == pytest.approx(np.log(2), abs=0.03)
    assert found["samples"] == len(samples) and found["throughput"] == len(samples) / 10
    assert found["cost_per_solved_tokens"] == pytest.approx(10 * len(samples) / 2000)


def test_a_majority_does_not_depend_on_the_order_of_answers() -> None:
    group = [sample("a", i, i != 1, "none", answer="7") for i in range(3)]
    assert majority(group) == majority(group[::-1]) == majority([group[0], group[2], group[1]]) == pytest.approx(2 / 3)


def test_an_answer_beyond_the_clock_does_not_count() -> None:
    samples = [sample("a", 0, True, "none", at_s=5.0), sample("b", 0, True, "none", at_s=11.0)]
    assert at_budget(samples, "wall_s", 10.0, 3)["solved_at_budget"] == 0.5


def test_mean_accuracy_is_over_problems_with_an_interval() -> None:
    samples = [sample("a", i, False, "wrong_answer", pass_ratio=0.5) for i in range(9)] + [sample("b", 0, True, "none")]
    found = dataset_metrics(samples)
    assert found["mean_accuracy"] == pytest.approx(0.75) and found["pass_ratio_mean"] == pytest.approx(0.55)
    assert found["mean_accuracy_low"] <= 0.75 <= found["mean_accuracy_high"]
    nothing = dataset_metrics([sample(str(i), 0, False, "wrong_answer") for i in range(20)])
    assert (nothing["mean_accuracy_low"], nothing["mean_accuracy_high"]) == pytest.approx(wilson(0, 20))


def test_mean_accuracy_is_the_mean_of_the_training_reward() -> None:
    """Where the recipe gives partial credit; a reward that is no accuracy leaves it to the verdict's own score."""
    env = Countdown(numbers=(2,), style="bare")
    problems = env.problems("test", 30, 0)

    def reply(ask: Ask):
        kind = int(ask.problem.id[-1], 36) % 3
        return answer(("1+", "1+1", env.gold(ask.problem))[kind])

    def accuracy(reward: RewardFunction | None) -> tuple[float, float]:
        found = evaluate(Scripted(reply), env, problems, eval_at_1(), reward=reward)
        own = Partial()
        earned = [own(one.problem, one.answer.completion, one.verdict).value for one in found.judged]
        return found.metrics()["mean_accuracy"], float(np.mean(earned))

    measured, trained = accuracy(Partial())
    assert measured == pytest.approx(trained)
    plain = accuracy(None)[0]
    assert measured > plain and accuracy(BinaryFormat())[0] == plain


def test_an_evaluation_tells_what_the_recipes_own_reward_pays() -> None:
    """Mean, parts and share of zero of the user's reward; an answer on which it fails is left out and counted."""
    env = Countdown(numbers=(2,), style="bare")
    problems = env.problems("test", 10, 0)
    chosen = {problem.id: place for place, problem in enumerate(problems)}

    def pays(problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        if chosen[problem.id] == 9:
            raise OwnCodeError("raised KeyError at mine.py:3")
        parts = {"correct": float(verdict.correct is True), "near": 0.5 * (completion.text == "1+1")}
        return Reward(sum(parts.values()), parts)

    def reply(ask: Ask):
        place = chosen[ask.problem.id]
        return answer(env.gold(ask.problem) if place < 3 else "1+1" if place < 6 else "1+")

    found = evaluate(Scripted(reply), env, problems, eval_at_1(), reward=pays).metrics()
    assert found["reward_mean"] == pytest.approx((3 * 1 + 3 * 0.5) / 9)
    assert found["reward/correct"] == pytest.approx(3 / 9) and found["reward/near"] == pytest.approx(1.5 / 9)
    assert found["reward_zero_rate"] == pytest.approx(3 / 9) and found["reward_failed"] == 1
    assert found["zero_reward_rate"] == pytest.approx(0.7), "that is the verifier's"
    assert "reward_mean" not in evaluate(Scripted(reply), env, problems, eval_at_1()).metrics()


def test_under_a_budget_the_reward_is_that_of_first_answers() -> None:
    """Many answers are drawn where they are wrong, so a mean over all of them would tell of hard problems."""
    env = Countdown(numbers=(2,), style="bare")
    problems = env.problems("test", 4, 0)
    right = {problem.id for problem in problems[:2]}

    def reply(ask: Ask):
        return answer(
            env.gold(ask.problem) if ask.problem.id in right else "1+", tokens=min(5, ask.sampling.max_tokens)
        )

    def pays(problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        return Reward(float(verdict.correct is True), {})

    found = evaluate(Scripted(reply), env, problems, eval_at_budget(Budget("tokens", 30)), reward=pays).metrics()
    assert found["samples"] > 4 and found["reward_mean"] == found["reward_zero_rate"] == 0.5
