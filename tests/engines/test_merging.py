"""Adapters that are merged into a model's weights: the base comes back whatever was merged, and names never mislead."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import needs_torch
import pytest
from tiny_models import tiny

from rlvrlab.engines.hf import Hf, load, merging
from rlvrlab.engines.hf.merging import Merging
from rlvrlab.errors import UserError

torch = needs_torch.torch
RANK = 4


def model_of(kind: str) -> Any:
    return load.load_model(Hf(tiny(kind), device="cpu"), torch.device("cpu"))


def written(folder: Path, model: Any, names: list[str], seed: int = 0) -> Path:
    """An adapter of these modules that changes them much."""
    from safetensors.torch import save_file

    made, modules, tensors = torch.Generator().manual_seed(seed), dict(model.named_modules()), {}
    for name in names:
        rows, columns = modules[name].weight.shape
        tensors[f"base_model.model.{name}.lora_B.weight"] = torch.randn(rows, RANK, generator=made)
        tensors[f"base_model.model.{name}.lora_A.weight"] = torch.randn(RANK, columns, generator=made)
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": RANK, "lora_alpha": RANK}))
    return folder


def weights(model: Any) -> dict[str, Any]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("names", [["lm_head"], ["model.embed_tokens"], ["lm_head", "model.embed_tokens"]], ids=str)
def test_an_adapter_of_a_weight_that_two_layers_share_is_refused(names: list[str], tmp_path: Path) -> None:
    """Merged, it would change both of them; and two of them would take one another's sum for the base."""
    model = model_of("qwen2")
    with pytest.raises(UserError, match=r"shares its weight with .* leave it out"):
        Merging(model, RANK).read(written(tmp_path, model, names))


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_base_comes_back_after_adapters_of_any_layers(kind: str, tmp_path: Path) -> None:
    model = model_of(kind)
    base, merged = weights(model), Merging(model, RANK)
    layers = {"llama": ["lm_head", "model.embed_tokens", "model.layers.0.mlp.up_proj"], "gpt2": ["transformer.wpe"]}
    one = merged.add("one", tmp_path, merged.read(written(tmp_path / "one", model, layers[kind])))
    two = merged.add("two", tmp_path, merged.read(written(tmp_path / "two", model, layers[kind][:1])))
    assert merged.use(one) and not merged.use(one) and not same(base, weights(model))
    assert merged.use(two) and merged.use(None) and same(base, weights(model))


def test_a_name_that_is_given_anew_while_it_is_merged_is_that_of_the_new_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adapters are dropped and added by one thread while another merges."""
    model, up = model_of("llama"), ["model.layers.0.mlp.up_proj"]
    merged = Merging(model, RANK)
    old = merged.add("x", tmp_path, merged.read(written(tmp_path / "old", model, up, seed=1)))
    fresh = merged.read(written(tmp_path / "new", model, up, seed=2))
    in_the_middle, go_on, addmm = threading.Event(), threading.Event(), torch.addmm

    def slow(*given: Any, **named: Any) -> Any:
        in_the_middle.set()
        assert go_on.wait(60)
        return addmm(*given, **named)

    monkeypatch.setattr(merging.torch, "addmm", slow)
    drawing = threading.Thread(target=merged.use, args=[old])
    drawing.start()
    assert in_the_middle.wait(60)
    merged.drop("x")
    new = merged.add("x", tmp_path, fresh)
    go_on.set()
    drawing.join()
    assert merged.use(new), "the old weights would answer under the name"
    found = weights(model)
    merged.use(old)
    assert merged.use(new) and same(found, weights(model)) and merged.adapters["x"] is new


def header_of(folder: Path, tensors: dict[str, tuple[int, int]]) -> Path:
    """An adapter whose numbers are a hole: nothing on the disk, and as much as one likes in memory."""
    header, at = {}, 0
    for name, (rows, columns) in tensors.items():
        end = at + 2 * rows * columns
        header[name] = {"dtype": "F16", "shape": [rows, columns], "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    with (folder / "adapter_model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    (folder / "adapter_config.json").write_text(json.dumps({"r": RANK, "lora_alpha": RANK}))
    return folder


@pytest.mark.parametrize(
    ("module", "rows", "words"),
    [
        ("x", 1 << 24, "this one has no x"),
        ("model.layers.0.mlp.up_proj", 1 << 24, r"up_proj is \(32, 16\) here"),
    ],
)
def test_no_number_is_read_of_an_adapter_that_does_not_fit(
    module: str, rows: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem = f"base_model.model.{module}"
    shapes = {f"{stem}.lora_B.weight": (rows, RANK), f"{stem}.lora_A.weight": (RANK, 16)}
    merged = Merging(model_of("llama"), RANK)
    for reader in ("safetensors.safe_open", "safetensors.torch.load_file"):
        monkeypatch.setattr(reader, lambda *given: pytest.fail("it was opened"))
    with pytest.raises(UserError, match=words):
        merged.read(header_of(tmp_path, shapes))


def test_a_bias_beside_the_matrices_of_a_layer_is_refused(tmp_path: Path) -> None:
    stem = "base_model.model.lm_head"
    shapes = {f"{stem}.lora_B.weight": (50, RANK), f"{stem}.lora_A.weight": (RANK, 16), f"{stem}.lora_B.bias": (50, 1)}
    with pytest.raises(UserError, match="more than one pair"):
        Merging(model_of("llama"), RANK).read(header_of(tmp_path, shapes))


def test_an_adapter_stays_what_it_was_when_its_file_is_written_over(tmp_path: Path) -> None:
    model = model_of("llama")
    merged, up = Merging(model, RANK), "model.layers.0.mlp.up_proj"
    delta = merged.read(written(tmp_path, model, [up]))[up]
    before = delta.b_OR.clone()
    file = tmp_path / "adapter_model.safetensors"
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size - 768)
        opened.write(b"\0" * 768)
    assert torch.equal(delta.b_OR, before)
