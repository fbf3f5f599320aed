"""The split by content: which role a problem has is decided by what it asks, never by a seed, a setting or a file.

    share of the keys    0 … held_out-1   held_out … 2*held_out-1   the rest      (of TENTHS)
    role                 test             dev                       train

Every environment and every data set goes through these functions, so equal content is never in two roles.
"""

from __future__ import annotations

from rlvrlab.randomness import key_bits
from rlvrlab.types import Role

TENTHS = 10


def role_of(*content: object) -> Role:
    """The role of some plain content: one tenth test, one tenth dev, the rest train."""
    return role_of_key(key_bits(*content))


def role_of_key(key: int, held_out: int = 1) -> Role:
    """The role of content that is already hashed; `held_out` tenths are test, and as many dev."""
    share = key % TENTHS
    return "test" if share < held_out else "dev" if share < 2 * held_out else "train"


def role_in_training_set(by_content: Role) -> Role:
    """The role of a row of a published training set without a dev set: dev where its content says so, else train."""
    return "dev" if by_content == "dev" else "train"
