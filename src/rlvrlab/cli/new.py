"""rlvr new: working beginnings, to be changed line by line: a task of your own data, a reward, an environment."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import UserError
from rlvrlab.registry import find, names

if TYPE_CHECKING:
    from rlvrlab.data.guesses import Raw

NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
MADE = {"SFT_STEPS": "16              # the made questions need no more", "GRPO_STEPS": "12", "REFERENCES": "64",
        "MAX_TOKENS": "16"}  # fmt: skip
OWN = {"SFT_STEPS": "30              # until some answers are right: GRPO needs right ones among wrong ones",
       "GRPO_STEPS": "40"}  # fmt: skip
"""Steps of a task with made questions, and of one with data of the user's own."""
UNSHOWN = """["grpo"]         # no sft: there are no right answers to show; a column `solution` would bring them.
# GRPO alone needs a policy that is right now and then, which nano is not: see engine.model."""
"""Phases where the file has tests and no solutions."""
REFERENCES, LEAST_REFERENCES = 64, 8
"""Right answers that SFT is shown: at most so many, and of a small file a quarter, so that GRPO has rows of its own."""
TOKENS, MOST_TOKENS = 16, 1024
"""Least and most tokens of an answer in a recipe that is written here."""
COLOURS = ("red", "blue", "green", "black", "white", "pink", "gray", "gold")
THINGS = ("car", "hat", "cup", "dog", "box", "pen", "bag", "map", "key", "cat")
SIZES = ("big", "small", "old", "new", "wet", "dry", "long", "flat")


@click.group("new", short_help="Write the beginnings of a task, a reward or an environment.")
def command() -> None:
    """Write the beginnings of a task, a reward or an environment."""


@command.command("task")
@click.argument("name")
@click.argument("keys", nargs=-1, type=click.UNPROCESSED)
@click.option("--data", type=click.Path(path_type=Path), help="Your questions and answers; else a few are made.")
@AS_JSON
def task(name: str, keys: tuple[str, ...], data: Path | None, as_json: bool) -> None:
    """Write NAME.toml and NAME.py here: a recipe that trains on questions and answers of a file, and its reward.

    \b
    rlvr new task colours
    rlvr new task capitals --data capitals.csv
    rlvr new task things --data things.jsonl prompt=question answer=colour
    """
    from rlvrlab.data.guesses import look_at, why_unusable
    from rlvrlab.recipe.parse import parse_overrides

    _refuse_name(name, "a task")
    given = {key: str(value) for key, value in parse_overrides(keys).items()}
    made = {} if data else {f"{name}.jsonl": _made_questions()}
    _refuse_taken([f"{name}.py", f"{name}.toml", *made])
    raw = None
    if data is None:
        lines = ["[env]", 'type = "answers"', f'path = "{name}.jsonl"', 'prompt = "question"', 'answer = "answer"',
                 'matcher = "exact"']  # fmt: skip
    else:
        raw = look_at(data, given)
        if raw.prepared:
            raise UserError(f"{data}: holds prepared problems; name it under [data] train_file")
        if not raw.usable:
            raise UserError(f"{data}: {why_unusable(raw)}")
        _refuse_rows(data, raw)
        lines = raw.recipe_lines
        guesses = {key: value for key, value in raw.keys.items() if key not in given}
        if guesses and not as_json:
            columns = ", ".join(column.name for column in raw.columns)
            told = ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in guesses.items())
            click.echo(printable(f"guessed from {raw.rows} rows with the columns {columns}: {told}"))
    settings = [f"--set {line.replace(' = ', '=', 1)}" for line in lines[2:]]
    bare = "style" not in given and not (raw and raw.in_a_block)
    check = " ".join(["--env answers", *settings, *(["--set style=bare"] if bare else [])]).replace('"', "")
    recipe = _task_recipe(lines, raw, bare)
    files = {
        **made,
        f"{name}.py": _template("reward.py.txt").replace("CHECK", check).replace("NAME", name),
        f"{name}.toml": recipe.replace("NAME", name),
    }
    missing = _missing(tomllib.loads(files[f"{name}.toml"])["engine"]["type"])
    _write(files)
    wrong, few = ([], []) if as_json else _lacking(Path(f"{name}.toml"))
    next_steps = [*map(printable, dict.fromkeys(wrong)), f"rlvr train {name}.toml", "rlvr show"]
    _tell(files, next_steps, as_json, {"missing": missing} if missing else {})
    if not as_json:
        for words in filter(None, (missing, *few)):
            click.echo(printable(f"Before training: {words}"))


@command.command("reward")
@click.argument("name")
@AS_JSON
def reward(name: str, as_json: bool) -> None:
    """Write NAME.py and NAME.toml here: a reward function, and a recipe in which the toy policy learns from it."""
    _refuse_name(name, "a reward")
    keys = "--env countdown --set numbers=[2] --set style=bare"
    files = {
        f"{name}.py": _template("reward.py.txt").replace("CHECK", keys).replace("NAME", name),
        f"{name}.toml": _template("reward.toml.txt").replace("NAME", name),
    }
    _refuse_taken(list(files))
    _write(files)
    _tell(files, [f"rlvr check reward {name}.py:reward", f"rlvr train {name}.toml"], as_json)


@command.command("env")
@click.argument("name")
@AS_JSON
def env(name: str, as_json: bool) -> None:
    """Write NAME.py and NAME.toml here: an environment that passes its own check, and a recipe that trains on it."""
    _refuse_name(name, "an environment")
    class_name = "".join(part.capitalize() for part in name.split("_"))
    if name in names("env") or re.search(rf"\b{class_name}\b", _template("env.py.txt")):
        raise UserError(f"{name!r} is taken; choose another name")
    files = {f"{name}.py": _template("env.py.txt"), f"{name}.toml": _template("recipe.toml.txt")}
    _refuse_taken(list(files))
    written = {file: text.replace("NAME", name).replace("CLASS", class_name) for file, text in files.items()}
    next_steps = [f"rlvr check env {name}.py:{class_name}", f"rlvr train {name}.toml"]
    _write(written)
    _tell(written, next_steps, as_json, {"class": class_name})


def _refuse_rows(data: Path, raw: Raw) -> None:
    """Rows that no run could use are told before anything is written; that there are too few is no mistake yet."""
    from rlvrlab.cli.check import built

    keys = {"path": str(data), **raw.keys}
    built("env", "answers", tuple(f"{key}={json.dumps(value)}" for key, value in keys.items())).by_role()


def _missing(engine: str) -> str:
    """What an engine needs, is not here, and how to get it; empty where nothing is missing."""
    cls = find("engine", engine)
    looked_up = cls.installed()
    if looked_up is None or looked_up.state == "found":
        return ""
    return f"the engine {engine} needs {cls.needs}; {looked_up.words}"


def _lacking(recipe: Path) -> tuple[list[str], list[str]]:
    """What keeps the data of a recipe that was just written from being trained on, else from showing anything."""
    from rlvrlab.recipe import load_recipe
    from rlvrlab.train.lookups import lookups, too_few

    resolved = load_recipe(recipe, [])
    found, problems = lookups(resolved)
    wrong = [one.words for one in found if one.state == "wrong" and one.what.startswith(("env", "data"))]
    return wrong, [] if wrong else too_few(resolved, problems)


def _task_recipe(lines: Sequence[str], raw: Raw | None, bare: bool) -> str:
    """The recipe of a task with these lines of [env]: with SFT where right answers are known, with a style for some."""
    recipe = _template("task.toml.txt").replace("ENV", "\n".join(lines))
    shown = raw is None or raw.longest_answer is not None
    if not shown:
        recipe = re.sub(r"\[sft\]\n(.+\n)+\n", "", recipe)
    if not bare:  # given, and so among the lines of [env] already, or the answer has a place of its own
        recipe = "".join(line for line in recipe.splitlines(True) if not line.startswith('style = "bare"  '))
    words = {"PHASES": '["sft", "grpo"]' if shown else UNSHOWN, **(OWN | _sizes(raw) if raw else MADE)}
    for word, value in words.items():
        recipe = recipe.replace(word, value)
    return recipe


def _sizes(raw: Raw) -> dict[str, str]:
    """Lengths and numbers that follow from the user's own file."""
    references = str(max(LEAST_REFERENCES, min(REFERENCES, raw.rows // 4)))
    longest = raw.longest_answer
    if longest is None:
        return {"REFERENCES": references, "MAX_TOKENS": "256        # as long as an answer may get"}
    tokens = min(MOST_TOKENS, max(TOKENS, 8 * math.ceil((longest + 1) / 8)))  # and one that ends the answer
    why = f"# your longest answer has {longest} bytes, at most as many tokens; more where a model thinks first"
    return {"REFERENCES": references, "MAX_TOKENS": f"{tokens:<10} {why}"}


def _made_questions() -> str:
    """A few hundred questions with a word as answer: `The old hat is red. Which colour?`"""
    from rlvrlab.randomness import shuffled

    rows = [
        {"question": f"The {size} {thing} is {colour}. Which colour?", "answer": colour}
        for size in SIZES
        for thing in THINGS
        for colour in COLOURS
    ]
    return "".join(json.dumps(row) + "\n" for row in shuffled(rows, 0, "new task")[:400])


def _template(file: str) -> str:
    return (Path(__file__).parent / "templates" / file).read_text(encoding="utf-8")


def _refuse_name(name: str, what: str) -> None:
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name {what}; use up to 60 lower-case letters, digits and _")


def _refuse_taken(files: list[str]) -> None:
    taken = [file for file in files if Path(file).exists()]
    if taken:
        raise UserError(f"{', '.join(taken)} already here; move it away or choose another name")


def _write(files: Mapping[str, str]) -> None:
    for file, text in files.items():
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{file} cannot be written here ({error.strerror}); go to another folder") from None


def _tell(files: Iterable[str], next_steps: list[str], as_json: bool, facts: Mapping[str, str] | None = None) -> None:
    """What was written, and what comes next."""
    if as_json:
        print_json({"written": list(files), **(facts or {})})
        return
    *others, last = files
    click.echo(f"wrote {', '.join(others)} and {last}; next:")
    for line in next_steps:
        click.echo(f"  {line}")
