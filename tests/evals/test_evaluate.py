"""One path for every evaluation: failures apart, budgets kept to the token, samples that depend on their key alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from faulty_server import FaultyServer, chat, http, question
from scripted import FAILED, Scripted, Sums, answer, right

from rlvrlab.engines.openai import Servers
from rlvrlab.engines.toy.engine import Toy
from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import UserError
from rlvrlab.evals.answering import Answer, Ask, EngineAnswerer, ServerAnswerer
from rlvrlab.evals.evaluate import evaluate, greedy
from rlvrlab.evals.judged import as_row, from_row, sample_of
from rlvrlab.evals.protocol import Budget, eval_at_1, eval_at_budget, eval_at_k
from rlvrlab.evals.statistics import wilson
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Finish, Sampling

ENV = Sums()
TEN = ENV.problems("test", 10)


def by_index(*texts: str):
    """Problem i gets texts[i], the last for all others."""

    def reply(ask: Ask) -> Answer:
        index = int(ask.problem.id[1:])
        text = texts[min(index, len(texts) - 1)]
        return FAILED if text == "FAIL" else answer(str(ask.problem.reference) if text == "right" else text)

    return reply


def test_an_infrastructure_failure_is_never_a_wrong_answer() -> None:
    found = evaluate(Scripted(by_index("right", "FAIL", "broken", "99", "junk", "right")), ENV, TEN, eval_at_1())
    metrics = found.metrics()
    assert metrics["accepted_at_1"] == pytest.approx(6 / 8)
    assert metrics["unjudged"] == 2
    assert metrics["accepted_at_1_if_unjudged_wrong"] == pytest.approx(0.6)
    assert metrics["accepted_at_1_if_unjudged_right"] == pytest.approx(0.8)
    assert [one.verdict.correct for one in found.judged[:5]] == [True, None, None, False, False]
    assert found.judged[1].verdict.detail == "the sampler failed: status 500: boom"
    assert found.accuracy().value == pytest.approx(6 / 8) and found.accuracy().unjudged == 2


def test_a_failed_request_is_no_answer_of_0_tokens() -> None:
    def reply(ask: Ask) -> Answer:
        return FAILED if ask.problem in TEN[:5] else answer("1", tokens=4, finish=Finish.LENGTH)

    metrics = evaluate(Scripted(reply), ENV, TEN, eval_at_1()).metrics()
    assert metrics["avg_gen_tokens"] == 4 and metrics["truncated_rate"] == 1


def test_answers_in_any_order_come_out_in_the_problems_order() -> None:
    class Backwards(Scripted):
        def answers(self, asks):
            yield from ([pair] for ready in super().answers(reversed(list(asks))) for pair in ready)

    found = evaluate(Backwards(right), ENV, TEN, eval_at_k(3, (1, 3)))
    assert [(one.problem.id, one.sample) for one in found.judged] == [(p.id, i) for p in TEN for i in range(3)]


def test_equal_answers_are_judged_once() -> None:
    env = Sums()
    evaluate(Scripted(right, size=100), env, TEN, eval_at_k(8, (1, 8)))
    assert env.judged == len(TEN)


def test_rows_lead_back_to_what_they_were() -> None:
    told = replace(right(Ask(TEN[3], 0, Sampling(), ())), entropy=0.5, attempts=2, server="http://x")
    for one in evaluate(Scripted(lambda ask: told), ENV, TEN[:4], eval_at_1()).judged:
        assert from_row(as_row(one), one.problem) == replace(
            one, judge_s=round(one.judge_s, 6), at_s=round(one.at_s, 3)
        )
        assert sample_of(as_row(one), one.problem) == from_row(as_row(one), one.problem).as_sample()


@pytest.mark.parametrize("wrong", [[], [TEN[0], TEN[0]]])
def test_no_problems_and_twins_are_refused(wrong: list) -> None:
    with pytest.raises(UserError):
        evaluate(Scripted(right), ENV, wrong, eval_at_1())


class TestProtocols:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: eval_at_k(4, (1, 8)),
            lambda: eval_at_k(4, (0,)),
            lambda: eval_at_k(4, (1,), temperature=0.0),
            lambda: eval_at_k(2, (1,), top_p=0.0),
            lambda: eval_at_1(0),
            lambda: eval_at_budget(Budget("tokens", 0)),
            lambda: eval_at_budget(Budget("tokens", float("nan"))),
            lambda: eval_at_budget(Budget("tokens", 10), temperature=0.0),
        ],
    )
    def test_what_has_no_meaning_is_refused(self, make) -> None:
        with pytest.raises(UserError):
            make()

    def test_equal_settings_equal_hash_and_any_change_another(self) -> None:
        others = [
            eval_at_1(2047),
            eval_at_k(8, (1, 8)),
            eval_at_k(8, (1,)),
            eval_at_k(8, (1, 8), 0.9),
            eval_at_budget(Budget("tokens", 10)),
            eval_at_budget(Budget("judge_s", 10)),
            replace(eval_at_1(), run_timeout_s=29.0),
        ]
        assert len({p.hash for p in [eval_at_1(), *others]}) == len(others) + 1
        assert eval_at_k(8, (8, 1, 1)).hash == eval_at_k(8, (1, 8)).hash

    def test_eval_at_1_has_the_fields_constants(self) -> None:
        p = eval_at_1()
        assert (p.n, p.sampling, p.run_timeout_s, p.memory_mb) == (1, Sampling(2048, 0.0, 1.0), 30.0, 1024)

    def test_limits_reach_the_environment_unless_the_user_set_them(self) -> None:
        @dataclass(frozen=True)
        class Limited(Sums):
            timeout_s: float = 10.0
            memory_mb: int = 256

        env, protocol = eval_at_1().applied(Limited())
        assert (env.timeout_s, env.memory_mb) == (30.0, 1024) and protocol == eval_at_1()
        env, protocol = eval_at_1().applied(Limited(timeout_s=5.0), chosen=["timeout_s"])
        assert (env.timeout_s, protocol.run_timeout_s, protocol.memory_mb) == (5.0, 5.0, 1024)
        assert protocol.hash != eval_at_1().hash
        env, protocol = eval_at_1().applied(ENV)
        assert env is ENV and protocol.run_timeout_s is None


class TestBudgets:
    def test_tokens_are_never_overspent_and_a_solved_problem_costs_no_more(self) -> None:
        def reply(ask: Ask) -> Answer:
            solved = ask.problem.id == "s0" and ask.sample == 2
            text = str(ask.problem.reference) if solved else "999"
            return answer(text, tokens=min(7, ask.sampling.max_tokens))

        found = evaluate(Scripted(reply), ENV, TEN[:2], eval_at_budget(Budget("tokens", 30)))
        spent = {p.id: sum(j.answer.gen_tokens for j in found.judged if j.problem is p) for p in TEN[:2]}
        assert spent == {"s0": 21, "s1": 30}
        metrics = found.metrics()
        assert metrics["solved_at_budget"] == 0.5 and metrics["spent_tokens"] == 51
        assert metrics["solved_at_budget*0.5"] == 0.0 and metrics["solved_at_budget*1"] == 0.5

    def test_judge_seconds_are_counted_per_problem(self) -> None:
        class Slow(Sums):
            def verify(self, problem, text):
                return replace(super().verify(problem, text), cost={"wall_s": 0.4})

        found = evaluate(Scripted(lambda ask: answer("999")), Slow(), TEN[:2], eval_at_budget(Budget("judge_s", 1.0)))
        assert len(found.judged) == 2 * 3

    def test_a_budget_that_is_spent_to_the_last_second_is_over(self) -> None:
        class Slow(Sums):
            def verify(self, problem, text):
                return replace(super().verify(problem, text), cost={"wall_s": 0.5})

        found = evaluate(Scripted(lambda ask: answer("999")), Slow(), TEN[:2], eval_at_budget(Budget("judge_s", 1.0)))
        assert len(found.judged) == 2 * 2

    def test_the_clock_ends_it(self) -> None:
        found = evaluate(Scripted(lambda ask: answer("999"), size=1), ENV, TEN, eval_at_budget(Budget("wall_s", 0.05)))
        assert 0 < len(found.judged) < 10 * 256 and found.metrics()["solved_at_budget"] == 0.0

    def test_answers_that_cost_nothing_come_to_an_end(self) -> None:
        found = evaluate(Scripted(lambda ask: FAILED), ENV, TEN[:2], eval_at_budget(Budget("tokens", 5), n=9))
        assert len(found.judged) == 2 * 9 and found.metrics()["unjudged"] == 18

    def test_a_failure_is_not_unsolved(self) -> None:
        def reply(ask: Ask) -> Answer:
            at = TEN.index(ask.problem)
            if at < 2 or (at == 2 and ask.sample == 0):  # for good, and once
                return FAILED
            return right(ask) if at < 7 else answer("999")

        metrics = evaluate(Scripted(reply), ENV, TEN, eval_at_budget(Budget("tokens", 12), n=9)).metrics()
        assert metrics["solved_at_budget"] == metrics["solved_at_budget*1"] == 5 / 8
        assert metrics["solved_at_budget_low"] == pytest.approx(wilson(5, 8).low)
        bounds = [metrics[f"solved_at_budget_if_unjudged_{what}"] for what in ("wrong", "right")]
        assert bounds == [0.5, 0.7]


class TestEngines:
    ENGINE = Toy(buckets=8).build(Optimizer())
    COUNTDOWN = Countdown(numbers=(2,), style="bare")
    PROBLEMS = COUNTDOWN.problems("dev", 12, 0)

    def test_samples_depend_on_their_key_alone(self) -> None:
        def texts(problems, at_once, n):
            protocol = eval_at_k(n, (1,), max_tokens=6)
            found = evaluate(EngineAnswerer(self.ENGINE, at_once=at_once), self.COUNTDOWN, problems, protocol, seed=4)
            return {(j.problem.id, j.sample): j.answer.completion.text for j in found.judged}

        whole = texts(self.PROBLEMS, None, 4)
        fewer = texts(self.PROBLEMS[5:8], 3, 2)
        assert len(set(whole.values())) > 10
        assert all(whole[key] == text for key, text in fewer.items())

    def test_entropy_is_the_policys(self) -> None:
        import math

        protocol = eval_at_k(2, (1,), max_tokens=6)
        found = evaluate(EngineAnswerer(self.ENGINE, entropy=True), self.COUNTDOWN, self.PROBLEMS, protocol)
        uniform = math.log(self.ENGINE.tokenizer.vocab_size)  # an untrained toy policy knows nothing
        assert found.metrics()["avg_entropy"] == pytest.approx(uniform, rel=1e-6)

    def test_training_and_offline_evaluation_are_one(self) -> None:
        short = greedy(self.ENGINE, self.COUNTDOWN, self.PROBLEMS, 6)
        found = evaluate(EngineAnswerer(self.ENGINE), self.COUNTDOWN, self.PROBLEMS, eval_at_1(6))
        assert short.accuracy() == found.accuracy()


class TestServed:
    def test_a_flaky_server_gives_the_same_result_as_a_sound_one(self) -> None:
        def sound(server: FaultyServer, body, number: int) -> bytes:
            a, b = question(body).split(" + ")
            right = str(int(a) + int(b)) if int(a) % 2 else "0"
            return http(200, chat(right, logprobs={"content": [{"token": "x", "logprob": -0.5}]}))

        def flaky(server: FaultyServer, body, number: int) -> bytes:
            faults = (http(500, {}), http(429, {}, Retry_After="0"), http(200, b'{"cho'))
            return faults[number % 5] if number % 5 < 3 else sound(server, body, number)

        results = []
        for act in (sound, flaky):
            with FaultyServer(act) as server, Servers([server.url], pause_s=0.001, attempts=20) as servers:
                found = evaluate(ServerAnswerer(servers, top_logprobs=1), Sums(), TEN, eval_at_1(64))
            results.append([(j.problem.id, j.verdict.correct, j.answer.completion.logprobs) for j in found.judged])
            assert {j.answer.server for j in found.judged} == {server.url}
            assert all(body["top_logprobs"] == 1 and body["max_tokens"] == 64 for body in server.bodies)
        assert results[0] == results[1]
        assert results[0][1] == ("s1", True, (-0.5,)) and results[0][2][1] is False

    def test_equal_seeds_are_equal_requests(self) -> None:
        seeds = []
        for seed in (0, 0, 1):
            with FaultyServer(lambda *_: http(200, chat("1"))) as server, Servers([server.url]) as servers:
                evaluate(ServerAnswerer(servers), Sums(), TEN[:3], eval_at_k(2, (1,)), seed=seed)
            seeds.append({(question(body), body["seed"]) for body in server.bodies})
        assert seeds[0] == seeds[1] and not seeds[0] & seeds[2] and len(seeds[0]) == 6

    def test_a_dead_request_is_unjudged(self) -> None:
        with FaultyServer(lambda *_: http(500, {})) as server, Servers([server.url], attempts=1) as servers:
            found = evaluate(ServerAnswerer(servers), Sums(), TEN[:2], eval_at_1())
        assert [j.verdict.correct for j in found.judged] == [None, None]
        assert all(j.answer.completion.finish is Finish.ERROR for j in found.judged)
