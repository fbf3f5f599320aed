"""Which models the hf engine takes, and what it says about the others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from engine_factories import hf
from needs_torch import torch
from tiny_models import tiny, write_tokenizer

from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf.generate import PlainSampler
from rlvrlab.errors import LabError, UserError
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Request, Sampling


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(shutil.copytree(tiny(), tmp_path / "model"))


def refused(folder: Path, **keys) -> str:
    with pytest.raises(LabError) as caught:
        Hf(str(folder), device="cpu", **keys).build(Optimizer())
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)
    return str(caught.value)


def rewrite(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_missing_folders_and_files(folder: Path, tmp_path) -> None:
    assert "no such folder" in refused(tmp_path / "nowhere" / "at_all")
    (folder / "config.json").unlink()
    assert "config.json" in refused(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_pickled_weights_are_refused(folder: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": torch.zeros(1)}, folder / name)
    assert "pickle" in refused(folder) and name in refused(folder)
    (folder / name).unlink()
    assert "no *.safetensors" in refused(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_remote_code_is_refused_and_never_run(folder: Path, name: str) -> None:
    (folder / "evil.py").write_text("import pathlib; pathlib.Path('ran').touch(); raise SystemExit")
    rewrite(folder / name, auto_map={"AutoModelForCausalLM": "evil.Evil", "AutoTokenizer": ["evil.Evil", None]})
    assert "auto_map" in refused(folder)
    assert not Path("ran").exists() and not (folder / "ran").exists()


def test_damaged_files(folder: Path) -> None:
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"\xff" * 64):
        weights.write_bytes(broken)
        assert "damaged" in refused(folder)
    weights.write_bytes(whole)
    (folder / "config.json").write_text("{")
    assert "cannot be read as JSON" in refused(folder)


@pytest.mark.slow
def test_weights_that_do_not_fit_their_configuration(folder: Path) -> None:
    """Transformers would fill the gap with random numbers."""
    rewrite(folder / "config.json", num_hidden_layers=3)
    assert "weights are missing" in refused(folder)


@pytest.mark.slow
def test_a_model_without_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    assert "tokenizer" in refused(folder)


def test_a_chat_template_is_only_needed_for_chat(folder: Path) -> None:
    for path in (*folder.glob("tokenizer*"), *folder.glob("chat_template*")):
        path.unlink()
    write_tokenizer(folder, chat=False)
    assert "no chat template" in refused(folder, chat=True)
    Hf(str(folder), device="cpu").build(Optimizer())


def test_prompts_in_the_chat_template() -> None:
    plain, chat = hf()(0).tokenizer, hf(chat=True)(0).tokenizer
    assert plain.encode_prompt("3 7\n") == plain.encode_again("3 7\n") == plain.encode("3 7\n")
    assert chat.decode(chat.encode_prompt("3 7")) == "user 3 7\na "
    assert chat.decode(chat.encode_again("no")) == "\nuser no\na "
    assert plain.decode((*plain.encode("5"), plain.end, 48, 99)) == "5z", "ids that only the model has are dropped"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"quantize": "4bit"}, "set engine.lora_rank"),
        ({"quantize": "4bit", "lora_rank": 4}, "4bit needs a GPU"),
        ({"lora_rank": 4, "lora_targets": "q_prj"}, "engine.lora_targets"),
        ({"device": "quantum"}, "engine.device"),
    ],
)
def test_keys_that_cannot_be_met(keys, words: str) -> None:
    with pytest.raises(UserError, match=words):
        Hf(tiny(), **({"device": "cpu"} | keys)).build(Optimizer())


def test_a_prompt_that_does_not_fit_the_window() -> None:
    engine = hf()(0)
    with pytest.raises(UserError, match="window of 128"):
        engine.sample([Request((3,) * 125, 1, ("long",), Sampling(max_tokens=4))])


def test_a_prompt_that_is_too_long_is_named_by_what_is_its_own() -> None:
    engine, few = hf()(0), Sampling(max_tokens=4)
    begin, own = engine.tokenizer.encode("1 + 2"), engine.tokenizer.encode("7 * 9 = ")
    asked = [Request((*begin, *tail), 1, ("any",), few) for tail in (engine.tokenizer.encode("3"), own * 60)]
    with pytest.raises(UserError, match=r"tokens \('7 \* 9 = 7") as told:
        engine.sample(asked)
    assert "1 + 2" not in str(told.value) and "leave this problem out" in str(told.value)


@pytest.mark.slow
def test_the_plain_sampler_draws_what_the_fast_one_draws() -> None:
    """Also where answers end early, in other batches, with a nucleus, and for prompts of unequal length."""
    engine = hf("llama", 4, own=False)(0)
    engine.shift([torch.full_like(engine.weights.theta, 0.02)], [1.0])
    engine.publish()
    settings = [Sampling(12), Sampling(12, 0.0), Sampling(5, 0.7, 0.8), Sampling(12, stop=("e", "1"))]
    requests = [Request(tuple(range(3, 5 + i)), 5, ("same", i), s) for i, s in enumerate(settings * 2)]
    fast, plain = engine.sample(requests), PlainSampler(engine.model, engine.tokenizer, engine.device)
    slow = plain.sample(requests, 1)
    assert [[(c.tokens, c.text, c.finish) for c in g] for g in slow] == [
        [(c.tokens, c.text, c.finish) for c in g] for g in fast
    ]
    for mine, theirs in zip(chain(*slow), chain(*fast), strict=True):
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)
    assert len({c.finish for g in slow for c in g}) == 2


def test_a_later_turn_continues_the_conversation_token_by_token(tmp_path):
    """Prompt, sampled answer with its end, next question: exactly what the template makes of the whole."""
    from transformers import AutoTokenizer

    from rlvrlab.engines.hf.tokenizer import HfTokenizer
    from rlvrlab.models import nano

    (tmp_path / "nano").mkdir()
    nano.build(tmp_path / "nano", "nano", 0)
    inner = AutoTokenizer.from_pretrained(tmp_path / "nano")
    marked = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"  # noqa: E501
    for template in (inner.chat_template, marked):
        inner.chat_template = template
        ours = HfTokenizer(inner, 384, "nano", chat=True)
        tokens = (*ours.encode_prompt("def f(x):"), *ours.encode(" return x"), ours.end, *ours.encode_again("again:"))
        turns = [("user", "def f(x):"), ("assistant", " return x"), ("user", "again:")]
        messages = [{"role": role, "content": text} for role, text in turns]
        assert inner.decode(tokens) == inner.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    inner.chat_template = "{{ messages | length }}"
    with pytest.raises(UserError, match="rewrites earlier turns"):
        HfTokenizer(inner, 384, "nano", chat=True).encode_again("again:")


def test_tokens_with_a_name_are_counted_once(tmp_path):
    """Older tokenizers build their whole table to count it: counted for every token, 512 answers took half a minute."""
    from transformers import AutoTokenizer

    from rlvrlab.engines.hf.tokenizer import HfTokenizer
    from rlvrlab.models import nano

    (tmp_path / "nano").mkdir()
    nano.build(tmp_path / "nano", "nano", 0)
    inner = AutoTokenizer.from_pretrained(tmp_path / "nano")
    counted = []

    class Counted(type(inner)):
        def __len__(self):
            counted.append(1)
            return super().__len__()

    inner.__class__ = Counted
    ours = HfTokenizer(inner, 384, "nano", chat=False)
    counted.clear()
    tokens = ours.encode("x = 12")
    assert [ours.decode([*tokens, 100_000]) for _ in range(3)] == ["x = 12"] * 3
    assert not counted


ALL_WEIGHTS = """
import sys
from engine_factories import hf
from rlvrlab.types import Request, Sampling
hf("llama", 0)(5).sample([Request((3, 4, 5), 2, ("peft",), Sampling(max_tokens=3))])
print("peft" in sys.modules)
"""


@pytest.mark.slow
def test_without_an_adapter_peft_is_not_imported() -> None:
    """It takes two seconds and more of every evaluation."""
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", ALL_WEIGHTS], capture_output=True, text=True, check=True, env=os.environ | paths
    )
    assert done.stdout.strip() == "False"
