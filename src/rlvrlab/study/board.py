"""Where a study stands: a pure function of its file, its trials' states and the decisions so far.

Nothing is remembered between two surveys but caches, so a resumed study, a changed study file and a person's override
all go the same way: look, and do what is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, RootModel

from rlvrlab import plain_files
from rlvrlab.errors import LabError, UserError
from rlvrlab.plain_files import parsed
from rlvrlab.record.shapes import refuse_other
from rlvrlab.report.gather.stages import FINAL
from rlvrlab.study.chain import Chain, Trial
from rlvrlab.study.contest import Candidate
from rlvrlab.study.folder import TrialState, read_decisions, read_states
from rlvrlab.study.identity import digest
from rlvrlab.study.load import ON_TEST, StudyFile
from rlvrlab.study.looks import rounds
from rlvrlab.study.measures import Scores, is_cost, pooled, suite_of
from rlvrlab.study.past import Past
from rlvrlab.study.schema import Settings, Stage
from rlvrlab.study.select import Recommendation, choose
from rlvrlab.study.views import EXTENSION, ArmView, StageView, Survey

ANEW = "delete its trial's result.json and run again"


class StoredScores(RootModel[dict[str, Scores]]):
    """A trial's scores of one suite: member -> measure -> problem -> score."""

    model_config = ConfigDict(strict=True)


class Board:
    """Surveys a study: what its stages need, which trials are wanted, which decisions are due."""

    def __init__(
        self, chain: Chain, folder: Path, states: dict[str, TrialState], decisions: list[dict[str, Any]]
    ) -> None:
        self.chain, self.folder, self.states, self.decisions = chain, folder, states, decisions
        self._scores: dict[Path, dict[str, Scores]] = {}
        self._arms: dict[str, list[ArmView]] = {}
        self.past = Past(chain, folder, decisions)

    @classmethod
    def read(cls, file: StudyFile, folder: Path) -> Board:
        """The board of a study folder as it is on disk; nothing is written."""
        return cls(Chain(file), folder, read_states(folder), read_decisions(folder))

    def survey(self) -> Survey:
        """Look at every stage in order, and at confirmations once all of them are decided."""
        survey = Survey([], {}, {}, {})
        for stage in self.chain.order():
            survey.stages.append(self._stage(stage, survey))
        if all(view.status == "decided" for view in survey.stages):
            confirmations = [self._confirmation(view, survey) for view in survey.stages]
            survey.stages += [view for view in confirmations if view is not None]
        if all(view.status == "decided" for view in survey.stages):
            survey.stages += [self._final(view, survey) for view in survey.stages if self._asks_last(view)]
        return survey

    def _stage(self, stage: Stage, survey: Survey) -> StageView:
        suites = {name: self.suite_hash(name) for name in self.chain.file.chooses_on(stage)}
        view = StageView(stage.name, "compare", stage, self.chain.file.needs(stage), suites)
        missing = [name for name in view.needs if name not in survey.choices]
        if missing:
            view.arms = [ArmView(arm.name, arm.own, {}, []) for arm in self.chain.arms(stage)]
            failed = [other.name for other in survey.stages if other.name in missing and other.status == "failed"]
            if failed:
                view.status, view.note = "failed", f'best("{failed[0]}") has no finished trial'
            return view
        try:
            view.inputs = self.chain.inputs(stage, survey.choices)
            view.arms = self._arm_views(stage, survey.choices)
        except LabError as error:
            view.status, view.note = "failed", str(error)
            return view
        for number, one in enumerate(stage.halving):
            if not self._halved(view, number, one.set, survey):
                return view
        for look in range(1, stage.select.extend + 2):
            view.look = look
            for arm in view.live:
                arm.trials = self.chain.trials(stage, arm.name, survey.choices, look=look)
            if not self._asked(view, {arm.name: arm.trials for arm in view.live}, survey):
                view.status = "running"
                break
            self._settle(view, "choice", survey)
            if view.decision is None or view.decision["kind"] != EXTENSION:
                break
            view.decision = None
        return view

    def _arm_views(self, stage: Stage, choices: dict[str, str]) -> list[ArmView]:
        key = digest([stage.name, {name: choices[name] for name in self.chain.file.all_needs(stage)}])
        if key not in self._arms:
            problems = self.chain.check(stage, choices)
            if problems:
                raise UserError("; ".join(problems))
            self._arms[key] = [
                ArmView(arm.name, arm.own, self.chain.settings(stage, arm.name, choices),
                        self.chain.trials(stage, arm.name, choices))
                for arm in self.chain.arms(stage)
            ]  # fmt: skip
        return [ArmView(arm.name, arm.own, arm.settings, arm.trials) for arm in self._arms[key]]

    def _halved(self, view: StageView, number: int, small: Settings, survey: Survey) -> bool:
        """Go through one halving round and drop its losers; False while it is not over."""
        trials = {arm.name: self.chain.trials(view.stage, arm.name, survey.choices, small) for arm in view.live}
        if not self._asked(view, trials, survey):
            view.status = "running"
            return False
        view.evidence = self._evidence(view, f"halving {number + 1}", trials)
        view.decision = self._in_force(view.name, view.evidence)
        if view.decision is None:
            view.due, view.status, view.round = "halving", "running", number
            view.small = trials
            return False
        view.round = number + 1
        for arm in view.live:
            if arm.name not in view.decision["kept"]:
                arm.dropped = f"round {number + 1} of {len(view.stage.halving)}"
        view.decision = None
        return True

    def _settle(self, view: StageView, kind: str, survey: Survey) -> None:
        """All trials are over: take the decision that was made on them, or say that one is due."""
        if not self.candidates(view):
            view.status, view.note = "failed", "no arm has a finished trial"
            return
        view.evidence = self._evidence(view, kind, {arm.name: arm.trials for arm in view.live})
        view.sequence.append(view.evidence)
        view.earlier = self.past.earlier(view)
        view.decision = self._in_force(view.name, view.evidence)
        if view.decision is None:
            view.due = kind
            view.status = "waiting" if kind == "choice" and view.stage.select.human else "running"
            return
        if view.decision["kind"] == EXTENSION:
            return
        view.status = "decided"
        survey.choices[view.name] = view.decision["chosen"]

    def _confirmation(self, view: StageView, survey: Survey) -> StageView | None:
        """Compare the chosen arm with its runner-up once more, under all that was chosen in later stages."""
        later = self.chain.downstream(view.name)
        decision = view.decision
        if not (view.kind == "compare" and view.stage.select.confirm and later and decision and decision["runner_up"]):
            return None
        last = later[-1]
        again = StageView(f"confirm_{view.name}", "confirm", view.stage, [view.name, last.name], view.suites)
        for arm in (decision["chosen"], decision["runner_up"]):
            choices = {**survey.choices, view.name: arm}
            settings = self.chain.settings(last, survey.choices[last.name], choices)
            trials = self.chain.seeded(settings, view.stage.seeds or self.chain.file.study.seeds)
            again.arms.append(ArmView(arm, self.chain.arm(view.stage, arm).own, settings, trials))
        if self._asked(again, {arm.name: arm.trials for arm in again.arms}, survey):
            self._settle(again, "confirmation", survey)
        else:
            again.status = "running"
        return again

    def _asks_last(self, view: StageView) -> bool:
        file = self.chain.file
        asked = view.kind == "compare" and file.asks_last(view.stage) != "none"
        return asked and bool(file.examined_last(view.stage))

    def _final(self, view: StageView, survey: Survey) -> StageView:
        """Test problems, asked once everything is decided; nothing is chosen from the answers."""
        file = self.chain.file
        suites = {name: self.suite_hash(name) for name in file.examined_last(view.stage)}
        chosen = survey.choices[view.name]
        arms = view.live if file.asks_last(view.stage) == "arms" else [a for a in view.live if a.name == chosen]
        last = StageView(f"{FINAL}_{view.name}", FINAL, view.stage, [view.name], suites)
        last.arms = [ArmView(a.name, a.own, a.settings, [t for t in a.trials if self._finished(t, view)]) for a in arms]
        over = [self._asked(last, {arm.name: arm.trials}, survey) for arm in last.arms]
        last.status = "decided" if all(over) else "running"
        if last.status == "decided" and not any(self._finished(t, last) for arm in last.arms for t in arm.trials):
            last.status, last.note = "failed", "no trial could be examined on test problems; see its log"
        last.chosen = chosen
        return last

    def _asked(self, view: StageView, trials: dict[str, list[Trial]], survey: Survey) -> bool:
        """Add these to the wanted trials, seed by seed, so that a stage soon has all arms at one seed; are all over?"""
        for column in zip(*trials.values(), strict=True):
            for arm, trial in zip(trials, column, strict=True):
                _, suites = survey.wanted.setdefault(trial.id, (trial, {}))
                suites |= view.suites
                owners = survey.owners.setdefault(trial.id, [])
                if (view.name, arm) not in owners:
                    owners.append((view.name, arm))
        return all(self.over(trial.id, view.suites) for own in trials.values() for trial in own)

    def over(self, trial: str, suites: dict[str, str]) -> bool:
        """Finished with these suites, or given up."""
        state = self.states.get(trial)
        return state is not None and (state.given_up or state.covers(suites))

    def _evidence(self, view: StageView, kind: str, trials: dict[str, list[Trial]]) -> str:
        done = {arm: [t.id for t in own if self._finished(t, view)] for arm, own in trials.items()}
        rule = view.stage.select
        # A key that is at its default changes no decision; folders from before it was there keep theirs.
        told = rule.model_dump(exclude=None if rule.paired else {"paired"})
        return digest([kind, told, view.suites, done])[:16]

    def _in_force(self, stage: str, evidence: str) -> dict[str, Any] | None:
        own = [one for one in self.decisions if one["stage"] == stage and one["evidence"] == evidence]
        return own[-1] if own else None

    def _finished(self, trial: Trial, view: StageView) -> bool:
        state = self.states.get(trial.id)
        return state is not None and state.covers(view.suites)

    def metrics_of(self, view: StageView) -> dict[str, float]:
        """The rule's metrics with their weights; by default every suite's share of accepted answers alike."""
        usual = {f"{name}.accepted": 1.0 for name in self.chain.file.chooses_on(view.stage)}
        named = dict(view.stage.select.metrics) or usual
        if view.kind != FINAL:
            return named
        twins = {m.replace(suite_of(m), f"{suite_of(m)}{ON_TEST}", 1): w for m, w in named.items() if not is_cost(m)}
        own = {f"{name}.accepted": 1.0 for name in view.suites if not name.endswith(ON_TEST)}
        return {m: w for m, w in twins.items() if suite_of(m) in view.suites} | own

    def candidates(self, view: StageView, trials: dict[str, list[Trial]] | None = None) -> list[Candidate]:
        """Arms with at least one finished trial."""
        candidates = []
        for arm in view.live:
            own = [t for t in (trials or {}).get(arm.name, arm.trials) if self._finished(t, view)]
            if own:
                seconds = [float((self.states[t.id].result or {}).get("seconds", 0.0)) for t in own]
                costs = {"tokens": float(own[0].budget.tokens), "answers": float(own[0].budget.answers),
                         "seconds": sum(seconds) / len(seconds)}  # fmt: skip
                scores = {m: [self.scores(t.id, m) for t in own] for m in self.metrics_of(view) if not is_cost(m)}
                ids, seeds = tuple(t.id for t in own), tuple(t.seed for t in own)
                candidates.append(Candidate(arm.name, ids, scores, costs, seeds))
        return candidates

    def scores(self, trial: str, metric: str) -> dict[str, float]:
        """Problem -> score of one finished trial, on the suite of the metric."""
        result = self.states[trial].result
        assert result is not None
        path = self.folder / "trials" / trial / result["evaluated"][suite_of(metric)]["scores"]
        if path not in self._scores:
            try:
                found = parsed(plain_files.read_text(path))
            except (OSError, ValueError) as error:
                raise UserError(f"{path}: cannot be read ({error}); {ANEW}") from None
            refuse_other(StoredScores, found, str(path), ANEW)
            self._scores[path] = found
        return pooled(self._scores[path], metric)

    def recommendation(self, view: StageView, trials: dict[str, list[Trial]] | None = None) -> Recommendation:
        """What the stage's rule makes of its finished trials, or of those given."""
        undeclared = rounds(view.earlier)
        candidates = self.candidates(view, trials)
        return choose(view.stage.select, self.metrics_of(view), candidates, len(view.arms), undeclared)

    def suite_hash(self, name: str) -> str:
        """Changes with the suite's keys: another suite under the same name is another evaluation."""
        return digest(self.chain.file.suite(name).model_dump())[:16]
