"""Options that several verbs have, spelled and explained once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from rlvrlab.cli.names import RECIPE_KEY, RUN_AT, RUNS, RunWord
from rlvrlab.types import KEY_ENV, Role

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

DOTTED = re.compile(r"--[A-Za-z_]\w*(\.\w+)+(=.*)?", re.DOTALL)
"""A key of a recipe spelled as an option."""


class FreeWords(click.Command):
    """A verb that takes keys of a recipe or an environment: `rollout.n=8` and `--rollout.n 8`.

    A word such as `--foo` is no key and is refused like any unknown option; `--seed 3` is one of the recipe's own.
    """

    ignore_unknown_options = True
    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse options that there are not, before what is left over is read as keys."""
        own = {name for option in self.get_params(ctx) for name in (*option.opts, *option.secondary_opts)}
        words = args[: args.index("--")] if "--" in args else args
        if asked := [word for word in words if word in ctx.help_option_names]:
            return super().parse_args(ctx, asked[:1])  # also where it stands in the place of an option's value
        is_value = False
        for place, word in enumerate(words):
            key = DOTTED.fullmatch(word)
            if not is_value and re.match(r"-[A-Za-z]|--", word) and not key:
                self._check(ctx, words, place, own)
            is_value = bool(key) and "=" not in word
        return super().parse_args(ctx, args)

    def _check(self, ctx: click.Context, words: Sequence[str], place: int, own: set[str]) -> None:
        name = words[place].partition("=")[0]
        short = not name.startswith("--")
        if name in own or (short and name[:2] in own):
            return
        from rlvrlab.recipe.schema import core_keys

        if name.removeprefix("--") in core_keys():
            return
        long = [option.removeprefix("--") for option in own if option.startswith("--")]
        near = get_close_matches(name.removeprefix("--"), long, n=1)
        hint = f"did you mean '--{near[0]}'?" if near else "keys of a recipe or environment are written KEY=VALUE"
        raise click.UsageError(f"no option {name!r}; {_as_keys(words, place) or hint}", ctx)


def _as_keys(words: Sequence[str], place: int) -> str:
    """How what was written as an option is written as a key of the recipe; empty where the recipe has no such key."""
    from rlvrlab.cli.recipe_keys import keys_for
    from rlvrlab.recipe.meant import either, keys_meant

    name, _, value = words[place].partition("=")
    after = words[place + 1] if place + 1 < len(words) else ""
    value = value or (after if after and "=" not in after and not after.startswith("--") else "VALUE")
    recipe = next((word for word in words[:place] if "=" not in word and not word.startswith("-")), None)
    found = keys_meant(name.removeprefix("--"), keys_for(recipe)) if name.startswith("--") else []
    return f"write {either(f'{key}={value}' for key in found)}" if found else ""


def together(*options: Decorator) -> Decorator:
    """One decorator for several options, which --help lists in this order."""

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def _accepted(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        from rlvrlab.own_code import accepting

        ctx.with_resource(accepting())


RUN = together(
    click.argument("run", default="", type=RunWord()),
    click.option("--folder", default=str(RUNS), show_default=True, type=click.Path(path_type=Path), help="Of runs."),
)
"""A run by its folder or a part of its name; see `names.run_folder`."""
ACCEPT_CODE = click.option("--accept-code", is_flag=True, expose_value=False, callback=_accepted,
                           help="Run Python files that the folder names and you have never run.")  # fmt: skip
"""For verbs that take plug-ins of a run folder; see `own_code`."""
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
SUBJECT = together(
    click.argument("what", required=False, metavar="[RECIPE|ENV]"),
    click.argument("words", nargs=-1, type=RECIPE_KEY, metavar="[KEY=VALUE]…"),
)
"""The recipe or environment that asks, with keys set for it; see `examined.subject_of`."""
SERVERS = together(
    click.option("--server", "servers", multiple=True, metavar="URL", help="OpenAI-compatible; several share work."),
    click.option("--model", help="The model the servers must serve; else the only one they list."),
    click.option("--key-env", default=KEY_ENV, show_default=True, metavar="NAME", help="Variable with their key."),
    click.option("--completions", is_flag=True, help="Continue plain text, for models without a chat template."),
    click.option("--concurrency", default=64, show_default=True, type=click.IntRange(1), help="Requests at once."),
    click.option("--timeout", default=600.0, show_default=True, type=click.FloatRange(0, min_open=True),
                 help="Seconds for one request."),
)  # fmt: skip
"""Served models, and how they are asked; see `examined.served`."""
DEADLINE = click.option("--deadline", default=3600.0, show_default=True, type=click.FloatRange(0), metavar="SECONDS",
                        help="Give up after so long without a judged answer; 0 waits for ever.")  # fmt: skip
"""How long an examination waits; see `waiting.patient`."""


def examination(*, roles: Sequence[Role], role: Role, logprobs: int) -> Decorator:
    """What every examination of a policy takes: the subject, who answers and how, the problems' role, the seed.

    `role` and `logprobs` are defaults; see `examined.subject_of` and `examined.answerer_of`.
    """
    return together(
        SUBJECT,
        click.option("--run", type=RUN_AT, metavar="RUN[@STEP]",
                     help="A run's policy: @last, @best, @20; @base before training."),
        ACCEPT_CODE,
        click.option("--engine", metavar="NAME", help="A fresh engine; its keys as engine.KEY=VALUE."),
        SERVERS,
        click.option("--system-prompt", default="", help="A system message before every prompt (chat only)."),
        click.option("--logprobs", default=logprobs, show_default=True, type=click.IntRange(0), metavar="K",
                     help="Ask servers for the top K log-probabilities, for the entropy."),
        click.option("--max-tokens", type=click.IntRange(1), help="Longest answer [the recipe's, else 2048]."),
        click.option("--role", type=click.Choice(roles), default=role, show_default=True),
        click.option("--seed", default=0, show_default=True, help="Keys the sampling."),
        DEADLINE,
    )  # fmt: skip
