"""`rlvr model` as a user meets it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from rlvrlab.cli import main

RECIPE = """name = "tiny"
phases = ["sft"]
[env]
type = "minicode"
skills = ["gen"]
levels = [1]
[data]
train_size = 16
dev_size = 4
[rollout]
max_tokens = 12
[engine]
type = "hf"
model = "nano@1"
lora_rank = 2
[sft]
steps = 2
batch_size = 4
"""
TOY = """name = "tiny"
phases = ["sft"]
[env]
type = "countdown"
numbers = [2]
style = "bare"
[data]
train_size = 8
dev_size = 2
[rollout]
max_tokens = 4
[engine]
type = "toy"
buckets = 8
[sft]
steps = 1
batch_size = 2
"""


@pytest.fixture
def rlvr(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rlvr", *words])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return call


def test_get_list_and_show(rlvr, tmp_path) -> None:
    code, out, _ = rlvr("model", "get", "nano", "--seed", "3", "-o", "mine", "--json")
    assert code == 0 and json.loads(out)["folder"] == str(tmp_path / "mine")
    code, out, _ = rlvr("model", "show", "mine")
    assert code == 0 and "701,312 in 30 tensors, F32" in out and "warning" not in out
    assert "LoRA 16, checkpointing 0." in out and "at most 1 % off there, 12 % on the one" in out
    assert set(json.loads(rlvr("model", "show", "mine", "--json")[1])["update_gb"]) >= {"LoRA 16", "all parameters"}
    (tmp_path / "mine" / "evil\x1b[2J.bin").write_bytes(b"")
    code, out, _ = rlvr("model", "show", "mine")
    assert code == 0 and "a pickle" in out and "\x1b[2J" not in out
    code, out, _ = rlvr("model", "list")
    assert code == 0 and all(name in out for name in ("nano-10m", "smollm2-135m", "cache:"))
    assert json.loads(rlvr("model", "list", "--json")[1])["models"][0]["cached"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["get", "nana"], "did you mean 'nano'"),
        (["show", "org/model"], "not on this machine"),
        (["show", "smollm2-135m"], "rlvr model get smollm2-135m"),
        (["export", "gone", "-o", "x"], "no run 'gone'"),
        (["export", "gone@soon", "-o", "x"], "no run 'gone'"),
        (["export", ".@soon", "-o", "x"], "best, last or the number of a step"),
    ],
)
def test_mistakes_are_one_line(rlvr, words: list[str], said: str) -> None:
    code, out, err = rlvr("model", *words)
    assert code == 2 and out == "" and said in err and len(err.splitlines()) == 1


def test_a_run_without_a_language_model_is_told_so(rlvr, tmp_path) -> None:
    (tmp_path / "toy.toml").write_text(TOY)
    assert rlvr("train", "toy.toml", "--json")[0] == 0
    run = next((tmp_path / "experiments").glob("tiny_*"))
    code, _, err = rlvr("model", "export", str(run), "-o", "x")
    assert code == 2 and "engine 'toy' writes none" in err and not (tmp_path / "x").exists()
    code, _, err = rlvr("model", "export", f"{run}@77", "-o", "x")
    assert code == 2 and "no checkpoint of step 77; kept are 1" in err


@pytest.mark.slow
def test_export_is_proved_and_described(rlvr, tmp_path, monkeypatch) -> None:
    pytest.importorskip("peft")
    (tmp_path / "r.toml").write_text(RECIPE)
    assert rlvr("train", "r.toml", "--json")[0] == 0
    run = next((tmp_path / "experiments").glob("tiny_*"))
    code, out, err = rlvr("model", "export", f"{run}@last", "-o", "out", "--problems", "2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["step"] == 2 and len(found["proof"]) == 3 and "701,312 parameters" in found["proof"][0]
    card = (tmp_path / "out" / "README.md").read_text()
    sizes = json.loads((run / "run_info.json").read_text())["data"]
    assert sizes["train"]["sha256"] in card and sizes["dev"]["sha256"] in card and str(tmp_path) not in card
    assert 'license: "apache-2.0"' in card and "| sft |" in card and found["proof"][1] in card
    code, _, err = rlvr("model", "export", str(run), "-o", "out")
    assert code == 2 and "already there" in err
    _wrong_weights_are_refused(rlvr, run, tmp_path, monkeypatch)


def _wrong_weights_are_refused(rlvr, run: Path, tmp_path: Path, monkeypatch) -> None:
    """The checkpoint's model folder holds another model than the engine's state: scores differ, nothing is left."""
    from rlvrlab.models import resolve
    from rlvrlab.train import checkpoint

    model = run / "checkpoints" / "global_step_2" / "actor" / "huggingface" / "model.safetensors"
    shutil.copyfile(resolve("nano@2") / "model.safetensors", model)
    code, _, err = rlvr("model", "export", str(run), "-o", "other")
    assert code == 2 and "does not match the manifest" in err
    monkeypatch.setattr(checkpoint, "defect", lambda path: None)
    code, _, err = rlvr("model", "export", str(run), "-o", "other")
    assert code == 2 and "scores differently" in err
    assert not (tmp_path / "other").exists() and not list(tmp_path.glob(".draft_*"))
