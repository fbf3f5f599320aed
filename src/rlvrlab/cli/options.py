"""Options that several verbs have, spelled and explained once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from rlvrlab.types import Role

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

KEY_ENV = "RLVR_API_KEY"
FREE_WORDS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""context_settings of verbs that take keys of a recipe or an environment: `rollout.n=8` and `--rollout.n 8`."""


def together(*options: Decorator) -> Decorator:
    """One decorator for several options, which --help lists in this order."""

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


RUN = together(
    click.argument("run", default=""),
    click.option(
        "--folder", default="experiments", show_default=True, type=click.Path(path_type=Path), help="Of runs."
    ),
)
"""A run by its folder or a part of its name; see `report.runs.locate`."""
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
SUBJECT = together(
    click.argument("what", required=False, metavar="[RECIPE|ENV]"),
    click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[KEY=VALUE]…"),
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


def examination(*, roles: Sequence[Role], role: Role, logprobs: int) -> Decorator:
    """What every examination of a policy takes: the subject, who answers and how, the problems' role, the seed.

    `role` and `logprobs` are defaults; see `examined.subject_of` and `examined.answerer_of`.
    """
    return together(
        SUBJECT,
        click.option("--run", metavar="DIR[@STEP]", help="A run's policy: @last, @best, @20; @base before training."),
        click.option("--engine", metavar="NAME", help="A fresh engine; its keys as engine.KEY=VALUE."),
        SERVERS,
        click.option("--logprobs", default=logprobs, show_default=True, type=click.IntRange(0), metavar="K",
                     help="Ask servers for the top K log-probabilities, for the entropy."),
        click.option("--max-tokens", type=click.IntRange(1), help="Longest answer [the recipe's, else 2048]."),
        click.option("--role", type=click.Choice(roles), default=role, show_default=True),
        click.option("--seed", default=0, show_default=True, help="Keys the sampling."),
    )  # fmt: skip
