"""Token arrays and keyed randomness."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.batch import Scale, TokenBatch, add_metrics, batch_of, micro_batches, pad, scale_of, without
from rlvrlab.randomness import drawn, generator, key_bits, shuffled


def batch() -> TokenBatch:
    return batch_of(
        [(1,), (2, 3), (4,), (5,)],
        [(7, 8, 9), (7,), (6, 6), ()],
        horizon=12,
        pair_B=np.array([0, 0, 1, 1]),
        chosen_B=np.array([True, False, True, False]),
        advantage_BT=np.arange(12.0).reshape(4, 3),
        skill="sums",
    )


def test_counts_of_the_whole() -> None:
    assert batch().scale == Scale(tokens=6, rows=3, pairs=2, horizon=12)


def test_masks_follow_lengths() -> None:
    assert batch().seen_BT.astype(int).tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert np.array_equal(batch().loss_BT, batch().seen_BT)
    assert batch().tokens_BT.tolist() == [[7, 8, 9], [7, 0, 0], [6, 6, 0], [0, 0, 0]]


@pytest.mark.parametrize("index", [[2, 0], np.array([3]), slice(1, 3), []])
def test_slices_take_every_array_and_keep_the_scale(index) -> None:
    whole, part = batch(), batch().rows(index)
    order = np.arange(4)[index] if len(np.arange(4)[index]) else np.array([], dtype=int)
    assert part.scale == whole.scale and part.skill == "sums"
    assert part.prompts == tuple(whole.prompts[i] for i in order) and len(part) == len(order)
    for item in fields(TokenBatch):
        value = getattr(whole, item.name)
        if isinstance(value, np.ndarray):
            assert np.array_equal(getattr(part, item.name), value[order]), item.name


def test_rescaled_rows_are_an_update_of_their_own() -> None:
    part = batch().rows([1, 3]).rescaled()
    assert part.scale == Scale(tokens=1, rows=1, pairs=2, horizon=12)


def test_horizon_defaults_to_the_longest_row() -> None:
    assert batch_of([(1,)], [(2, 3)]).scale.horizon == 2


def test_unmasked_rows_do_not_count() -> None:
    assert scale_of(np.array([[True, False], [False, False]]), None, 4) == Scale(1, 1, 0, 4)


@given(st.lists(st.lists(st.integers(1, 99), max_size=6), max_size=5))
def test_padding_can_be_taken_off_again(rows: list[list[int]]) -> None:
    out = pad(rows, np.int64)
    assert out.shape == (len(rows), max([len(r) for r in rows], default=0) or 1)
    assert [[x for x in row if x] for row in out.tolist()] == rows


def test_keys_tell_types_and_grouping_apart() -> None:
    keys = [(1,), ("1",), (1, 2), ((1, 2),), ("1", 2), (12,), (), (0,), ("",)]
    assert len({key_bits(*key) for key in keys}) == len(keys)
    assert generator(0, "a").random() != generator(0, "b").random()


def test_generators_do_not_depend_on_the_hash_seed() -> None:
    """Keys are hashed by content, so PYTHONHASHSEED cannot change a run."""
    code = "from rlvrlab.randomness import generator; print(generator(3, 'x', ('a', 1)).random())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert runs == {f"{generator(3, 'x', ('a', 1)).random()}\n"}


def test_shuffling_is_keyed_and_complete() -> None:
    items = list(range(50))
    assert shuffled(items, 1) == shuffled(items, 1) != shuffled(items, 2)
    assert sorted(shuffled(items, 1)) == items == list(range(50))


def test_metrics_of_parts_are_summed() -> None:
    total = {"clipped": 1.0}
    add_metrics(total, {"clipped": 0.25, "kl": -0.5})
    add_metrics(total, {"kl": -0.25})
    assert total == {"clipped": 1.25, "kl": -0.75}


@pytest.mark.parametrize(
    ("couples", "rows", "parts"),
    [
        ("batch", 1, [[0, 1, 2, 3]]), ("row", 0, [[0, 1, 2, 3]]), ("row", 4, [[0, 1, 2, 3]]),
        ("row", 3, [[0, 1, 2], [3]]), ("row", 1, [[0], [1], [2], [3]]), ("pair", 2, [[0, 1], [2, 3]]),
        ("pair", 1, [[0, 1], [2, 3]]), ("pair", 3, [[0, 1, 2, 3]]),
    ],
)  # fmt: skip
def test_a_batch_is_cut_where_its_objective_allows(couples, rows: int, parts: list[list[int]]) -> None:
    assert [part.tolist() for part in micro_batches(batch(), couples, rows)] == parts


def test_no_places_of_a_stream_need_no_problems() -> None:
    assert drawn([], ("seed",), 3, 3) == []


def test_spans_are_taken_out_of_a_copy_of_the_mask() -> None:
    mask_BT = np.ones((2, 4), dtype=bool)
    assert without(mask_BT, [[(1, 3)], []]).astype(int).tolist() == [[1, 0, 0, 1], [1, 1, 1, 1]]
    assert mask_BT.all()
