"""A model's config.json and other JSON of strangers: every reader refuses the same files, each on one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlvrlab import plain_files
from rlvrlab.engines.hf.folder_files import read_json
from rlvrlab.engines.openai.launch import refuse_code
from rlvrlab.envs.graphs.nlgraph import FILES, NLGraph
from rlvrlab.errors import UserError
from rlvrlab.models.inspection import dangers, examine

HOSTILE = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep enough": '{"a":' * 200 + "1" + "}" * 200,
    "a key twice": '{"auto_map": {}, "auto_map": null}',
    "a huge number": '{"vocab_size": ' + "9" * 5000 + "}",
    "beyond any float": '{"rope_theta": 1e999}',
    "NaN": '{"rms_norm_eps": NaN}',
    "no text": '{"a": "\udcff"}',
    "no JSON": "{'a': 1}",
}


def nlgraph(folder: Path) -> object:
    home = folder / "connectivity"
    home.mkdir()
    (folder / "config.json").rename(home / FILES["train"])
    return NLGraph(folder=str(folder), tasks=("connectivity",)).problems("train", 1, seed=0)


READERS = {
    "our engine": lambda folder: read_json(folder / "config.json"),
    "rlvr model show": examine,
    "rlvr serve model": lambda folder: refuse_code(str(folder)),
    "NLGraph": nlgraph,
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_it_is_refused_on_one_line(reader: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(HOSTILE[what], "utf-8", "surrogateescape")
    (tmp_path / "model.safetensors").touch()
    read: Callable[[Path], object] = READERS[reader]
    with pytest.raises(UserError) as refused:
        read(tmp_path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 600


@pytest.mark.parametrize("what", HOSTILE)
def test_what_cannot_be_read_is_a_danger(what: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(HOSTILE[what], "utf-8", "surrogateescape")
    (told,) = dangers(tmp_path)
    assert told.startswith("tokenizer_config.json: cannot be read (") and "\n" not in told


@pytest.mark.parametrize("reader", ["our engine", "rlvr serve model"])
def test_a_config_without_bounds_is_read(reader: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"time_step_limit": [0.0, Infinity], "n": 1000000000000000019884624838656}')
    (tmp_path / "model.safetensors").touch()
    READERS[reader](tmp_path)


def test_strictly_read_json_is_json() -> None:
    assert plain_files.strict('{"a": [1, -2.5e3, "NaN", null, true]}') == {"a": [1, -2500.0, "NaN", None, True]}
