"""Small runs for the tests: four phases on tiny data, in this process or in a forked child that may be killed."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.errors import LabError
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.record.run import read_events, read_info, read_metrics
from rlvrlab.train import session
from rlvrlab.train.session import Ended

__all__ = ["load_recipe", "read_events", "read_info", "read_metrics"]

TINY = """
name = "tiny"
question = "Does an interrupted run end where an uninterrupted one does?"
phases = ["sft", "dpo", "grpo", "ppo"]
[env]
type = "countdown"
numbers = [2]
high = 12
style = "bare"
[engine]
type = "toy"
max_number = 150
buckets = 4
[data]
train_size = 30
dev_size = 6
[rollout]
n = 4
max_tokens = 8
[eval]
every = 2
[checkpoint]
every = 2
[sft]
steps = 5
batch_size = 16
references = 24
learning_rate = 0.2
[dpo]
steps = 3
batch_size = 4
problems = 16
[grpo]
steps = 4
batch_size = 4
minibatches = 2
[ppo]
steps = 3
batch_size = 4
"""

ONLINE = TINY.replace('"sft", "dpo", "grpo", "ppo"', '"sft", "grpo"').replace("steps = 4", "steps = 6")
"""Only SFT and GRPO, for tests of one thing."""


def quiet(*_: Any) -> None:
    """An observer that looks away."""


def recipe(folder: Path, *overrides: str, text: str = TINY) -> Resolved:
    """The tiny recipe, with runs under folder/out."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tiny.toml"
    path.write_text(text)
    return load_recipe(path, [f"output_dir={folder / 'out'}", *overrides])


def run(folder: Path, *overrides: str, text: str = TINY, observe: Any = quiet) -> Ended:
    """Train to the end in this process."""
    return session.start(recipe(folder, *overrides, text=text), observe, ["rlvr", "train", "tiny.toml"])


def only_run(folder: Path) -> Path | None:
    """The run folder under folder/out, if it came that far."""
    found = list((folder / "out").glob("tiny_*"))
    assert len(found) <= 1, found
    return found[0] if found else None


def in_child(work: Callable[[], Any], stderr: Path | None = None) -> int:
    """Run it in a fork, which saves the imports; returns its exit code, or minus the signal that killed it."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
                signal.signal(number, handler)
            errors = os.open(stderr or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(errors, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            ended = work()
            code = ended.exit_code if isinstance(ended, Ended) else 0
        except LabError as error:
            print(f"error: {error}", file=sys.stderr)
            code = error.exit_code
        except KeyboardInterrupt:
            code = 130
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def without_times(folder: Path) -> bytes:
    """logs/metrics.jsonl to the byte, less the fields that measure a clock."""
    return re.sub(rb', "time/[^"]+": [^,}]+', b"", (folder / "logs" / "metrics.jsonl").read_bytes())


def rollouts(folder: Path) -> dict[str, bytes]:
    """Every rollouts file by name."""
    return {path.name: path.read_bytes() for path in sorted((folder / "rollouts").iterdir())}


def last_checkpoint(folder: Path) -> Path:
    """By number."""
    found = [p for p in (folder / "checkpoints").iterdir() if p.name.startswith("global_step_")]
    return max(found, key=lambda path: int(path.name.rpartition("_")[2]))


def arrays(checkpoint: Path) -> dict[str, np.ndarray]:
    """All of a toy checkpoint."""
    with np.load(checkpoint / "actor" / "toy.npz") as stored:
        return {name: stored[name] for name in stored.files}


def assert_same(one: Path, other: Path) -> None:
    """Two runs of one recipe ended alike."""
    assert without_times(one) == without_times(other)
    assert rollouts(one) == rollouts(other)
    pairs = "artifacts/dpo_pairs.jsonl"
    assert (one / pairs).exists() == (other / pairs).exists()
    assert not (one / pairs).exists() or (one / pairs).read_bytes() == (other / pairs).read_bytes()
    left, right = last_checkpoint(one), last_checkpoint(other)
    assert left.name == right.name
    assert (left / "trainer.json").read_bytes() == (right / "trainer.json").read_bytes()
    first, second = arrays(left), arrays(right)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def events(folder: Path, kind: str) -> list[str]:
    """The texts of one kind of event."""
    return [event["text"] for event in read_events(folder) if event["kind"] == kind]


def was_killed(run: Path) -> None:
    """Make the record of a finished run that of one which was killed."""
    path = run / "run_info.json"
    path.write_text(json.dumps(read_info(run) | {"status": "running"}))
