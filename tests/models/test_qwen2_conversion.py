"""A tiny qwen2, packed as llama.cpp packs it and converted back: weights, tokenizer, template, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.cli import main
from rlvrlab.errors import InfrastructureError, LabError, UserError
from rlvrlab.models import checks, given
from rlvrlab.models.conversion import ARCHITECTURES, PARTS, convert
from rlvrlab.models.tokenizer import byte_symbols

gguf = pytest.importorskip("gguf")

WIDTH, INNER, HEADS, KEY_HEADS = 8, 4, 2, 1
SHAPES = {
    "attn_q": (WIDTH, WIDTH), "attn_k": (4, WIDTH), "attn_v": (4, WIDTH), "attn_output": (WIDTH, WIDTH),
    "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER),
    "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,),
}  # fmt: skip
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOKENS = [*byte_symbols(), "12", "ab", *SPECIAL, "<tool_call>", "[PAD262]", "[PAD263]"]
KINDS = [1] * 258 + [3] * 3 + [4] + [5] * 2
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def packed(path: Path, kind: str = "qwen2", *, output: str | None = None, leave: str = "", **facts: object) -> Path:
    """One block; `output`: how its own output matrix is stored beside the embedding, `leave`: a tensor left out."""
    writer = gguf.GGUFWriter(path, kind)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    if facts.get("scaled"):
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(str(facts.get("pre", "qwen2")))
    writer.add_token_list(TOKENS)
    writer.add_token_types(KINDS)
    writer.add_token_merges(["1 2", "a b"])
    writer.add_eos_token_id(260)
    writer.add_pad_token_id(258)
    if facts.get("template", True):
        writer.add_chat_template(TEMPLATE)
    for name, numbers in weights(output).items():
        if name != leave:
            writer.add_tensor(name, numbers)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    return path


def weights(output: str | None) -> dict[str, np.ndarray]:
    """Small whole numbers, which bfloat16 holds exactly, under their names in GGUF."""
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return random.integers(-9, 10, shape).astype(np.float32)

    found = {f"blk.0.{part}.weight": drawn(*shape) for part, shape in SHAPES.items()}
    found |= {f"blk.0.{part}.bias": drawn(SHAPES[part][0]) for part in ARCHITECTURES["qwen2"].biases}
    found["token_embd.weight"], found["output_norm.weight"] = drawn(len(TOKENS), WIDTH), drawn(WIDTH)
    if output:
        kind = np.float32 if output == "finer" else np.float16
        found["output.weight"] = drawn(len(TOKENS), WIDTH).astype(kind)
        if output == "finer":
            found["token_embd.weight"] = found["token_embd.weight"].astype(np.float16)
    return found


def converted(tmp_path: Path, **keys: object) -> Path:
    tied = bool(keys.pop("tied", False))
    source, folder = packed(tmp_path / "tiny.gguf", **keys), tmp_path / "folder"
    given.get(source, folder, tied=tied, ask=False, say=lambda text: None)
    return folder


def stored(folder: Path) -> dict[str, list]:
    torch = pytest.importorskip("torch")
    with pytest.importorskip("safetensors").safe_open(folder / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name).to(torch.float32).numpy().tolist() for name in file.keys()}  # noqa: SIM118


def test_weights_and_biases_are_where_transformers_looks_for_them(tmp_path: Path) -> None:
    """Its own model, filled by name, computes from them what a loaded folder computes."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder, wanted = converted(tmp_path), weights(None)
    found = stored(folder)
    for part, theirs in PARTS.items():
        for which in ("weight", "bias"):
            if f"blk.0.{part}.{which}" in wanted:  # rows of q and k keep their order
                assert found[f"model.layers.0.{theirs}.{which}"] == wanted[f"blk.0.{part}.{which}"].tolist(), part
    assert sum(name.endswith("bias") for name in found) == 3
    model, told = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not told["missing_keys"] and not told["unexpected_keys"] and type(model).__name__ == "Qwen2ForCausalLM"
    assert model.config.rope_parameters["rope_theta"] == 1e6 and model.config.rms_norm_eps == 1e-6
    assert json.loads((folder / "config.json").read_text())["transformers_version"] >= "5", "no warning of Mistral's"
    assert model.config.eos_token_id == 260 and model.config.vocab_size == len(TOKENS)
    assert model.model.layers[0].self_attn.q_proj.bias.tolist() == wanted["blk.0.attn_q.bias"].tolist()


@pytest.mark.parametrize(
    ("output", "tied", "embedding", "head"),
    [
        (None, False, "token_embd.weight", None),
        (None, True, "token_embd.weight", None),
        ("coarser", False, "token_embd.weight", "output.weight"),
        ("coarser", True, "token_embd.weight", None),
        ("finer", True, "output.weight", None),
    ],
)
def test_output_and_embedding(tmp_path: Path, output, tied: bool, embedding: str, head: str | None) -> None:
    folder, wanted = converted(tmp_path, output=output, tied=tied), weights(output)
    found = stored(folder)
    assert found["model.embed_tokens.weight"] == wanted[embedding].astype(np.float32).tolist()
    assert found.get("lm_head.weight") == (wanted[head].tolist() if head else None)
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is (head is None)


def test_numbers_are_read_digit_by_digit_and_the_template_is_kept(tmp_path: Path) -> None:
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(converted(tmp_path))

    def encoded(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)

    assert len(encoded("1212")) == 4 and len(encoded("ab ab")) == 3, "12 is a merge that no text can use"
    assert encoded("e\u0301") == encoded("é"), "composed as the model's own tokenizer does"
    assert encoded("<tool_call>") == [261] and tokenizer.decode([261], skip_special_tokens=True) == "<tool_call>"
    assert tokenizer.decode([260], skip_special_tokens=True) == "" and len(tokenizer) == 262
    asked = tokenizer.apply_chat_template([{"role": "user", "content": "ab"}], add_generation_prompt=True)["input_ids"]
    assert tokenizer.decode(asked) == "<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kind": "qwen3"}, "only llama and qwen2 are read"),
        ({"kind": "llama"}, "unknown tensor blk.0.attn_k.bias"),
        ({"leave": "blk.0.attn_v.bias"}, "no tensor blk.0.attn_v.bias"),
        ({"pre": "deepseek-r1-qwen"}, "unknown tokenizer gpt2/deepseek-r1-qwen"),
        ({"template": False}, "no chat template"),
        ({"scaled": True}, "scaled positions are not read"),
    ],
)
def test_what_cannot_be_read_is_refused_and_leaves_nothing(tmp_path: Path, keys: dict, said: str) -> None:
    with pytest.raises(LabError, match=said):
        converted(tmp_path, **keys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.gguf"]


def test_files_that_are_no_gguf_are_refused(tmp_path: Path) -> None:
    for name, content in (("words.gguf", b"these are words, no model"), ("empty.gguf", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InfrastructureError, match="cannot be converted"):
            convert(tmp_path / name, tmp_path)
    whole = packed(tmp_path / "whole.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InfrastructureError, match="cannot be converted"):
        convert(tmp_path / "cut.gguf", tmp_path)
    with pytest.raises(UserError, match="no such file"):
        given.get(tmp_path / "gone.gguf", tmp_path / "x", tied=False, ask=False, say=print)


def test_a_model_that_answers_nonsense_is_not_kept(tmp_path: Path, monkeypatch, capsys) -> None:
    pytest.importorskip("torch")
    packed(tmp_path / "tiny.gguf")
    monkeypatch.chdir(tmp_path)

    def rlvr(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["rlvr", "model", "get", *words])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0), capsys.readouterr().err

    code, said = rlvr("tiny.gguf", "-o", "out")
    assert code != 0 and "the conversion is wrong" in said and "--unasked" in said and not Path("out").exists()
    assert rlvr("tiny.gguf")[1].strip().endswith("-o FOLDER")
    assert "are for a .gguf file" in rlvr("nano", "--tied")[1]
    assert "not for a GGUF file" in rlvr("tiny.gguf", "-o", "out", "--seed", "3")[1]
    monkeypatch.setattr(checks, "greedy_answer", lambda *_: "It is Paris.")
    assert rlvr("tiny.gguf", "-o", "out")[0] == 0
    assert "SHA-256" in Path("out/README.md").read_text()
