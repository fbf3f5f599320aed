"""Rows that are sampled together, and how finished ones make room.

Suffixes: G prompts (groups), R rows (samples), T new tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints

Stopped = Callable[[Ints, Ints], Bools]
"""(rows, their tokens so far) -> which of them hit a stop string."""


@dataclass(frozen=True, slots=True)
class Wave:
    """What a decoder is asked for; rows of one group are neighbours."""

    prompts: tuple[tuple[int, ...], ...]
    """The tokens of one prompt per group."""
    begun_G: tuple[int, ...]
    """How many of a prompt's last tokens are an answer that has begun."""
    group_R: Ints
    """Group of each row, ascending."""
    limit_R: Ints
    """Most new tokens of each row."""
    temperature_R: Floats
    top_p_R: Floats
    uniform_RT: Floats
    """One number in [0, 1) per row and new token."""
    end: int
    """Token that ends a row."""
    more_ends: tuple[int, ...] = ()
    """Others that do. Only a CPU stops there at once: what a GPU draws behind them is cut off afterwards."""

    @property
    def new_tokens(self) -> int:
        """Steps until the last row is cut."""
        return int(self.limit_R.max())


class Drawn(NamedTuple):
    """The tokens a decoder drew, and their log-probs."""

    token_RT: Ints
    """Whatever stands behind a row's end or limit is to be ignored."""
    logp_RT: Floats


Ended = Callable[[Ints, Drawn], None]
"""(rows, what was drawn for them) of rows that will not change any more."""


class Moves(NamedTuple):
    """Living rows (`source`) and the dead places (`to`) that they move into; places from `alive` on are forgotten."""

    alive: int
    to: Ints
    source: Ints


def swap_out(dead: Bools) -> Moves:
    """Close the gaps with rows from the end: as few copies as rows that died, and none overlaps another."""
    alive = int((~dead).sum())
    to = np.flatnonzero(dead[:alive])
    source = alive + np.flatnonzero(~dead[alive:])
    return Moves(alive, to, source)
