"""The group of verbs, and the program around it that turns errors into one line and an exit code."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from rlvrlab import __version__
from rlvrlab.cli.names import LATEST, RunWord
from rlvrlab.cli.printing import fail, print_error
from rlvrlab.errors import InfrastructureError, LabError, RecipeError, suggestion

LISTED_BELOW = re.compile(r"(?<=[:,])\n\t")
"""How click breaks a list of allowed words into lines."""
VERBS = {
    "recipes": "List the recipes and studies that come along, or copy one.",
    "train": "Run a recipe, or resume a run.",
    "probe": "Ask whether there is signal to train on.",
    "phase0": "Measure a baseline: one file, one command, one folder.",
    "suite": "Examine every model of a folder on a suite of data sets.",
    "study": "Run chains of experiments that choose, explain and resume.",
    "eval": "Evaluate a policy under a named protocol.",
    "compare": "Compare two evaluations on the same problems.",
    "rescore": "Judge stored answers again.",
    "runs": "List the runs of a folder.",
    "show": "Show how a run is doing.",
    "tail": "Follow what a run writes.",
    "export": "Write a recipe as verl, TRL or verifiers want it.",
    "model": "Get models, look at them, export trained ones.",
    "data": "Make, prepare, audit and look at data.",
    "check": "Check a recipe, an environment, a reward or an engine.",
    "judge": "Judge solutions against a problem.",
    "credit": "Show which lines of an answer earned its reward.",
    "interference": "Measure what a step on one skill does to the others.",
    "report": "Write one HTML page to look at.",
    "serve": "Serve the judge, a model or the dashboard.",
    "new": "Write the beginnings of a task, a reward or an environment.",
    "doctor": "Look at this machine: what works, what is missing, what to do.",
    "completion": "Print a shell's completion script.",
}
"""Verb -> one line, as shown by --help; tests/cli keeps them equal to the commands' own."""


class Verbs(click.Group):
    """A group whose commands are the modules of this package, imported when they are asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The verbs in the order of the table, which is the order of work, not the alphabet."""
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import the file of the verb and return its `command`."""
        if name not in VERBS:
            return None
        return importlib.import_module(f"rlvrlab.cli.{name}").command

    def invoke(self, context: click.Context) -> Any:
        """Run the verb; its exit code is ours to give, so a plug-in that leaves the program has failed."""
        try:
            return super().invoke(context)
        except SystemExit as left:
            if isinstance(left.__context__, BrokenPipeError):  # the reader has left, and Rich with it
                raise
            raise InfrastructureError(f"a plug-in or a package ended the program (sys.exit({left.code!r}))") from left

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of verbs without importing any of them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown verb with a suggestion of the nearest one."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"no verb {args[0]!r}{suggestion(args[0], VERBS)}")
        return super().resolve_command(context, args)


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rlvr")
def rlvr() -> None:
    """The laboratory for reinforcement learning with verifiable rewards.

    \b
    rlvr train toy_countdown          the whole loop on a CPU
    rlvr train toy_countdown --plan   what would happen, and why
    rlvr recipes                      what else comes along
    """


def run(interrupted: Callable[[], bool]) -> NoReturn:
    """Run the command; deliberate errors and Ctrl-C become one line on stderr and an exit code.

    `interrupted` knows whether somebody has pressed Ctrl-C.
    """
    stdout = sys.stdout
    for stream in (stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ✓ gets \u2713, not a traceback
    try:
        code = _result_of_verb(interrupted)
        sys.stdout.flush()
        sys.exit(code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        fail("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        sys.exit(2)
    except click.ClickException as error:
        context: click.Context | None = getattr(error, "ctx", None)
        where = f" (see `{context.command_path} --help`)" if context else ""
        message = LISTED_BELOW.sub(" ", error.format_message())
        fail(f"{message.removesuffix('.')}{_value_of(error)}{where}", 2)
    except RecipeError as error:
        for line in error.problems:
            print_error(line)
        sys.exit(error.exit_code)
    except LabError as error:
        fail(str(error), error.exit_code)
    except BrokenPipeError:
        _reader_left()
    except SystemExit as left:
        # Rich noticed it first, or click, which then puts something else in the place of the stream.
        if isinstance(left.__context__, BrokenPipeError) or sys.stdout is not stdout:
            _reader_left()
        raise
    except OSError as error:  # a place that cannot be written, a full disk, a file that went away
        if error.errno is None:
            raise
        place = f"{error.filename}: " if error.filename else ""
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):  # no place at all
            fail(f"{place}{error.strerror}; no file can be there, name another one", 2)
        fail(f"{place}{error.strerror}; choose another place, or free this one", 1)


def _context_of(words: Sequence[str]) -> click.Context:
    """The verb that these words name; where an option lacks its value, click does not say whose it is."""
    context = click.Context(rlvr)
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            break
        context = click.Context(found, parent=context, info_name=word)
    return context


def _value_of(error: click.ClickException) -> str:
    """`; write --resume latest`, for an option without its value."""
    if not isinstance(error, click.BadOptionUsage) or "requires an argument" not in error.message:
        return ""
    context = _context_of(sys.argv[1:])
    option = next((one for one in context.command.get_params(context) if error.option_name in one.opts), None)
    if option is None:
        return ""
    value = option.metavar or option.make_metavar(context)
    if isinstance(option.type, RunWord):
        value = LATEST
    elif isinstance(option.type, click.Choice):
        value = str(option.type.choices[0])
    return f"; write {error.option_name} {value}"


def _result_of_verb(interrupted: Callable[[], bool]) -> int:
    """The verb's exit code; what a package made of an interruption is one all the same."""
    try:
        return rlvr.main(standalone_mode=False) or 0
    except Exception as error:
        if interrupted():
            raise KeyboardInterrupt from error
        raise


def _reader_left() -> NoReturn:
    """Leave without a word: `rlvr show | head` has what it wanted. Python would complain once more when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)
