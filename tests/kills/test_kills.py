"""kill −9 at random moments in every kind of work: the end is always the same. SOAK_KILLS says how many in all."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from kill_rounds import KINDS, MOST_KILLS, SHARES, dealt, one_round

KILLS = dealt(int(os.environ.get("SOAK_KILLS", "300")), KINDS)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_soak_killed_at_random_moments(tmp_path: Path, kind: str) -> None:
    left = KILLS[kind]
    for number in range(10 * left):
        home = tmp_path / str(number)
        home.mkdir()
        rng = random.Random(f"soak {kind} {number}")
        made = one_round(kind, home, min(rng.randint(1, MOST_KILLS), left), rng)
        assert not made.different, f"{kind}, round {number} in {home}"
        left -= made.kills
        if left == 0:
            return
    raise AssertionError(f"{kind}: hardly a kill came before its end")


def test_all_kills_are_dealt_and_every_kind_gets_some() -> None:
    for kills in (40, 100, 300):
        counts = dealt(kills, KINDS)
        assert sum(counts.values()) == kills and min(counts.values()) > 0 and counts.keys() == SHARES.keys()
