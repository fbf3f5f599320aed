"""How a wrong value of a recipe would be written: guesses, of which only one that was tried and accepted is offered.

`phases=sft,grpo` -> `write 'phases=["sft", "grpo"]'`; `env.use_all=True` -> `write env.use_all=true`.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rlvrlab.errors import UserError, cut, one_line
from rlvrlab.recipe.parse import NULL, parse_value
from rlvrlab.recipe.schema import instantiate
from rlvrlab.registry import find, keys_of, names

LIST, WHOLE, NUMBER, TRUTH, TEXT = "a list", "a whole number", "a number", "true or false", "text in quotes"
TYPES = {
    "list_type": LIST,
    "tuple_type": LIST,
    "int_type": WHOLE,
    "int_from_float": WHOLE,
    "float_type": NUMBER,
    "bool_type": TRUTH,
    "string_type": TEXT,
    "dict_type": "a table",
    "model_type": "a table",
}
"""What pydantic calls the type that it wants, in a recipe's words."""
TRUE, FALSE = ("true", "yes", "on", "y", "1"), ("false", "no", "off", "n", "0")
NOTHING = ("none", "null", "nil", "nan", "")
SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "hours": 3600, "d": 86400}
_DURATION = re.compile(rf"([\d.]+)\s*({'|'.join(SECONDS)})")
_ITEM = re.compile(r"[^\s,\[\]()'\"]+")
LISTED = {"phases": "phase", "record.sinks": "sink"}
"""Lists whose items are names of plug-ins."""


def words_of(kinds: Sequence[str], message: str) -> str:
    """`must be a whole number`, of what pydantic says about one value; limits keep its own words."""
    if not set(kinds) - TYPES.keys():
        return f"must be {' or '.join(dict.fromkeys(TYPES[kind] for kind in kinds))}"
    words = message.removeprefix("Value error, ")
    return words[:1].lower() + words[1:]


def first_words(error: ValueError) -> str:
    """`numbers: must be a list, got 2`: the first mistake in a table, on one line; pydantic's own has several."""
    if not isinstance(error, ValidationError):
        return one_line(error)
    item = error.errors(include_url=False)[0]
    key = ".".join(map(str, item["loc"]))
    if item["type"] == "unexpected_keyword_argument":
        return f"{key}: unknown key"
    got = "" if item["type"] == "missing" else f", got {cut(json.dumps(item['input'], default=str), 80)}"
    return f"{key}: {words_of([item['type']], item['msg'])}{got}"


def guesses(key: str, value: Any, wanted: Sequence[str], allowed: Sequence[str] = ()) -> Iterator[Any]:
    """What may have been meant by a value of another type, the likeliest first; None stands for taking the key out."""
    text = value.strip() if isinstance(value, str) else None
    if LIST in wanted:
        yield from _lists(key, value)
    if isinstance(value, list) and len(value) == 1:
        yield value[0]
    if TRUTH in wanted and (word := str(value).lower()) in (*TRUE, *FALSE):
        yield word in TRUE
    if {WHOLE, NUMBER} & set(wanted):
        yield from _numbers(key, value)
    if TEXT in wanted and not isinstance(value, dict | list):
        yield str(value).lower() if isinstance(value, bool) else str(value)
    if text is not None:
        lower = {one.lower(): one for one in allowed}
        yield from (lower[one] for one in difflib.get_close_matches(text.lower(), lower, n=1))
        if text.lower() in NOTHING:
            yield None


def _lists(key: str, value: Any) -> Iterator[Any]:
    """`sft,grpo`, `[sft, grpo]` and `["sft" "grpo"]` as a list; names that are spelt nearly right are corrected."""
    if not isinstance(value, str):
        yield [value]
        return
    items = [parse_value(item) for item in _ITEM.findall(value)]
    if items:
        yield items
        known = names(LISTED[key]) if key in LISTED else []
        near = [difflib.get_close_matches(str(item), known, n=1) for item in items]
        if all(near):
            yield [one[0] for one in near]
    yield [value]


def _numbers(key: str, value: Any) -> Iterator[Any]:
    text = str(value).strip().strip("'\"").lower()
    for one in (text, text.replace(",", "")):
        read = parse_value(one)
        if isinstance(read, int | float) and not isinstance(read, bool):
            yield read
            if isinstance(read, float) and read.is_integer():
                yield int(read)
    if key.endswith("_s") and (found := _DURATION.fullmatch(text)):
        seconds = float(found[1]) * SECONDS[found[2]] if found[1].count(".") < 2 else 0.0
        yield int(seconds) if seconds.is_integer() else seconds
    if text.endswith("%") and isinstance(share := parse_value(text.removesuffix("%").strip()), int | float):
        yield share / 100


def allowed_for(key: str) -> str:
    """`; allowed: dpo, grpo, …` where the items of a list are names that can be told; else nothing."""
    return f"; allowed: {', '.join(names(LISTED[key]))}" if key in LISTED else ""


def on_command_line(key: str, value: Any) -> str:
    """`'phases=["sft", "grpo"]'`, quoted so that a shell leaves it as it is."""
    plain = isinstance(value, str) and value != NULL and parse_value(value) == value
    return shlex.quote(f"{key}={value if plain else in_toml(value)}")


def in_toml(value: Any) -> str:
    """A value as TOML, on one line."""
    if value is None:
        return NULL
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | str) else str(value)


def of_table(value: Any, kind: str | None, keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Keys with values that may have been meant where a value stands in the place of a table."""
    if kind not in (None, "phase") and isinstance(value, str):
        known = names(str(kind))
        yield from (("type", one) for one in ([value] if value in known else difflib.get_close_matches(value, known)))
    elif kind == "phase" and "steps" in keys and isinstance(value, int):
        yield "steps", value


def of_keys(key: str, kind: str | None, keys: Iterable[str]) -> str:
    """What a table holds, for where nothing can be guessed."""
    if kind not in (None, "phase"):
        return f"{key}.type=NAME, NAME one of: {', '.join(names(str(kind)))}"
    return f"{key}.KEY=VALUE, KEY one of: {', '.join(keys)}"


def keys_below(key: str, sections: dict[str, Any]) -> list[str]:
    """The keys of a core table or of a phase."""
    if key in sections:
        return list(sections[key].model_fields)
    return keys_of(find("phase", key)) if key in names("phase") else []


def instantiate_part(kind: str, table: dict[str, Any], where: str, folder: Path | None = None) -> Any:
    """A plug-in within the table of another one; a mistake is told with its place."""
    if not isinstance(table.get("type"), str):
        raise UserError(f"{where} needs `type = NAME`")
    try:
        return instantiate(kind, table, folder)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except ValueError as error:  # pydantic's own, several lines long
        raise UserError(f"{where} ({table['type']}): {first_words(error)}") from None
