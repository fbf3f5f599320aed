"""Same seed, same bytes: in this process, in others, with other hash seeds, with any micro-batch size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import runs

RLVR = str(Path(sys.executable).with_name("rlvr"))
FAST = ["sft.steps=3", "sft.learning_rate=0.3", "dpo.steps=1", "grpo.steps=2", "ppo.steps=1"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run(tmp_path_factory.mktemp("whole"), *FAST).folder


def manifest(folder: Path) -> bytes:
    return (runs.last_checkpoint(folder) / "manifest.json").read_bytes()


def test_the_same_seed_twice(whole: Path, tmp_path: Path) -> None:
    again = runs.run(tmp_path, *FAST).folder
    runs.assert_same(whole, again)
    assert manifest(whole) == manifest(again), "the checkpoint's files are equal to the byte"


def in_another_process(folder: Path, **variables: str) -> Path:
    runs.recipe(folder, *FAST)
    words = [RLVR, "train", str(folder / "tiny.toml"), f"output_dir={folder / 'out'}", *FAST]
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return runs.only_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_another_process_with_another_hash_seed(whole: Path, tmp_path: Path, hash_seed: str) -> None:
    runs.assert_same(whole, in_another_process(tmp_path, PYTHONHASHSEED=hash_seed))


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing(tmp_path: Path) -> None:
    found = [in_another_process(tmp_path / n, OPENBLAS_NUM_THREADS=n, OMP_NUM_THREADS=n) for n in ("1", "2")]
    runs.assert_same(*found)


def test_another_seed_is_another_run_on_the_same_data(whole: Path, tmp_path: Path) -> None:
    other = runs.run(tmp_path, *FAST, "seed=1").folder
    assert runs.without_times(whole) != runs.without_times(other)
    assert runs.read_info(whole)["data"] == runs.read_info(other)["data"]


@pytest.mark.parametrize("rows", [1, 3])
def test_micro_batches_change_nothing(whole: Path, tmp_path: Path, rows: int) -> None:
    other = runs.run(tmp_path, *FAST, f"engine.micro_batch={rows}").folder
    mine, theirs = runs.read_metrics(whole), runs.read_metrics(other)
    assert len(mine) == len(theirs)
    for one, two in zip(mine, theirs, strict=True):
        names, others = ({key for key in row if not key.startswith("time/")} for row in (one, two))
        assert names == others and one["phase"] == two["phase"]
        for key in names - {"phase"}:
            assert two[key] == pytest.approx(one[key], rel=1e-9, abs=1e-9), (key, one["step"])


def test_evaluation_does_not_touch_training(whole: Path, tmp_path: Path) -> None:
    other = runs.run(tmp_path, *FAST, "eval.every=0", "checkpoint.every=1", "record.rollouts=none").folder
    assert runs.rollouts(other) == {}
    mine, theirs = runs.arrays(runs.last_checkpoint(whole)), runs.arrays(runs.last_checkpoint(other))
    assert all((mine[name] == theirs[name]).all() for name in mine)
