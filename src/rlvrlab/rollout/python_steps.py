"""Python in steps: one per statement; a compound statement is its header, with the statements of its block below it.

    for i in x:\\n            header   goes with its block
        a += i\\n            statement; the last one of a block leaves a `pass` behind
    else:\\n                 glue
        b = 1  # why\\n      a statement owns its whole line, comment and line end too
Imports in a row are one step, docstrings are glue. An answer may only continue what the prompt began (an indented
body); it is then parsed under a header of its own. What does not parse: the sound beginning in steps, and all the rest
as one step `broken`, so that deleting it can show what it costs. Measured on stdlib functions: cutting lines leaves
41 % of programs unparsable, this 0 %. The time is linear in the length, also for a line of ten thousand statements.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest

import numpy as np

from rlvrlab.batch import Ints
from rlvrlab.envs.python_trees import NOT_PYTHON, parsed
from rlvrlab.rollout.segments import Segments, Siblings, Span
from rlvrlab.types import Step

HEADER = "def _():\n"
LONGEST = 400_000
"""A program with more characters is one broken step; parsing it would take too long."""
MOST_TOKENIZED = 100_000
"""Characters of a program that is compared token by token; a longer one has to be the same to the letter."""
TRIES = 12
"""Shorter beginnings tried of a program that does not parse."""
MOST_RETRIED = 60_000
"""Characters of all these beginnings together: each try reads the program anew."""
CONTINUES = re.compile(r"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+[ \t]+[^\s#]")
"""An indented first statement: the answer continues a function that the prompt began."""
LINE_END = re.compile(r"\r\n|\r|\n")
UNTOKENIZED = re.compile(r"\r(?!\n)|[ \t\f]{50}")
"""After a lone return, or where a sign that is no Python follows them, the tokenizer begins anew at each blank."""
SPACE = re.compile(r"\s*")
NOTHING_MORE = re.compile(r"\s*(?:#|\Z)")
SEMICOLON = re.compile(r"[ \t]*;")
ELIF = re.compile(r"elif\b")
Block = Iterator["Block"]
"""Reads one block, and hands over each inner block before it goes on."""


def python_steps(text: str, region: Span | None = None) -> Segments:
    """The program in `region` (all of the text by default) in steps."""
    start, end = region or (0, len(text))
    code = text[start:end]
    header = HEADER if CONTINUES.match(code) else ""
    tree, size = _longest_sound(header, code)
    reader = _Reader(text, start, header, code[:size])
    if tree is not None:
        body = tree.body[0].body if header and isinstance(tree.body[0], ast.FunctionDef) else tree.body
        reader.read(body, fill=bool(header))
    broken = bool(code[size:].strip())
    if broken:
        reader.add((start + size, end), (start + size, end), "broken", -1, "")
    return Segments(
        text,
        "python",
        tuple(reader.steps),
        tuple(reader.extents),
        tuple(reader.parents),
        tuple(reader.siblings),
        tuple(reader.neutral),
        (start, end),
        header,
        broken,
    )


@lru_cache(maxsize=512)  # answers of one group are often equal, and so are what is left of them
def canonical_python(code: str) -> str:
    """Its tokens, so that layout makes no difference; comments stay, for a verifier may count them."""
    if len(code) > MOST_TOKENIZED or UNTOKENIZED.search(code):
        return code
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, ValueError, SystemError):  # the last is Python 3.12's own mistake
        return code
    words = ((t.type, "" if t.type in (tokenize.INDENT, tokenize.NEWLINE) else t.string) for t in tokens)
    return "\0".join(f"{kind}{word}" for kind, word in words if kind != tokenize.NL)


def _longest_sound(header: str, code: str) -> tuple[ast.Module | None, int]:
    """The tree of the longest beginning that parses, and how many characters it has."""
    if len(code) > LONGEST:
        return None, 0
    ends = [match.end() for match in LINE_END.finditer(code)]
    size, retried = len(code), 0
    for _ in range(TRIES):
        try:
            return parsed(header + code[:size]), size
        except SyntaxError as error:
            line = (error.lineno or 1) - 1 - header.count("\n")
            below = [end for end in ends[: max(0, line)] if end < size]
            if not below:
                break
            size = below[-1]
            retried += size
            if retried > MOST_RETRIED:
                break
        except NOT_PYTHON:
            break
    return None, 0


class _Reader:
    """Collects the steps of a sound program `code`, which begins at `offset` of the text, in the order of the text."""

    def __init__(self, text: str, offset: int, header: str, code: str) -> None:
        self.steps: list[Step] = []
        self.extents: list[Span] = []
        self.parents: list[int] = []
        self.neutral: list[str] = []
        self.siblings: list[Siblings] = []
        self.text = text
        self.skipped = header.count("\n")
        ends = (match.end() for match in LINE_END.finditer(code))
        self.lines = [offset, *(offset + end for end in ends), offset + len(code)]
        """Where each line begins, and where the last one ends."""
        self.ascii = code.isascii()
        self._characters: dict[int, Ints] = {}
        self._indents: dict[int, int] = {}

    def add(self, span: Span, extent: Span, kind: str, parent: int, neutral: str) -> int:
        """A new step; returns its number."""
        index = len(self.steps)
        self.steps.append(Step(index, kind, span, self.text[span[0] : span[1]]))
        self.extents.append(extent)
        self.parents.append(parent)
        self.neutral.append(neutral)
        return index

    def read(self, body: list[ast.stmt], *, fill: bool) -> None:
        """All statements of a program. A chain of elifs is one block within the other, too deep for recursion."""
        unfinished = [self._block(body, -1, fill)]
        while unfinished:
            inner = next(unfinished[-1], None)
            if inner is None:
                unfinished.pop()
            else:
                unfinished.append(inner)

    def _block(self, body: list[ast.stmt], parent: int, fill: bool) -> Block:
        documented = False
        match body:
            case [ast.Expr(value=ast.Constant(value=str())), *rest] if rest:
                documented, body = True, rest
        runs = _runs(body)
        members, first_neutral = list[int](), ""
        for run, following in zip_longest(runs, [run[0] for run in runs[1:]]):
            node, at = run[0], self._at(run[0])
            extent, alone = self._extent(at, self._offset(run[-1].end_lineno, run[-1].end_col_offset), following)
            line = f"{self.text[extent[0] : at]}pass\n"
            neutral = line if alone else "pass;" if following else "pass"
            first_neutral = first_neutral or (line if alone else "pass")
            blocks = _blocks(node)
            head_end = extent[1]
            if blocks:  # the first one begins at its line, or right at its statement on the header's line
                begin = self._at(blocks[0][0])
                row = self._row(begin)
                head_end = min(self.lines[row] if self._indent(row) >= begin else begin, head_end)
            index = self.add((extent[0], head_end), extent, type(node).__name__.lower(), parent, neutral)
            members.append(index)
            for inner in blocks:
                yield self._block(inner, index, fill=ELIF.match(self.text, self._at(inner[0])) is None)
        if members:
            self.siblings.append(Siblings(tuple(members), first_neutral if fill and not documented else ""))

    def _extent(self, start: int, end: int, following: ast.stmt | None) -> tuple[Span, bool]:
        """All lines of a statement that has them for itself; otherwise up to the statement after it."""
        row, last = self._row(start), self._row(max(start, end - 1))
        line_end = self.lines[last + 1]
        if self._indent(row) >= start and NOTHING_MORE.match(self.text, end, line_end):
            return (self.lines[row], line_end), True
        if following is not None and self._row(self._at(following)) == last:
            return (start, self._at(following)), False
        semicolon = SEMICOLON.match(self.text, end, line_end)
        return (start, semicolon.end() if semicolon else end), False

    def _at(self, node: ast.stmt) -> int:
        decorators = getattr(node, "decorator_list", ())
        if not decorators:
            return self._offset(node.lineno, node.col_offset)
        return self.text.rfind("@", 0, self._offset(decorators[0].lineno, decorators[0].col_offset))

    def _offset(self, line: int | None, column: int | None) -> int:
        """Where Python's line and column lie in the text; columns are counted in bytes of UTF-8."""
        assert line is not None and column is not None
        row = line - 1 - self.skipped
        if self.ascii:
            return self.lines[row] + column
        if row not in self._characters:
            content = self.text[self.lines[row] : self.lines[row + 1]].encode("utf-8", "surrogatepass")
            begins = np.frombuffer(content, np.uint8) & 0xC0 != 0x80
            self._characters[row] = np.append(0, np.cumsum(begins))
        return self.lines[row] + int(self._characters[row][column])

    def _row(self, at: int) -> int:
        """The line that holds a place of the text."""
        return min(bisect_right(self.lines, at) - 1, len(self.lines) - 2)

    def _indent(self, row: int) -> int:
        """Where the first word of a line begins."""
        if row not in self._indents:
            space = SPACE.match(self.text, self.lines[row])
            assert space is not None
            self._indents[row] = space.end()
        return self._indents[row]


def _runs(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Statements, imports in a row together."""
    runs: list[list[ast.stmt]] = []
    for node in body:
        if runs and all(isinstance(one, ast.Import | ast.ImportFrom) for one in (node, runs[-1][-1])):
            runs[-1].append(node)
        else:
            runs.append([node])
    return runs


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements below a statement, in the order of the text."""
    bodies = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    bodies += [part.body for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
    blocks = [body for body in bodies if isinstance(body, list) and body]
    return sorted(blocks, key=lambda body: (body[0].lineno, body[0].col_offset))
