"""Packed layouts against the rows they stand for; no torch needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.engines.hf.packing import LAST_PART, Layout, layout_of, token_batches
from rlvrlab.errors import UserError

TOKEN = st.integers(1, 3)
PROMPT = st.lists(TOKEN, min_size=1, max_size=4).map(tuple)
ANSWER = st.lists(TOKEN, max_size=5).map(tuple)
ROWS = st.lists(st.tuples(PROMPT, ANSWER), min_size=1, max_size=8)


def batch_from(rows, **arrays) -> TokenBatch:
    return batch_of([prompt for prompt, _ in rows], [answer for _, answer in rows], **arrays)


def seen_from(layout: Layout, place: int) -> tuple[list[int], int]:
    """Tokens that an input may look at, itself last, and its position: read off the tables as attention does."""
    if layout.shared is None:
        row, column = divmod(place, layout.ids.shape[1])
        assert layout.mask[row, : column + 1].all()
        return layout.ids[row, : column + 1].tolist(), int(layout.positions[row, column])
    shared, position = layout.shared, int(layout.positions[0, place])
    at = int(shared.back_N[place])
    if at < shared.prompt_GP.size:
        group, column = divmod(at, shared.prompt_GP.shape[1])
        return layout.ids[0, shared.prompt_GP[group, : column + 1]].tolist(), position
    answer, column = divmod(at - shared.prompt_GP.size, shared.answer_CT.shape[1])
    group = shared.group_C[answer]
    prompt = shared.prompt_GP[group, : shared.prompt_length_G[group]]
    return layout.ids[0, [*prompt, *shared.answer_CT[answer, : column + 1]]].tolist(), position


@given(ROWS, st.booleans())
def test_every_answer_token_is_predicted_from_its_own_past(rows, packed: bool) -> None:
    layout = layout_of(batch_from(rows), 100, packed=packed)
    for i, (prompt, answer) in enumerate(rows):
        assert (layout.edge_BT[i] >= 0).sum() == len(answer)
        for t, token in enumerate(answer):
            edge = layout.edge_BT[i, t]
            past, position = seen_from(layout, int(layout.place_K[layout.edge_place_E[edge]]))
            assert layout.edge_token_E[edge] == token
            assert past == [*prompt, *answer[:t]] and position == len(past) - 1


@given(ROWS)
def test_nothing_is_packed_twice(rows) -> None:
    layout = layout_of(batch_from(rows), 100, packed=True)
    prompts, answers = {p for p, _ in rows}, set(rows)
    assert layout.ids.size == sum(map(len, prompts)) + sum(max(len(a) - 1, 0) for _, a in answers)
    assert len(set(layout.place_K.tolist())) == len(layout.place_K)
    assert (np.diff(layout.edge_place_E) >= 0).all()


@given(ROWS, st.booleans(), st.integers(0, 99))
def test_gathering_is_the_adjoint_of_spreading(rows, packed: bool, seed: int) -> None:
    """So coefficients of identical rows add up, and padding gets none."""
    layout, rng = layout_of(batch_from(rows), 100, packed=packed), np.random.default_rng(seed)
    c_BT = rng.normal(size=layout.edge_BT.shape)
    x_E, x_K = rng.normal(size=len(layout.edge_place_E)), rng.normal(size=len(layout.place_K))
    assert np.isclose((layout.spread(x_E) * c_BT).sum(), x_E @ layout.gather(c_BT))
    assert np.isclose((layout.spread_places(x_K) * c_BT).sum(), x_K @ layout.gather_places(c_BT))


@given(ROWS, st.sampled_from(["row", "pair", "batch"]), st.integers(1, 40))
def test_micro_batches_by_tokens(rows, couples: str, budget: int) -> None:
    rows = [*rows, *rows]
    pair_B = np.arange(len(rows)) % (len(rows) // 2)
    batch = batch_from(rows, pair_B=pair_B)
    chosen = list(range(0, len(rows), 1 if couples == "pair" else 2))
    parts = list(token_batches(batch, chosen, couples, budget))
    assert sorted(np.concatenate(parts).tolist()) == chosen
    for part in parts:
        if couples == "pair":
            assert (np.unique(pair_B[part], return_counts=True)[1] == 2).all()
        size = sum(map(len, {rows[i][0] for i in part})) + sum(len(rows[i][1]) for i in part)
        units = 1 if couples == "batch" else len(part) // (2 if couples == "pair" else 1)
        assert size <= budget + (budget // LAST_PART if part is parts[-1] else 0) or units == 1


def test_groups_stay_neighbours_so_that_their_prompt_is_shared() -> None:
    rows = [((1, 1), (2, 3)), ((2, 2), (2, 3)), ((1, 1), (3, 3)), ((2, 2), (3, 3))]
    assert [p.tolist() for p in token_batches(batch_from(rows), range(4), "row", 6)] == [[0, 2], [1, 3]]


def test_a_small_remainder_gets_no_pass_of_its_own() -> None:
    """256 answers of 128 tokens and their prompts are a little more than the 32,768 tokens of a pass."""
    rows = [((1 + i // 16, 2), (3,) * 8) for i in range(64)]  # 64 × 8 + 4 × 2 = 520 inputs
    counts = {
        budget: [len(p) for p in token_batches(batch_from(rows), range(64), "row", budget)] for budget in (512, 400)
    }
    assert counts == {512: [64], 400: [49, 15]}


def test_what_no_model_can_score_is_refused() -> None:
    with pytest.raises(UserError, match="6 tokens does not fit the model's window of 5"):
        layout_of(batch_from([((1, 2, 3), (1, 2, 3, 1))]), 5, packed=True)
    with pytest.raises(UserError, match="a prompt has no tokens"):
        layout_of(batch_from([((), (1,))]), 5, packed=True)
