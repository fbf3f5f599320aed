"""nano: its tokenizer against a matcher in plain Python, its weights against themselves, and what Transformers sees."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.envs.minicode import Minicode
from rlvrlab.models import nano, resolve
from rlvrlab.models.tensors import read_header
from rlvrlab.models.tokenizer import (
    END,
    END_ID,
    FIRST_BYTE_ID,
    FIRST_LEXEME_ID,
    LEXEMES,
    PAD,
    nano_tokenizer,
    nano_vocabulary,
)


def longest_match(text: str) -> list[int]:
    """The oracle: at each place the longest lexeme, or the bytes of one character."""
    found, place = [], 0
    while place < len(text):
        fitting = [lexeme for lexeme in LEXEMES if text.startswith(lexeme, place)]
        if fitting:
            best = max(fitting, key=len)
            found.append(FIRST_LEXEME_ID + LEXEMES.index(best))
            place += len(best)
        else:
            found += [FIRST_BYTE_ID + byte for byte in text[place].encode()]
            place += 1
    return found


@pytest.fixture(scope="module")
def tokenizer():
    return pytest.importorskip("tokenizers").Tokenizer.from_str(json.dumps(nano_tokenizer()))


anything = any_text(max_size=40)
words = st.lists(st.sampled_from([*LEXEMES, "0", "12", "é", "🙂", "\0", "Ġ", "Ċ", "<0x41>", "\r\n"]), max_size=12)


@given(text=anything | words.map("".join))
def test_any_text_comes_back_by_longest_match(tokenizer, text: str) -> None:
    if END in text or PAD in text:
        return
    tokens = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokens == longest_match(text)
    assert tokenizer.decode(tokens, skip_special_tokens=False) == text


def test_special_tokens_are_one_token_and_come_back(tokenizer) -> None:
    text = f"a{END}b{PAD}"
    tokens = tokenizer.encode(text, add_special_tokens=False).ids
    assert END_ID in tokens and 0 in tokens and tokenizer.decode(tokens, skip_special_tokens=False) == text
    assert tokenizer.decode(tokens, skip_special_tokens=True) == "ab"


def test_half_a_character_is_shown_as_damaged(tokenizer) -> None:
    assert tokenizer.decode([FIRST_BYTE_ID + 0xF0]) == "\ufffd"


def test_lexemes_are_plain_and_leave_numbers_to_single_digits(tokenizer) -> None:
    assert len(set(LEXEMES)) == len(LEXEMES) == 126 and len(nano_vocabulary()) == 384
    assert all(lexeme.isascii() and len(lexeme) > 1 for lexeme in LEXEMES)
    assert not [lexeme for lexeme in LEXEMES if lexeme[0].isdigit() or lexeme[-1].isdigit()]
    assert tokenizer.encode("1234567890").ids == [FIRST_BYTE_ID + ord(c) for c in "1234567890"]


@pytest.mark.parametrize(("level", "most"), [(1, 34), (3, 50), (6, 65), (9, 125)])
def test_lexemes_fit_what_minicode_says(tokenizer, level: int, most: int) -> None:
    env = Minicode(levels=(level,))
    texts = [p.prompt + str(env.gold(p)) for p in env.problems("dev", 40, 0)]
    tokens = [len(tokenizer.encode(text).ids) for text in texts]
    assert sum(tokens) / len(tokens) < most
    assert sum(map(len, texts)) / sum(tokens) > 2.3


def test_same_seed_same_bytes_and_another_seed_other_weights(tmp_path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        (tmp_path / name).mkdir()
        nano.build(tmp_path / name, "nano", seed)
    content = {
        name: {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (tmp_path / name).iterdir()}
        for name in "abc"
    }
    assert content["a"] == content["b"]
    assert content["a"]["model.safetensors"] != content["c"]["model.safetensors"]
    assert content["a"]["tokenizer.json"] == content["c"]["tokenizer.json"]


@pytest.mark.parametrize(
    ("name", "low", "high"), [("nano", 6e5, 8e5), ("nano-2m", 1.8e6, 2.2e6), ("nano-10m", 9e6, 11e6)]
)
def test_sizes(name: str, low: float, high: float) -> None:
    assert low <= nano.parameters(nano.SIZES[name]) <= high


def test_first_weights_are_those_that_learn(tmp_path) -> None:
    nano.build(tmp_path, "nano", 0)
    raw = (tmp_path / "model.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])

    def deviation(name: str) -> float:
        begin, end = header[name]["data_offsets"]
        return float(np.frombuffer(raw[8 + length + begin : 8 + length + end], np.float32).std())

    assert deviation("model.embed_tokens.weight") == pytest.approx(0.5, rel=0.02)
    assert deviation("lm_head.weight") == pytest.approx(0.09, rel=0.02)
    usual = 0.6 / math.sqrt(128)
    assert deviation("model.layers.1.self_attn.q_proj.weight") == pytest.approx(usual, rel=0.03)
    assert deviation("model.layers.1.self_attn.o_proj.weight") == pytest.approx(usual / math.sqrt(6), rel=0.03)
    assert {dtype for dtype, _ in read_header(tmp_path / "model.safetensors").values()} == {"F32"}


@pytest.mark.slow
def test_transformers_sees_the_same_model(tmp_path, monkeypatch) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = resolve("nano@7")
    assert folder == resolve("nano@7") and folder.parent.parent == tmp_path / "rlvrlab"
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    assert type(model).__name__ == "LlamaForCausalLM" and model.config.rope_parameters["rope_theta"] == 1000
    assert model.num_parameters() == nano.parameters(nano.SIZES["nano"]) and not model.config.tie_word_embeddings
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == model.config.vocab_size and tokenizer.eos_token_id == END_ID
    text = "#gen take 3;biggest\n#[9,7]>9\ndef f(x):\n é"
    assert tokenizer(text).input_ids == longest_match(text)
    spoken = [{"role": "user", "content": text}, {"role": "assistant", "content": " return x\n"}]
    assert tokenizer.apply_chat_template(spoken, tokenize=False) == f"{text} return x\n{END}"
    with torch.inference_mode():
        logits = model(torch.tensor([longest_match(text)])).logits
    assert float(logits.std()) < 1.5, "no token is much likelier than another at first"


@pytest.mark.slow
def test_it_learns_its_first_lines(tmp_path) -> None:
    """Thirty-five steps on 8 references at level 1: from chance (log 384 = 5.95) to nearly by heart."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    nano.build(tmp_path, "nano", 0)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    env = Minicode(skills=("gen",), levels=(1,))
    rows = [(longest_match(p.prompt), [*longest_match(str(env.gold(p))), END_ID]) for p in env.problems("train", 8, 0)]
    width = max(len(a) + len(b) for a, b in rows)
    tokens = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full_like(tokens, -100)
    for i, (prompt, answer) in enumerate(rows):
        tokens[i, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        labels[i, len(prompt) : len(prompt) + len(answer)] = torch.tensor(answer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    losses = []
    for _ in range(35):
        loss = model(input_ids=tokens, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(384), abs=1.0) and losses[-1] < 0.35, losses[::5]


def test_the_folder_is_whole_without_torch(tmp_path) -> None:
    nano.build(tmp_path, "nano", 0)
    assert {path.name for path in Path(tmp_path).iterdir()} == {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja", "README.md",
    }  # fmt: skip
