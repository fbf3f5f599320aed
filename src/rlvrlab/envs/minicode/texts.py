"""Levels 6 and 7: strings over a few letters, and dictionaries from letters to numbers."""

from __future__ import annotations

from functools import partial

from rlvrlab.envs.minicode.grammar import Atom, Pool, once, operation

LETTERS = "abcde"
VOWELS = "aeiou"

_text, _text_once = partial(operation, takes="text"), partial(once, takes="text")
_dict, _dict_once = partial(operation, takes="dict"), partial(once, takes="dict")

TEXTS = Pool(
    (
        _text_once("sort", "x=''.join(sorted(x))", "sort|ascending|order", lambda x, y: "".join(sorted(x))),
        _text_once("rev", "x=x[::-1]", "reverse|flip|backwards", lambda x, y: x[::-1]),
        _text_once("rot", "x=x[1:]+x[:1]", "rotate|cycle|first to end", lambda x, y: x[1:] + x[:1]),
        _text_once("step", "x=x[::2]", "every other|alternate|step 2", lambda x, y: x[::2]),
        _text_once("upper", "x=x.upper()", "upper|capitals|shout", lambda x, y: x.upper()),
        _text_once("mirror", "x=x+x[::-1]", "mirror|palindrome|there and back", lambda x, y: x + x[::-1]),
        _text_once("vowels", "x=''.join(v for v in x if v in 'aeiou')", "vowels|keep vowels|no consonants",
            lambda x, y: "".join(v for v in x if v in VOWELS)),
        _text_once("consonants", "x=''.join(v for v in x if v not in 'aeiou')", "consonants|no vowels|drop vowels",
            lambda x, y: "".join(v for v in x if v not in VOWELS)),
        _text_once("double", "x=''.join(v*2 for v in x)", "double letters|twice each|stutter",
            lambda x, y: "".join(v * 2 for v in x)),
        _text_once("next", "x=''.join(chr(ord(v)+1) for v in x)", "next letter|shift|a to b",
            lambda x, y: "".join(chr(ord(v) + 1) for v in x)),
        _text("drop", (1, 2, 3), "x=x[K:]", "drop K|skip K|without first K", lambda k: lambda x, y: x[k:]),
        _text("take", (1, 2, 3, 4), "x=x[:K]", "take K|first K|head K", lambda k: lambda x, y: x[:k]),
        _text("last", (1, 2, 3), "x=x[-K:]", "last K|tail K|final K", lambda k: lambda x, y: x[-k:]),
        _text("times", (2, 3), "x=x*K", "times K|repeat K|K copies", lambda k: lambda x, y: x * k),
        _text("without", LETTERS, "x=x.replace('K','')", "without K|remove K|no K",
            lambda k: lambda x, y: x.replace(k, "")),
        _text("push", LETTERS, "x=x+'K'", "push K|append K|end with K", lambda k: lambda x, y: x + k),
        _text("lead", LETTERS, "x='K'+x", "lead K|prepend K|start with K", lambda k: lambda x, y: k + x),
        *(
            _text("swap", (a + b,), f"x=x.replace('{a}','{b}')", f"{a} becomes {b}|{a} to {b}|{b} for {a}",
                lambda pair: lambda x, y: x.replace(*pair))
            for a, b in ("ab", "ba", "ce", "ea", "dx", "bz")
        ),
    )
)  # fmt: skip

TEXT_ENDS: tuple[Atom, ...] = (
    *_text_once("x", "return x", "", lambda x, y: x),
    *_text_once("len", "return len(x)", "count|size|how many", lambda x, y: len(x), "number"),
    *_text("count", LETTERS, "return x.count('K')", "count K|how many K|number of K",
        lambda k: lambda x, y: x.count(k), "number"),
    *_text_once("letters", "return sorted(x)", "letters|as list|spell", lambda x, y: sorted(x), "list"),
)  # fmt: skip

TABLES = Pool(
    (
        _text_once("tally", "x={v:x.count(v) for v in x}", "tally|count each|frequency",
            lambda x, y: {v: x.count(v) for v in x}, "dict"),
        _text_once("first", "x={v:x.index(v) for v in x}", "first places|where first|first index",
            lambda x, y: {v: x.index(v) for v in x}, "dict"),
        _text_once("latest", "x={v:i for i,v in enumerate(x)}", "last places|where last|last index",
            lambda x, y: {v: i for i, v in enumerate(x)}, "dict"),
    )
)  # fmt: skip

DICTS = Pool(
    (
        _dict("above", (0, 1, 2, 3, 4), "x={a:b for a,b in x.items() if b>K}", "above K|more than K|keep >K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if b > k}),
        _dict("below", (2, 3, 4, 5), "x={a:b for a,b in x.items() if b<K}", "below K|less than K|keep <K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if b < k}),
        _dict("add", (1, 2, 3, 4, 5), "x={a:b+K for a,b in x.items()}", "add K|plus K|increase K",
            lambda k: lambda x, y: {a: b + k for a, b in x.items()}),
        _dict("mul", (2, 3), "x={a:b*K for a,b in x.items()}", "times K|multiply K|scale K",
            lambda k: lambda x, y: {a: b * k for a, b in x.items()}),
        _dict("without", LETTERS, "x={a:b for a,b in x.items() if a!='K'}", "without K|remove K|no K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if a != k}),
        _dict("after", "abcd", "x={a:b for a,b in x.items() if a>'K'}", "after K|letters past K|keys >K",
            lambda k: lambda x, y: {a: b for a, b in x.items() if a > k}),
        _dict("set", LETTERS, "x={**x,'K':0}", "set K 0|K is 0|zero K", lambda k: lambda x, y: {**x, k: 0}),
        _dict_once("twin", "x={a*2:b for a,b in x.items()}", "double keys|twice each key|twin keys",
            lambda x, y: {a * 2: b for a, b in x.items()}),
    )
)  # fmt: skip

DICT_ENDS: tuple[Atom, ...] = (
    *_dict_once("x", "return x", "", lambda x, y: x),
    *_dict_once("keys", "return sorted(x)", "keys|names|letters", lambda x, y: sorted(x), "list"),
    *_dict_once("sum", "return sum(x.values())", "sum|total|add up", lambda x, y: sum(x.values()), "number"),
    *_dict_once("values", "return sorted(x.values())", "values|numbers|amounts",
        lambda x, y: sorted(x.values()), "list"),
    *_dict("get", LETTERS, "return x.get('K',0)", "value of K|look up K|get K",
        lambda k: lambda x, y: x.get(k, 0), "number"),
)  # fmt: skip
