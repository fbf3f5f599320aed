"""Answers that an update made again after a resume draws as it did the first time; without verl."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlvrlab.recipe import resolve
from rlvrlab.scale.verl import ANSWERS, seeds
from rlvrlab.scale.verl.keys import settings
from rlvrlab.scale.verl.launch import resumed_settings
from rlvrlab.scale.verl.seeds import AnswerHooks, seeded

ROLLOUT = "actor_rollout_ref.rollout"


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    recipe = SimpleNamespace(seed=3, engine={"rollout": "cpu"})
    monkeypatch.setattr(seeds, "current", lambda: SimpleNamespace(resolved=SimpleNamespace(recipe=recipe)))
    seeds._asked.clear()
    yield recipe
    seeds._asked.clear()


def row(step: int = 1, problem: str = "p", session: int = 0, uid: str = "u") -> dict[str, Any]:
    return {"global_steps": step, "extra_info": {"id": problem}, "session_id": session, "uid": uid}


def test_every_answer_has_a_seed_of_its_own_and_the_same_one_the_second_time() -> None:
    cases = product((1, 2), "pq", (0, 1), (0, 1))
    asked = [(row(step, problem, session), turn) for step, problem, session, turn in cases]
    first = [seeded({"temperature": 1.0}, one, turn) for one, turn in asked]
    seeds._asked.clear()  # as in a process that was started anew
    again = [seeded({"temperature": 1.0}, {**one, "uid": "another"}, turn) for one, turn in asked]
    assert first == again and len({given["seed"] for given in first}) == len(asked) == 16
    assert all(given["temperature"] == 1.0 and 0 <= given["seed"] < 2**31 for given in first)


def test_a_problem_that_is_asked_twice_in_a_step_has_other_answers() -> None:
    one, other = seeded({}, row(uid="a")), seeded({}, row(uid="b"))
    assert one != other and seeded({}, row(uid="a", session=1)) not in (one, other)
    assert (seeded({}, row(uid="a")), seeded({}, row(uid="b"))) == (one, other)
    assert seeded({}, row(step=2, uid="b"))["seed"] == seeded({}, row(step=2, uid="b"))["seed"] != other["seed"]
    assert list(seeds._asked) == [(2, "p")]


def test_other_samplers_are_left_as_verl_asks_them(job: SimpleNamespace) -> None:
    job.engine["rollout"] = "vllm"
    assert seeded({"top_p": 0.9}, row()) == {"top_p": 0.9}


def test_an_answer_is_drawn_with_its_seed() -> None:
    class Verls:
        async def run(self, sampling_params: dict[str, Any], **row: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            return sampling_params, row

    class Loop(AnswerHooks, Verls):
        pass

    given, passed = asyncio.run(Loop().run({"top_p": 1.0}, **row()))
    assert given == seeded({"top_p": 1.0}, row()) and passed == row()


@pytest.mark.parametrize(("rollout", "loop"), [("cpu", ANSWERS), ("vllm", None)])
def test_verl_is_told_to_use_it_on_a_cpu(rollout: str, loop: str | None) -> None:
    engine = {"type": "verl", "model": "owner/model", "gpus": 1, "rollout": rollout}
    resolved = resolve({"phases": ["grpo"], "env": {"type": "countdown"}, "engine": engine}, {}, Path())
    assert settings(resolved, "home").get(f"{ROLLOUT}.agent.default_agent_loop") == loop


def test_a_resumed_sampler_does_not_begin_its_stream_anew() -> None:
    first, second = (resumed_settings(0, step)[f"{ROLLOUT}.seed"] for step in (10, 20))
    assert first != second and 0 not in (first, second) and resumed_settings(0, 10)[f"{ROLLOUT}.seed"] == first
    assert resumed_settings(0, 10)["trainer.val_before_train"] is False


def test_the_sampler_on_a_cpu_draws_by_the_seed_whatever_it_drew_before() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from rlvrlab.models import resolve as model_of
    from rlvrlab.scale.verl.cpu_rollout import Server

    server = Server(str(model_of("nano")))
    asked = {"temperature": 1.0, "max_tokens": 8}
    first = [server._answer([5, 6, 7], {**asked, "seed": seed}) for seed in (1, 2)]
    server._answer([9], asked)
    assert [server._answer([5, 6, 7], {**asked, "seed": seed}) for seed in (2, 1)] == first[::-1]
    assert first[0][0] != first[1][0]
