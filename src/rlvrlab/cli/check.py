"""rlvr check: is a recipe, an environment, a reward or an engine sound?"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.names import RECIPE, RECIPE_KEY
from rlvrlab.cli.options import AS_JSON, FreeWords
from rlvrlab.cli.printing import CountLines, print_json, printable, shortened, table
from rlvrlab.errors import UnknownName, UserError
from rlvrlab.notes import counting
from rlvrlab.registry import find, is_own, name_own

NEIGHBOURS_TRIED = 3
"""Right answers to other rows that a reward's check tries on the first one."""
BACKWARD_SHOWN = 3
"""Problems whose answers it shows since a wrong one earned as much as the right one."""
PAID = ("answer", "correct", "reward", "parts", "text")
"""Columns of its table where all answers are to one problem."""
LONGEST_CELL = 60
"""Characters of a cell in a table of checks."""
DEFAULT_ENV = "countdown"
"""What judges the answers of a reward that is checked alone."""
TOKENS_PER_ROW = 16
"""About as many tokens as a row of the engine contract has."""
ALL_ROWS = {"micro_batch": 0, "micro_tokens": 1 << 20}
"""Key that sets an engine's micro-batch size -> the value with which all rows go in one pass."""


@click.group("check", short_help="Check a recipe, an environment, a reward or an engine.")
def command() -> None:
    """Check a recipe, an environment, a reward or an engine."""


@command.command("recipe", cls=FreeWords)
@click.argument("path", type=RECIPE)
@click.argument("overrides", nargs=-1, type=RECIPE_KEY)
@AS_JSON
def recipe(path: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Resolve a recipe, every mistake at once, and look up its model, packages and files.

    The exit code is 1 when the recipe names something that does not exist. What only this machine lacks (a package, a
    model that is fetched later) is said, and so is what cannot be checked without a network.
    """
    from rlvrlab.recipe import load_recipe
    from rlvrlab.recipe.explain import unusual
    from rlvrlab.recipe.parse import flatten
    from rlvrlab.train.lookups import in_short, lookups, too_few

    resolved = load_recipe(path, overrides)
    with counting(CountLines().show):
        found, problems = lookups(resolved)
    wrong = [one for one in found if one.state == "wrong"]
    if as_json:
        print_json({**resolved.config(), "lookups": [one._asdict() for one in found], "problems": problems})
        return 1 if wrong else 0
    changed = len(dict(flatten(resolved.given())))
    told = f"({changed} keys set, {len(resolved.origins) - changed} defaults)"
    click.echo(f"{path}: {in_short(found)} {told}")
    for one in found:
        click.echo(printable(f"  {one.what}: {one.state}: {one.words}"), err=one.state == "wrong")
    for words in (*unusual(resolved), *too_few(resolved, problems)):
        click.echo(f"warning: {words}", err=True)
    return 1 if wrong else 0


@command.command("env")
@click.argument("name")
@click.argument("keys", nargs=-1, type=click.UNPROCESSED)
@click.option("--hacks", is_flag=True, help="Also junk and every applicable exploit, in a process of their own.")
@AS_JSON
def env(name: str, keys: tuple[str, ...], hacks: bool, as_json: bool) -> int:
    """Gold answers must be judged correct, every listed cheat must not.

    KEYS set the environment's own: `rlvr check env countdown numbers=[2]`.
    """
    environment, rows = built("env", name, keys), list[dict[str, Any]]()
    if hacks:  # before the checks: it forks, and a judge's threads would not survive that
        from rlvrlab.judge.hacks.battery import hack_battery

        rows += [
            {"check": f"{hack.kind}: {hack.name}", "answer": hack.problem, "must_be": hack.must_be,
             "judged": hack.judged, "ok": hack.ok, "error": hack.note.partition(":")[0], "detail": hack.note}
            for hack in hack_battery(environment)
        ]  # fmt: skip
    checks = environment.self_check()
    if not checks:
        raise UserError(f"environment {name} checks nothing: give it `gold` or `cheats`")
    rows += [
        {"check": c.name, "answer": c.text, "must_be": c.expected, "judged": c.verdict.correct, "ok": c.ok,
         "error": str(c.verdict.error), "detail": c.verdict.detail}
        for c in checks
    ]  # fmt: skip
    return _report(f"environment {name}", rows, ("check", "judged", "error", "answer"), as_json)


@command.command("reward")
@click.argument("name")
@click.argument("keys", nargs=-1, type=click.UNPROCESSED)
@click.option("--env", "env_name", help=f"The environment that judges, as in your recipe; else {DEFAULT_ENV}.")
@click.option("--set", "env_keys", multiple=True, metavar="KEY=VALUE", help="A key of that environment; repeatable.")
@AS_JSON
def reward(name: str, keys: tuple[str, ...], env_name: str | None, env_keys: tuple[str, ...], as_json: bool) -> int:
    """What a reward pays for a right, a wrong, an empty and a truncated answer, and for right answers to other rows.

    KEYS set the reward's own.

    \b
    rlvr check reward my.py:bonus
    rlvr check reward my.py:bonus --env answers --set path=questions.jsonl
    """
    from rlvrlab.rollout.trial import MOST, NEIGHBOURS, backward_pairs, pays_backwards, tried, try_all

    told = f"judged by {env_name or f'{DEFAULT_ENV}, since no --env was given: add that of your recipe'}"
    env_name = env_name or DEFAULT_ENV
    environment, pays = built("env", env_name, env_keys), built("reward", name, keys)
    problems = environment.problems("train", MOST, 0)
    own = any(is_own(word) or ".py:" in word for word in (env_name, *env_keys))
    found = try_all(environment, pays, problems, own_env=own)
    paid = [one for one in found if one.problem is problems[0]]
    known = {one.text for one in paid if one.name == "right"}
    golds = dict.fromkeys(one.text for one in found if one.name == "right" and one.text not in known)
    for gold in list(golds)[:NEIGHBOURS_TRIED]:
        paid += tried(environment, pays, problems[0], own_env=own, wanted=(NEIGHBOURS,), neighbours=gold)
    paid += [one for one in found if one.problem is not problems[0]]
    backward = list(dict.fromkeys(wrong.problem.id for _, wrong in backward_pairs(paid)))
    first = problems[0].id
    others = [] if first in backward else backward[:BACKWARD_SHOWN]
    rows: list[dict[str, Any]] = [
        {"problem": one.problem.prompt.strip(), "answer": one.name, "correct": one.verdict.correct,
         "reward": one.reward.value if one.reward else None, "parts": dict(one.reward.parts) if one.reward else {},
         "seconds": round(one.seconds, 4), "text": one.text, "error": str(one.verdict.error),
         "ok": one.reward is not None and one.problem.id not in backward}
        for one in paid
        if one.problem.id in (first, *others)
    ]  # fmt: skip
    if words := pays_backwards(paid):
        click.echo(f"warning: {words}", err=True)
    several = len({row["problem"] for row in rows}) > 1
    columns = ("problem", "answer", "correct", "reward", "text") if several else PAID
    return _report(f"reward {name}, {told}", rows, columns, as_json)


@command.command("engine")
@click.argument("name")
@click.argument("keys", nargs=-1, type=click.UNPROCESSED)
@AS_JSON
def engine(name: str, keys: tuple[str, ...], as_json: bool) -> int:
    """The contract of every engine: probabilities, exact gradients, micro-batches, save and load, keyed sampling.

    KEYS set the engine's own: `rlvr check engine hf model=nano`.
    """
    from rlvrlab.engines.base import Engine
    from rlvrlab.engines.contract import run_contract
    from rlvrlab.recipe.schema import Optimizer

    config = built("engine", name, keys)
    sizes: dict[str, int] = {"micro_batch": 1, "micro_tokens": TOKENS_PER_ROW}
    key = next((item.name for item in fields(config) if item.name in sizes), None)
    if key is None:
        raise UserError(f"engine {name!r} has no key {' or '.join(sizes)}, so the contract cannot vary it")

    def make(rows: int) -> Engine:
        return replace(config, **{key: sizes[key] * rows or ALL_ROWS[key]}).build(Optimizer())

    rows = [{"check": f.name, "ok": f.ok, "detail": f.detail} for f in run_contract(make)]
    return _report(f"engine {name}", rows, ("check", "detail"), as_json)


def built(kind: str, name: str, keys: tuple[str, ...]) -> Any:
    """The plug-in of this name with KEY=VALUE words, as a recipe's table would make it."""
    from pydantic import ValidationError

    from rlvrlab.recipe.parse import parse_overrides, place
    from rlvrlab.recipe.remedies import first_words
    from rlvrlab.recipe.schema import PluginTable, instantiate

    given: dict[str, Any] = {}
    for key, value in parse_overrides(keys).items():
        place(given, key, value)  # a key may be a table: of.type=code
    name_own([name, given])
    known = fields(find(kind, name, Path()))
    needed = [f.name for f in known if f.init and f.default is MISSING and f.default_factory is MISSING]
    missing = [key for key in needed if key not in given]
    if missing:
        raise UserError(f"{kind} {name!r} cannot be checked alone: {', '.join(missing)} has no default; add KEY=VALUE")
    try:
        plugin = instantiate(kind, {"type": name, **given}, Path())
        return plugin.beside(Path()) if isinstance(plugin, PluginTable) else plugin
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "unexpected_keyword_argument":
            raise UnknownName(f"key of {kind} {name!r}:", where, [f.name for f in known if f.init]) from None
        raise UserError(f"{kind} {name!r}: {first_words(error)}{_written(kind, name, given, where, first)}") from None


def _written(kind: str, name: str, given: dict[str, Any], key: str, mistake: Any) -> str:
    """`; write numbers=[2]`, where a value of a wrong type could be written in another way."""
    from rlvrlab.recipe.remedies import TYPES, guesses, on_command_line
    from rlvrlab.recipe.schema import instantiate

    wanted = [TYPES[mistake["type"]]] if mistake["type"] in TYPES else []
    for guess in guesses(key, mistake["input"], wanted) if key in given else ():
        if guess is not None:
            with suppress(ValueError, UserError):
                instantiate(kind, {"type": name, **given, key: guess}, Path())
                return f"; write {on_command_line(key, guess)}"
    return ""


def _report(what: str, rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool) -> int:
    """Print a table of checks; the exit code is 1 when one failed."""
    from rlvrlab.evals.metrics import grouped

    failed = [row for row in rows if not row["ok"]]
    if as_json:
        print_json({"subject": what, "ok": not failed, "checks": rows})
        return 1 if failed else 0
    lines: list[list[object]] = []
    passed = [row for row in rows if row["ok"]]
    if "check" in columns:  # one line per kind that holds, its first answer as the example; `exploit: …` is an exploit
        kinds = grouped(passed, lambda row: row["check"].partition(": ")[0])
        counts = {kind: f"{kind} ×{len(same)}" if len(same) > 1 else kind for kind, same in kinds.items()}
        passed = [{**same[0], "check": counts[kind]} for kind, same in kinds.items()]
    for row in [*failed, *passed]:
        texts = [printable(row[column]) for column in columns]
        mark = Text("✓", style="green") if row["ok"] else Text("✗", style="bold red")
        lines.append([mark, *(shortened(text, LONGEST_CELL) for text in texts)])
    console = Console()
    console.print(table(("", *columns), lines))
    verdict = f"{printable(what)}: {len(rows) - len(failed)} of {len(rows)} checks hold"
    console.print(Text(verdict, "red" if failed else "green"))
    return 1 if failed else 0
