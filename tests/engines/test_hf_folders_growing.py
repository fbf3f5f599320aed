"""Chat templates and tokenizers of strangers that make much of little: all of them end, in bounded memory."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jinja2 import TemplateError
from test_hf_folders_hostile import within
from test_hf_folders_settings import MORE, both, in_tokenizer, told
from tiny_models import tiny

from rlvrlab.engines import templates
from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf.token_file import token_file
from rlvrlab.engines.hf.token_sizes import refuse_long_tokens
from rlvrlab.engines.templates import Template
from rlvrlab.errors import UserError
from rlvrlab.recipe.schema import Optimizer


@contextmanager
def at_most(more: int) -> Iterator[None]:
    """What takes more memory than now, and so many bytes, fails instead of taking the machine's."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


STEP = "{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = GROWN %}{% endfor %}"
ENDLESS = {
    "lines that are indented": "{{ ('x\n' * 400000) | indent(9999) }}",
    "tabs": "{{ ('\t' * 900000).expandtabs(9999) }}",
    "many widths": "{{ ('{:9999}' * 9999).format(*range(9999)) }}",
    "many widths of percent": "{{ ('%(a)9999s' * 9999) % {'a': 1} }}",
    "letters for letters": "{{ ('x' * 900000).translate({120: 'y' * 900000}) }}",
    "parts of a generator": "{{ ('x' * 90000).join(('y' * 90000) | map('string')) }}",
    "text of a variable": "{% set x %}{% for i in range(500000) %}{{ 'x' * 10000 }}{% endfor %}{% endset %}",
    "text of a macro": "{% macro m() %}{% for i in range(500000) %}"
    + "x" * 9999
    + "{% endfor %}{% endmacro %}{% set x = m() %}",
    "values in each other": STEP.replace("GROWN", "[n.x, n.x]") + "{{ n.x | pprint }}",
    "keys in each other": STEP.replace("GROWN", "(n.x, n.x)") + "{{ {n.x: 1} | length }}",
    "names in each other": STEP.replace("GROWN", "namespace(a=n.x, b=n.x)") + "{{ n.x | upper }}",
    "arguments in each other": "{% macro m() %}{% set n.x = varargs %}{% endmacro %}"
    + STEP.replace("{% set n.x = GROWN %}", "{% set _ = m(n.x, n.x) %}")
    + "{{ n.x | upper }}",
    "wrapped": "{{ ('x' * 900000) | wordwrap(1) }}",
    "lists that are added": "{{ ([[1]] * 500000) | sum(start=[]) }}",
    "dates": "{{ strftime_now('%9999d' * 100000) }}",
    "a long template": "{% if 1 %}{{ x }}{% endif %}" * 500_000,
    "many values": "{% for i in range(900) %}{% set x = ('x' * 900000) | upper %}{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("what", ENDLESS)
def test_templates_that_grow_without_end(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In half a gigabyte more than there is now, and in seconds."""
    if "each other" in what:  # they double until they are as large as may be, which takes its time
        monkeypatch.setattr(templates, "TEXT", 1 << 16)
    with within(60), at_most(1 << 29), pytest.raises(TemplateError):
        Template(ENDLESS[what]).render([{"role": "user", "content": "a"}])


def test_a_template_of_slow_steps_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "SECONDS", 0.2)
    sorts = "{% set x = range(90000) | list %}{% for i in range(90000) %}{% set y = x[::-1] %}{% endfor %}"
    with within(60), pytest.raises(TemplateError, match=r"more than 0\.2 seconds"):
        Template(sorts).render([{"role": "user", "content": "a"}])


SOURCES = [
    "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
    "{% set n = namespace(a=1, b=[1, {'c': (2,)}]) %}{% set n.a = n.b %}{{ n.a }}{{ dict([('a', 1)]) }}"
    "{{ dict.fromkeys('ab', 1) }}{{ dict.mro is defined }}",
    "{{ [1, 2, 3] | sum }}{{ [[1], [2]] | sum(start=[]) }}{{ messages | map(attribute='role') | join('-') }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ 'a b c' | wordwrap(2) }}{{ [] | join }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 3, 4, c=5) }}"
    "{{ '-'.join('ab') }}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a, b }}{% endfor %}{% set a, b = 1, 2 %}{{ a < b }}{{ 'a\tb'.expandtabs() }}",
    "{% set x %}text {{ messages[0].content }}{% endset %}{{ x | upper }}"
    "{% filter lower %}AB{% endfilter %}{{ 'x' in x }}",
    "{% autoescape true %}<b>{{ '<i>' }}{% endautoescape %}{{ '<u>' | e }}{{ {'a': 1} | xmlattr }}{{ 'a' is defined }}",
]


@pytest.mark.parametrize("source", SOURCES)
def test_templates_are_written_as_transformers_writes_them(source: str) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    messages = [{"role": "user", "content": "é <b>"}, {"role": "assistant", "content": "4"}]
    told = render_jinja_template([messages], chat_template=source, add_generation_prompt=True)[0][0]
    assert Template(source).render(messages) == told


@pytest.mark.parametrize("source", ["{{ namespace(__class__=1) }}", "{% set n = namespace() %}{% set n._a = 1 %}"])
def test_names_of_pythons_machinery_are_refused_as_by_transformers(source: str) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    for write in (Template(source).render, lambda told: render_jinja_template([told], chat_template=source)):
        with pytest.raises(TemplateError):
            write([{"role": "user", "content": "a"}])


def replaces(times: int, content: str = "aa", **pattern: str) -> list[dict[str, Any]]:
    return [{"type": "Replace", "pattern": pattern or {"String": "a"}, "content": content}] * times


GROWING: dict[str, dict[str, Any]] = {
    "a text that doubles": {"normalizer": {"type": "Sequence", "normalizers": replaces(40)}},
    "a long replacement": {"normalizer": replaces(1, "b" * 1000)[0]},
    "a long replacement of a pattern": {"normalizer": replaces(1, "b" * 1000, Regex=".")[0]},
    "a long beginning": {"normalizer": {"type": "Prepend", "prepend": "b" * 100_000}},
    "many rules": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 1000}},
    "an answer that doubles": {"decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, *replaces(40)]}},
}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("what", GROWING)
def test_tokenizers_that_make_a_text_longer_and_longer(what: str, own: bool, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny(), tmp_path / "model"))
    in_tokenizer(lambda whole: whole.update(GROWING[what]))(folder)
    if not own:
        told(more_token="<eos>")(folder)
    assert (token_file(folder) is not None) == own
    with pytest.raises(
        UserError, match=r"tokenizer\.json: (normalizer|decoder) (makes a text|has 1000 rules)"
    ) as caught:
        Hf(str(folder), device="cpu").read(Optimizer())
    assert "\n" not in str(caught.value)


def test_rules_that_replace_a_sign_by_another(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny(), tmp_path / "model"))
    rules = [*replaces(3, "b"), *replaces(1, "bbbb"), {"type": "Prepend", "prepend": "b"}, {"type": "NFKC"}]
    in_tokenizer(lambda whole: whole.update(normalizer={"type": "Sequence", "normalizers": rules}))(folder)
    pair = both(folder)
    assert pair is not None and pair[0]("ca").input_ids == pair[1]("ca").input_ids


@pytest.mark.parametrize("sign", ["b", '"', "\\"])
@pytest.mark.parametrize("where", ["vocabulary", "added"])
def test_tokens_as_long_as_books(sign: str, where: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny(), tmp_path / "model"))
    long, short = sign * 20_000, sign * 9_000
    for text in (short, long):
        if where == "added":
            in_tokenizer(lambda whole, text=text: whole["added_tokens"].append(MORE | {"content": text, "id": 49}))(
                folder
            )
        else:
            in_tokenizer(lambda whole, text=text: whole["model"]["vocab"].update({text: 40}))(folder)
        if text is short:
            Hf(str(folder), device="cpu").read(Optimizer())
    with pytest.raises(UserError, match=r"tokenizer\.json: a token of 20000 characters, at most 16384 are read"):
        Hf(str(folder), device="cpu").read(Optimizer())


def test_a_long_table_of_signs_is_no_token(tmp_path: Path) -> None:
    path = Path(tiny()) / "tokenizer.json"
    whole = json.loads(path.read_text()) | {"charsmap": "A" * 400_000}
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    refuse_long_tokens(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("others", ["{{ 'x' * 10**12 }}", "{{ messages[0].content }}."])
def test_one_of_several_templates_is_bounded_too(others: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny(), tmp_path / "model"))
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates/tool_use.jinja").write_text("tools")
    (folder / "chat_template.jinja").write_text(others)
    assert token_file(folder) is None
    tokenizer = Hf(str(folder), device="cpu", chat=True).read(Optimizer()).tokenizer
    if "**" not in others:
        assert tokenizer.encode_prompt("ab") == tokenizer.encode("ab.")
        return
    with within(60), pytest.raises(UserError, match="the chat template does not take these messages"):
        tokenizer.encode_prompt("ab")


def test_several_templates_without_a_usual_one(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny(), tmp_path / "model"))
    (folder / "chat_template.jinja").unlink()
    told(chat_template=[{"name": "odd", "template": "x"}])(folder)
    with pytest.raises(UserError, match="the chat template does not take these messages"):
        Hf(str(folder), device="cpu", chat=True).read(Optimizer()).tokenizer.encode_prompt("ab")
