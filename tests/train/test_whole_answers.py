"""An answer that ends where every right answer ends was not cut off, though it has no end token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.recipe import load_recipe
from rlvrlab.train.session import start

LETTERS = Path(__file__).resolve().parents[2] / "studies" / "interference" / "toy.toml"
CLIPPED = "response_length/clip_ratio"


@pytest.mark.parametrize(("room", "cut"), [(1, False), (2, True)])
def test_answers_of_one_token_are_whole_in_a_room_of_one_token(tmp_path: Path, room: int, cut: bool) -> None:
    words = ['phases=["grpo"]', "grpo.steps=6", "data.dev_size=9", "protocol.type=mixed"]
    words += [f"rollout.max_tokens={room}", f"output_dir={tmp_path}"]
    ended = start(load_recipe(LETTERS, words), lambda *_: None)
    rows = [json.loads(line) for line in (ended.folder / "logs/metrics.jsonl").read_text().splitlines()]
    shares = [row[CLIPPED] for row in rows if CLIPPED in row]
    assert shares and all((share > 0.5) == cut for share in shares), "an untrained policy hardly ends anywhere"
    assert ("most answers are cut off" in (ended.folder / "logs/events.jsonl").read_text()) == cut
