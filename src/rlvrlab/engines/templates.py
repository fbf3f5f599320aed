"""Chat templates, which come with a model and are programs: Jinja's sandbox, and bounds on steps and on text.

Whatever Transformers' templates may say is taken. A template that would loop for ever, or make more text than any
conversation has, raises a TemplateError before the memory is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import wraps
from time import thread_time
from typing import Any

from jinja2 import TemplateError, nodes, pass_context
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from rlvrlab.engines.template_sizes import (
    DEEPEST_INDENT,
    LONGEST_DATE,
    WIDEST,
    made_by,
    made_by_format,
    made_by_percent,
    weight,
)  # fmt: skip
from rlvrlab.errors import quoted

STEPS = 10**6
"""Turns of all loops, items of all ranges, filters, tests and calls."""
SECONDS = 10.0
"""Of the processor, for one text: for steps that are slow."""
LOOK_AT_CLOCK = 8
"""Steps between two looks, which take longer than a usual step."""
TEXT, TIMES_MESSAGES = 1 << 20, 8
"""Characters of a text, or of any value: so many, and so many times what the messages hold."""
TIMES_MADE = 64
"""Times that many characters in all values together that are made on the way."""
LONGEST_SOURCE = 1 << 18
"""Characters of a template; those of models have some ten thousand."""


class Template:
    """A chat template, compiled once."""

    def __init__(self, source: str) -> None:
        if len(source) > LONGEST_SOURCE:
            raise TemplateError(f"a template of {len(source)} characters, at most {LONGEST_SOURCE} are read")
        self._environment = _Bounded(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        self._template = self._environment.from_string(source)

    def render(self, messages: list[dict[str, str]], **known: Any) -> str:
        """The messages as one text, ready for the answer."""
        environment, pieces = self._environment, []
        environment.begin(sum(len(text) for message in messages for text in message.values()))
        for piece in self._template.generate(
            messages=messages, add_generation_prompt=True, tools=None, documents=None, **known
        ):
            pieces.append(piece)
            environment.spend(text=len(piece))
        return "".join(pieces)


class _Generation(Extension):
    """Marks of what the model said; they write nothing, and what is set between them ends with them."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Counting(NodeTransformer):
    """Loops, values that are put together and text are counted, by filters that are no part of the template."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "loop turns")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "joined parts")

    def visit_List(self, node: Any) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "made value") if getattr(node, "ctx", "load") == "load" else node

    visit_Tuple = visit_Dict = visit_List

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return nodes.MarkSafeIfAutoescape(nodes.Const(node.data, lineno=node.lineno), lineno=node.lineno)


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Names(Namespace):
    """Transformers' names of a template: none begins as those of Python's own machinery do."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        for name in dict(*args[1:], **kwargs):
            _refuse_hidden(name)
        Namespace.__init__(args[0], *args[1:], **kwargs)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_hidden(name)
        super().__setitem__(name, value)


class _Tables:
    """Python's `dict` with no more of it than Transformers gives a template."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Bounded(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.begin(0)
        self.finalize = self._written
        self.filters |= {"format": self._format, "tojson": _as_json}
        self.filters |= {name: self._counted(name, made) for name, made in self.filters.items()}
        self.filters |= {"loop turns": self._turns, "joined parts": self._joined, "made value": self._made}
        self.tests = {name: self._counted("", made) for name, made in self.tests.items()}
        del self.globals["lipsum"]
        self.globals |= {"range": self._range, "raise_exception": _refuse, "namespace": _Names}
        self.globals["dict"] = _Tables()
        self.globals["strftime_now"] = _now

    def begin(self, held: int) -> None:
        """A new text, of messages with so many characters."""
        self._steps, self._text, self._work, self._most = 0, 0, 0, TEXT + TIMES_MESSAGES * held
        self._until = thread_time() + SECONDS

    def spend(self, steps: int = 0, text: int = 0) -> None:
        """TemplateError where a template has used up what it may."""
        self._steps, self._text = self._steps + steps, self._text + text
        if self._steps > STEPS:
            raise TemplateError(f"more than {STEPS} steps")
        if self._steps % LOOK_AT_CLOCK == 0 and thread_time() > self._until:
            raise TemplateError(f"more than {SECONDS:g} seconds")
        self._bound(self._text)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The operators that can make much of little."""
        self.spend(1)
        if operator == "%" and isinstance(left, str):
            return self._made(self._format(left, *(right if isinstance(right, tuple) else (right,)), whole=right))
        if operator in ("*", "**"):
            self._bound_product(operator, left, right)
        elif operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            self._bound(len(left) + len(right))
        return self._made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of the template's, as Jinja's own sandbox names its arguments."""
        __self.spend(1)
        method = getattr(__obj, "__wrapped__", __obj)
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if name == "join" and len(args) == 1:
            args = (list(args[0]),)
        given = (*args, *kwargs.values())
        __self._bound(weight(given, __self._most))
        if isinstance(owner, str | bytes | int):
            formats = isinstance(owner, str) and name in ("format", "format_map")
            __self._bound(
                weight(owner) + (made_by_format(str(owner), given) if formats else made_by(name, owner, given))
            )
        return __self._made(super().call(__context, __obj, *args, **kwargs))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = _Counting().visit(super()._parse(source, name, filename))
        tree.set_environment(self)
        return tree

    def _bound(self, size: int) -> None:
        if size > self._most:
            raise TemplateError(f"more than {self._most} characters")

    def _bound_product(self, operator: str, left: Any, right: Any) -> None:
        for one, other in ((left, right), (right, left)):
            if hasattr(one, "__len__") and isinstance(other, int):
                self._bound(len(one) * other)
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > WIDEST:
                raise TemplateError(f"a number of more than {WIDEST} bits")

    @pass_context
    def _written(self, context: Any, value: Any) -> Any:
        """Every piece of text on its way out, also into a variable or a macro."""
        self.spend(1)
        return self._made(value)

    def _made(self, value: Any) -> Any:
        """A value that is new: bounded, and one of those that are made in all."""
        size = weight(value, self._most)
        self._bound(size)
        self._work += size
        if self._work > TIMES_MADE * self._most:
            raise TemplateError(f"more than {TIMES_MADE * self._most} characters on the way")
        return value

    def _counted(self, name: str, made: Any) -> Any:
        """A filter or a test that is counted, as is what it is given and gives."""

        @wraps(made)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.spend(1)
            given = args[1:] if getattr(made, "jinja_pass_arg", None) else args
            self._bound(weight([given, kwargs], self._most))
            if given and name:
                value = list(given[0]) if name in ("join", "sum") else given[0]
                more = tuple(given[1:]) + tuple(kwargs.values())
                self._bound(_made_by_filter(name, value, more))
                args = (*args[: len(args) - len(given)], value, *given[1:])
            return self._made(made(*args, **kwargs))

        return counted

    def _turns(self, items: Any) -> Iterator[Any]:
        for item in items:
            self.spend(1)
            yield item

    def _joined(self, parts: list[Any]) -> str:
        self._made(parts)
        return "".join(map(str, parts))

    def _format(self, value: Any, *args: Any, whole: Any = None, **kwargs: Any) -> str:
        text = str(value)
        self._bound(len(text) + made_by_percent(text, (*args, *kwargs.values())))
        return text % ((kwargs or args) if whole is None else whole)

    def _range(self, *args: int) -> range:
        made = range(*args)
        if len(made) > STEPS:
            raise TemplateError(f"more than {STEPS} steps")
        self.spend(len(made))
        return made


def _made_by_filter(name: str, value: Any, given: tuple[Any, ...]) -> int:
    """Beside what comes in; `join` is the other way round here."""
    if name == "join":
        return weight(value) + len(value) * len(str(given[0] if given else ""))
    return weight(value) + made_by(name, value, given)


def _as_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    if indent is not None and (not isinstance(indent, int) or indent > DEEPEST_INDENT):
        raise TemplateError(f"tojson: indent {quoted(indent, 40)}, allowed are numbers up to {DEEPEST_INDENT}")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _now(form: str) -> str:
    if len(form) > LONGEST_DATE:
        raise TemplateError(f"strftime_now: a form of more than {LONGEST_DATE} characters")
    return datetime.now().strftime(form)


def _refuse_hidden(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise TemplateError(f"a namespace cannot hold {quoted(name, 40)}")


def _refuse(message: str) -> None:
    raise TemplateError(message)
