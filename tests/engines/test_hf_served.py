"""Servers that draw the answers: the policy published last, all answers or none, and nobody else's."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
from local_server import LocalServer
from tiny_models import tiny, write_model

from rlvrlab import replicas
from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf, served
from rlvrlab.engines.openai import ServersGone, servers
from rlvrlab.errors import InfrastructureError, ModelChanged, UserError
from rlvrlab.objectives.sft import Sft
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Request, Sampling

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(served, "RETRY_S", 0.05)
    monkeypatch.setattr(replicas, "RECHECK_S", 0.05)
    monkeypatch.setattr(servers, "FIRST_TRIES", 1)


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer(tiny()) as running:
        yield running


def engine(url: str = "embedded", rank: int = 4, **keys: Any) -> Any:
    return Hf(tiny(), lora_rank=rank, device="cpu", sampler=url, **keys).build(Optimizer())


def requests(one: Any, temperature: float = 1.0, step: int = 0) -> list[Request]:
    sampling = Sampling(10, temperature)
    return [Request(one.tokenizer.encode(f"{i} + 2 ="), 4, (0, "grpo", step, f"p{i}"), sampling) for i in range(5)]


def train(one: Any, texts: tuple[str, ...] = ("1 + 1", "2 * 3")) -> None:
    """A step large enough to change what is drawn."""
    tokens = [one.tokenizer.encode(text) for text in texts]
    vector, *_ = one.gradient(batch_of([t[:1] for t in tokens], [t[1:] for t in tokens]), Sft())
    one.step([vector], [1.0], 0.05)
    one.publish()


def tokens_of(drawn: Any) -> list[list[tuple[int, ...]]]:
    return [[one.tokens for one in group] for group in drawn]


def test_it_draws_what_the_embedded_sampler_draws_after_every_update(server: LocalServer, tmp_path: Path) -> None:
    here, there = engine(), engine(server.url)
    texts = []
    for step in range(3):
        asked = requests(here, step=step)
        mine, theirs = here.sample(asked), there.sample(asked)
        assert tokens_of(mine) == tokens_of(theirs)
        for a, b in zip(mine, theirs, strict=True):
            for x, y in zip(a, b, strict=True):
                assert y.logprobs == pytest.approx(x.logprobs, abs=1e-4)
                assert (y.text, y.finish, y.policy_version) == (x.text, x.finish, step)
        assert there._sampler.mismatch < 1e-4
        texts.append(tokens_of(theirs))
        train(here)
        train(there)
    assert texts[0] != texts[1] != texts[2]
    assert [name.split("-")[1] for name in server.loaded] == ["0", "1", "2"]
    assert len(server.adapters) == 1 and server.adapters[0].startswith("policy-2-")
    assert len(list((tmp_path / "cache" / "rlvrlab" / "adapters").glob("*/policy-*"))) == 1
    there._sampler._end()
    assert server.adapters == [] and not list((tmp_path / "cache" / "rlvrlab" / "adapters").iterdir())


def test_temperature_is_in_the_log_probs_and_checked(server: LocalServer) -> None:
    here, there = engine(), engine(server.url)
    asked = requests(here, 0.6)
    assert tokens_of(here.sample(asked)) == tokens_of(there.sample(asked))
    plain = requests(here, 1.0)

    def raw(body: dict[str, Any], right: dict[str, Any], number: int) -> dict[str, Any]:
        """As vLLM without --logprobs-mode: log-probs at temperature 1."""
        for choice in right["choices"]:
            ids = choice["token_ids"]
            batch = batch_of([tuple(body["prompt"])], [tuple(ids)])
            choice["logprobs"]["token_logprobs"] = here.logprobs(batch)[0][0, : len(ids)].tolist()
        return right

    server.spoil = raw
    assert there.sample(plain)
    with pytest.raises(UserError, match="before temperature and top_p; start vLLM with --logprobs-mode"):
        there.sample(asked)


def test_after_a_rollback_the_same_version_is_another_policy(server: LocalServer, tmp_path: Path) -> None:
    there = engine(server.url)
    there.save(tmp_path / "state")
    train(there)
    after = tokens_of(there.sample(requests(there)))
    there.load(tmp_path / "state")
    train(there, ("9 - 8", "7 / 7"))
    assert tokens_of(there.sample(requests(there))) != after
    assert len({name for name in server.loaded if name.startswith("policy-1-")}) == 2


def test_a_restarted_server_is_given_the_adapter_again(
    server: LocalServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missed, say = threading.Event(), served._say

    def noticed(words: str) -> None:
        say(words)
        missed.set()

    def restart() -> None:
        missed.wait(60)  # not before its absence was noticed, however slow the machine is
        server.revive()

    monkeypatch.setattr(served, "_say", noticed)
    here, there = engine(), engine(server.url)
    train(here)
    train(there)
    server.die()
    restarting = threading.Thread(target=restart)
    restarting.start()
    assert tokens_of(there.sample(requests(there))) == tokens_of(here.sample(requests(here)))
    restarting.join()
    assert "waiting up to 600 s" in capsys.readouterr().err


def test_lost_in_the_middle_of_a_call_it_waits_and_the_batch_is_whole(server: LocalServer) -> None:
    here, there = engine(), engine(server.url)
    first = len(server.asked)

    def restart() -> None:
        server.die()
        threading.Event().wait(0.3)
        server.spoil = lambda body, right, number: right
        server.mute = False
        server.revive()

    restarting = threading.Thread(target=restart)

    def dying(body: dict[str, Any], right: dict[str, Any], number: int) -> dict[str, Any] | None:
        if number == first + 2:
            server.mute = True  # until the thread gets to it: a check that passes would load the adapter once more
            restarting.start()
        return right if number < first + 2 else None

    server.spoil = dying
    drawn = there.sample(requests(there))
    restarting.join()
    assert tokens_of(drawn) == tokens_of(here.sample(requests(here)))
    assert server.loaded == [server.loaded[0]] * 2


def test_lost_for_good_it_ends_with_what_to_do(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    there = engine(server.url)
    train(there)
    monkeypatch.setattr(served, "WAIT_S", 0.2)
    server.die()
    with pytest.raises(ServersGone, match="go on with --resume"):
        there.sample(requests(there))
    server.revive()
    monkeypatch.setattr(served, "WAIT_S", 60.0)
    assert there.sample(requests(there))


def spoiled(**changes: Any) -> Any:
    def spoil(body: dict[str, Any], right: dict[str, Any], number: int) -> dict[str, Any]:
        return right | changes

    return spoil


def test_answers_of_an_older_adapter_are_never_used(server: LocalServer) -> None:
    there = engine(server.url)
    server.spoil = spoiled(model="policy-0-00000000")
    with pytest.raises((InfrastructureError, ModelChanged), match="answers as 'policy-0-00000000'"):
        there.sample(requests(there))
    server.spoil = spoiled(model="")
    with pytest.raises(InfrastructureError, match="another policy"):
        there.sample(requests(there))


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"token_ids": [5, 6], "logprobs": {"token_logprobs": [-1.0]}}, "2 token ids and 1 log-probabilities"),
        ({"token_ids": [5, 900], "logprobs": {"token_logprobs": [-1.0, -1.0]}}, "cannot have drawn"),
        ({"token_ids": [5] * 11, "logprobs": {"token_logprobs": [-1.0] * 11}}, "cannot have drawn"),
        ({"token_ids": [5], "logprobs": {"token_logprobs": [-30.0]}}, "does not sample from this policy"),
    ],
)
def test_answers_that_cannot_be_are_refused(server: LocalServer, choice: dict[str, Any], words: str) -> None:
    there = engine(server.url)
    server.spoil = spoiled(choices=[{"text": "x", "finish_reason": "stop", **choice}] * 4)
    with pytest.raises((UserError, InfrastructureError), match=words):
        there.sample(requests(there))


def test_part_of_a_batch_is_no_batch(server: LocalServer) -> None:
    there = engine(server.url)

    def spoil(body: dict[str, Any], right: dict[str, Any], number: int) -> dict[str, Any]:
        return right | {"choices": []} if body["rlvr_key"][-1] == "p3" else right

    server.spoil = spoil
    there._sampler._servers.replicas.pause_s = 0.001
    with pytest.raises(InfrastructureError, match=r"1 of 5 requests got no answer .*no choices.*part of a batch"):
        there.sample(requests(there))


def test_part_of_a_group_is_no_answer(server: LocalServer) -> None:
    there = engine(server.url)
    server.spoil = lambda body, right, number: right | {"choices": right["choices"][:3]}
    with pytest.raises(InfrastructureError, match=r"5 of 5 requests got no answer .*3 answers instead of 4"):
        there.sample(requests(there))


def test_a_greedy_answer_is_asked_for_once_and_counts_n_times(server: LocalServer) -> None:
    """vLLM refuses n above 1 at temperature 0."""
    here, there = engine(), engine(server.url)
    first = len(server.asked)
    assert tokens_of(there.sample(requests(there, 0.0))) == tokens_of(here.sample(requests(here, 0.0)))
    assert [body["n"] for body in server.asked[first:]] == [1] * 5


def test_a_server_of_another_model_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with LocalServer(str(write_model(tmp_path, seed=1))) as other, pytest.raises(UserError) as caught:
        engine(other.url)
    assert "does not sample from this policy" in str(caught.value) and f"serve {tiny()}" in str(caught.value)


@pytest.mark.parametrize(
    ("largest", "rank", "words"),
    [(0, 4, "takes no adapters while it runs; start it with `rlvr serve model PATH --adapters RANK`"),
     (2, 4, "rank 4, at most 2 is allowed here"),
     (8, 0, "engine.lora_rank, e.g. 16, or engine.sampler = 'embedded'")],
)  # fmt: skip
def test_what_cannot_be_served_is_said(largest: int, rank: int, words: str) -> None:
    with LocalServer(tiny(), largest) as running, pytest.raises(UserError) as caught:
        engine(running.url, rank)
    assert words in str(caught.value)


def test_what_killed_runs_left_behind_goes_after_a_day(tmp_path: Path) -> None:
    old, young = tmp_path / "1_old", tmp_path / "2_young"
    for folder, age_h in ((old, 30), (young, 1)):
        (folder / "policy-3-00000000").mkdir(parents=True)
        os.utime(folder, (time.time() - 3600 * age_h,) * 2)
    made = served._new_home(tmp_path)
    assert not old.exists() and young.exists() and made.stat().st_mode & 0o777 == 0o755


def test_nobody_there() -> None:
    with pytest.raises(ServersGone, match=r"no server answers .*start one with `rlvr serve model PATH`"):
        engine("http://127.0.0.1:9/v1")
