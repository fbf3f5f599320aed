"""Chat templates, which come with a model and are programs: Jinja's sandbox, and bounds on steps and on text.

Whatever Transformers' templates may say is taken. A template that would loop for ever, or make more text than any
conversation has, raises a TemplateError before the memory is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from string import Formatter
from typing import Any

from jinja2 import TemplateError, nodes, pass_eval_context
from jinja2.ext import Extension
from jinja2.filters import FILTERS, do_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

STEPS = 10**6
"""Turns of all loops, items of all ranges, and calls."""
TEXT, TIMES_MESSAGES = 1 << 20, 8
"""Characters of a text: so many, and so many times what the messages hold."""
WIDEST, DEEPEST_INDENT = 10**4, 16
SIZED = {"center", "indent", "batch", "slice", "round"}
"""Filters whose numbers say how much they make, and methods."""
SIZED_METHODS = {"center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"}
_WIDE = re.compile(r"%[^a-zA-Z%]*?(\*|\d{5,})")


class Template:
    """A chat template, compiled once."""

    def __init__(self, source: str) -> None:
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
    """Marks of what the model said; they write nothing."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Counting(NodeTransformer):
    """Loops are counted and `~` is bounded, by filters that are no part of the template."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "loop turns", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "joined parts", [], [], None, None, lineno=node.lineno)


class _Bounded(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.begin(0)
        self.finalize = self._weighed
        self.filters |= {name: self._sized(name) for name in SIZED}
        self.filters |= {"loop turns": self._turns, "joined parts": self._joined, "replace": self._replace}
        self.filters |= {"join": self._join, "format": self._format, "tojson": self._as_json}
        self.filters["string"] = lambda value: str(self._weighed(value))
        del self.globals["lipsum"]
        self.globals |= {"range": self._range, "raise_exception": _refuse}
        self.globals["strftime_now"] = lambda form: datetime.now().strftime(form)

    def begin(self, held: int) -> None:
        """A new text, of messages with so many characters."""
        self._steps, self._text, self._most = 0, 0, TEXT + TIMES_MESSAGES * held

    def spend(self, steps: int = 0, text: int = 0) -> None:
        """TemplateError where a template has used up what it may."""
        self._steps, self._text = self._steps + steps, self._text + text
        if self._steps > STEPS:
            raise TemplateError(f"more than {STEPS} steps")
        self._bound(self._text)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The operators that can make much of little."""
        if operator == "%" and isinstance(left, str):
            return self._format(left, *(right if isinstance(right, tuple) else (right,)), whole=right)
        if operator in ("*", "**"):
            self._bound_product(operator, left, right)
        elif operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            self._bound(len(left) + len(right))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of the template's, as Jinja's own sandbox names its arguments."""
        __self.spend(1)
        method = getattr(__obj, "__wrapped__", __obj)
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, str | bytes | int):
            __self._check_method(owner, name, (*args, *kwargs.values()))
        return super().call(__context, __obj, *args, **kwargs)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = _Counting().visit(super()._parse(source, name, filename))
        tree.set_environment(self)
        return tree

    def _check_method(self, owner: Any, name: str, given: tuple[Any, ...]) -> None:
        if name in SIZED_METHODS:
            _bound_widths(given)
        elif name == "join" and given:
            parts = given[0] if isinstance(given[0], list | tuple | str) else ()
            self._bound(len(owner) * len(parts))
            self._weigh(parts)
        elif name == "replace" and len(given) > 1:
            self._bound(len(owner) + owner.count(given[0]) * len(given[1]))
        elif name in ("format", "format_map"):
            specs = [spec or "" for _, _, spec, _ in Formatter().parse(owner)]
            if any("{" in spec or re.search(r"\d{5}", spec) for spec in specs):
                raise TemplateError("a format of changing or great width")
            self._weigh(owner, [list(given)] * max(1, len(specs)))

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

    def _weigh(self, *values: Any) -> None:
        """Bound the text that these would be."""
        total, left = 0, list(values)
        while left:
            one = left.pop()
            total += len(one) if isinstance(one, str) else 1
            if isinstance(one, dict):
                left += [*one, *one.values()]
            elif isinstance(one, list | tuple | set):
                left += one
            self._bound(max(total, len(left)))

    def _weighed(self, value: Any) -> Any:
        if not isinstance(value, str):
            self._weigh(value)
        return value

    def _sized(self, name: str) -> Any:
        made: Any = FILTERS[name]

        def bounded(value: Any, *args: Any, **kwargs: Any) -> Any:
            _bound_widths((*args, *kwargs.values()))
            return made(value, *args, **kwargs)

        return bounded

    def _turns(self, items: Any) -> Iterator[Any]:
        for item in items:
            self.spend(1)
            yield item

    def _joined(self, parts: list[Any]) -> str:
        self._weigh(parts)
        return "".join(map(str, parts))

    @pass_eval_context
    def _join(self, context: Any, value: Iterable[Any], d: str = "", attribute: Any = None) -> str:
        parts = list(value)
        self._bound(len(str(d)) * len(parts))
        self._weigh(parts)
        return do_join(context, parts, d, attribute)

    def _replace(self, value: Any, old: str, new: str, count: int | None = None) -> str:
        text = str(self._weighed(value))
        self._bound(len(text) + text.count(str(old)) * len(str(new)))
        return text.replace(str(old), str(new), -1 if count is None else count)

    def _format(self, value: Any, *args: Any, whole: Any = None, **kwargs: Any) -> str:
        text = str(value)
        if _WIDE.search(text):
            raise TemplateError("a format of changing or great width")
        self._weigh(text, [[*args, *kwargs.values()]] * max(1, text.count("%(")))
        return text % ((kwargs or args) if whole is None else whole)

    def _range(self, *args: int) -> range:
        made = range(*args)
        if len(made) > STEPS:
            raise TemplateError(f"more than {STEPS} steps")
        self.spend(len(made))
        return made

    def _as_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        if indent is not None and (not isinstance(indent, int) or indent > DEEPEST_INDENT):
            raise TemplateError(f"tojson: indent {str(indent)[:40]!r}, allowed are numbers up to {DEEPEST_INDENT}")
        self._weigh(value)
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _bound_widths(given: Iterable[Any]) -> None:
    for one in given:
        if (one if isinstance(one, int) else len(one) if isinstance(one, str) else 0) > WIDEST:
            raise TemplateError(f"a width of more than {WIDEST}")


def _refuse(message: str) -> None:
    raise TemplateError(message)
