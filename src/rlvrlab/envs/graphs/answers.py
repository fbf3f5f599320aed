"""Reading an answer, strictly.

    … I compared all routes.</think> The tour is [QXD, ABC, LKJ, QXD].        a list in brackets
    … no node is left. ### Yes                                               a marked word or number

Only what follows the last </think> counts. A list is read when it is the only one: an answer that gives two different
lists is hedging, and a list that the words beside it deny is none. Lists without a single known token (a citation [1],
the prompt's placeholder) are not answers. Nothing is skipped, padded, repaired or searched for in earlier text; every
such kindness is a reward somebody farms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from rlvrlab.judge.denials import is_denied
from rlvrlab.judge.extract import tagged
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.types import ErrorKind

Style = Literal["plain", "chat", "think", "bare", "rows"]
T = TypeVar("T")
MAX_TEXT, MAX_COMMAS, MAX_LISTS, MAX_TOKEN = 100_000, 5_000, 200, 200
BRACKETS = re.compile(r"\[([^\[\]]*)\]")
ARROWS = re.compile(r"->|→")
LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed)\{(.*)\}", re.DOTALL)
WRAPPING = " \t\r\n\"'`*_\\$“”‘’«»"
FULL_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {ord("【"): "[", ord("】"): "]"}
OUTER = re.compile(r"(?<!\\)\[[^\[\]]*\]")
"""A pair of brackets once the lists within are gone; \\[ … \\] is mathematics."""
INDEX = re.compile(r"0|[1-9][0-9]{0,5}")
NUMBER = re.compile(r"-?(?:[0-9]{1,12}|[1-9][0-9]{0,2}(?:,[0-9]{3}){1,3})")


class Unreadable(Exception):
    """There is no answer (FORMAT), it has no meaning (SYNTAX), or it names what does not exist (RULE)."""

    def __init__(self, kind: ErrorKind, reason: str) -> None:
        self.kind = kind
        super().__init__(reason)


def final_text(text: str, style: Style) -> str:
    """The part of a completion that may hold the answer."""
    tail = after_thinking(text, must_think=style == "think")
    if tail is None:
        raise Unreadable(ErrorKind.FORMAT, "the thinking has no end, or never happened")
    if style == "think":
        tail = tagged(tail)
        if tail is None:
            raise Unreadable(ErrorKind.FORMAT, "no single <answer> after the thinking")
    if len(tail) > MAX_TEXT:
        raise Unreadable(ErrorKind.FORMAT, f"more than {MAX_TEXT} characters after the thinking")
    if not tail.strip():
        raise Unreadable(ErrorKind.FORMAT, "nothing after the thinking")
    return tail


class Names:
    """The tokens an answer may use. Exact spelling wins; otherwise case, width, quotes and markup do not matter."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.exact = {name: node for node, name in enumerate(names)}
        self.with_comma = sorted((name for name in names if "," in name), key=len, reverse=True)
        self._folded: dict[str, int] | None = None

    def find(self, token: str) -> int | None:
        """The node of a token; a name that two nodes share is no name."""
        node = self.exact.get(token)
        if node is not None and len(self.exact) == len(self.names):
            return node
        if len(token) > MAX_TOKEN:
            return None
        if self._folded is None:
            self._folded = {}
            for node, name in enumerate(self.names):
                key = bare(name).casefold()
                self._folded[key] = -1 if key in self._folded else node
        node = self._folded.get(bare(token).casefold(), -1)
        return None if node < 0 else node

    def split(self, content: str) -> list[str]:
        """The tokens between commas; names that contain one are cut out first, the longest first."""
        if not self.with_comma:
            return content.split(",")
        tokens: list[str] = []
        while True:
            content = content.lstrip()
            name = next((name for name in self.with_comma if content.startswith(name)), "")
            end = content.find(",", len(name))
            if end < 0:
                return [*tokens, content]
            tokens.append(content[:end])
            content = content[end + 1 :]


def bare(token: str) -> str:
    """A token without what people and models wrap around it.

    Only the width of characters is made one: by NFKC a power would be a digit (2⁴ would be 24), and № would be No.
    """
    if not token.isascii():
        token = unicodedata.normalize("NFC", token.translate(FULL_WIDTH))
    token = token.replace("\\_", "_").strip(WRAPPING)
    while wrapped := LATEX.fullmatch(f"\\{token}"):  # the backslash is part of the wrapping
        token = wrapped[1].strip(WRAPPING)
    return " ".join(token.split())


def index_below(n: int, token: str) -> int | None:
    """One of the numbers 0 … n-1, written plainly."""
    token = bare(token) if len(token) <= MAX_TOKEN else ""
    return int(token) if INDEX.fullmatch(token) and int(token) < n else None


def read_names(text: str, names: Sequence[str]) -> tuple[int, ...]:
    """The only list of names in a text, as nodes."""
    table = Names(names)
    return _only_known([_resolve(table.split(one.content), table.find, one.denied) for one in _listed(text)])


def read_indices(text: str, n: int, size: int) -> tuple[int, ...]:
    """The only list of `size` numbers in a text, all below n."""
    lists = _numbers(text, n)
    fitting = [nodes for nodes in lists if len(nodes) == size]
    if not fitting:
        raise Unreadable(ErrorKind.RULE, f"no list of {size} numbers")
    return _whole(_only(fitting))


def read_numbers(text: str, n: int) -> tuple[int, ...]:
    """The only list of numbers below n in a text, however long."""
    return _only_known(_numbers(text, n))


def _numbers(text: str, n: int) -> list[tuple[int | None, ...]]:
    return [_resolve(one.content.split(","), partial(index_below, n), one.denied) for one in _listed(text)]


def read_pair(text: str, sizes: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The only two lists of numbers in a text, equally long: nodes of the first graph and of the second."""
    lists = [one for one in _listed(text) if any(INDEX.fullmatch(bare(t[:9])) for t in one.content.split(","))]
    if any(one.denied for one in lists):
        raise Unreadable(ErrorKind.SYNTAX, "the text denies its list")
    numeric = [one.content for one in lists]
    pairs = dict.fromkeys(zip(numeric[::2], numeric[1::2], strict=False))
    if len(numeric) < 2 or len(numeric) % 2 or len(pairs) != 1:
        raise Unreadable(ErrorKind.SYNTAX, f"{len(numeric)} lists of numbers where two belong")
    first, second = [
        _whole(_resolve(content.split(","), partial(index_below, n), denied=False))
        for content, n in zip(next(iter(pairs)), sizes, strict=True)
    ]
    if len(first) != len(second):
        raise Unreadable(ErrorKind.SYNTAX, f"lists of {len(first)} and {len(second)} nodes")
    return first, second


def read_marked(text: str, alone: bool, understand: Callable[[str], T | None]) -> T:
    """What stands after the last ###: the answer is to be finished with it, and words after one may take it back.

    Headings before it are no answers; two different answers are hedging.
    """
    marked = text.split("###")[1:] if "###" in text else [text] if alone else []
    if not marked:
        raise Unreadable(ErrorKind.FORMAT, "no answer after ###")
    if "###" in text and is_denied(text, text.rindex("###"), len(text)):
        raise Unreadable(ErrorKind.SYNTAX, "the text denies its answer")
    if len(marked) > MAX_LISTS:
        raise Unreadable(ErrorKind.SYNTAX, f"{len(marked)} marks ###")
    short = [bare(part).removesuffix(".").strip(WRAPPING) if len(part) <= MAX_TOKEN else "" for part in marked]
    *earlier, last = map(understand, short)
    if last is None:
        raise Unreadable(ErrorKind.SYNTAX, "no plain answer after the last ###")
    if any(answer not in (None, last) for answer in earlier):
        raise Unreadable(ErrorKind.SYNTAX, "several answers")
    return last


def yes_or_no(token: str) -> bool | None:
    """`Yes`, `no`; nothing that merely contains them."""
    return {"yes": True, "no": False}.get(token.casefold())


def whole_number(token: str) -> int | None:
    """`12`, `-12`, `1,234`."""
    return int(token.replace(",", "")) if NUMBER.fullmatch(token) else None


class Listed(NamedTuple):
    """What stands in a pair of brackets, and whether the words beside it say that it is not the answer."""

    content: str
    denied: bool


def _listed(text: str) -> list[Listed]:
    if text.count(",") > MAX_COMMAS:
        raise Unreadable(ErrorKind.SYNTAX, f"more than {MAX_COMMAS} commas")
    if not text.isascii():
        text = text.translate(FULL_WIDTH)
    found = list(BRACKETS.finditer(text))
    if not found:
        raise Unreadable(ErrorKind.FORMAT, "no list in square brackets")
    if text.count("[") > len(found) and _in_a_list(text):
        raise Unreadable(ErrorKind.SYNTAX, "a list within a list")
    if len(found) > MAX_LISTS:
        raise Unreadable(ErrorKind.SYNTAX, f"{len(found)} lists")
    return [Listed(ARROWS.sub(",", one[1]), is_denied(text, *one.span())) for one in found]


def _in_a_list(text: str) -> bool:
    """Whether a list stands in brackets with anything but lists beside it, or in more than one pair."""
    outside = BRACKETS.sub("", text)
    held = [pair[1:-1].strip(" \t\r\n,;\\") for pair in OUTER.findall(outside)]
    return any(held) or OUTER.search(BRACKETS.sub("", outside)) is not None


def _resolve(tokens: list[str], find: Callable[[str], int | None], denied: bool) -> tuple[int | None, ...]:
    """The nodes of a list: -1 for an empty place, None for an unknown token, -2 for all of a list that is denied."""
    if len(tokens) > 1 and not tokens[-1].strip():  # one trailing comma is how many people write a list
        tokens = tokens[:-1]
    nodes = tuple([find(token.strip()) if token.strip() else -1 for token in tokens])
    return (-2,) * len(nodes) if denied and any(node is not None for node in nodes) else nodes


def _only(lists: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    if len(set(lists)) > 1:
        raise Unreadable(ErrorKind.SYNTAX, f"{len(set(lists))} different lists")
    return lists[0]


def _only_known(read: list[tuple[int | None, ...]]) -> tuple[int, ...]:
    """The only list with a known token in it; without one, the last list says what is unknown."""
    known = [nodes for nodes in read if any(node is not None for node in nodes)]
    return _whole(_only(known or read[-1:]))


def _whole(nodes: tuple[int | None, ...]) -> tuple[int, ...]:
    """The nodes of a list; an empty place or an unknown token makes it unreadable."""
    if -2 in nodes:
        raise Unreadable(ErrorKind.SYNTAX, "the text denies its list")
    if -1 in nodes:
        raise Unreadable(ErrorKind.SYNTAX, "an empty place in the list")
    if None in nodes:
        raise Unreadable(ErrorKind.RULE, f"token {nodes.index(None) + 1} of the list is not in the graph")
    return tuple([node for node in nodes if node is not None])
