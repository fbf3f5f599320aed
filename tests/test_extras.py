"""Whoever is told to install torch is told so in one place, and on a machine without a GPU without CUDA."""

from __future__ import annotations

import re
from pathlib import Path

from rlvrlab import extras
from rlvrlab.scale.exports import trl_texts

SOURCES = Path(extras.__file__).parent


def test_a_clone_is_told_to_make_others_to_pip_and_machines_without_a_gpu_of_the_cpu_build(monkeypatch) -> None:
    monkeypatch.setattr(extras, "has_gpu", lambda: False)
    told = extras.install_hf()
    assert told.startswith("`make hf`, no GPU here") and f"CPU build of {extras.TORCH}" in told and "\n" not in told
    monkeypatch.setattr(extras, "has_gpu", lambda: True)
    assert extras.install_hf() == "`make hf`"
    monkeypatch.setattr(extras, "__file__", "/usr/lib/python3/site-packages/rlvrlab/extras.py")
    assert extras.install_hf() == "`pip install 'rlvrlab[hf]'`"


def test_the_documents_give_the_command_for_the_tested_version() -> None:
    command = f'make hf TORCH="{extras.TORCH} --extra-index-url https://download.pytorch.org/whl/cpu"'
    root = SOURCES.parents[1]
    for page in ("README.md", "docs/engines.md", "docs/your_own_task.md"):
        assert command in (root / page).read_text("utf-8"), page
    assert f"TORCH  ?= {extras.TORCH}\n" in (root / "Makefile").read_text("utf-8")


def test_nobody_else_says_it() -> None:
    said = [path.name for path in SOURCES.rglob("*.py") if re.search(r"rlvrlab\[[^\]]*\bhf\b", path.read_text("utf-8"))]
    assert sorted(said) == ["extras.py", "trl_texts.py"]
    assert "CPU build" in Path(trl_texts.__file__).read_text("utf-8")  # a text for another machine
