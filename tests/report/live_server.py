"""The real `rlvr serve report` and `rlvr train`, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RLVR = [sys.executable, "-c", "from rlvrlab.cli import main; main()"]
TOY = """name = "toy"
phases = ["sft", "grpo"]
[env]
type = "countdown"
numbers = [2]
high = 20
style = "bare"
[data]
train_size = 60
dev_size = 20
[eval]
every = 5
[rollout]
n = 4
max_tokens = 8
[engine]
type = "toy"
buckets = 16
[sft]
steps = 5
batch_size = 8
[grpo]
steps = 15
batch_size = 4
"""


@contextmanager
def dashboard(folder: Path) -> Iterator[dict[str, Any]]:
    """url, port and token of a running dashboard; it is asked to stop in the end, and must."""
    words = [*RLVR, "serve", "report", str(folder), "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield {**json.loads(line), "pid": process.pid}
    finally:
        process.terminate()
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert errors == "", errors


def training(folder: Path, *overrides: str) -> subprocess.Popen[bytes]:
    """A toy training that writes into `folder`."""
    recipe = folder.parent / "toy.toml"
    recipe.write_text(TOY)
    words = [*RLVR, "train", str(recipe), f"output_dir={folder}", "--json", *overrides]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
