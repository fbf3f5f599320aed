"""Whether checkpoints will fit on the disk is found before anything is trained, not when the first one is written."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from needs_torch import torch  # noqa: F401

from rlvrlab.engines.base import KnowsItsSize
from rlvrlab.engines.hf import Hf
from rlvrlab.errors import UserError
from rlvrlab.notes import hearing
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.train import session
from rlvrlab.train.checks import ready_lab, refuse_full_disk

RECIPE = """
name = "room"
phases = ["grpo"]
env = {type = "countdown"}
engine = {type = "hf", model = "nano", lora_rank = 4}
data = {train_size = 4, dev_size = 2}
rollout = {n = 2, max_tokens = 4}
checkpoint = {every = 1, keep = 3}
grpo = {steps = 9, batch_size = 2}
"""
Usage = namedtuple("Usage", "total used free")


def with_free(monkeypatch: pytest.MonkeyPatch, free: float) -> list[Path]:
    asked: list[Path] = []

    def usage(place: Path) -> Usage:
        asked.append(Path(place))
        return Usage(10**12, 0, int(free))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    return asked


def recipe(place: Path, output: Path, *keys: str) -> Resolved:
    file = place / "room.toml"
    file.write_text(RECIPE)
    return load_recipe(file, [f"output_dir={output}", *keys])


@pytest.mark.parametrize("keys", [{"lora_rank": 4}, {"lora_rank": 0}, {"lora_rank": 4, "dtype": "bfloat16"}])
@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_an_engine_knows_about_what_it_saves(tmp_path: Path, keys: dict, kind: str) -> None:
    engine = Hf("nano", **keys).build(Optimizer(type=kind))
    assert isinstance(engine, KnowsItsSize)
    engine.save(tmp_path)
    weights = [path for path in tmp_path.rglob("*.safetensors") if path.is_file()]
    written, told = sum(path.stat().st_size for path in weights), engine.saved_bytes()
    assert 0.9 * written <= told <= written, (told, written)


def test_a_run_that_could_keep_nothing_is_refused_before_its_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "not" / "there"
    asked = with_free(monkeypatch, 1000)
    with pytest.raises(UserError, match=r"output_dir: 0\.0 GB are free .* and one checkpoint takes .* make room"):
        session.start(recipe(tmp_path, place), lambda *_: None)
    assert asked == [tmp_path] and not place.exists()


@pytest.mark.parametrize(("times", "warned"), [(4.5, True), (5.5, False)])
def test_a_disk_with_room_for_some_checkpoints_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: float, warned: bool
) -> None:
    lab = ready_lab(recipe(tmp_path, tmp_path))
    assert isinstance(lab.engine, KnowsItsSize)
    with_free(monkeypatch, times * lab.engine.saved_bytes())
    told: list[str] = []
    with hearing(lambda _, words: told.append(words)):
        refuse_full_disk(lab)
    assert [("up to 5 more checkpoints" in words and "checkpoint.keep" in words) for words in told] == [True] * warned


def test_what_a_run_has_already_takes_no_more_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = ready_lab(recipe(tmp_path, tmp_path))
    assert isinstance(lab.engine, KnowsItsSize)
    with_free(monkeypatch, 1.5 * lab.engine.saved_bytes())
    told: list[str] = []
    with hearing(lambda _, words: told.append(words)):
        refuse_full_disk(lab, there=4)
        assert told == []
        refuse_full_disk(lab, there=3)
    assert len(told) == 1 and "up to 2 more checkpoints" in told[0]


def test_a_run_that_writes_one_checkpoint_needs_room_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = ready_lab(recipe(tmp_path, tmp_path, "checkpoint.every=1000"))
    assert isinstance(lab.engine, KnowsItsSize)
    with_free(monkeypatch, 1.1 * lab.engine.saved_bytes())
    told: list[str] = []
    with hearing(lambda _, words: told.append(words)):
        refuse_full_disk(lab)
    assert told == []


def test_resuming_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = recipe(tmp_path, tmp_path / "runs", "grpo.steps=1", "checkpoint.every=1000")
    ended = session.start(short, lambda *_: None)
    shutil.rmtree(next((ended.folder / "checkpoints").glob("global_step_*")))
    info = ended.folder / "run_info.json"
    info.write_text(info.read_text().replace('"finished"', '"running"'))  # as after kill -9
    before = sorted(ended.folder.rglob("*"))
    with_free(monkeypatch, 1000)
    with pytest.raises(UserError, match="one checkpoint takes"):
        session.resume(ended.folder, lambda *_: None)
    assert sorted(ended.folder.rglob("*")) == before
