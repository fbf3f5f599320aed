"""Every setting that a model folder may hold: it is read as Transformers and PEFT read it, or the folder is left to
them, or refused in a line; it is never opened with the setting passed over."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from needs_torch import torch
from safetensors.torch import load_file, save_file
from slow_cases import some_slow
from test_hf_reading import changed
from tiny_models import by_bytes, of_kind

from rlvrlab.engines.hf.load import without_dropout
from rlvrlab.engines.hf.own_model import OwnModel
from rlvrlab.engines.hf.stored import stored
from rlvrlab.engines.hf.token_file import token_file
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.engines.hf.weights import obstacle

CPU = torch.device("cpu")
IDS = torch.arange(40)[None] * 7 % 40
ROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 1e4}
GONE = object()


def rewrite(path: Path, **changes: Any) -> None:
    """Keys of a JSON file; GONE takes one out."""
    facts = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in facts.items() if value is not GONE}))


def theirs(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


AS_IT_IS: dict[str, dict[str, Any]] = {
    "SmolLM2's own": {"is_llama_config": True, "rope_interleaved": False, "transformers.js_config": {"dtype": "q4"}},
    "null and false": {"logit_scale": None, "use_mrope": False, "rope_scaling": None, "quantization_config": None},
    "an old name of the rotation": {"rope_parameters": {"type": "default", "rope_theta": 1e4}},
    "the base twice": {"rope_theta": 99.0},
    "the base outside": {"rope_parameters": GONE, "rope_theta": 99.0},
    "every layer sees all": {"layer_types": ["full_attention"] * 2},
    "settings of drawing": {"temperature": 0.3, "top_k": 5, "max_length": 20},
    "a precision under its old name": {"torch_dtype": "float16", "dtype": GONE},
    "dropout": {"attention_dropout": 0.5},
    "no heads of keys, so as many": {"num_key_value_heads": GONE},
    "a head's size is not told": {"head_dim": None},
}


@pytest.mark.parametrize("what", AS_IT_IS)
def test_settings_that_are_read(what: str, tmp_path: Path) -> None:
    more = {"num_key_value_heads": 4, "head_dim": 4, "attention_bias": True}
    folder = of_kind("llama", tmp_path, **more)
    rewrite(folder / "config.json", **AS_IT_IS[what])
    found = stored(folder)
    assert found is not None
    assert torch.equal(OwnModel(found, CPU, torch.float32)(IDS).logits, theirs(folder)(IDS).logits)


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_settings_of_qwens_folders(kind: str, tmp_path: Path) -> None:
    """As they are published: a window that is not used, and switches that are off."""
    folder = of_kind(kind, tmp_path)
    window = {"sliding_window": 8, "use_sliding_window": False, "max_window_layers": 1, "use_mrope": False}
    rewrite(folder / "config.json", **window, rope_scaling=None, layer_types=GONE)
    found = stored(folder)
    assert found is not None
    assert torch.equal(OwnModel(found, CPU, torch.float32)(IDS).logits, theirs(folder)(IDS).logits)


LEFT: dict[str, tuple[str, dict[str, Any]]] = {
    "an old name of a scaled rotation": ("llama", {"rope_parameters": {"type": "linear", "factor": 2.0, **ROPE}}),
    "a scale of the rotation without a type": ("llama", {"rope_parameters": {"factor": 2.0, "rope_theta": 1e4}}),
    "rotations by kinds of layers": ("qwen2", {"rope_parameters": {"full_attention": ROPE}, "rope_theta": 5.0}),
    "rotations that are no table": ("llama", {"rope_parameters": [1], "rope_theta": 5.0}),
    "no part of a head is turned": ("llama", {"partial_rotary_factor": 0.0}),
    "a window that is Mistral's default": ("mistral", {"sliding_window": GONE}),
    "a switch that Mistral has not": ("mistral", {"sliding_window": 8, "use_sliding_window": False}),
    "a window that is Qwen's default": ("qwen2", {"use_sliding_window": True, "sliding_window": GONE}),
    "layers in pieces": ("llama", {"layer_types": ["full_attention", "chunked_attention"]}),
    "fewer kinds than layers": ("qwen3", {"layer_types": ["full_attention"]}),
    "biases that the class has in any case": ("qwen2", {"attention_bias": True}),
    "heads of keys by another default": ("qwen2", {"num_key_value_heads": GONE}),
    "a size of heads by another default": ("qwen3", {"head_dim": GONE}),
    "a size of heads that is nothing": ("qwen2", {"head_dim": None}),
    "a truth that is a text": ("llama", {"tie_word_embeddings": "false"}),
    "a truth that is a number": ("llama", {"mlp_bias": 0}),
    "a padding token that is a truth": ("llama", {"pad_token_id": True}),
    "another file of weights": ("llama", {"transformers_weights": "other.safetensors"}),
    "settings by layer": ("llama", {"per_layer_config": {"0": {"head_dim": 8}}}),
    "quantised by nothing": ("llama", {"quantization_config": {}}),
    "layers without rotation": ("llama", {"no_rope_layers": [0, 1]}),
    "scores that are scaled": ("llama", {"logit_scale": 0.5}),
    "scores that are bounded": ("llama", {"final_logit_softcapping": 30.0}),
    "a multiplier": ("llama", {"embedding_multiplier": 12.0}),
}


@pytest.mark.parametrize("what", LEFT)
def test_settings_that_are_left_to_transformers(what: str, tmp_path: Path) -> None:
    kind, facts = LEFT[what]
    more = {"num_key_value_heads": 4} if "num_key_value_heads" in facts else {}
    more |= {"head_dim": 4} if "head_dim" in facts else {}
    folder = of_kind(kind, tmp_path, **more)
    assert stored(folder) is not None
    rewrite(folder / "config.json", **facts)
    assert stored(folder) is None


@pytest.mark.parametrize(("kind", "key"), [("mistral", "attention_bias"), ("qwen3", "mlp_bias"), ("qwen2", "mlp_bias")])
def test_biases_that_a_class_does_not_read(kind: str, key: str, tmp_path: Path) -> None:
    """They lie in the file and in its configuration, and Transformers leaves them out."""
    folder = of_kind(kind, tmp_path)
    path = folder / "model.safetensors"
    found = load_file(path)
    parts = (
        ("q_proj", "k_proj", "v_proj", "o_proj") if key == "attention_bias" else ("gate_proj", "up_proj", "down_proj")
    )
    for name in [name for name in found if name.rsplit(".", 2)[1] in parts]:
        found[name.replace("weight", "bias")] = torch.ones(len(found[name]), dtype=torch.bfloat16)
    save_file(found, path, {"format": "pt"})
    rewrite(folder / "config.json", **{key: True})
    assert stored(folder) is None


def test_the_sampler_knows_that_mistral_has_no_switch(tmp_path: Path) -> None:
    folder = of_kind("mistral", tmp_path)
    changed(sliding_window=8, use_sliding_window=False)(folder)
    assert obstacle(theirs(folder)) == "a sliding window shorter than the model's window"


def test_dropout_that_is_a_whole_number_is_off_too() -> None:
    module = torch.nn.Identity()
    module.attention_dropout = 1
    assert without_dropout(module).attention_dropout == 0.0


def in_two_files(folder: Path, *, listed: bool) -> None:
    whole = folder / "model.safetensors"
    tensors = load_file(whole)
    whole.unlink()
    halves = {"a.safetensors": sorted(tensors)[::2], "b.safetensors": sorted(tensors)[1::2]}
    for file, names in halves.items():
        save_file({name: tensors[name] for name in names}, folder / file, {"format": "pt"})
    if listed:
        index = {"metadata": {}, "weight_map": {name: file for file, names in halves.items() for name in names}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_weights_in_the_files_of_an_index(tmp_path: Path) -> None:
    folder = of_kind("llama", tmp_path)
    before = theirs(folder)(IDS).logits
    in_two_files(folder, listed=True)
    (folder / "c.safetensors").write_bytes((folder / "a.safetensors").read_bytes())
    found = stored(folder)
    assert found is not None and torch.equal(OwnModel(found, CPU, torch.float32)(IDS).logits, before)
    assert torch.equal(theirs(folder)(IDS).logits, before)


def test_weights_in_files_that_nothing_names_are_left_to_transformers(tmp_path: Path) -> None:
    in_two_files(of_kind("llama", tmp_path), listed=False)
    assert stored(tmp_path) is None


def test_a_file_beside_the_weights_does_not_mend_them(tmp_path: Path) -> None:
    path = of_kind("llama", tmp_path) / "model.safetensors"
    tensors = load_file(path)
    save_file({"model.norm.weight": tensors.pop("model.norm.weight")}, tmp_path / "other.safetensors")
    save_file(tensors, path, {"format": "pt"})
    assert stored(tmp_path) is None


LLAMA, QWEN2, QWEN3 = ("smollm", "llama", "TokenizersBackend"), ("qwen2", "qwen2", "Qwen2Tokenizer"), (
    "qwen2", "qwen3", "Qwen2Tokenizer",
)  # fmt: skip
TEXTS = ["the <|end|> <|start|> é 12 ", " theth\n\n<|more|> <tool> x", "a<|endoftext|> b　ﬁ"]
TEMPLATE = "{{ [bos_token, eos_token, unk_token, pad_token, image_token, sep_token] }}{{ messages[0].content }}"


def both(folder: Path) -> tuple[Any, Any] | None:
    """Our tokenizer and that of Transformers; None where the folder is left to it."""
    from transformers import AutoTokenizer

    (folder / "chat_template.jinja").write_text(TEMPLATE)
    own = token_file(folder)
    return None if own is None else (own, AutoTokenizer.from_pretrained(folder))


def same_tokens(own: Any, other: Any) -> None:
    assert own.special_tokens_map == other.special_tokens_map and own.get_vocab() == other.get_vocab()
    assert {i: repr(one) for i, one in own.added_tokens_decoder.items()} == {
        i: repr(one) for i, one in other.added_tokens_decoder.items()
    }
    for text in TEXTS:
        ids = other(text, add_special_tokens=False).input_ids
        assert own(text, add_special_tokens=False).input_ids == ids and own(text).input_ids == other(text).input_ids
        form = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        assert own.decode(ids, **form) == other.decode(ids, **form)
    told = [
        HfTokenizer(one, 1000, "model", chat=True)._written([{"role": "user", "content": "é"}]) for one in (own, other)
    ]
    assert told[0] == told[1] == other.apply_chat_template([{"role": "user", "content": "é"}], tokenize=False)


def in_tokenizer(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def rewrite_it(folder: Path) -> None:
        path = folder / "tokenizer.json"
        whole = json.loads(path.read_text())
        change(whole)
        path.write_text(json.dumps(whole))

    return rewrite_it


def file(name: str, facts: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(facts if isinstance(facts, str) else json.dumps(facts))

    return write


def habit(number: int, **facts: Any) -> Callable[[Path], None]:
    """Another habit of an added token."""
    return in_tokenizer(lambda whole: whole["added_tokens"][number].update(facts))


def told(**facts: Any) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder / "tokenizer_config.json", **facts)


def listed(**facts: Any) -> dict[str, Any]:
    """The added tokens of the tiny tokenizer as tokenizer_config.json lists them."""
    plain = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
    return {
        str(i): {"content": one, **plain, **facts} for i, one in enumerate(["<|end|>", "<|start|>", "<|endoftext|>"])
    }


def pads(whole: dict[str, Any]) -> None:
    whole["padding"] = {"strategy": {"Fixed": 9}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 0,
                        "pad_type_id": 0, "pad_token": "<|end|>"}  # fmt: skip
    whole["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}


def opens(whole: dict[str, Any]) -> None:
    start = {"SpecialToken": {"id": "<|start|>", "type_id": 0}}
    whole["post_processor"] = {
        "type": "TemplateProcessing", "single": [start, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|start|>": {"id": "<|start|>", "ids": [1], "tokens": ["<|start|>"]}},
    }  # fmt: skip


MORE = {"id": 261, "content": "<tool>", "single_word": True, "lstrip": True, "rstrip": True, "normalized": True,
        "special": False}  # fmt: skip
READ_AS_THEY_ARE: dict[str, Callable[[Path], None]] = {
    "nothing more": lambda folder: None,
    "what changes no token": told(
        padding_side="left", model_max_length=4, errors="replace", vocab_size=7, is_local=True, add_bos_token=False,
        model_input_names=["input_ids"], clean_up_tokenization_spaces=True, extra_special_tokens={}, bos_token=None,
    ),
    "special tokens twice": file("special_tokens_map.json", {"eos_token": {"content": "<|end|>", "lstrip": True}}),
    "more special tokens": told(
        additional_special_tokens=["<|start|>", {"__type": "AddedToken", "content": "<|end|>"}]
    ),
    "added tokens twice": told(added_tokens_decoder=listed()),
    "added tokens in a file": file("added_tokens.json", {"<|end|>": 0}),
    "cut and filled up": in_tokenizer(pads),
    "an opening token": in_tokenizer(opens),
    "one token more": in_tokenizer(lambda whole: whole["added_tokens"].append(MORE)),
}  # fmt: skip


READ = list(product(READ_AS_THEY_ARE, (LLAMA, QWEN2, QWEN3, ("qwen2", "qwen3", "TokenizersBackend"))))
SOME_READ = [(what, form) for what, form in READ if form == LLAMA or what == "nothing more"]


@pytest.mark.parametrize("case", some_slow(READ, SOME_READ), ids=str)
def test_tokenizers_that_are_read(case: tuple[str, tuple[str, str, str]], tmp_path: Path) -> None:
    what, form = case
    folder = by_bytes(tmp_path, *form)
    READ_AS_THEY_ARE[what](folder)
    pair = both(folder)
    assert pair is not None
    same_tokens(*pair)


def model(**facts: Any) -> Callable[[Path], None]:
    return in_tokenizer(lambda whole: whole["model"].update(facts))


def cut(number: int, **facts: Any) -> Callable[[Path], None]:
    return in_tokenizer(lambda whole: whole["pre_tokenizer"]["pretokenizers"][number].update(facts))


LEFT_TOKENS: dict[str, tuple[tuple[str, str, str], Callable[[Path], Any]]] = {
    "another end in another file": (LLAMA, file("special_tokens_map.json", {"eos_token": "<|start|>"})),
    "a token in another file alone": (LLAMA, file("special_tokens_map.json", {"sep_token": "<|start|>"})),
    "a token of a name of its own": (LLAMA, told(image_token="<|image|>")),
    "tokens of names of their own": (LLAMA, file("special_tokens_map.json", {"image_token": "<|start|>"})),
    "more special tokens in another file": (
        LLAMA, file("special_tokens_map.json", {"additional_special_tokens": ["<|more|>"]})),
    "added tokens in another file": (LLAMA, file("added_tokens.json", {"<|more|>": 261})),
    "other numbers in another file": (LLAMA, file("added_tokens.json", {"<|end|>": 1})),
    "other habits in another file": (LLAMA, told(added_tokens_decoder=listed(lstrip=True))),
    "more templates": (LLAMA, file("additional_chat_templates/tools.jinja", "tools")),
    "a pattern that is mended": (LLAMA, told(fix_mistral_regex=True)),
    "a file of another name": (LLAMA, told(fast_tokenizer_files=["tokenizer.4.0.0.json"])),
    "a table of no type": (LLAMA, told(eos_token={"content": "<|end|>"})),
    "tables of no type": (QWEN2, told(additional_special_tokens=[{"content": "<|end|>"}])),
    "first arguments": (LLAMA, told(init_inputs=["x"])),
    "a padding token that the file names": (
        LLAMA, lambda folder: (in_tokenizer(pads)(folder), told(pad_token=GONE)(folder))),
    "some of the added tokens": (
        QWEN2, lambda folder: (
            in_tokenizer(lambda whole: whole["added_tokens"].append(MORE))(folder),
            told(added_tokens_decoder=listed())(folder))),
    "a habit that Qwen's class drops": (QWEN2, habit(0, lstrip=True)),
    "another decoder": (QWEN2, in_tokenizer(lambda whole: whole.update(decoder={"type": "Fuse"}))),
    "no merges where a word is there": (QWEN2, model(ignore_merges=True)),
    "bytes for what is unknown": (QWEN3, model(byte_fallback=True)),
    "a token for what is unknown": (QWEN3, model(unk_token="<|end|>")),
    "chance": (QWEN2, model(dropout=0.5)),
    "the ends of words": (QWEN2, model(end_of_word_suffix="</w>")),
    "another behaviour at cuts": (QWEN2, cut(0, behavior="Removed")),
    "cuts the other way round": (QWEN3, cut(0, invert=True)),
    "a blank before": (QWEN2, cut(1, add_prefix_space=True)),
    "two patterns": (QWEN2, cut(1, use_regex=True)),
    "another normaliser": (QWEN2, in_tokenizer(lambda whole: whole.update(normalizer={"type": "NFKC"}))),
}  # fmt: skip


@pytest.mark.parametrize("what", LEFT_TOKENS)
def test_tokenizers_that_are_left_to_transformers(what: str, tmp_path: Path) -> None:
    form, change = LEFT_TOKENS[what]
    folder = by_bytes(tmp_path, *form)
    assert token_file(folder) is not None
    change(folder)
    assert token_file(folder) is None


def test_qwens_class_names_tokens_that_the_folder_does_not(tmp_path: Path) -> None:
    folder = by_bytes(tmp_path, *QWEN2)
    told(eos_token=GONE, pad_token=GONE)(folder)
    pair = both(folder)
    assert pair is not None and pair[0].eos_token == "<|endoftext|>"
    same_tokens(*pair)
