"""What a decoder is asked for and what it tells, and how the living move together when others have ended.

Suffixes: G prompts (groups), R rows (samples), T new tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints

Stopped = Callable[[Ints, Iterable[Ints]], Bools]
"""(rows, the tokens of each so far) -> which of them hit a stop string."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows that are to be drawn; those of one group are neighbours."""

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
    uniform_R: Sequence[Floats]
    """Of each row one number in [0, 1) per new token."""
    end: int
    """Token that ends a row."""
    more_ends: tuple[int, ...] = ()
    """Others that do. Only a CPU stops there at once: what a GPU draws behind them is cut off afterwards."""

    @property
    def new_tokens(self) -> int:
        """Steps of the longest row."""
        return int(self.limit_R.max())

    def uniform_of(self, row_R: Ints) -> Floats:
        """The numbers of these rows in lines of one length, with zeros behind them."""
        uniform_RT = np.zeros((len(row_R), self.new_tokens))
        for line_T, row in zip(uniform_RT, row_R, strict=True):
            line_T[: len(self.uniform_R[row])] = self.uniform_R[row]
        return uniform_RT


class Drawn(NamedTuple):
    """The tokens a decoder drew, and their log-probs."""

    token_RT: Ints
    """Whatever stands behind a row's end or limit is to be ignored."""
    logp_RT: Floats


Ended = Callable[[Ints, Drawn], None]
"""(rows, what was drawn for them) of rows that will not change any more; told of each row once."""


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
