"""What `rlvr model show` says of good, dangerous and broken folders; the safetensors file by the reference reader."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.errors import UserError
from rlvrlab.models import nano
from rlvrlab.models.inspection import dangers, examine, licence
from rlvrlab.models.tensors import Tensor, read_header, to_bfloat16, write_tensors


@pytest.fixture
def folder(tmp_path) -> Path:
    nano.build(tmp_path, "nano", 0)
    return tmp_path


def test_a_good_folder(folder) -> None:
    facts = examine(folder)
    assert facts["architecture"] == "LlamaForCausalLM" and facts["parameters"] == nano.parameters(nano.SIZES["nano"])
    assert facts["dtype"] == "F32" and facts["context"] == 2048 and facts["licence"] == "apache-2.0"
    assert facts["tokenizer"]["vocabulary"] == 384 and facts["tokenizer"]["end"] == "<|end|>"
    assert facts["template"]["characters"] == len(nano.CHAT_TEMPLATE) and facts["warnings"] == []


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.PT", "training_args.bin", "x.pkl", "x.ckpt", "x.pth"])
def test_a_pickle_is_named(folder, name: str) -> None:
    (folder / name).write_bytes(b"\x80\x04.")
    assert [line.partition(":")[0] for line in dangers(folder)] == [name]
    assert "pickle" in examine(folder)["warnings"][0]


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "processor_config.json"])
def test_remote_code_is_named(folder, name: str) -> None:
    path = folder / name
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**found, "auto_map": {"AutoModel": "evil--repo.Model"}}))
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    said = examine(folder)["warnings"]
    assert any(line.startswith(f"{name}: auto_map") for line in said) and any("modeling_evil.py" in s for s in said)


def test_weights_that_are_missing_cut_off_or_only_promised(folder) -> None:
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    assert "damaged" in examine(folder)["warnings"][0]
    weights.write_bytes(b"\xff" * 7)
    assert "damaged" in examine(folder)["warnings"][0]
    weights.unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-00001.safetensors"}}))
    said = examine(folder)["warnings"]
    assert "no safetensors weights here" in said and any("model-00001.safetensors: named" in line for line in said)


@pytest.mark.parametrize("content", ["", "[1]", "nope", "\xff", "[" * 100_000])
def test_hostile_descriptions_are_survived(folder, content: str) -> None:
    for name in ("tokenizer_config.json", "tokenizer.json", "adapter_config.json", "model.safetensors.index.json"):
        (folder / name).write_text(content, encoding="latin-1")
    (folder / "README.md").write_text("---\nlicense: 'mit'\n---\n")
    assert examine(folder)["licence"] == "mit"
    (folder / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config.json: cannot be read"):
        examine(folder)


def test_no_folder_no_model(tmp_path) -> None:
    with pytest.raises(UserError, match="not on this machine"):
        examine(Path("org/model"))
    with pytest.raises(UserError, match=r"no config\.json"):
        examine(tmp_path)
    assert licence(tmp_path) == ""


header = st.recursive(
    st.none() | st.integers() | any_text(max_size=5) | st.lists(st.integers(-9, 99), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "a"]), inner, max_size=4),
)


@given(value=header, tail=st.binary(max_size=20))
def test_no_header_escapes_as_anything_but_a_users_error(tmp_path_factory, value, tail: bytes) -> None:
    text = json.dumps({"a": value}).encode()
    path = tmp_path_factory.getbasetemp() / "hostile.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + tail)
    try:
        read_header(path)
    except UserError as error:
        assert "damaged" in str(error)


def test_the_reference_reader_reads_what_we_write(tmp_path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    numbers = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    empty = np.zeros((0, 2), np.float32)
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"b": Tensor("F32", (3, 5), lambda: numbers), "a": Tensor("F32", (0, 2), lambda: empty)})
    found = safetensors.load_file(path)
    assert set(found) == {"a", "b"} and np.array_equal(found["b"], numbers) and found["a"].shape == (0, 2)
    assert read_header(path) == {"b": ("F32", (3, 5)), "a": ("F32", (0, 2))}


@pytest.mark.parametrize("name", ["w", "wo", "wor", "word", "words", "words_", "words_o", "words_of"])
def test_numbers_begin_where_a_reader_can_map_them(tmp_path: Path, name: str) -> None:
    """The format asks for a header whose length is a multiple of 8."""
    path = tmp_path / "x.safetensors"
    write_tensors(path, {name: Tensor("F32", (2,), lambda: np.ones(2, np.float32))})
    assert int.from_bytes(path.read_bytes()[:8], "little") % 8 == 0


def test_bfloat16_rounds_as_torch_does() -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(1).standard_normal(20_000).astype(np.float32) * 10.0 ** np.arange(-10, 10).repeat(
        1000
    )
    ties = (np.arange(64, dtype=np.uint32) << 15 | np.uint32(0x3F800000)).view(np.float32)
    numbers = np.concatenate([random.astype(np.float32), ties, np.float32([0, -0.0, 3e38, 1e-40])])
    theirs = torch.from_numpy(numbers).to(torch.bfloat16).view(torch.uint16).numpy()
    assert np.array_equal(to_bfloat16(numbers), theirs)


@pytest.mark.parametrize("name", ["model.safetensors", "README.md", "chat_template.jinja", "tokenizer.json"])
def test_a_pipe_in_the_place_of_a_file_is_told_and_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    facts = examine(folder)
    if name == "model.safetensors":
        assert any("not a file but a pipe or a device" in warning for warning in facts["warnings"])


def test_a_link_to_an_endless_device_is_not_read(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("/dev/zero")
    assert examine(folder)["parameters"]
