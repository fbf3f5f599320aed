"""The one judge of this process: every environment that runs code asks here, so workers and verdicts are shared.

It starts on first use and ends with the process. A forked child gets its own, because threads do not survive a fork.
Programs are judged here, or by the servers that RLVR_JUDGE names (judge/fusion/addresses.py).
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rlvrlab.errors import InfrastructureError, LabError
from rlvrlab.types import ErrorKind, Verdict, unjudged

if TYPE_CHECKING:
    from rlvrlab.judge.judge import AnyTask, Item, Judge

_judges: dict[tuple[int, bool], Judge] = {}
_starting = threading.Lock()


def shared_judge(every_test: bool = True) -> Judge:
    """The judge; without `every_test` a test that ended the program is the last, and the pass ratio a lower bound."""
    from rlvrlab.judge.fusion.addresses import client_from_environment
    from rlvrlab.judge.judge import Judge

    key = os.getpid(), every_test
    with _starting:
        if key not in _judges:
            remote = client_from_environment(every_test=every_test)
            _judges[key] = Judge(every_test=every_test, remote=remote)
        return _judges[key]


def judge_elsewhere(addresses: tuple[str, ...]) -> None:
    """Programs of this process are judged by those servers from now on."""
    from rlvrlab.judge.fusion.addresses import PLAIN, TOKEN
    from rlvrlab.judge.fusion.client import FusionClient
    from rlvrlab.judge.judge import Judge

    for every_test in (False, True):
        plain = os.environ.get(PLAIN) == "1"
        client = FusionClient(addresses, os.environ.get(TOKEN), every_test=every_test, plain_sandbox=plain)
        _judges[os.getpid(), every_test] = Judge(every_test=every_test, remote=client)


def refuse_elsewhere(tasks: Sequence[AnyTask], every_test: bool) -> None:
    """JudgeLost where programs are judged by servers that may not judge one of these tasks."""
    from rlvrlab.judge.fusion.addresses import ADDRESSES

    if os.environ.get(ADDRESSES) or (os.getpid(), every_test) in _judges:
        shared_judge(every_test).refuse(tasks)


def judged(items: Sequence[Item], judge: Callable[[], Judge] = shared_judge) -> list[Verdict]:
    """Verdicts in order; when the judge fails, answers stay unjudged instead of wrong."""
    try:
        return judge().verify_many(items) if items else []
    except (LabError, OSError) as error:
        return [unjudged(f"the judge failed: {error}") for _ in items]


def settled(verdict: Verdict, what: str) -> Verdict:
    """The verdict, while data is prepared: InfrastructureError where the data would depend on a machine that failed."""
    if verdict.error is ErrorKind.INFRA:
        raise InfrastructureError(f"{what} could not be tried: {verdict.detail}")
    return verdict


@atexit.register
def close() -> None:
    """End this process's judges; the next question starts a new one."""
    for pid, every_test in list(_judges):
        judge = _judges.pop((pid, every_test))
        if pid == os.getpid():
            judge.close()
