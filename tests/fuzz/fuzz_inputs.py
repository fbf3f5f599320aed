"""Random inputs: a small grammar for each kind of text, and mutations of what it wrote; one seed, one input."""

from __future__ import annotations

import random
from collections.abc import Sequence

LARGE = 1_000_000
"""Characters of the inputs that show whether the time is linear."""
ODD = (
    "\0", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\ufeff", "\ud800", "\udfff", "é", "½", "１", "٣", "²", "∞", "𝟙",
    "\U0001f600", "\r\n", "\r", "\t", "\\", '"', "'", "`", "''", "-0", "1e400", "NaN", "9" * 30, "{", "}", "[", "]",
)  # fmt: skip
ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\r",
    b"\n",
    b"\r\n",
    b"\t",
    b":",
    b" ",
    b'"',
    b"\\",
    b"[",
    b"{",
)
COMMON = ("<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "####", "```", "```python\n", "```\n", "~~~")
WORDS = {
    "python": (
        "def f(x):\n", "    return x\n", "if x:\n", "else:\n", "elif x:\n", "    pass\n", "x = 1\n", "x = 1;",
        "import a\n", "@d\n", "class A:\n", "try:\n", "except E:\n", "finally:\n", "match x:\n", "case 1:\n",
        '"""', "'", "#", "(", ")", "[", "]", "{", "}", "lambda x: ", "\\\n", "async ", "await ", "f'{x}'", " ",
        "    ", "\n", "\r\n", "\t", ";", ":", "a.b", "-", "not ", "~", "*", "1",
    ),
    "sql": (
        "SELECT ", "FROM t ", "WHERE a = 1 ", "AND ", "OR ", "BETWEEN 1 ", "ORDER BY x ", "GROUP BY ",
        "HAVING ", "LIMIT 1 ", "WITH a AS (", "UNION ", "JOIN u ON ", "LEFT ", "NATURAL ", "(", ")", ",", ";",
        "'", '"', "`", "[", "]", "--", "/*", "*/", "\n", "x", "1", ".", "CASE ", "END ", "NULL ", "* ", "''",
        "COLLATE x ", "DESC ",
    ),
    "mathematics": (
        "1", "2", "0", ".", ",", "/", "+", "-", "*", "^", "(", ")", "{", "}", "\\frac", "\\sqrt", "\\text{",
        "\\pi", "=", "%", "$", "\\$", "\\!", "\\,", "x", "e5", ":", " or ", " and ", "_6", "\\cup", "\\le", "±",
        "½", "thousand", "cm", "^2", "1,000", "\\left(", "\\right)", "|", "\\begin{pmatrix}", "\\\\", "&", "[",
        "]",
    ),
    "text": (
        "A sentence. ", "Why? ", "\n", "\n\n", " ", "  \n", "word", "Observation: 3\n", "Thought: x\n",
        "<tool_response>", "</tool_response>", "Yes", "no", "1", "-1", "[1, 2]", "(0, 1)", "{'a': 1}", ", ",
        "->", "the answer is ", ".", "!", "**",
    ),
    "json": (
        "{", "}", "[", "]", ":", ",", '"a"', '"', "1", "-1.5e3", "true", "null", "NaN", "Infinity", "\\u0041",
        "\\ud800", " ", '"status"', '"Success"', '"run_result"', '"stdout"', '"choices"', '"text"',
        '"finish_reason"', '"logprobs"',
    ),
    "toml": (
        "name = 'x'\n", "phases = ['grpo']\n", "[env]\n", "type = 'countdown'\n", "[grpo]\n", "steps = 3\n",
        "[[a]]\n", "a.b = 1\n", "x = [1, 2]\n", "y = {a = 1}\n", "'''", '"""', "#", "=", "[", "]", "{", "}",
        ".", "\n", "inf", "nan", "1979-05-27", "-", "0x", "lr = -1\n", "[rollout]\n", "n = 0\n",
        "extends = 'b.toml'\n", "[engine]\n", "[reward]\n", "true", "1e999",
    ),
    "csv": (
        "a,b\n", "1,2\n", '"', '""', ",", "\n", "\r\n", "x", "prompt,answer\n", "'", ";", "\\",
    ),
    "http": (
        "GET ", "POST ", "/", "/run_code", " HTTP/1.1", "\r\n", "\r\n\r\n", "Host: localhost\r\n",
        "Content-Length: 2\r\n", "Transfer-Encoding: chunked\r\n", "X: y\r\n", ":", " ", "\t", "\n", "%00",
        "?a=b", "#", "HTTP/1.0", "Cookie: a=b\r\n",
    ),
}  # fmt: skip


def text_of(rng: random.Random, kind: str, size: int) -> str:
    """Words of a kind in any order; some inputs are one pattern repeated, which is where time goes wrong."""
    words = (*WORDS[kind], *COMMON) if kind not in ("json", "toml", "csv", "http") else WORDS[kind]
    shape = rng.random()
    if shape < 0.35:
        text = repeated(rng, words, size)
    elif shape < 0.6:
        text = "".join(rng.choice(words) for _ in range(rng.randrange(1, 30)))
    else:
        text = fenced(rng, kind, "".join(rng.choice(words) for _ in range(rng.randrange(1, 60))))
    while rng.random() < 0.4:
        text = mutated(rng, text, words)
    return text[:size]


def repeated(rng: random.Random, words: Sequence[str], size: int) -> str:
    """opening + unit × many + closing, of a few words each."""
    opening, unit, closing = ("".join(rng.choice(words) for _ in range(rng.randrange(low, 4))) for low in (0, 1, 0))
    return opening + unit * (max(0, size - len(opening) - len(closing)) // max(1, len(unit))) + closing


def fenced(rng: random.Random, kind: str, text: str) -> str:
    if rng.random() < 0.5:
        return text
    return rng.choice(
        (f"```{kind}\n{text}\n```", f"<answer>{text}</answer>", f"\\boxed{{{text}}}", f"#### {text}", f"</think>{text}")
    )


def mutated(rng: random.Random, text: str, words: Sequence[str]) -> str:
    """One small change: a piece cut out, doubled or moved, a word or an odd character put in."""
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    change = rng.randrange(5)
    if change == 0:
        return text[:a] + text[b:]
    if change == 1:
        return text[:b] + text[a:b] + text[b:]
    if change == 2:
        return text[b:] + text[:a] + text[a:b]
    return text[:a] + rng.choice(words if change == 3 else ODD) + text[a:]


def bytes_of(rng: random.Random, kind: str, size: int) -> bytes:
    """A text in UTF-8 whose bytes were changed a little."""
    data = text_of(rng, kind, size).encode("utf-8", "surrogatepass")
    while rng.random() < 0.4:
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        change = rng.randrange(3)
        data = (
            data[:a] + data[b:] if change == 0 else data[:a] + rng.choice(ODD_BYTES) + data[a if change == 1 else b :]
        )
    return data


def value_of(rng: random.Random, depth: int = 0) -> object:
    """A JSON value with the names and numbers that our protocols use."""
    kind = rng.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind == 1:
        return rng.choice((0, 1, -1, 2**53, -(2**80), 0.5, 1e308, float("nan"), float("inf"), -0.0))
    if kind < 6:
        return rng.choice((*NAMES, *ODD, "", "x" * rng.randrange(50)))
    if kind == 6:
        return [value_of(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {rng.choice(NAMES): value_of(rng, depth + 1) for _ in range(rng.randrange(6))}


NAMES = (
    "status", "Success", "Failed", "run_result", "Finished", "TimeLimitExceeded", "stdout", "stderr",
    "return_code", "choices", "text", "message", "content", "finish_reason", "stop", "length", "logprobs",
    "tokens", "token_logprobs", "top_logprobs", "token_ids", "token_id:5", "model", "usage",
    "completion_tokens", "correct", "score", "error", "none", "flags", "parts", "cost", "kind", "stdio",
    "calls", "tests", "syntax", "entry_point", "arguments", "expected", "named", "plain", "list", "tuple",
    "dict", "int", "float", "range", "limits", "cpu_s", "wall_s", "memory_mb", "comparison", "exact", "abs_tol",
    "given", "checker", "setup", "reasoning_content", "Fraction", "Decimal", "date", "timedelta", "set",
    "bytes", "complex", "handle", "code", "language", "python", "stdin", "files",
)  # fmt: skip
