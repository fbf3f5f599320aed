"""Whoever is told to install torch is told so in one place, and on a machine without a GPU without CUDA."""

from __future__ import annotations

import re
from pathlib import Path

from rlvrlab import extras
from rlvrlab.scale.exports import trl_texts

SOURCES = Path(extras.__file__).parent


def test_without_a_gpu_the_cpu_build_comes_first(monkeypatch) -> None:
    monkeypatch.setattr(extras, "has_gpu", lambda: False)
    told = extras.install_hf()
    assert told.index("CPU build of torch==") < told.index("pip install 'rlvrlab[hf]'") and "\n" not in told
    monkeypatch.setattr(extras, "has_gpu", lambda: True)
    assert "CPU" not in extras.install_hf()


def test_nobody_else_says_it() -> None:
    said = [path.name for path in SOURCES.rglob("*.py") if re.search(r"rlvrlab\[[^\]]*\bhf\b", path.read_text("utf-8"))]
    assert sorted(said) == ["extras.py", "trl_texts.py"]
    assert "CPU build" in Path(trl_texts.__file__).read_text("utf-8")  # a text for another machine
