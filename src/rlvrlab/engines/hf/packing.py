"""Where the tokens of a batch go in one forward pass, so that nothing is computed twice.

Rows that share a prompt (the samples of a group, the two rows of a preference pair) compute it once, and identical
rows are one. An answer's last token is never an input: nothing is predicted after it.

    two rows  P P P | A B E      all prompts, then all answers, in one row without padding:
              P P P | A C E  ->  P P P A B A C      and each token's logits come from its *place*, the token before it

A place can predict several tokens (A and A: one edge; B and C: two). Suffixes: N inputs, K places, E edges (one per
distinct answer token), G prompts, C distinct answers, B rows, T answer positions, P prompt positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.types import Couples

LAST_PART = 8
"""A remainder of up to this fraction of a forward pass gets none of its own: on a GPU it would take nearly as long as a
full one, because starting the kernels takes longer than what they do."""


class Shared(NamedTuple):
    """What attention needs to know of a packed row; indices into N, padded with 0."""

    prompt_GP: Ints
    answer_CT: Ints
    group_C: Ints
    prompt_length_G: Ints
    answer_length_C: Ints
    """Inputs of each answer: its last token is none."""
    back_N: Ints
    """Where each input's output stands in the G·P prompt positions followed by the C·T answer positions."""


class Layout(NamedTuple):
    """The inputs of one forward pass, and where to read its predictions."""

    ids: Ints
    """Input tokens: (1, N) when packed, else one padded row per distinct answer."""
    positions: Ints
    """Position of each input in its own sequence."""
    mask: Bools | None
    """Real inputs of padded rows; None when packed."""
    shared: Shared | None
    """None when padded."""
    place_K: Ints
    """Flat indices of the inputs that predict something."""
    edge_place_E: Ints
    """Which place predicts this token; ascending."""
    edge_token_E: Ints
    edge_BT: Ints
    """The edge of each completion token; −1 where nothing is seen."""

    def spread(self, value_E: Floats) -> Floats:
        """Values per edge, as values per row and position; 0 where nothing is seen."""
        padded = np.append(value_E, 0.0)  # −1, the edge of nothing, reads the last
        return np.asarray(padded[self.edge_BT])

    def spread_places(self, value_K: Floats) -> Floats:
        """Values per place, as values per row and position; 0 where nothing is seen."""
        return self.spread(value_K[self.edge_place_E])

    def gather(self, value_BT: Floats) -> Floats:
        """Coefficients per row and position, summed per edge: identical rows add up."""
        seen_BT = self.edge_BT >= 0
        return _summed(self.edge_BT[seen_BT], value_BT[seen_BT], len(self.edge_place_E))

    def gather_places(self, value_BT: Floats) -> Floats:
        """Coefficients per row and position, summed per place."""
        return _summed(self.edge_place_E, self.gather(value_BT), len(self.place_K))


class Distinct(NamedTuple):
    """The different prompts and answers of a batch."""

    prompts: list[tuple[int, ...]]
    answers: list[Ints]
    group_C: Ints
    answer_B: Ints
    """Which distinct answer a row is."""


def layout_of(batch: TokenBatch, window: int, *, packed: bool) -> Layout:
    """Plan one forward pass over a batch; `window` is the longest sequence the model can read."""
    distinct = _distinct(batch)
    length_C = np.array([len(answer) for answer in distinct.answers], dtype=np.int64)
    prompt_length_G = np.array([len(prompt) for prompt in distinct.prompts], dtype=np.int64)
    if (prompt_length_G == 0).any():
        raise UserError("a prompt has no tokens: a language model needs at least one to predict from")
    longest = int((prompt_length_G[distinct.group_C] + length_C - 1).max(initial=0))
    if longest > window:
        remedy = "shorten the prompts or lower rollout.max_tokens"
        raise UserError(f"a sequence of {longest} tokens does not fit the model's window of {window}; {remedy}")
    at_T = np.arange(batch.tokens_BT.shape[1])
    length_B1, start_B1 = length_C[distinct.answer_B][:, None], _starts(length_C)[distinct.answer_B][:, None]
    edge_BT = np.where(at_T < length_B1, start_B1 + at_T, -1)
    token_E = np.concatenate(distinct.answers) if distinct.answers else np.zeros(0, np.int64)
    layout = (_packed if packed else _padded)(distinct, prompt_length_G, length_C)
    order_E = np.argsort(layout.edge_place_E, kind="stable")
    rank_E = np.empty_like(order_E)
    rank_E[order_E] = np.arange(len(order_E))
    edge_BT = np.where(edge_BT >= 0, rank_E[np.maximum(edge_BT, 0)], -1) if len(rank_E) else edge_BT
    return layout._replace(edge_place_E=layout.edge_place_E[order_E], edge_token_E=token_E[order_E], edge_BT=edge_BT)


def token_batches(batch: TokenBatch, rows: Sequence[int], couples: Couples, budget: int) -> Iterator[Ints]:
    """Row indices in chunks of about `budget` inputs; coupled rows stay together, rows of one prompt are neighbours.

    What is left goes along with the chunk before where that makes it larger by an eighth at most.
    """
    first: dict[tuple[int, ...], int] = {}
    for i in rows:
        first.setdefault(batch.prompts[i], i)
    if couples == "batch":
        units = [list(rows)]
    elif couples == "row" or batch.pair_B is None:
        units = [[i] for i in rows]
    else:
        pairs: dict[int, list[int]] = {}
        for i in rows:
            pairs.setdefault(int(batch.pair_B[i]), []).append(i)
        units = list(pairs.values())
    units.sort(key=lambda unit: first[batch.prompts[unit[0]]])
    length_B = batch.seen_BT.sum(axis=1)

    def inputs(some: Sequence[list[int]], known: set[tuple[int, ...]]) -> int:
        """Of these units, beside prompts that are known already."""
        new = {batch.prompts[i] for unit in some for i in unit} - known
        return sum(int(length_B[unit].sum()) for unit in some) + sum(map(len, new))

    chunk: list[int] = []
    prompts: set[tuple[int, ...]] = set()
    size = 0
    for j, unit in enumerate(units):
        full = chunk and size + inputs([unit], prompts) > budget
        if full and size + inputs(units[j:], prompts) > budget + budget // LAST_PART:
            yield np.array(chunk)
            chunk, prompts, size = [], set(), 0
        size += inputs([unit], prompts)
        chunk += unit
        prompts |= {batch.prompts[i] for i in unit}
    if chunk:
        yield np.array(chunk)


def _distinct(batch: TokenBatch) -> Distinct:
    prompts: dict[tuple[int, ...], int] = {}
    answers: dict[tuple[int, bytes], int] = {}
    texts: list[Ints] = []
    answer_B = np.empty(len(batch), dtype=np.int64)
    for i, (prompt, length) in enumerate(zip(batch.prompts, batch.seen_BT.sum(axis=1), strict=True)):
        group = prompts.setdefault(prompt, len(prompts))
        tokens = batch.tokens_BT[i, :length]
        answer_B[i] = answers.setdefault((group, tokens.tobytes()), len(texts))
        if answer_B[i] == len(texts):
            texts.append(tokens)
    group_C = np.array([group for group, _ in answers], dtype=np.int64)
    order_C = np.argsort(group_C, kind="stable")  # the answers of a group are neighbours
    place_C = np.empty_like(order_C)
    place_C[order_C] = np.arange(len(order_C))
    return Distinct(list(prompts), [texts[c] for c in order_C], group_C[order_C], place_C[answer_B])


def _packed(found: Distinct, prompt_length_G: Ints, length_C: Ints) -> Layout:
    """All prompts, then all answers without their last token."""
    inputs_C = np.maximum(length_C - 1, 0)
    prompts, answers = int(prompt_length_G.sum()), int(inputs_C.sum())
    ids = [np.array(prompt, dtype=np.int64) for prompt in found.prompts]
    ids += [answer[:-1] for answer in found.answers]
    prompt_start_G, answer_start_C = _starts(prompt_length_G), prompts + _starts(inputs_C)
    positions = np.concatenate(
        [_ramp(prompt_length_G), _ramp(inputs_C) + np.repeat(prompt_length_G[found.group_C], inputs_C)]
    )
    prompt_GP, prompt_at = _table(prompt_start_G, prompt_length_G)
    answer_CT, answer_at = _table(answer_start_C, inputs_C)
    back_N = np.concatenate([prompt_at, prompt_GP.size + answer_at])
    # A place per prompt (its last token), then one per answer input: all of those predict something.
    place_K = np.concatenate([prompt_start_G + prompt_length_G - 1, np.arange(prompts, prompts + answers)])
    own_E = np.repeat(len(found.prompts) + answer_start_C - prompts, length_C) + _ramp(length_C) - 1
    edge_place_E = np.where(_ramp(length_C) == 0, np.repeat(found.group_C, length_C), own_E)
    shared = Shared(prompt_GP, answer_CT, found.group_C, prompt_length_G, inputs_C, back_N)
    flat = np.concatenate(ids)
    return Layout(flat[None], positions[None], None, shared, place_K, edge_place_E, flat[:0], flat[:0])


def _padded(found: Distinct, prompt_length_G: Ints, length_C: Ints) -> Layout:
    """One row per distinct answer, padded right: for architectures whose attention cannot be told who sees whom."""
    total_C = prompt_length_G[found.group_C] + np.maximum(length_C - 1, 0)
    width = int(total_C.max(initial=1))
    ids, mask = np.zeros((len(total_C), width), np.int64), np.arange(width) < total_C[:, None]
    for c, (group, answer) in enumerate(zip(found.group_C, found.answers, strict=True)):
        ids[c, : total_C[c]] = (*found.prompts[group], *answer[:-1])
    first_C = np.arange(len(total_C)) * width + prompt_length_G[found.group_C] - 1
    place_K = np.repeat(first_C, length_C) + _ramp(length_C)
    positions = np.broadcast_to(np.arange(width), ids.shape).copy()
    return Layout(ids, positions, mask, None, place_K, np.arange(len(place_K)), ids[:0], ids[:0])


def _summed(index: Ints, value: Floats, size: int) -> Floats:
    return np.bincount(index, value, minlength=size).astype(np.float64)


def _starts(length: Ints) -> Ints:
    return np.asarray(np.cumsum(length) - length)


def _ramp(length: Ints) -> Ints:
    """0 1 2 0 1 … : positions within consecutive runs of these lengths."""
    return np.arange(int(length.sum())) - np.repeat(_starts(length), length)


def _table(start: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Runs as rows of indices padded with 0, and each element's flat place in that table."""
    width = int(length.max(initial=0))
    table = np.where(np.arange(width) < length[:, None], start[:, None] + np.arange(width), 0)
    return table, np.repeat(np.arange(len(length)) * width, length) + _ramp(length)
