"""Rewards for trials that misbehave, named in studies as `odd_trials.py:Class`."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rlvrlab.registry import register
from rlvrlab.rewards.binary import Binary
from rlvrlab.types import Completion, Problem, Reward, Verdict


@register("reward", "odd")
@dataclass(frozen=True)
class Odd(Binary):
    """Well-behaved, or as `how` says."""

    how: str = ""
    memory: int = 0
    """Under `oom`, enough when above 1."""
    mark: str = ""
    """A file that remembers that it happened."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        if self.how == "oom" and self.memory < 2:
            raise MemoryError("no room")
        if self.how == "error":
            raise ValueError("planted")
        if self.how == "hang" and threading.current_thread() is threading.main_thread():  # not in the trial before it
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(300)
        if self.how in ("die", "kill_parent") and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid() if self.how == "die" else os.getppid(), signal.SIGKILL)
            os._exit(1)
        return super().__call__(problem, completion, verdict)
