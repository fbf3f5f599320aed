"""The user's own copy comes before the hub, and a hub that cannot be reached is said at once."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlvrlab.data import hub, sources
from rlvrlab.data.presets import PRESETS
from rlvrlab.data.sources import DATA, local_copy, rows_of
from rlvrlab.errors import InfrastructureError


@pytest.fixture
def no_network(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv(hub.ENDPOINT, "http://127.0.0.1:9")  # nobody listens there
    for name in (hub.OFFLINE, "HTTPS_PROXY", "https_proxy", "HF_DATASETS_CACHE", "HF_HUB_CACHE", DATA):
        monkeypatch.delenv(name, raising=False)
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", constants.HF_HUB_OFFLINE)
    yield
    os.environ.pop(hub.OFFLINE, None)


def test_no_network_is_said_at_once(no_network) -> None:
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match="no network") as told:
        list(rows_of("gsm8k", PRESETS["gsm8k"], None)["train"])
    assert time.monotonic() - started < 2 and "\n" not in str(told.value) and "RLVRLAB_DATA" in str(told.value)


def test_no_code_that_a_data_set_brings_along_is_run(tmp_path, monkeypatch) -> None:
    """A loading script beside the data is not looked at, and the hub's client is never told to trust one."""
    (tmp_path / "gsm8k").mkdir()
    for name in ("gsm8k.py", "train.py", "__init__.py"):
        (tmp_path / "gsm8k" / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "gsm8k" / "train.jsonl").write_text('{"question": "1 + 1?", "answer": "#### 2"}\n')
    rows = list(rows_of("gsm8k", PRESETS["gsm8k"], tmp_path / "gsm8k")["train"])
    assert len(rows) == 1 and not (tmp_path / "ran").exists()
    asked = {}
    monkeypatch.delenv(DATA, raising=False)  # a copy of the user comes before the hub

    def load_dataset(*words, **named):
        asked.update(named)
        raise RuntimeError("Dataset scripts are no longer supported, but found gsm8k.py")

    monkeypatch.setattr(sources, "_alone", lambda: False)
    monkeypatch.setattr(sources, "_datasets", lambda: SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(InfrastructureError, match="scripts are no longer supported") as told:
        list(rows_of("gsm8k", PRESETS["gsm8k"], None)["train"])
    assert asked.keys() == {"split"} and "\n" not in str(told.value)


def test_a_copy_of_the_user_comes_first(tmp_path, monkeypatch, no_network) -> None:
    monkeypatch.setenv(DATA, str(tmp_path))
    assert local_copy("gsm8k", PRESETS["gsm8k"]) is None
    (tmp_path / "gsm8k").mkdir()
    for split in ("train", "test"):
        row = json.dumps({"question": "1 + 1?", "answer": "#### 2"})
        (tmp_path / "gsm8k" / f"{split}.jsonl").write_text(row + "\n")
    assert [row["answer"] for _, row in rows_of("gsm8k", PRESETS["gsm8k"], None)["test"]] == ["#### 2"]
    (tmp_path / "math_suites").mkdir()
    (tmp_path / "math_suites/asdiv_test.jsonl").write_text("{}\n")
    assert local_copy("asdiv", PRESETS["asdiv"]) == Path(tmp_path / "math_suites/asdiv_test.jsonl")


def test_without_a_network_the_client_is_told_so_once(no_network, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(hub, "_reachable", lambda: asked.append(1) or len(asked) == 1)
    assert hub.go_offline_without_network() is False and hub.OFFLINE not in os.environ
    assert hub.go_offline_without_network() is True and os.environ[hub.OFFLINE] == "1"
    assert hub.go_offline_without_network() is True and len(asked) == 2, "what is known is not tried again"
