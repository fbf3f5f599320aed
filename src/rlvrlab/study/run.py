"""Run a study: survey, decide what is due, launch what is wanted, wait; until nothing is left to do.

kill -9 at any moment loses nothing: a finished trial has its result.json, an unfinished one its run folder, a decision
its line. Starting again surveys the same folder and goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlvrlab.errors import LabError, RecipeError, StorageError, remedied
from rlvrlab.recipe.parse import flatten
from rlvrlab.record.files import utc_now
from rlvrlab.study import decide
from rlvrlab.study.board import Board
from rlvrlab.study.chain import Chain, Trial
from rlvrlab.study.document import write_document
from rlvrlab.study.folder import StudyFolder, TrialState, read_decisions, read_states
from rlvrlab.study.launchers import Job, Launcher, Outcome
from rlvrlab.study.load import StudyFile
from rlvrlab.study.page import try_page
from rlvrlab.study.settings import rung_settings
from rlvrlab.study.views import Survey
from rlvrlab.study.worker import JOB, read_result
from rlvrlab.train.stopping import Interrupts

WAIT_S = 0.5
DOCUMENT_EVERY_S = 2.0
"""Least time between two documents; a large one takes a good part of a second of what trials could use."""
DOCUMENT_ANYWAY_S = 60.0
"""Longest time between two documents while nothing begins, ends or is decided."""
Observer = Callable[[str, Survey, dict[str, TrialState]], None]
"""Words about what just happened (empty for a mere tick), and where everything stands."""


@dataclass(frozen=True)
class Ended:
    """How a session of a study ended."""

    folder: Path
    status: str
    """finished, waiting (for a person), failed, interrupted."""
    exit_code: int
    survey: Survey


class Runner:
    """One session of a study: from `rlvr study run` until nothing is left to do, or it is interrupted."""

    def __init__(self, file: StudyFile, folder: Path, launcher: Launcher, observe: Observer) -> None:
        self.chain, self.launcher, self._observe = Chain(file), launcher, observe
        self.folder = StudyFolder(folder, file)
        self.states = read_states(self.folder.path)
        self.decisions = read_decisions(self.folder.path)
        self.board = Board(self.chain, self.folder.path, self.states, self.decisions)
        self._running: dict[str, dict[str, str]] = {}
        """By trial the suites that its attempt was asked for, with their hashes."""
        self._written, self._changed = 0.0, True

    def retry(self) -> int:
        """Give trials that failed another chance; returns how many."""
        failed = [name for name, state in self.states.items() if state.given_up]
        for name in failed:
            self.folder.event("retry", trial=name)
            self.states[name].status, self.states[name].deaths = "waiting", 0
        return len(failed)

    @remedied("free space; the same command then goes on")
    def run(self, *, anyway: bool = False) -> Ended:
        """Until it is finished, waits for a person, or is interrupted; `anyway` lets stages choose on test problems."""
        on_test = self.chain.file.chosen_on_test()
        problems = self.chain.check_first() + ([] if anyway else [f"{one}, or --anyway" for one in on_test])
        if problems:
            raise RecipeError(self.chain.file.placed(problems))
        self.folder.event("session", launcher=self.launcher.name, **({"anyway": on_test} if on_test else {}))
        with Interrupts() as interrupts:
            try:
                while not interrupts.received:
                    survey = self._surveyed()
                    self._launch(survey)
                    if not self._running:
                        break
                    for outcome in self.launcher.wait(WAIT_S):
                        self._take(outcome)
                    self._observe("", survey, self.states)
                    self._document(survey)
            finally:
                self.launcher.close()  # asks the running ones to stop; what they have done is gone on with next time
                for name in list(self._running):
                    result = read_result(self.folder.path / "trials" / name)
                    self.states[name].result = result or self.states[name].result
                    then = "finished" if result else "waiting"
                    self._take_end(name, "stopped", "with the study; goes on where it was", then)
                self._running.clear()
        survey = self.board.survey()
        status = "interrupted" if interrupts.received else status_of(survey, going=False)
        self._write_document(survey, status, whole=True)
        if why := try_page(self.folder.path):
            self._observe(why, survey, self.states)
        code = interrupts.exit_code or {"finished": 0, "waiting": 3}.get(status, 1)
        return Ended(self.folder.path, status, code, survey)

    def close(self) -> None:
        """Let another process open the study folder."""
        self.folder.close()

    def _surveyed(self) -> Survey:
        """Decide whatever is due; each decision may open the next stage."""
        while True:
            survey = self.board.survey()
            due = [view for view in survey.stages if view.due and view.status != "waiting"]
            if not due:
                return survey
            for view in due:
                halves = view.due == "halving"
                made = decide.halving(self.board, view) if halves else decide.choice(self.board, view, view.due or "")
                decision = self.folder.decide(made)
                self.decisions.append(decision)
                self._changed = True
                self._observe(f"{view.name}: {decision['words']}", survey, self.states)

    def _launch(self, survey: Survey) -> None:
        for name, (trial, suites) in survey.wanted.items():
            if not self.launcher.free:
                return
            state = self.states.setdefault(name, TrialState())
            if name in self._running or self.board.over(name, suites):
                continue
            folder = self.folder.trial(name)
            try:
                self._write_job(folder / JOB, trial, suites, state.rung)
            except LabError as error:
                self._take_end(name, "failed", str(error), "failed")
                continue
            row = self.folder.event("started", trial=name, rung=state.rung)
            state.begin(row["time"], state.rung)
            state.status = "running"
            self._running[name] = suites
            self._changed = True
            self._observe(f"{name}: {self._begins(name, trial, suites, survey)}", survey, self.states)
            self.launcher.start(Job(name, folder))

    def _begins(self, name: str, trial: Trial, suites: dict[str, str], survey: Survey) -> str:
        """What an attempt is about: a trial that is trained is only examined, for the stage that asked last."""
        state, file = self.states[name], self.chain.file
        stage, arm = survey.owners[name][-1 if state.result else 0]
        told = f"({stage}, {arm}, seed {trial.seed})"
        if state.result is None:
            return f"starts {told}"
        on_test = all(file.suite(one).role == "test" for one, value in suites.items() if not state.covers({one: value}))
        return f"evaluates on {'test' if on_test else 'more'} problems {told}"

    def _write_job(self, path: Path, trial: Trial, suites: dict[str, str], rung: int) -> None:
        """Not synced to disk: the job is written anew before every attempt."""
        file, study = self.chain.file, self.chain.file.study
        more = {}
        if rung:
            more = rung_settings(study.ladder, rung, dict(flatten(self.chain.resolved(trial.settings).plain())))
        home = str(file.path.parent.resolve())
        job = {
            "name": study.name, "recipe": str(file.recipe.resolve()), "settings": trial.settings, "seed": trial.seed,
            "more": more, "rung": rung, "identity": trial.identity, "code": study.code, "command": [],
            "suites": {name: {"hash": value, "folder": home, "suite": file.suite(name).model_dump()}
                       for name, value in suites.items()},
        }  # fmt: skip
        try:
            path.write_text(json.dumps(job, ensure_ascii=False, indent=1), encoding="utf-8")
        except OSError as error:
            raise StorageError(path, error) from error

    def _take(self, outcome: Outcome) -> None:
        """Where an attempt's end leads: done, one rung up, once more, or given up."""
        name, state, study = outcome.trial, self.states[outcome.trial], self.chain.file.study
        asked = self._running.pop(name, {})
        if outcome.status == "done":
            state.result = read_result(self.folder.path / "trials" / name)
            lacking = [one for one, value in asked.items() if not state.covers({one: value})]
            if state.result is not None and not lacking:
                return self._take_end(name, "finished", "", "finished")
            what = f"a result.json without {', '.join(lacking)}" if state.result is not None else "no result.json"
            outcome = Outcome(name, "failed", f"it ended well but left {what}")
        if outcome.status in ("killed", "stopped"):
            state.deaths += 1
            if state.deaths <= study.resources.retries:
                return self._take_end(name, outcome.status, outcome.why, "waiting")
        if outcome.status in ("oom", "killed") and state.rung < len(study.ladder):
            state.rung, state.deaths = state.rung + 1, 0
            return self._take_end(name, outcome.status, outcome.why, "waiting")
        given_up = "timed_out" if outcome.status == "timed_out" else "failed"
        return self._take_end(name, outcome.status, outcome.why, given_up)

    def _take_end(self, name: str, status: str, why: str, then: str) -> None:
        state = self.states[name]
        self.folder.event("ended", trial=name, status=status, why=why, now=then, rung=state.rung, deaths=state.deaths)
        state.status = then
        self._changed = True
        if state.attempts:
            state.attempts[-1] |= {"ended": utc_now(), "status": status, "why": why or None}
        if status != "finished":
            again = "; tried again" if then == "waiting" and status != "stopped" else ""
            self._observe(f"{name}: {status}: {why}{again}", Survey([], {}, {}, {}), self.states)

    def _document(self, survey: Survey) -> None:
        """Now and then while it runs."""
        waited = time.monotonic() - self._written
        if waited > (DOCUMENT_EVERY_S if self._changed else DOCUMENT_ANYWAY_S):
            self._write_document(survey, status_of(survey, going=True), whole=False)

    def _write_document(self, survey: Survey, status: str, whole: bool) -> None:
        write_document(self.board, survey, status, self.launcher.name, whole=whole)
        self._written, self._changed = time.monotonic(), False


def status_of(survey: Survey, going: bool) -> str:
    """The status of the whole study; `going` tells whether a process works on it."""
    if going:
        return "running"
    statuses = {view.status for view in survey.stages}
    if "failed" in statuses:
        return "failed"
    if "waiting" in statuses:
        return "waiting"
    return "finished" if statuses == {"decided"} else "interrupted"
