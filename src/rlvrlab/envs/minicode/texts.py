"""Levels 6 and 7: strings over a few letters, and dictionaries from letters to numbers."""

from __future__ import annotations

from typing import Any

from rlvrlab.envs.minicode.grammar import Atom, Kind, Meaning, Pool, operation
from rlvrlab.envs.minicode.lists import ONCE

LETTERS = "abcde"
VOWELS = "aeiou"


def _text(name: str, parameters: Any, text: str, words: str, make: Any, gives: Kind = "text") -> tuple[Atom, ...]:
    return operation(name, parameters, text, words, make, "text", gives)


def _dict(name: str, parameters: Any, text: str, words: str, make: Any, gives: Kind = "dict") -> tuple[Atom, ...]:
    return operation(name, parameters, text, words, make, "dict", gives)


def _swap(pair: str) -> Meaning:
    return lambda x, y: x.replace(pair[0], pair[1])


TEXTS = Pool(
    (
        _text("sort", ONCE, "x=''.join(sorted(x))", "sort|ascending|order", lambda _: lambda x, y: "".join(sorted(x))),
        _text("rev", ONCE, "x=x[::-1]", "reverse|flip|backwards", lambda _: lambda x, y: x[::-1]),
        _text("rot", ONCE, "x=x[1:]+x[:1]", "rotate|cycle|first to end", lambda _: lambda x, y: x[1:] + x[:1]),
        _text("step", ONCE, "x=x[::2]", "every other|alternate|step 2", lambda _: lambda x, y: x[::2]),
        _text("upper", ONCE, "x=x.upper()", "upper|capitals|shout", lambda _: lambda x, y: x.upper()),
        _text("mirror", ONCE, "x=x+x[::-1]", "mirror|palindrome|there and back", lambda _: lambda x, y: x + x[::-1]),
        _text(
            "vowels", ONCE, "x=''.join(v for v in x if v in 'aeiou')", "vowels|keep vowels|no consonants",
            lambda _: lambda x, y: "".join(v for v in x if v in VOWELS),
        ),
        _text(
            "consonants", ONCE, "x=''.join(v for v in x if v not in 'aeiou')", "consonants|no vowels|drop vowels",
            lambda _: lambda x, y: "".join(v for v in x if v not in VOWELS),
        ),
        _text(
            "double", ONCE, "x=''.join(v*2 for v in x)", "double letters|twice each|stutter",
            lambda _: lambda x, y: "".join(v * 2 for v in x),
        ),
        _text(
            "next", ONCE, "x=''.join(chr(ord(v)+1) for v in x)", "next letter|shift|a to b",
            lambda _: lambda x, y: "".join(chr(ord(v) + 1) for v in x),
        ),
        _text("drop", (1, 2, 3), "x=x[K:]", "drop K|skip K|without first K", lambda k: lambda x, y: x[k:]),
        _text("take", (1, 2, 3, 4), "x=x[:K]", "take K|first K|head K", lambda k: lambda x, y: x[:k]),
        _text("last", (1, 2, 3), "x=x[-K:]", "last K|tail K|final K", lambda k: lambda x, y: x[-k:]),
        _text("times", (2, 3), "x=x*K", "times K|repeat K|K copies", lambda k: lambda x, y: x * k),
        _text(
            "without", LETTERS, "x=x.replace('K','')", "without K|remove K|no K",
            lambda k: lambda x, y: x.replace(k, ""),
        ),
        _text("push", LETTERS, "x=x+'K'", "push K|append K|end with K", lambda k: lambda x, y: x + k),
        _text("lead", LETTERS, "x='K'+x", "lead K|prepend K|start with K", lambda k: lambda x, y: k + x),
        *(
            _text(
                "swap", (pair,), f"x=x.replace('{pair[0]}','{pair[1]}')",
                f"{pair[0]} becomes {pair[1]}|{pair[0]} to {pair[1]}|{pair[1]} for {pair[0]}", _swap,
            )
            for pair in ("ab", "ba", "ce", "ea", "dx", "bz")
        ),
    )
)  # fmt: skip

TEXT_ENDS: tuple[Atom, ...] = (
    *_text("x", ONCE, "return x", "", lambda _: lambda x, y: x),
    *_text("len", ONCE, "return len(x)", "count|size|how many", lambda _: lambda x, y: len(x), "number"),
    *_text(
        "count", LETTERS, "return x.count('K')", "count K|how many K|number of K",
        lambda k: lambda x, y: x.count(k), "number",
    ),
    *_text("letters", ONCE, "return sorted(x)", "letters|as list|spell", lambda _: lambda x, y: sorted(x), "list"),
)  # fmt: skip

TABLES = Pool(
    (
        _text(
            "tally", ONCE, "x={v:x.count(v) for v in x}", "tally|count each|frequency",
            lambda _: lambda x, y: {v: x.count(v) for v in x}, "dict",
        ),
        _text(
            "first", ONCE, "x={v:x.index(v) for v in x}", "first places|where first|first index",
            lambda _: lambda x, y: {v: x.index(v) for v in x}, "dict",
        ),
        _text(
            "latest", ONCE, "x={v:i for i,v in enumerate(x)}", "last places|where last|last index",
            lambda _: lambda x, y: {v: i for i, v in enumerate(x)}, "dict",
        ),
    )
)  # fmt: skip

DICTS = Pool(
    (
        _dict(
            "above", (0, 1, 2, 3, 4), "x={a:b for a,b in x.items() if b>K}", "above K|more than K|keep >K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if b > k},
        ),
        _dict(
            "below", (2, 3, 4, 5), "x={a:b for a,b in x.items() if b<K}", "below K|less than K|keep <K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if b < k},
        ),
        _dict(
            "add", (1, 2, 3, 4, 5), "x={a:b+K for a,b in x.items()}", "add K|plus K|increase K",
            lambda k: lambda x, y: {a: b + k for a, b in x.items()},
        ),
        _dict(
            "mul", (2, 3), "x={a:b*K for a,b in x.items()}", "times K|multiply K|scale K",
            lambda k: lambda x, y: {a: b * k for a, b in x.items()},
        ),
        _dict(
            "without", LETTERS, "x={a:b for a,b in x.items() if a!='K'}", "without K|remove K|no K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if a != k},
        ),
        _dict(
            "after", "abcd", "x={a:b for a,b in x.items() if a>'K'}", "after K|letters past K|keys >K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if a > k},
        ),
        _dict("set", LETTERS, "x={**x,'K':0}", "set K 0|K is 0|zero K", lambda k: lambda x, y: {**x, k: 0}),
        _dict(
            "twin", ONCE, "x={a*2:b for a,b in x.items()}", "double keys|twice each key|twin keys",
            lambda _: lambda x, y: {a * 2: b for a, b in x.items()},
        ),
    )
)  # fmt: skip

DICT_ENDS: tuple[Atom, ...] = (
    *_dict("x", ONCE, "return x", "", lambda _: lambda x, y: x),
    *_dict("keys", ONCE, "return sorted(x)", "keys|names|letters", lambda _: lambda x, y: sorted(x), "list"),
    *_dict("sum", ONCE, "return sum(x.values())", "sum|total|add up", lambda _: lambda x, y: sum(x.values()), "number"),
    *_dict(
        "values", ONCE, "return sorted(x.values())", "values|numbers|amounts",
        lambda _: lambda x, y: sorted(x.values()), "list",
    ),
    *_dict(
        "get", LETTERS, "return x.get('K',0)", "value of K|look up K|get K",
        lambda k: lambda x, y: x.get(k, 0), "number",
    ),
)  # fmt: skip
