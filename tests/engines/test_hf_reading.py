"""A policy that is only examined is read without Transformers, and is the same policy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs_torch import torch
from texts import any_text
from tiny_models import CHARACTERS, by_bytes, of_kind, tiny, write_model

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf.engine import HfEngine
from rlvrlab.engines.hf.reading import Reader
from rlvrlab.engines.hf.stored import stored
from rlvrlab.engines.hf.token_file import token_file
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.engines.hf.weights import Weights
from rlvrlab.errors import UserError
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Request, Sampling

QKVO = ("q_proj", "k_proj", "v_proj", "o_proj")
PROMPTS = ["1+2=", "a", "what is 3*4 ", "zzz\n"]


def requests(engine: Any, temperature: float = 1.0) -> list[Request]:
    sampling = Sampling(max_tokens=9, temperature=temperature)
    return [Request(engine.tokenizer.encode_prompt(text), 2, ("read", i), sampling) for i, text in enumerate(PROMPTS)]


@pytest.mark.parametrize("chat", [True, False])
def test_answers_are_those_of_the_engine_to_the_last_bit_and_scores_agree(chat: bool) -> None:
    table = Hf(tiny(), device="cpu", chat=chat)
    reader, engine = table.read(Optimizer()), table.build(Optimizer())
    assert isinstance(reader, Reader) and isinstance(engine, HfEngine)
    asked = requests(reader)
    assert asked == requests(engine)
    answers = reader.sample(asked)
    assert answers == engine.sample(asked)
    heard: list[Any] = []
    assert reader.sample_streaming(asked, heard.extend) == answers and len(heard) == 8
    batch = batch_of([one.tokens for one in asked], [group[0].tokens for group in answers])
    for own, theirs in zip(reader.logprobs(batch), engine.logprobs(batch), strict=True):
        np.testing.assert_allclose(own, theirs, atol=2e-5)
    assert (reader.window, reader.precision, reader.name) == (engine.window, engine.precision, engine.name)


def test_scores_do_not_depend_on_how_many_tokens_are_scored_at_once() -> None:
    reader = Hf(tiny(), device="cpu").read(Optimizer())
    assert isinstance(reader, Reader)
    asked = requests(reader)
    batch = batch_of([one.tokens for one in asked], [group[0].tokens for group in reader.sample(asked)])
    whole = reader.logprobs(batch)
    reader.scored_tokens = 7
    for one, other in zip(whole, reader.logprobs(batch), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_an_adapter_that_was_not_trained_changes_no_answer() -> None:
    plain, adapted = (Hf(tiny(), device="cpu", lora_rank=rank).read(Optimizer()) for rank in (0, 4))
    assert isinstance(adapted, Reader)
    assert plain.sample(requests(plain)) == adapted.sample(requests(adapted))


def test_scoring_that_runs_out_of_memory_scores_fewer_tokens_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Hf(tiny(), device="cpu").read(Optimizer())
    assert isinstance(reader, Reader)
    batch, scores, tokens = batch_of([(3, 4)], [(5, 6)]), reader._scores, reader.scored_tokens
    limits: list[int] = []

    def short(given: Any) -> Any:
        limits.append(reader.scored_tokens)
        if len(limits) < 3:
            raise torch.OutOfMemoryError("no memory")
        return scores(given)

    monkeypatch.setattr(reader, "_scores", short)
    assert reader.logprobs(batch)[0].shape == (1, 2) and limits == [tokens, tokens // 2, tokens // 4]


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral", "llama with biases"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_tensor_and_number_is_what_transformers_would_give_the_sampler(
    kind: str, dtype: Any, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    folder = of_kind(kind, tmp_path)
    found = stored(folder)
    assert found is not None
    own = Weights(found.assembled(), "cpu", dtype, lasting=False)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    theirs = Weights(model, "cpu", dtype)
    assert own.shape == theirs.shape and own.parameters == theirs.parameters == model.num_parameters()
    assert (own.head is own.embedding) == (theirs.head is theirs.embedding)
    pairs = [(getattr(own, name), getattr(theirs, name)) for name in ("embedding", "head", "norm", "cos_TD", "sin_TD")]
    for mine, other in zip(own.layers, theirs.layers, strict=True):
        pairs += [(getattr(mine, name), getattr(other, name)) for name in mine.__slots__]
    for mine, other in pairs:
        assert (mine is None and other is None) or torch.equal(mine, other)
    assert any(one.qkv_bias is not None for one in own.layers) == (kind in ("qwen2", "llama with biases"))
    assert any(one.q_norm is not None for one in own.layers) == (kind == "qwen3")


def changed(**facts: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | facts))

    return change


def tensors(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        path = folder / "model.safetensors"
        found = load_file(path)
        change(found)
        save_file(found, path, {"format": "pt"})

    return rewrite


PARTS = [f"model.layers.{i}.self_attn" for i in range(2)]
tensors_with_biases = tensors(
    lambda found: found.update(
        {f"{part}.{one}.bias": torch.ones(len(found[f"{part}.{one}.weight"])) for part in PARTS for one in QKVO}
    )
)
tensors_with_norms = tensors(
    lambda found: found.update(
        {f"{part}.{one}.weight": torch.ones(4) for part in PARTS for one in ("q_norm", "k_norm")}
    )
)
tensors_of_integers = tensors(lambda found: found.update({"model.norm.weight": torch.ones(16, dtype=torch.int32)}))
UNUSUAL = {
    "another class": changed(architectures=["GemmaForCausalLM"]),
    "a type of another class": changed(model_type="gemma"),
    "heads that cannot share keys": changed(num_attention_heads=3),
    "no heads": changed(num_attention_heads=0),
    "more layers than there are": changed(num_hidden_layers=10**12),
    "a head that is there and tied": changed(tie_word_embeddings=True),
    "biases that the configuration has not": tensors_with_biases,
    "norms that the class has not": tensors_with_norms,
    "tensors of whole numbers": tensors_of_integers,
    "part of a head is turned": changed(rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.5}),
    "scaled rotation": changed(rope_parameters={"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e4}),
    "old scaled rotation": changed(rope_scaling={"type": "linear", "factor": 2.0}),
    "another activation": changed(hidden_act="gelu"),
    "a sliding window": changed(sliding_window=16),
    "quantised": changed(quantization_config={"quant_method": "awq"}),
    "no base of the rotation": lambda folder: changed(rope_parameters=None, rope_theta=None)(folder),
    "a size that is wrong": changed(num_key_value_heads=4),
    "no size": changed(vocab_size=None),
    "one tensor more": tensors(lambda found: found.update(extra=torch.zeros(2))),
    "one tensor less": tensors(lambda found: found.pop("model.norm.weight")),
    "a bias of q alone": tensors(lambda found: found.update({"model.layers.0.self_attn.q_proj.bias": torch.zeros(16)})),
    "weights that are no weights": lambda folder: (folder / "model.safetensors").write_bytes(b"{}"),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_what_is_unusual_is_left_to_transformers(what: str, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny(), tmp_path / "model")
    assert stored(folder) is not None
    UNUSUAL[what](folder)
    assert stored(folder) is None


@pytest.mark.parametrize("kind", ["gpt2", "granite", "qwen2"])
def test_other_models_are_examined_by_the_engine(kind: str) -> None:
    """The tiny qwen2 has a tokenizer that is not Qwen's, for which Transformers would build another one."""
    assert isinstance(Hf(tiny(kind), device="cpu").read(Optimizer()), HfEngine)


def pair_of_tokenizers(folder: Path) -> tuple[HfTokenizer, HfTokenizer]:
    from transformers import AutoTokenizer

    own = token_file(folder)
    assert own is not None
    theirs = AutoTokenizer.from_pretrained(folder)
    return tuple(HfTokenizer(one, 1000, "model", chat=bool(own.chat_template)) for one in (own, theirs))  # type: ignore[return-value]


FORMS = [
    ("smollm", "llama", "PreTrainedTokenizerFast"), ("gpt-2", "llama", "TokenizersBackend"),
    ("qwen2", "qwen2", "Qwen2Tokenizer"), ("qwen2", "qwen3", "PreTrainedTokenizerFast"),
]  # fmt: skip


@pytest.fixture(scope="module", params=FORMS, ids=["-".join(form[1:]) for form in FORMS])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[HfTokenizer, HfTokenizer]:
    return pair_of_tokenizers(by_bytes(tmp_path_factory.mktemp("tokens"), *request.param))


@settings(max_examples=60, deadline=None)
@given(text=any_text(max_size=40) | st.text("the <|end|>\n123 é", max_size=40))
def test_tokens_are_those_of_transformers(both: tuple[HfTokenizer, HfTokenizer], text: str) -> None:
    own, theirs = both
    for verb in ("encode", "encode_prompt", "encode_again"):
        assert getattr(own, verb)(text) == getattr(theirs, verb)(text)
    assert own.encode_result(f"<t>{text}</t>", text) == theirs.encode_result(f"<t>{text}</t>", text)
    tokens = theirs.encode(text)
    assert own.decode(tokens) == theirs.decode(tokens) and own.decode(tokens[1:]) == theirs.decode(tokens[1:])


def test_its_facts_are_those_of_transformers(both: tuple[HfTokenizer, HfTokenizer]) -> None:
    own, theirs = both
    assert (own.end, own._named, own._opening) == (theirs.end, theirs._named, theirs._opening)
    assert own.longest_token() == theirs.longest_token()
    everything = list(range(len(own.inner)))
    assert own.decode(everything) == theirs.decode(everything)
    with pytest.raises(UserError, match="odd role"):
        own.encode_chat([{"role": "odd", "content": "x"}])


def test_the_tiny_tokenizer_without_a_template_is_read_too(tmp_path: Path) -> None:
    folder = shutil.copytree(tiny(), tmp_path / "model")
    (folder / "chat_template.jinja").unlink()
    own, theirs = pair_of_tokenizers(folder)
    assert own.encode_prompt(CHARACTERS) == theirs.encode_prompt(CHARACTERS)


def told(**facts: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | facts))

    return change


def other_cuts(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace(r"|\\p{N}|", r"|\\p{N}{1,3}|"))


def without_endoftext(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace("<|endoftext|>", "<|stop|>"))


UNUSUAL_TOKENS = {
    "no token that Qwen's class would add": without_endoftext,
    "another class": told(tokenizer_class="GPT2Tokenizer"),
    "an opening token is added": told(add_bos_token=True),
    "a special token that the file lacks": told(eos_token="<|other|>"),
    "a special token that the file does not call special": told(pad_token="the"),
    "other added tokens": told(added_tokens_decoder={"1": {"content": "<|begin|>"}}),
    "several templates": lambda folder: (
        (folder / "chat_template.jinja").unlink(),
        told(chat_template=[{"name": "a", "template": "x"}])(folder),
    ),
    "another way to cut": other_cuts,
    "no file": lambda folder: (folder / "tokenizer.json").unlink(),
    "no JSON": lambda folder: (folder / "tokenizer.json").write_text("{"),
    "marks of generation": lambda folder: (folder / "chat_template.jinja").write_text("{% generation %}"),
}


@pytest.mark.parametrize("what", UNUSUAL_TOKENS)
def test_tokenizers_that_ask_for_more_are_left_to_transformers(what: str, tmp_path: Path) -> None:
    folder = by_bytes(tmp_path, "qwen2", "qwen2", "Qwen2Tokenizer")
    assert token_file(folder) is not None
    UNUSUAL_TOKENS[what](folder)
    assert token_file(folder) is None


COMMAND = """
import sys
from rlvrlab.cli import main
sys.argv = ["rlvr", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print("transformers" in sys.modules, "peft" in sys.modules)
"""


@pytest.mark.slow
def test_an_examination_imports_neither_transformers_nor_peft(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    changed(max_position_embeddings=512)(model)
    words = ["eval", "countdown", "--engine", "hf", f"engine.model={model}", "--size", "2", "--max-tokens", "4"]
    words += ["-o", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False False"
    assert json.loads((tmp_path / "out/metrics.json").read_text())["countdown"]["problems"] == 2
