"""A tiny llama, packed as llama.cpp packs it and converted back: every number is where Transformers looks for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.errors import InfrastructureError
from rlvrlab.models.conversion import convert

gguf = pytest.importorskip("gguf")
safetensors = pytest.importorskip("safetensors")

WIDTH, INNER, HEADS, KEY_HEADS = 8, 4, 2, 1
TOKENS = ["<s>", "</s>", "a", "b"]
SHAPES = {
    "attn_q": (WIDTH, WIDTH), "attn_k": (4, WIDTH), "attn_v": (4, WIDTH), "attn_output": (WIDTH, WIDTH),
    "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER),
    "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,),
}  # fmt: skip
THEIRS = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}  # fmt: skip


def packed(part: str, rows: np.ndarray) -> np.ndarray:
    """llama.cpp wants the two halves of each head's rotations side by side (`permute` of its convert_hf_to_gguf.py)."""
    heads = {"attn_q": HEADS, "attn_k": KEY_HEADS}.get(part)
    if heads is None:
        return rows
    return rows.reshape(heads, 2, len(rows) // heads // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def written(path: Path) -> dict[str, np.ndarray]:
    """The weights under their names in Transformers: small whole numbers, which bfloat16 holds exactly."""
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(16)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 1, 1])
    writer.add_token_merges(["a b"])
    for name, number in (("bos", 0), ("eos", 1), ("unk", 0), ("pad", 1)):
        getattr(writer, f"add_{name}_token_id")(number)
    writer.add_chat_template("{{ messages }}")
    weights = {}
    for part, shape in SHAPES.items():
        numbers = random.integers(-9, 10, shape).astype(np.float32)
        weights[f"model.layers.0.{THEIRS[part]}.weight"] = numbers
        writer.add_tensor(f"blk.0.{part}.weight", np.ascontiguousarray(packed(part, numbers)))
    weights["model.embed_tokens.weight"] = random.integers(-9, 10, (len(TOKENS), WIDTH)).astype(np.float32)
    weights["model.norm.weight"] = random.integers(-9, 10, (WIDTH,)).astype(np.float32)
    writer.add_tensor("token_embd.weight", weights["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def test_every_number_is_where_transformers_looks_for_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weights = written(tmp_path / "tiny.gguf")
    folder = tmp_path / "folder"
    folder.mkdir()
    convert(tmp_path / "tiny.gguf", folder)
    with safetensors.safe_open(folder / "model.safetensors", "pt") as stored:
        assert set(stored.keys()) == set(weights)
        for name, numbers in weights.items():
            assert stored.get_tensor(name).to(torch.float32).numpy().tolist() == numbers.tolist(), name
    config = json.loads((folder / "config.json").read_text())
    told = [config[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")]
    assert told == [WIDTH, HEADS, KEY_HEADS, 4]
    assert config["tie_word_embeddings"] is True and config["rms_norm_eps"] == 1e-5


def test_a_file_that_claims_more_blocks_than_it_has_tensors_is_refused_at_once(tmp_path: Path) -> None:
    """The names of so many blocks had filled the memory."""
    writer = gguf.GGUFWriter(tmp_path / "big.gguf", "llama")
    writer.add_uint64("llama.block_count", 2**40)
    writer.add_tensor("token_embd.weight", np.zeros((2, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(InfrastructureError, match="1099511627776 blocks, but only 1 tensors in all"):
        convert(tmp_path / "big.gguf", tmp_path / "model")
