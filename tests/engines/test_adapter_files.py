"""What an adapter from the network may be: names, settings and headers that lie are refused before they are loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.engines.openai.adapter_files import Announced, check_tensors
from rlvrlab.errors import UserError
from rlvrlab.models.tensors import ADAPTER_TENSORS

DIGEST = "0" * 64
CONFIG = {"peft_type": "LORA", "r": 4, "auto_mapping": None, "target_modules": ["q_proj"]}
RIGHT: dict[str, Any] = {"name": "policy-3-0a1b2c3d", "config": CONFIG, "size": 100, "sha256": DIGEST}


def entry(begin: int, end: int, shape: Any, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def written(path: Path, header: Any, body: int, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + b"\0" * body)
    return path


def test_what_a_trainer_announces_is_taken() -> None:
    assert Announced.of(RIGHT) == Announced("policy-3-0a1b2c3d", CONFIG, 100, DIGEST)


@pytest.mark.parametrize(
    "name",
    ["../policy-3-0a1b2c3d", "policy-3-0a1b2c3d/..", "policy-3-0a1b2c3d\n", "policy-3-0A1B2C3D", "/etc", "", None, 3,
     "policy-3-0a1b2c3", "policy--0a1b2c3d", "policy-३-0a1b2c3d", ["policy-3-0a1b2c3d"], "policy-3-0a1b2c3d\0"],
)  # fmt: skip
def test_only_names_of_policies_are_taken(name: Any) -> None:
    with pytest.raises(UserError, match=r"name: .*policy-VERSION-HASH is needed"):
        Announced.of({**RIGHT, "name": name})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"size": 8}, "from 9 to"),
        ({"size": -1}, "from 9 to"),
        ({"size": True}, "from 9 to"),
        ({"size": 1 << 50}, "from 9 to"),
        ({"size": 100.0}, "from 9 to"),
        ({"sha256": DIGEST.upper().replace("0", "A")}, "64 hexadecimal"),
        ({"sha256": 7}, "64 hexadecimal"),
        ({"config": None}, "peft_type LORA"),
        ({"config": {**CONFIG, "peft_type": "PROMPT_TUNING"}}, "peft_type LORA"),
        ({"config": {**CONFIG, "auto_map": {"AutoModel": "evil.Model"}}}, "auto_map names code"),
        ({"config": {**CONFIG, "auto_mapping": {"parent_library": "evil"}}}, "auto_mapping names code"),
        ({"config": {**CONFIG, "deep": [{"er": {"auto_map": {"a": "b"}}}]}}, "auto_map names code"),
        ({"config": {**CONFIG, "trust_remote_code": True}}, "trust_remote_code names code"),
        ({"config": {**CONFIG, "lora_alpha": float("nan")}}, "not finite"),
        ({"config": {**CONFIG, "long": "x" * (1 << 20)}}, "at most"),
    ],
)
def test_sizes_digests_and_settings_are_checked(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Announced.of({**RIGHT, **change})


def test_a_header_that_describes_every_byte_is_taken(tmp_path: Path) -> None:
    pair = {"b": entry(24, 32, [2, 2], "BF16"), "a": entry(0, 24, [2, 3]), "__metadata__": {"format": "pt"}}
    check_tensors(written(tmp_path / ADAPTER_TENSORS, pair, 32))


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ({"a": entry(0, 24, [2, 3])}, 25),  # more bytes than described
        ({"a": entry(0, 24, [2, 3])}, 23),
        ({"a": entry(0, 24, [2, 3]), "b": entry(20, 28, [2])}, 28),  # overlapping
        ({"a": entry(0, 24, [2, 3]), "b": entry(28, 36, [2])}, 36),  # a gap
        ({"a": entry(0, 24, [2, 4])}, 24),  # a shape that needs more
        ({"a": entry(0, 24, [-2, -3])}, 24),
        ({"a": entry(24, 0, [2, 3])}, 24),
        ({"a": entry(0, 24, [2.0, 3])}, 24),
        ({"a": entry(0, 24, [True, 6])}, 24),
        ({"a": entry(0, 24, [1 << 62, 1 << 62])}, 24),
        ({"a": entry(0, 24, [24] * 200_000)}, 24),  # whose product would take minutes
        ({"a": entry(0, 24, "23")}, 24),
        ({"a": entry(0, 24, [6], "I32")}, 24),
        ({"a": entry(0, 24, [6], ["F32"])}, 24),
        ({"a": entry(0, 0, [0])}, 0),
        ({"a": {**entry(0, 24, [6]), "more": 1}}, 24),
        ({"a": {"dtype": "F32", "shape": [6]}}, 24),
        ({"a": {**entry(0, 24, [6]), "data_offsets": [0, 24, 24]}}, 24),
        ({"a": [0, 24]}, 24),
        ({"a": entry(0, 24, [6]), "__metadata__": {"format": 1}}, 24),
        ({"a": entry(0, 24, [6]), "__metadata__": []}, 24),
        ({}, 0),
        ([], 0),
        (b"{", 0),
        (b"{]", 24),
        (b' {"a": 1}', 0),
        (b'{"a": {}, "a": {}}', 0),
        (b"\xff" * 30, 24),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0),
        (b'{"a":[' + b"{}," * 3_000_000 + b"{}]}", 0),  # would take gigabytes when it is read
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, header: Any, body: int) -> None:
    with pytest.raises(UserError, match=r"adapter_model\.safetensors"):
        check_tensors(written(tmp_path / ADAPTER_TENSORS, header, body))


@pytest.mark.parametrize("length", [0, 1, 10_000, 1 << 63, (1 << 64) - 1])
def test_a_header_longer_than_its_file_is_refused(tmp_path: Path, length: int) -> None:
    with pytest.raises(UserError, match=r"adapter_model\.safetensors: damaged"):
        check_tensors(written(tmp_path / ADAPTER_TENSORS, {"a": entry(0, 24, [6])}, 24, length))


def test_what_the_trainer_writes_is_taken(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    state = {"a": torch.zeros(3, 4), "b": torch.zeros(5, dtype=torch.bfloat16)}
    save_file(state, tmp_path / ADAPTER_TENSORS, metadata={"format": "pt"})
    check_tensors(tmp_path / ADAPTER_TENSORS)
