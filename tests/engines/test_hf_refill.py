"""Rows that wait take the places of those that have ended: the same answers as from plain waves, in fewer steps.

Plain waves are a call that has places for all rows; the decoder with graphs runs its plain operations on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from needs_torch import torch
from test_hf_sampling import RAGGED, TOLERANCE, Letters, branches, model_of, prompt, tokens_of

from rlvrlab.engines.hf import blocks, decode_cuda
from rlvrlab.engines.hf import sampler as sampler_module
from rlvrlab.engines.hf.asked import Asked
from rlvrlab.engines.hf.places import Places
from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.types import Completion, Request, Sampling

MANY = [Request(prompt(2 + i % 5, i), 1 + i % 4, ("many", i), Sampling(3 + 7 * (i % 6))) for i in range(20)]


def sampler_of(places: int, *, graphs: bool = True, dtype: Any = torch.float32) -> HfSampler:
    sampler = HfSampler(model_of("llama").to(dtype), Letters(), "cpu", dtype=dtype, graphs=graphs)
    sampler.max_rows = places
    return sampler


@pytest.fixture(scope="module")
def sampler() -> HfSampler:
    return sampler_of(200)


@pytest.fixture(scope="module")
def exact() -> HfSampler:
    """In float64 only the draw itself rounds, which is in float32: hardly a token lies so close to another."""
    return sampler_of(200, dtype=torch.float64)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Steps by their number of places, and tokens of prompts that are computed in the first layer."""
    seen: dict[str, list[int]] = {"steps": [], "prompts": []}
    advance, heads = decode_cuda.Room.advance, blocks.heads

    def stepped(room: Any, rows: int, *more: Any) -> None:
        seen["steps"].append(rows)
        advance(room, rows, *more)

    def computed(weights: Any, layer: Any, x_NI: Any, *more: Any) -> Any:
        if layer is weights.layers[0]:
            seen["prompts"].append(len(x_NI))
        return heads(weights, layer, x_NI, *more)

    monkeypatch.setattr(decode_cuda.Room, "advance", stepped)
    monkeypatch.setattr(blocks, "heads", computed)
    return seen


def drawn_with(sampler: HfSampler, places: int, requests: Sequence[Request]) -> list[list[Completion]]:
    """With so many places; each answer is told once and is the one that comes back."""
    sampler.max_rows = places
    heard: list[tuple[int, int, Completion]] = []
    answers = sampler.sample(requests, 0, heard.extend)
    told = {(i, sample): one for i, sample, one in heard}
    assert len(heard) == len(told) == sum(request.n for request in requests)
    assert told == {(i, sample): one for i, group in enumerate(answers) for sample, one in enumerate(group)}
    return answers


def assert_same(these: list[list[Completion]], those: list[list[Completion]], tolerance: float = TOLERANCE) -> None:
    for one, other in zip((x for group in these for x in group), (x for group in those for x in group), strict=True):
        assert (one.tokens, one.text, one.finish) == (other.tokens, other.text, other.finish)
        assert one.logprobs == pytest.approx(other.logprobs, abs=tolerance)


a_sampling = st.builds(
    Sampling,
    st.integers(1, 30),
    temperature=st.sampled_from([0.0, 1.0, 0.7]),
    top_p=st.sampled_from([1.0, 1.0, 0.8]),
    stop=st.sampled_from([(), (), ("Q",), ("A", "BC")]),
)
a_call = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 2), st.integers(1, 7), a_sampling), min_size=1, max_size=8
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])  # to shrink one takes minutes
@given(a_call, st.integers(1, 5))
def test_answers_do_not_depend_on_refilling(
    exact: HfSampler, call: list[tuple[int, int, int, Sampling]], places: int
) -> None:
    requests = [Request(prompt(length, seed), n, ("r", i), how) for i, (length, seed, n, how) in enumerate(call)]
    assert_same(drawn_with(exact, places, requests), drawn_with(exact, 200, requests), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("places", [3, 5, 200])
def test_answers_are_those_of_the_cpus_own_decoder(sampler: HfSampler, places: int) -> None:
    halting, narrow = Sampling(40, stop=("A", "BC")), Sampling(20, top_p=0.8)
    settled = [Request(prompt(9, i), 3, ("own", i), how) for i, how in enumerate((halting, narrow, halting))]
    long = Request(prompt(3), 4, ("long",), Sampling(90))  # longer than what one graph of the plain operations holds
    requests = [*MANY, *settled, *RAGGED, long]
    assert_same(drawn_with(sampler, places, requests), drawn_with(sampler_of(5, graphs=False), 5, requests))


@pytest.mark.slow
def test_it_takes_fewer_steps_than_waves_and_at_last_a_smaller_graph(
    sampler: HfSampler, watched: dict[str, list[int]]
) -> None:
    halting = Sampling(60, stop=("A", "B", "C", "D"))
    requests = [Request(prompt(3, i), 1, ("halting", i), halting) for i in range(40)]
    answers = drawn_with(sampler, 8, requests)
    refilled = list(watched["steps"])
    watched["steps"].clear()
    waves = [drawn_with(sampler, 8, requests[start : start + 8]) for start in range(0, 40, 8)]
    assert_same(answers, [group for wave in waves for group in wave])
    assert len(refilled) < 0.75 * len(watched["steps"])
    assert refilled[0] == 8 and refilled[-1] < 8


@pytest.mark.slow
def test_a_prompt_is_computed_once_however_many_places_its_answers_take_in_turn(
    sampler: HfSampler, watched: dict[str, list[int]]
) -> None:
    requests = [Request(prompt(30), 20, ("long", 0), Sampling(12)), Request(prompt(7), 20, ("short", 0), Sampling(12))]
    few = drawn_with(sampler, 3, requests)
    assert sum(watched["prompts"]) == 37
    assert_same(few, drawn_with(sampler, 200, requests))


@pytest.mark.slow
def test_memory_grows_with_places_and_not_with_requests() -> None:
    few, many = (sampler_of(4) for _ in range(2))
    few.sample(MANY[3:9], 0)
    many.sample(MANY, 0)
    assert few.cache_bytes == many.cache_bytes > 0
    room = many._graphs._room
    assert len(room.state.uniform) == len(room.state.out_token) == 4 and room.sizes.groups == 4


@pytest.mark.slow
def test_begun_answers_are_refilled_too(sampler: HfSampler) -> None:
    requests = branches((1, 9, 4))
    assert_same(drawn_with(sampler, 3, requests), drawn_with(sampler, 200, requests))


@pytest.mark.slow
def test_who_has_hung_up_while_waiting_gets_no_place(sampler: HfSampler, watched: dict[str, list[int]]) -> None:
    requests = [Request(prompt(5, i), 4, ("hang", i), Sampling(12)) for i in range(6)]
    whole = drawn_with(sampler, 200, requests)
    watched["prompts"].clear()
    sampler.max_rows, calls = 4, count()
    answers = sampler.sample(requests, 0, unwanted=lambda i: i in (1, 2, 3) or (i == 4 and next(calls) >= 4))
    assert tokens_of(answers)[0] == tokens_of(whole)[0] and tokens_of(answers)[5] == tokens_of(whole)[5]
    assert [len(group) for group in answers] == [4, 0, 0, 0, 4, 4] and sum(watched["prompts"]) == 3 * 5
    assert sampler.sample(requests, 0, unwanted=lambda i: True) == [[]] * 6


@pytest.mark.slow
def test_one_token_each_takes_no_step(sampler: HfSampler, watched: dict[str, list[int]]) -> None:
    requests = [Request(prompt(4, i), 3, ("one", i), Sampling(1)) for i in range(6)]
    assert_same(drawn_with(sampler, 4, requests), drawn_with(sampler, 200, requests))
    assert watched["steps"] == []


@pytest.mark.slow
def test_a_call_that_failed_leaves_nothing_to_the_next(sampler: HfSampler) -> None:
    class Stumbled(Exception):
        pass

    def stumble(complete: Sequence[Any]) -> None:
        raise Stumbled

    whole = drawn_with(sampler, 200, MANY)
    sampler.max_rows = 4
    with pytest.raises(Stumbled):
        sampler.sample(MANY, 0, stumble)
    assert_same(drawn_with(sampler, 4, MANY), whole)


@pytest.mark.slow
def test_a_place_without_a_row_has_nothing_to_look_at(sampler: HfSampler, monkeypatch: pytest.MonkeyPatch) -> None:
    looking, advance = list[int](), decode_cuda.Room.advance

    def watching(room: Any, *more: Any) -> None:
        looking.append(int((room.state.length > 0).sum()))
        advance(room, *more)

    def stumble(complete: Sequence[Any]) -> None:
        raise ArithmeticError

    drawn_with(sampler, 4, MANY)
    left = sampler._graphs._room.state
    assert not any(buffer.any() for buffer in (left.living, left.step, left.length, left.group))
    with pytest.raises(ArithmeticError):
        sampler.sample(MANY, 0, stumble)
    assert left.length.any(), "rows that had begun when it failed"
    monkeypatch.setattr(decode_cuda.Room, "advance", watching)
    drawn_with(sampler, 4, [Request(prompt(3), 1, ("alone",), Sampling(20))])
    assert set(looking) == {1}


def asked_for(samples: Sequence[int], limit: int = 9) -> Asked:
    """Groups of so many rows each."""
    group_R = np.repeat(np.arange(len(samples)), samples)
    ones = np.ones(len(group_R))
    prompts = tuple((1, group) for group in range(len(samples)))
    return Asked(prompts, (0,) * len(samples), group_R, (limit * ones).astype(int), ones, ones, [], end=-1)


def test_rows_begin_when_an_eighth_of_the_places_is_free_or_all_who_wait_can() -> None:
    places = Places(asked_for([1] * 27), 16)
    first = places.admit()
    assert first is not None and first.row_R.tolist() == list(range(16)) and places.admit() is None
    places.leave(np.array([3]))
    assert places.admit() is None, "one place of sixteen is not worth it"
    places.leave(np.array([9]))
    then = places.admit()
    assert then is not None and then.place_R.tolist() == [3, 9] and then.row_R.tolist() == [16, 17]
    places.leave(np.arange(8))
    assert places.admit() is not None and places.waiting == 1
    places.leave(np.array([5]))
    last = places.admit()
    assert last is not None and last.row_R.tolist() == [26], "the last one waits for nobody else"


def test_a_prompt_lies_where_no_living_row_looks_and_stays_while_its_rows_wait() -> None:
    places = Places(asked_for([5, 2, 1]), 3)
    first = places.admit()
    assert first is not None and (first.groups, first.slots, first.continued) == ([0], [0], False)
    places.leave(np.arange(3))
    second = places.admit()  # nobody of the group lived, but two waited
    assert second is not None and (second.groups, second.continued) == ([1], True)
    assert second.slot_R.tolist() == [0, 0, second.slots[0]] and second.prompt_R.tolist() == [0, 0, 1]
    places.leave(np.array([0, 1]))
    third = places.admit()
    assert third is not None and (third.groups, third.slots, third.continued) == ([2], [0], True)
    assert third.slot_R.tolist() == [second.slots[0], 0]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 12), st.randoms(use_true_random=False))
def test_whoever_finds_a_place_finds_a_slot(samples: list[int], count: int, chance: Any) -> None:
    """Also where every group is held by one straggler."""
    asked = asked_for(samples)
    places = Places(asked, count)
    assert places.slots <= count
    lies: dict[int, int] = {}
    begun: list[int] = []
    while places.waiting or len(places.taken):
        free = len(places.row_P) - len(places.taken)
        arrivals = places.admit()
        if arrivals is not None:
            assert len(arrivals.row_R) == min(free, len(arrivals.row_R) + places.waiting), "every free place is taken"
            lies.update(zip(asked.group_R[arrivals.row_R].tolist(), arrivals.slot_R.tolist(), strict=True))
            begun += arrivals.row_R.tolist()
        living = set(asked.group_R[places.row_P[places.taken]].tolist())
        assert len({lies[group] for group in living}) == len(living), "two living groups in one slot"
        leaving = [place for place in places.taken.tolist() if chance.random() < 0.7] or places.taken[:1].tolist()
        places.leave(np.array(leaving, dtype=int))
    assert begun == list(range(len(asked.group_R)))


@pytest.mark.parametrize("new", [4, 60, 70])
@pytest.mark.parametrize("held", [1, 7, 33])
def test_a_room_never_takes_more_memory_than_it_may(new: int, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sampler_of(200)
    per_position = sampler.weights.shape.cache_values * sampler.weights.dtype.itemsize
    budget = held * per_position * 2 * 64  # so many rows, each with a prompt of its own, as a room is rounded
    monkeypatch.setattr(sampler_module, "CACHE_BYTES_CPU", budget)
    for n in (1, 4):
        sampler.forget()
        sampler.sample([Request(prompt(20, i), n, ("m", i), Sampling(new)) for i in range(24)], 0)
        least = sum(64 * -(-length // 64) for length in (20, new)) * per_position  # one row always begins
        assert sampler.cache_bytes <= max(budget, least)


def test_short_answers_do_not_wait_behind_the_capacity_of_long_ones(
    watched: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = sampler_of(200)
    per_position = sampler.weights.shape.cache_values * sampler.weights.dtype.itemsize
    monkeypatch.setattr(sampler_module, "CACHE_BYTES_CPU", 11 * per_position * (64 + 128))
    requests = [Request(prompt(3), 1, ("long",), Sampling(90))]  # eight such answers abreast, or sixteen short ones
    requests += [Request(prompt(3, i), 1, ("short", i), Sampling(2)) for i in range(31)]
    answers = sampler.sample(requests, 0)
    assert max(watched["steps"]) == 16 and [len(group) for group in answers] == [1] * 32


def test_what_nobody_wants_any_more_makes_room_while_it_is_drawn(
    sampler: HfSampler, watched: dict[str, list[int]]
) -> None:
    heard: list[int] = []
    requests = [Request(prompt(3), 2, ("unwanted",), Sampling(60)), Request(prompt(4), 3, ("wanted",), Sampling(4))]
    sampler.max_rows = 3
    groups = sampler.sample(
        requests, 0, lambda told: heard.extend(row[0] for row in told), lambda request: request == 0 and 1 in heard
    )
    assert len(groups[1]) == 3 and len(watched["steps"]) <= 3 * decode_cuda.LOOK_EVERY


def test_the_living_close_up_only_when_nobody_waits() -> None:
    places = Places(asked_for([1] * 9), 8)
    places.admit()
    places.leave(np.array([0, 2, 3, 4, 5]))
    places.admit()
    assert places.waiting == 0 and places.taken.tolist() == [0, 1, 6, 7]
    places.step_P[[0, 1, 6, 7]] = 1, 2, 3, 4
    moves = places.close_up()
    assert moves is not None and moves.to.tolist() == [2, 3] and moves.source.tolist() == [6, 7]
    assert places.row_P.tolist() == [8, 1, 6, 7] and places.step_P.tolist() == [1, 2, 3, 4]
    assert places.close_up() is None, "no smaller graph"

    crowded = Places(asked_for([1] * 99), 16)
    crowded.admit()
    crowded.leave(np.arange(1))
    assert crowded.waiting and crowded.close_up() is None


def test_a_waiting_row_that_nobody_wants_is_passed_over() -> None:
    places = Places(asked_for([2, 2, 2]), 3, lambda row: row in (2, 3))
    first = places.admit()
    assert first is not None and first.row_R.tolist() == [0, 1, 4]
    places.leave(np.arange(3))
    second = places.admit()
    assert second is not None and second.row_R.tolist() == [5] and second.continued
    lonely = Places(asked_for([2]), 1, lambda row: True)
    assert lonely.admit() is None and lonely.waiting == 0
