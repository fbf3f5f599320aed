"""Model folders that somebody else has made: whatever lies in them, one line says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from needs_torch import torch
from safetensors.torch import load_file, save_file
from slow_cases import some_slow
from tiny_models import by_bytes, tiny

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf import token_file as token_files
from rlvrlab.engines.hf import weights as weights_of_models
from rlvrlab.engines.hf.load import load_model
from rlvrlab.engines.hf.reading import Reader
from rlvrlab.engines.hf.stored import config_of, stored
from rlvrlab.engines.hf.token_file import token_file
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.engines.templates import Template
from rlvrlab.errors import UserError
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Request, Sampling


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny(), tmp_path / "model"))


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """A reader that waits for a pipe fails instead of holding the tests up."""

    def late(*_: Any) -> None:
        raise AssertionError("held up")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused(folder: Path, **keys: Any) -> str:
    with within(60), pytest.raises(UserError) as caught:
        Hf(str(folder), device="cpu", **keys).read(Optimizer())
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)
    return str(caught.value)


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


READ = ["model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
        "generation_config.json", "added_tokens.json", "merges.txt"]  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_pipes_and_devices_are_never_opened(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert f"{name}: not a file but a pipe or a device" in refused(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    assert f"{name}: not a file but a pipe or a device" in refused(folder)


def test_a_configuration_that_is_a_pipe_is_none(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert "no config.json" in refused(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "chat_template.jinja", "a.safetensors.index.json"])
def test_files_of_holes_are_not_read(folder: Path, name: str) -> None:
    with (folder / name).open("ab") as file:
        file.truncate(1 << 40)
    assert f"{name}: 1099511627776 bytes, at most" in refused(folder)


def test_an_index_names_files_of_its_own_folder(folder: Path) -> None:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"model.norm.weight": "../../pipe.safetensors"}}))
    assert "weight_map names '../../pipe.safetensors'" in refused(folder)


def test_a_link_to_nothing_is_a_file_that_is_missing(folder: Path) -> None:
    (folder / "added_tokens.json").symlink_to(folder / "nothing")
    Hf(str(folder), device="cpu").read(Optimizer())


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "[" * 500 + "]" * 500 + "}", "9" * 5000, "\ud800", "\n{\n"])
def test_json_that_is_none_of_ours(folder: Path, name: str, text: str) -> None:
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert f"{name}: cannot be read as JSON" in refused(folder)


def test_no_weights(folder: Path) -> None:
    save_file({}, folder / "model.safetensors")
    assert "holds no weights" in refused(folder)


NUMBERS = [
    ("max_position_embeddings", 10**12), ("num_hidden_layers", 10**9), ("num_hidden_layers", 100),
    ("num_hidden_layers", True), ("vocab_size", -1), ("hidden_size", 1e30), ("num_key_value_heads", 2.0),
    ("head_dim", "4"), ("rms_norm_eps", float("nan")), ("rms_norm_eps", 0),
    ("rms_norm_eps", -1.0), ("rope_theta", True), ("rope_theta", float("inf")), ("n_positions", 10**9),
    ("text_config", {"num_hidden_layers": 10**9}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), NUMBERS, ids=str)
def test_numbers_that_no_model_has(folder: Path, key: str, value: Any) -> None:
    rewrite(folder / "config.json", **{key: value})
    told = refused(folder)
    assert "config.json: " in told and (key in told or "num_hidden_layers" in told or "NaN is no value" in told)


def test_a_model_is_not_cut_to_fewer_layers_than_its_file_has(folder: Path) -> None:
    rewrite(folder / "config.json", num_hidden_layers=1)
    assert "weights have no place in the model of config.json, e.g. model.layers.1" in refused(folder)


def test_weights_beside_the_layers_are_left_out_with_a_word(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file(load_file(path) | {"another_head.weight": torch.zeros(2)}, path, metadata={"format": "pt"})
    with pytest.warns(UserWarning, match=r"1 weights have no place .* e\.g\. another_head\.weight; they are left out"):
        Hf(str(folder), device="cpu").read(Optimizer())


def test_rotary_frequencies_in_a_file_are_nobodys_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    more = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}
    save_file(load_file(path) | more, path, metadata={"format": "pt"})
    assert stored(folder) is not None
    load_model(Hf(str(folder), device="cpu"), torch.device("cpu"))


def test_an_adapter_beside_the_weights_is_left_to_transformers(folder: Path) -> None:
    assert stored(folder) is not None
    (folder / "adapter_config.json").write_text("{}")
    assert stored(folder) is None


ODD_TOKENS: dict[str, dict[str, Any]] = {
    "a list as end": {"eos_token": ["<eos>"]},
    "a list of added tokens": {"added_tokens_decoder": ["<eos>"]},
    "an added token without a number": {"added_tokens_decoder": {"one": {"content": "<eos>"}}},
    "an added token without content": {"added_tokens_decoder": {"1": {}}},
    "a number of special tokens": {"additional_special_tokens": 5},
    "a special token without content": {"additional_special_tokens": [{}]},
}


@pytest.mark.parametrize("what", ODD_TOKENS)
def test_odd_settings_of_a_tokenizer_are_left_to_transformers(folder: Path, what: str) -> None:
    rewrite(folder / "tokenizer_config.json", **ODD_TOKENS[what])
    assert token_file(folder) is None


def changed_tokenizer(folder: Path, *, own: bool = True, **model: Any) -> None:
    """With another class Transformers reads the same file."""
    path = folder / "tokenizer.json"
    whole = json.loads(path.read_text())
    whole["model"] = model if "type" in model else whole["model"] | model
    path.write_text(json.dumps(whole))
    if not own:
        rewrite(folder / "tokenizer_config.json", extra_special_tokens={"more_token": "<eos>"})


@pytest.mark.parametrize("own", [True, False])
def test_a_tokenizer_that_cannot_encode(folder: Path, own: bool) -> None:
    model = {"type": "WordPiece", "vocab": {"<pad>": 0, "<eos>": 1, "<unk>": 2}, "unk_token": "<gone>"}
    changed_tokenizer(folder, own=own, **model, max_input_chars_per_word=9, continuing_subword_prefix="##")
    assert (token_file(folder) is not None) == own
    assert "its tokenizer cannot read a prompt (" in refused(folder)


@pytest.mark.parametrize("own", [True, False])
def test_a_tokenizer_that_cuts_by_chance(folder: Path, own: bool) -> None:
    changed_tokenizer(folder, own=own, dropout=0.5)
    assert "model.dropout in tokenizer.json" in refused(folder)


class Panic(BaseException):
    """As the tokenizer library raises them."""


@pytest.mark.parametrize("verb", ["encode", "decode"])
def test_panics_of_the_library_are_told_and_interrupts_are_let_through(verb: str) -> None:
    tokenizer, raised = tokenizer_with("x"), [Panic("at the\ndisco"), KeyboardInterrupt()]

    def fails(*_: Any, **__: Any) -> Any:
        raise raised.pop(0)

    inner = SimpleNamespace(decode=fails) if verb == "decode" else fails
    tokenizer.inner = inner
    given: Any = "text" if verb == "encode" else [3]
    with pytest.raises(UserError, match=r"its tokenizer cannot .* \(at the disco\)"):
        getattr(tokenizer, verb)(given)
    with pytest.raises(KeyboardInterrupt):
        getattr(tokenizer, verb)(given)


def test_a_panic_while_a_tokenizer_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Path) -> Any:
        raise Panic

    monkeypatch.setattr(token_files, "_read", fails)
    assert token_file(folder) is None


def tokenizer_with(template: str) -> HfTokenizer:
    """The tiny one with another chat template."""
    found = token_file(Path(tiny()))
    assert found is not None
    found.chat_template = template
    return HfTokenizer(found, 100, "model", chat=True)


GROWS = "{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = GROWN %}{% endfor %}{{ n.x }}"
BAD = {
    "division": "{{ 1 // 0 }}", "syntax": "{% for", "missing": "{{ a.b.c }}", "kinds": "{{ 'a' + 1 }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "overflow": "{{ 10.0 ** 400 }}",
    "include": "{% include 'a' %}", "times": "{{ 'x' * 10**12 }}", "list": "{{ [0] * 10**12 }}",
    "power": "{{ 9 ** (9 ** 9) }}", "percent": "{{ '%1000000000d' % 1 }}", "star": "{{ '%*d' % (10**9, 1) }}",
    "filter": "{{ '%1000000000d' | format(1) }}", "format": "{{ '{:1000000000}'.format(1) }}",
    "nested": "{{ '{:{}}'.format(1, 10**9) }}", "center": "{{ 'x' | center(10**9) }}",
    "ljust": "{{ 'x'.ljust(10**9) }}", "zfill": "{{ 'x'.zfill(10**9) }}", "bytes": "{{ (1).to_bytes(10**9) }}",
    "indent": "{{ messages | tojson(indent=10**9) }}", "keys": "{{ messages | tojson(cls=1) }}",
    "spaces": "{{ 'a\nb' | indent(10**9) }}", "batch": "{{ [1] | batch(10**9, 0) | list }}",
    "range": "{{ range(10**7) | list }}", "replace": GROWS.replace("GROWN", "n.x.replace('x', 'xx')"),
    "loops": "{% for i in range(1000) %}{% for j in range(1000) %}{{ '' }}{% endfor %}{% endfor %}",
    "letters": "{% for i in 'x' * 10000 %}{% for j in 'x' * 10000 %}{% endfor %}{% endfor %}",
    "calls": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "tilde": GROWS.replace("GROWN", "n.x ~ n.x"), "plus": GROWS.replace("GROWN", "n.x + n.x"),
    "join": GROWS.replace("GROWN", "[n.x, n.x] | join"), "lists": GROWS.replace("GROWN", "[n.x, n.x]"),
    "output": "{% for i in range(10**5) %}{{ 'x' * 1000 }}{% endfor %}",
}  # fmt: skip


LONG = {"calls", "loops", "letters"}
"""They take all steps or seconds that a text is given, so a single verb is asked; all render in the same way."""


@pytest.mark.parametrize("what", some_slow(BAD, BAD.keys() - LONG))
def test_templates_that_fail_or_never_end(what: str) -> None:
    tokenizer = tokenizer_with(BAD[what])
    verbs = {"encode_prompt": ("a",), "encode_again": ("a",), "encode_result": ("a", "a")}
    with within(120):  # what never ends would not end by then, and a busy machine is slow
        for verb, given in list(verbs.items())[: 1 if what in LONG else None]:
            with pytest.raises(UserError, match="the chat template does not take these messages") as caught:
                getattr(tokenizer, verb)(*given)
            assert "\n" not in str(caught.value)


def test_templates_of_several_kinds_are_written_as_transformers_writes_them() -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    messages = [{"role": "user", "content": "é <b>"}, {"role": "assistant", "content": "4 %s"}]
    template = (
        "{% for m in messages %}{{ loop.index ~ '/' ~ loop.length }}{{ loop.last }}{{ m | tojson(indent=2) }}"
        "{% generation %}{{ m.content + '\n' }}{% endgeneration %}{% endfor %}{{ '%s-%5d' % ('a', 1) }}"
        "{{ '{}{:>4}'.format('{', 2) }}{{ 'ab' | center(6) }}{{ 'aa'.replace('a', 'b') }}{{ [1, 'b'] | join(', ') }}"
        "{{ '-' * 5 }}{{ 2 ** 3 }}{{ messages[::-1] }}{{ none }}{{ missing }}{{ 'a\nb' | indent(2) }}"
        "{% for x in [] %}{% else %}none{% endfor %}{% for k, v in messages[0].items() if v %}{{ k }}{% endfor %}"
        "{% for a in [[1, [2]]] recursive %}{{ a if a is number else loop(a) }}{% endfor %}{{ '%s' % [1] }}"
    )
    theirs = render_jinja_template([messages], chat_template=template, add_generation_prompt=True)[0][0]
    assert Template(template).render(messages) == theirs


def test_long_messages_are_written_whole() -> None:
    template = Template("{% for m in messages %}{{ m.content ~ '.' }}{% endfor %}")
    assert template.render([{"content": "x" * 10**7}]) == "x" * 10**7 + "."


def test_a_long_window_takes_memory_as_texts_grow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers do not depend on when the angles were added."""
    sampling = Sampling(max_tokens=50)
    asked = [Request((3 + i, 4, 5), 2, ("long", i), sampling) for i in range(2)]
    whole = Hf(str(folder), device="cpu").read(Optimizer())
    rewrite(folder / "config.json", max_position_embeddings=1 << 24)
    monkeypatch.setattr(weights_of_models, "TURNED_FIRST", 4)
    grown = Hf(str(folder), device="cpu").read(Optimizer())
    assert isinstance(grown, Reader) and grown.weights._turned == 4
    batch = batch_of([(3, 4)], [(5, 6, 7, 8, 9, 10)])
    np.testing.assert_allclose(grown.logprobs(batch), whole.logprobs(batch), atol=1e-6)
    assert grown.weights._turned == 8
    assert grown.sample(asked) == whole.sample(asked) and grown.weights._turned == 64


def test_heads_that_make_a_long_window_larger_than_any_memory_have_a_shorter_one(folder: Path) -> None:
    rewrite(folder / "config.json", max_position_embeddings=1 << 24)
    wide = SimpleNamespace(layers=[SimpleNamespace(self_attn=SimpleNamespace(head_dim=1 << 14, scaling=1.0))])
    found = stored(folder)
    assert found is not None
    shape = weights_of_models._shape(SimpleNamespace(model=wide, config=config_of(found.facts)))
    assert shape.window == 1 << 13


def test_a_tokenizer_nested_without_end(tmp_path: Path) -> None:
    folder = by_bytes(tmp_path, "qwen2", "qwen2", "Qwen2Tokenizer")
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().rstrip()[:-1] + ', "more": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert token_file(folder) is None
