"""Weights are asked for before they are wanted, in the background, and what goes wrong there troubles nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlvrlab.models.ahead import read_ahead


def asked(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    names: list[str] = []

    def wish(descriptor: int, offset: int, length: int, advice: int) -> None:
        assert (offset, length, advice) == (0, 0, os.POSIX_FADV_WILLNEED)
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    monkeypatch.setattr(os, "posix_fadvise", wish)
    thread = read_ahead(folder)
    thread.join(20)
    assert not thread.is_alive()
    return names


def test_every_file_of_weights_is_asked_for_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model-1.safetensors", "model-2.safetensors", "tokenizer.json", "model.bin"):
        (tmp_path / name).write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    assert asked(monkeypatch, tmp_path) == ["model-1.safetensors", "model-2.safetensors"]


@pytest.mark.parametrize("name", ["org/model", "file"])
def test_a_name_that_is_no_folder_is_left_to_who_loads_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    assert asked(monkeypatch, tmp_path / name) == []


def test_a_system_that_takes_no_wishes_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x")
    monkeypatch.delattr(os, "posix_fadvise")
    before = len(os.listdir("/proc/self/fd"))
    read_ahead(tmp_path).join(20)
    assert len(os.listdir("/proc/self/fd")) == before
