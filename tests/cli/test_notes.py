"""What an engine says while it works, e.g. that its memory did not suffice, reaches everybody who waits for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import inside, tiny

from rlvrlab.engines.toy.engine import ToyEngine
from rlvrlab.notes import hearing, note, noting
from rlvrlab.record.run import read_events

WORDS = "out of memory while sampling: 2 answers abreast from now on"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Commands in this process, whose engine says its words with every sampling."""
    real = ToyEngine.sample

    def sample(self, requests):
        note("memory", WORDS)
        return real(self, requests)

    monkeypatch.setattr(ToyEngine, "sample", sample)
    return lambda *words: inside(monkeypatch, capsys, *words, folder=tmp_path)


def test_a_run_has_it_among_its_events(run, tmp_path: Path) -> None:
    tiny(tmp_path)
    assert run("train", "tiny.toml", "sft.steps=1", "grpo.steps=1", "output_dir=out").returncode == 0
    (folder,) = (tmp_path / "out").iterdir()
    assert {event["text"] for event in read_events(folder) if event["kind"] == "memory"} == {WORDS}


def test_the_plan_advises_it(run, tmp_path: Path) -> None:
    tiny(tmp_path)
    assert WORDS in json.loads(run("train", "tiny.toml", "--plan", "--json").stdout)["warnings"]


def test_an_evaluation_says_it(run) -> None:
    said = run("eval", "countdown", "--engine", "toy", "--size", "2", "-o", "kept").stderr
    assert f"memory: {WORDS}" in said.splitlines()


def test_who_listens_within_takes_nothing_from_who_listened_before() -> None:
    outer: list[tuple[str, str]] = []
    inner: list[tuple[str, str]] = []
    with hearing(lambda *said: inner.append(said)):
        note("memory", "nobody else listens")
    with noting(lambda *said: outer.append(said)):
        with hearing(lambda *said: inner.append(said)):
            note("memory", "both hear it")
        note("memory", "only the outer one hears it")
    assert inner == [("memory", "nobody else listens"), ("memory", "both hear it")]
    assert outer == [("memory", "both hear it"), ("memory", "only the outer one hears it")]
