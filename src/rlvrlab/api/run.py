"""Train from Python, and everything that can be done with a run afterwards."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from rlvrlab.api.evaluation import Evaluation, Folder, evaluate
from rlvrlab.api.plugins import give_again
from rlvrlab.api.recipes import Overrides, RecipeLike, as_words, refuse_unnamed_env, with_functions
from rlvrlab.api.short_errors import short_errors
from rlvrlab.api.shown import frame, html_table
from rlvrlab.api.stopped import pass_on
from rlvrlab.cli.model_export import export_model
from rlvrlab.cli.names import run_folder
from rlvrlab.cli.progress import Progress
from rlvrlab.errors import UserError, writing_to
from rlvrlab.evals.cards import better_before, gain_lines, gains, read_cards
from rlvrlab.notes import counting, noting
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.explain import unusual
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.record.evaluation import evaluations_of
from rlvrlab.record.files import read_lines, write_atomically
from rlvrlab.record.headline import ACCEPTED, accuracy_words, began, highest, summarise, tested
from rlvrlab.record.run import read_config, read_events, read_info, read_metrics, rollout_files
from rlvrlab.record.summary import standing_warnings
from rlvrlab.registry import PYTHON, name_own
from rlvrlab.report.gather import gather
from rlvrlab.report.page import page
from rlvrlab.report.page_file import usual_page
from rlvrlab.report.status import held_locks, state_of
from rlvrlab.scale.session import accept_code as take_code
from rlvrlab.scale.session import extend, on_verl, resume, start
from rlvrlab.train.session import resolved_of


@short_errors
def train(
    recipe: RecipeLike,
    *,
    reward: Any = None,
    env: Any = None,
    data: Any = None,
    overrides: Overrides = (),
    progress: bool = True,
) -> Run:
    """Train a recipe (file, TOML text, dict or loaded) to its end and return the run.

    `reward` is a function (problem, completion, verdict) -> number or dict of named parts. `env` comes from
    `rlvrlab.environment`. `data` are the problems for the environment: list of dicts, data frame or data file.
    Ctrl-C and SIGTERM end training in good order with a checkpoint, say how to go on, and are then raised here as
    KeyboardInterrupt and SystemExit; `Run(folder).resume()` goes on exactly there.
    """
    resolved = refuse_unnamed_env(with_functions(recipe, reward, env, data, overrides))
    if on_verl(resolved):
        for kind in PLUGIN_TABLES:
            table = getattr(resolved.recipe, kind)
            if table and table["type"].startswith(PYTHON):
                raise UserError(f"{kind}: verl's workers cannot see a function of this process; put it into a file")
    script = getattr(sys.modules["__main__"], "__file__", None)
    said = ["python", *sys.argv] if script else ["rlvrlab.train(…)", "#", "in a notebook or shell"]
    with Progress(resolved, as_json=not progress) as shown, noting(shown.tell), counting(shown.count):
        for words in unusual(resolved):
            shown.tell("warning", words)
        ended = start(resolved, shown.observe, said)
    run = Run(ended.folder)
    run._warn(progress)
    pass_on(ended)
    return run


class Run:
    """A run folder: what was trained, how it went, and what can be done with it."""

    @short_errors
    def __init__(self, folder: Folder, *, reward: Any = None, env: Any = None, accept_code: bool = False) -> None:
        """Open a run by its folder, or below experiments/ by its name, a part of that, or "latest".

        `reward` and `env` give back functions that it was trained with and that are in no file. `accept_code` lets the
        Python files run that a folder of somebody else names.
        """
        self.folder = run_folder(os.fspath(folder))
        config = read_config(self.folder)
        if accept_code:
            name_own(config.get("recipe"), Path(str(config.get("folder", "."))), Path())
        give_again(self.folder, reward, env)

    @property
    def recipe(self) -> Resolved:
        """The recipe exactly as trained."""
        return resolved_of(self.folder)

    @property
    def status(self) -> str:
        """running, finished, interrupted, preempted, failed, killed or stale."""
        return state_of(self.folder, read_info(self.folder), held_locks())

    @property
    def result(self) -> dict[str, Any]:
        """Per phase: accepted@1 on dev problems before, best and last, with 95 % intervals; the last has `test` too.

        `test` is what the run is known by: accuracy, low, high, problems and step. `whole` is None, or how many test
        problems there are where only a part was asked; `final` is None, or the final step where `step` is an earlier
        one. It is absent before the first test. `cards()` has the test result of every phase.
        """
        phases, test = summarise(self.folder), tested(self.folder)
        if phases and test:
            list(phases.values())[-1]["test"] = test._asdict()
        return phases

    @short_errors
    def cards(self, as_frame: bool = False) -> Any:
        """What the policy could do on the test problems before training and after each phase; needs eval.test_size.

        A dict per card, or a pandas DataFrame: phase (`baseline` first), step, accuracy, low, high, problems, and every
        other number as `metrics`. `control` marks a control arm, from which no later phase started.
        """
        rows = []
        for card in read_cards(self.folder):
            numbers = {"accuracy": "accepted_at_1", "low": "accepted_at_1_low", "high": "accepted_at_1_high"}
            told = {name: card.metrics.get(key) for name, key in (numbers | {"problems": "problems"}).items()}
            rows.append(
                {"phase": card.phase, "step": card.step, **told, "control": card.control, "metrics": dict(card.metrics)}
            )
        return frame(rows) if as_frame else rows

    @property
    def gains(self) -> list[str]:
        """What each phase added, with its interval and what follows; and whether an earlier checkpoint was better."""
        return [line for line in (*gain_lines(gains(self.folder)), better_before(self.folder)) if line]

    @property
    def warnings(self) -> list[str]:
        """What looked unwell while it trained and has not recovered."""
        return [event["text"] for event in standing_warnings(read_events(self.folder))]

    def metrics(self, as_frame: bool = False) -> Any:
        """One row per step, as dicts or as a pandas DataFrame."""
        rows = read_metrics(self.folder)
        return frame(rows) if as_frame else rows

    @short_errors
    def rollouts(self, step: int | None = None, as_frame: bool = False) -> Any:
        """Every judged answer of a step, or of all steps, as dicts or as a pandas DataFrame."""
        files = rollout_files(self.folder)
        if step is not None and step not in files:
            firsts, lasts = ([one for one in files if one + way not in files] for way in (-1, 1))
            there = ", ".join(f"{first} to {last}" for first, last in zip(firsts, lasts, strict=True)) or "none"
            why = "phases such as sft draw no answers in their steps, and record.rollouts=none stores none"
            raise UserError(f"{self.folder}: no rollouts of step {step}; there are {there} ({why})")
        wanted = list(files) if step is None else [step]
        rows = [{"step": number, **row} for number in wanted for row in read_lines(files[number], answers=True)]
        return frame(rows) if as_frame else rows

    def evaluate(self, checkpoint: str = "last", **options: Any) -> Evaluation:
        """`rlvrlab.evaluate` of this run at a checkpoint: last, best, base or a step."""
        return evaluate(f"{self.folder}@{checkpoint}", **options)

    @property
    def evaluations(self) -> list[Evaluation]:
        """Finished evaluations of this run, the newest last; those that training itself makes are `cards()`."""
        return [Evaluation(folder) for folder in evaluations_of(self.folder)]

    @short_errors
    def resume(
        self,
        *,
        reward: Any = None,
        env: Any = None,
        data: Any = None,
        overrides: Overrides = (),
        accept_code: bool = False,
        progress: bool = True,
    ) -> Run:
        """Go on from the newest checkpoint; functions that are in no file are needed again, and must be the same.

        `overrides` make the run longer ("grpo.steps=+20"), or change keys of eval, checkpoint and stop. Signals are
        passed on as by `train`.

        `data` goes with `env` where they were given together to `train`. `accept_code` goes on with functions that have
        changed, mended after a failure, say; the change is recorded.
        """
        give_again(self.folder, reward, env, data, accept_code=accept_code)
        if accept_code:
            take_code(self.folder)
        if words := as_words(overrides):
            extend(self.folder, words)
        shows = Progress(resolved_of(self.folder), as_json=not progress)
        with shows as shown, noting(shown.tell), counting(shown.count):
            ended = resume(self.folder, shown.observe)
        self._warn(progress)
        pass_on(ended)
        return self

    @short_errors
    def export(self, folder: Folder, checkpoint: str = "best", problems: int = 4) -> Path:
        """Write the model as a new Hugging Face folder with a card, proved to load; needs an engine that has one."""
        return Path(export_model(f"{self.folder}@{checkpoint}", Path(folder), problems)["folder"])

    @short_errors
    def report(self, output: Folder | None = None) -> Path:
        """Write one HTML page about the run and return its path."""
        target = usual_page(self.folder) if output is None else Path(output)
        document = gather(self.folder)
        document["base"] = Path(os.path.relpath(self.folder.resolve(), target.resolve().parent)).as_posix()
        with writing_to(target, "name another file"):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, page(document))
        return target

    def __fspath__(self) -> str:
        return os.fspath(self.folder)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.status})"

    def _repr_html_(self) -> str:
        rows = [
            (name, began(entry["before"]), highest(entry["best"]), entry["best"]["step"], accuracy_words(entry["last"]))
            for name, entry in self.result.items()
        ]
        head = ("phase", "before", "best", "step", "last")
        notes = [f"{ACCEPTED}, with 95 % intervals.", *self.gains, *self.warnings]
        return html_table(f"{self.folder.name}: {self.status}", head, rows, notes)

    def _warn(self, wanted: bool) -> None:
        for text in self.gains if wanted else ():
            print(text, file=sys.stderr)
        for text in self.warnings if wanted else ():
            print(f"warning: {text}", file=sys.stderr)
