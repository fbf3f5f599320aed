"""Where programs are judged: here, or by the servers that the environment names.

RLVR_JUDGE         addresses of `rlvr serve judge` (or SandboxFusion) servers, separated by commas
RLVR_JUDGE_TOKEN   their token
RLVR_JUDGE_WAIT_S  how long to wait for one to answer before the run stops [120]
RLVR_JUDGE_PLAIN   1: let a plain SandboxFusion judge assert code too, which answers can forge (plain_sandbox.py)
RLVR_JUDGE_WORKERS programs judged at once, where they are judged here [one more than cores] (workers/pool.py)

A variable and no recipe key: where a verdict is made does not change it, and every process of a run inherits it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from rlvrlab.errors import UserError
from rlvrlab.judge.fusion.client import FusionClient

ADDRESSES, TOKEN, WAIT = "RLVR_JUDGE", "RLVR_JUDGE_TOKEN", "RLVR_JUDGE_WAIT_S"
PLAIN = "RLVR_JUDGE_PLAIN"


def client_from_environment(*, every_test: bool) -> FusionClient | None:
    """A client of the servers that RLVR_JUDGE names; None where programs are judged on this machine."""
    addresses = tuple(part.strip() for part in os.environ.get(ADDRESSES, "").split(",") if part.strip())
    if not addresses:
        return None
    text = os.environ.get(WAIT) or "120"
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = math.nan
    if not 0 < wait_s < math.inf:
        raise UserError(f"{WAIT}={text}: a number of seconds above 0 is needed")
    token, plain = os.environ.get(TOKEN) or None, os.environ.get(PLAIN) == "1"
    return FusionClient(addresses, token, give_up_s=wait_s, every_test=every_test, plain_sandbox=plain)


def judge_at(addresses: Sequence[str], plain_sandbox: bool = False) -> None:
    """Name the servers for this process and those it starts; none leaves things as they are."""
    if plain_sandbox:
        os.environ[PLAIN] = "1"
    if addresses:
        FusionClient(addresses)  # a mistake in an address is found now
        os.environ[ADDRESSES] = ",".join(addresses)
