"""Signals are passed on: a run or an evaluation ends in good order first, then the script around it ends, too.

Without this, Ctrl-C in `for seed in …: rlvrlab.train(…)` would only begin the next seed. A notebook gets the same
KeyboardInterrupt, as from any interrupted cell.
"""

from __future__ import annotations

import sys
from pathlib import Path
from signal import SIGINT

from rlvrlab.record.experiment import resume_call
from rlvrlab.record.run import read_config
from rlvrlab.train.session import Ended


def pass_on(ended: Ended) -> None:
    """Raise what the signal that asked a run to stop stands for; its checkpoint is written by now."""
    if ended.asked is None:
        return
    if ended.status == "finished":
        print(f"{ended.folder}: was finished when {ended.asked.name} came", file=sys.stderr)
    else:
        call = resume_call(ended.folder, read_config(ended.folder))
        print(f"{ended.folder}: {ended.status}; go on with: {call}", file=sys.stderr)
    if ended.asked == SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + ended.asked)


def tell_kept(folder: Path) -> None:
    """Say where the judged answers of a broken-off evaluation are, if there are any, and how to go on with it."""
    if (folder / "samples.jsonl").exists():
        again = f"the same call with output={str(folder)!r} goes on"
        print(f"{folder}: interrupted, what is judged is kept; {again}", file=sys.stderr)
