"""Python in steps: one per statement; a compound statement is its header, with the statements of its block below it.

    for i in x:\\n            header   goes with its block
        a += i\\n            statement; the last one of a block leaves a `pass` behind
    else:\\n                 glue
        b = 1  # why\\n      a statement owns its whole line, comment and line end too
Imports in a row are one step, docstrings are glue. An answer may only continue what the prompt began (an indented
body); it is then parsed under a header of its own. What does not parse: the sound beginning in steps, and all the rest
as one step `broken`, so that deleting it can show what it costs. Measured on stdlib functions: cutting lines leaves
41 % of programs unparsable, this 0 %.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from functools import lru_cache

from rlvrlab.envs.code.trees import NOT_PYTHON, parsed
from rlvrlab.rollout.segments import Segments, Siblings, Span
from rlvrlab.types import Step

HEADER = "def _():\n"
LONGEST = 400_000
TRIES = 12
"""Shorter beginnings tried of a program that does not parse."""
LINE_END = re.compile(r"\r\n|\r|\n")
ELIF = re.compile(r"elif\b")
BLOCKS = ("body", "orelse", "finalbody")


def python_steps(text: str, region: Span | None = None) -> Segments:
    """The program in `region` (all of the text by default) in steps."""
    start, end = region or (0, len(text))
    code = text[start:end]
    header = HEADER if re.match(r"(?:[ \t]*(?:#.*)?\r?\n)*[ \t]+[^\s#]", code) else ""
    tree, sound = _sound(header, code)
    reader = _Reader(text, start, header, code[:sound])
    if tree is not None:
        body = tree.body[0].body if header and isinstance(tree.body[0], ast.FunctionDef) else tree.body
        reader.block(body, -1, fill=bool(header))
    broken = bool(code[sound:].strip())
    if broken:
        reader.add((start + sound, end), (start + sound, end), "broken", -1, "")
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


def parses(code: str, header: str) -> bool:
    """Would it compile as far as the grammar goes?"""
    try:
        parsed(header + code)
    except NOT_PYTHON:
        return False
    return True


@lru_cache(maxsize=512)  # answers of one group are often equal, and so are what is left of them
def canonical_python(code: str) -> str:
    """Its tokens, so that layout makes no difference; comments stay, for a verifier may count them."""
    try:
        found = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, ValueError, SystemError):  # the last is Python 3.12's own mistake
        return code
    words = ((t.type, "" if t.type in (tokenize.INDENT, tokenize.NEWLINE) else t.string) for t in found)
    return "\0".join(f"{kind}{word}" for kind, word in words if kind != tokenize.NL)


def _sound(header: str, code: str) -> tuple[ast.Module | None, int]:
    """The tree of the longest beginning that parses, and how many characters it has."""
    if len(code) > LONGEST:
        return None, 0
    ends = [match.end() for match in LINE_END.finditer(code)]
    size = len(code)
    for _ in range(TRIES):
        try:
            tree = parsed(header + code[:size])
        except SyntaxError as error:
            line = (error.lineno or 1) - 1 - header.count("\n")
            below = [end for end in ends[: max(0, line)] if end < size]
            if not below:
                break
            size = below[-1]
        except NOT_PYTHON:
            break
        else:
            return tree, size
    return None, 0


class _Reader:
    """Collects steps, in the order of the text."""

    def __init__(self, text: str, offset: int, header: str, code: str) -> None:
        self.steps: list[Step] = []
        self.extents: list[Span] = []
        self.parents: list[int] = []
        self.neutral: list[str] = []
        self.siblings: list[Siblings] = []
        self.text, self.offset = text, offset
        self.skipped = header.count("\n")
        self.lines = [0, *(match.end() for match in LINE_END.finditer(code)), len(code)]
        self.code = code

    def add(self, span: Span, extent: Span, kind: str, parent: int, neutral: str) -> int:
        index = len(self.steps)
        self.steps.append(Step(index, kind, span, self.text[span[0] : span[1]]))
        self.extents.append(extent)
        self.parents.append(parent)
        self.neutral.append(neutral)
        return index

    def block(self, body: list[ast.stmt], parent: int, fill: bool) -> None:
        """The statements of one block."""
        runs = _runs(body)
        members, first_neutral = [], ""
        for position, run in enumerate(runs):
            following = runs[position + 1][0] if position + 1 < len(runs) else None
            extent, alone = self._extent(run, following)
            indent = self.text[extent[0] : self._at(run[0])] if alone else ""
            neutral = f"{indent}pass\n" if alone else "pass;" if following else "pass"
            first_neutral = first_neutral or (f"{indent}pass\n" if alone else "pass")
            members.append(self._statement(run[0], extent, parent, neutral))
        documented = len(runs) < len(_runs(body, everything=True))
        if members:
            self.siblings.append(Siblings(tuple(members), first_neutral if fill and not documented else ""))

    def _statement(self, node: ast.stmt, extent: Span, parent: int, neutral: str) -> int:
        blocks = _blocks(node)
        kind = type(node).__name__.lower()
        if not blocks:
            return self.add(extent, extent, kind, parent, neutral)
        head_end = min(self._line_start_or(blocks[0][0][0]), extent[1])
        index = self.add((extent[0], head_end), extent, kind, parent, neutral)
        for body, fill in blocks:
            elif_chain = ELIF.match(self.text, self._at(body[0])) is not None
            self.block(body, index, fill=fill and not elif_chain)
        return index

    def _extent(self, run: list[ast.stmt], following: ast.stmt | None) -> tuple[Span, bool]:
        """All lines of a statement that has them for itself; otherwise up to the statement after it."""
        start, end = self._at(run[0]), self._end(run[-1])
        line_start, line_end = self._line_of(start)[0], self._line_of(max(start, end - 1))[1]
        rest = self.text[end:line_end].strip()
        alone = not self.text[line_start:start].strip() and (not rest or rest.startswith("#"))
        if alone:
            return (line_start, line_end), True
        if following is not None and self._line_of(self._at(following)) == self._line_of(max(start, end - 1)):
            return (start, self._at(following)), False
        tail = len(self.text[end:line_end]) - len(self.text[end:line_end].lstrip(" \t"))
        has_semicolon = self.text[end + tail : end + tail + 1] == ";"
        return (start, end + tail + 1 if has_semicolon else end), False

    def _line_start_or(self, node: ast.stmt) -> int:
        """Where a block begins: at its line, or right at the statement when it shares the header's line."""
        at = self._at(node)
        line_start = self._line_of(at)[0]
        return at if self.text[line_start:at].strip() else line_start

    def _at(self, node: ast.stmt) -> int:
        first = min([node, *getattr(node, "decorator_list", ())], key=lambda part: (part.lineno, part.col_offset))
        at = self._offset(first.lineno, first.col_offset)
        return at if first is node else self.text.rfind("@", 0, at)

    def _end(self, node: ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Python counts columns in bytes of UTF-8."""
        start = self.lines[line - 1 - self.skipped]
        here = self.code[start : self.lines[line - self.skipped]]
        if not here.isascii():
            column = len(here.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "surrogatepass"))
        return self.offset + start + column

    def _line_of(self, at: int) -> Span:
        """The line that holds a place, with its line end."""
        row = min(bisect_right(self.lines, at - self.offset) - 1, len(self.lines) - 2)
        return self.offset + self.lines[row], self.offset + self.lines[row + 1]


def _runs(body: list[ast.stmt], everything: bool = False) -> list[list[ast.stmt]]:
    """Statements, imports in a row together; a docstring is none."""
    runs: list[list[ast.stmt]] = []
    for position, node in enumerate(body):
        if not everything and position == 0 and len(body) > 1 and _is_docstring(node):
            continue
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        if imports and runs and isinstance(runs[-1][-1], ast.Import | ast.ImportFrom):
            runs[-1].append(node)
        else:
            runs.append([node])
    return runs


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _blocks(node: ast.stmt) -> list[tuple[list[ast.stmt], bool]]:
    """The lists of statements below a statement, in order; each must not be left empty."""
    found = [(getattr(node, name, None), True) for name in BLOCKS]
    found += [(part.body, True) for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
    blocks = [(body, fill) for body, fill in found if isinstance(body, list) and body]
    return sorted(blocks, key=lambda block: (block[0][0].lineno, block[0][0].col_offset))
