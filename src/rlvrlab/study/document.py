"""study.json, REPORT.md and DECISIONS.md: everything a reader needs, each number with the run folder it came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import rlvrlab
from rlvrlab.evals.statistics import estimate
from rlvrlab.record.facts import code_state
from rlvrlab.record.files import read_lines, utc_now, write_atomically, write_json
from rlvrlab.record.final import read_looks
from rlvrlab.report.gather.intervals import interval
from rlvrlab.report.gather.stages import FINAL
from rlvrlab.report.reading import Folder
from rlvrlab.report.story.part import as_csv
from rlvrlab.skills.metrics import limits
from rlvrlab.study.board import Board
from rlvrlab.study.caveats import caveats
from rlvrlab.study.contest import Contest
from rlvrlab.study.folder import DOCUMENT, EVENTS, SCHEMA, TrialState
from rlvrlab.study.identity import source_hash
from rlvrlab.study.measures import describe, is_cost, suite_of
from rlvrlab.study.report import RETENTION, decisions_page, report_page, retention_rows
from rlvrlab.study.views import ArmView, StageView, Survey


def write_document(board: Board, survey: Survey, status: str, launcher: str, *, whole: bool = True) -> dict[str, Any]:
    """Make the document and, at the end of a session, the two pages."""
    made = document(board, survey, status, launcher)
    write_json(board.folder / DOCUMENT, made)
    if whole:
        write_atomically(board.folder / "REPORT.md", report_page(made))
        write_atomically(board.folder / "DECISIONS.md", decisions_page(made))
        if rows := retention_rows(made):
            write_atomically(board.folder / "retention.csv", as_csv(RETENTION, rows))
    return made


def document(board: Board, survey: Survey, status: str, launcher: str) -> dict[str, Any]:
    """Plain data; the shape is written down in docs/studies.md."""
    study = board.chain.file.study
    events = read_lines(board.folder / EVENTS)
    metrics = dict.fromkeys(m for view in survey.stages for m in shown_metrics(board, view))
    given_up = {name: state for name in survey.wanted if (state := board.states.get(name)) and state.given_up}
    return {
        "schema": SCHEMA,
        "kind": "study",
        "name": study.name,
        "question": study.question,
        "base": study.recipe,
        "launcher": launcher,
        "status": status,
        "started": events[0]["time"] if events else None,
        "updated": utc_now(),
        "seeds": list(study.seeds),
        "seed_spread": study.seed_spread,
        "code": {"version": rlvrlab.__version__, "source": source_hash()[:16], "commit": code_state().get("commit")},
        "metrics": {metric: describe(metric) for metric in metrics},
        "stages": [_stage(board, view, survey) for view in survey.stages],
        "trials": {name: _trial(board, name, survey) for name in survey.wanted},
        "decisions": board.decisions,
        "test_looks": test_looks(board, survey),
        "caveats": caveats(board, survey),
        "failures": [
            {"trial": name, "status": state.status, "why": state.why, "log": f"trials/{name}/log.txt"}
            for name, state in given_up.items()
        ],
    }


def test_looks(board: Board, survey: Survey) -> list[dict[str, Any]]:
    """Every look at test problems with a policy of this study, from the looks that its runs have counted."""
    rows: list[dict[str, Any]] = []
    home = f"{board.folder.resolve()}/"
    for name, (trial, _) in survey.wanted.items():
        result = (board.states.get(name) or TrialState()).result
        if result:
            run = Folder(board.folder / "trials" / name).inside(result["run"])
            looks = read_looks(run) if run else []
            own = {"trial": name, "seed": trial.seed}
            rows += [{**own, **one, "where": one["where"].removeprefix(home)} for one in looks]
    return rows


def shown_metrics(board: Board, view: StageView) -> list[str]:
    """Those of the rule first, then what every suite says."""
    usual = [f"{name}.accepted" for name in view.suites]
    several = {name: board.chain.file.suite(name).n for name in view.suites}
    usual += [f"{name}.pass@{n}" for name, n in several.items() if n > 1]
    return list(dict.fromkeys([*board.metrics_of(view), *usual]))


def _stage(board: Board, view: StageView, survey: Survey) -> dict[str, Any]:
    stage = view.stage
    reused = [
        {"trial": trial.id, "stage": survey.owners[trial.id][0][0], "arm": survey.owners[trial.id][0][1]}
        for arm in view.arms
        for trial in arm.trials
        if trial.id in survey.owners and survey.owners[trial.id][0][0] != view.name
    ]
    return {
        "name": view.name,
        "question": "" if view.kind == FINAL else stage.question,  # it measures what that question chose
        "kind": view.kind,
        "needs": view.needs,
        "suites": list(view.suites),
        "status": view.status,
        "note": view.note,
        "base": stage.base,
        "fixed": stage.fixed,
        "inputs": {k: {"expression": text, "value": view.inputs.get(k)} for k, text in stage.inputs.items()},
        "factors": stage.factors,
        "arms": [_arm(board, view, arm) for arm in view.arms],
        "reused": reused,
        "decision": view.decision["id"] if view.decision else None,
        "comparisons": on_test(board, view),
    }


def on_test(board: Board, view: StageView) -> list[dict[str, Any]]:
    """The winner against the other arms on test problems, for the record: nothing was chosen from it."""
    if view.kind != FINAL or view.status != "decided" or len(view.arms) < 2 or view.chosen is None:
        return []
    candidates = board.candidates(view)
    others = [one.arm for one in candidates if one.arm != view.chosen]
    if len(others) == len(candidates) or not others:
        return []
    contest = Contest(view.stage.select, board.metrics_of(view), candidates, len(view.arms))
    return [row.plain() for metric in contest.metrics for row in contest.versus(metric, view.chosen, others)]


def _arm(board: Board, view: StageView, arm: ArmView) -> dict[str, Any]:
    trials = [t.id for t in arm.trials if (state := board.states.get(t.id)) and state.covers(view.suites)]
    metrics = {m: numbers for m in shown_metrics(board, view) if (numbers := measured(board, trials, m))}
    kept = [(board.states[trial].result or {}).get("retention") or {} for trial in trials]
    skills = dict.fromkeys(name for row in kept for name in row)
    decision = view.decision or {}
    scores = {one["arm"]: one["score"] for one in decision.get("candidates", ())}
    return {
        "name": arm.name,
        "settings": arm.settings,
        "own": arm.own,
        "trials": [trial.id for trial in arm.trials],
        "finished": len(trials),
        "dropped": arm.dropped,
        "budget": arm.trials[0].budget._asdict() if arm.trials else None,
        "metrics": metrics,
        "retention": {name: over_seeds(kept, name) for name in skills},
        "score": scores.get(arm.name),
        "chosen": (view.chosen or decision.get("chosen")) == arm.name,
    }


def over_seeds(kept: Sequence[dict[str, float]], name: str) -> dict[str, Any]:
    """Mean of what the runs of an arm kept, with an interval that holds nothing that cannot be."""
    return interval([row[name] for row in kept if name in row], within=limits(name))


def measured(board: Board, trials: Sequence[str], metric: str) -> dict[str, Any] | None:
    """Mean over seeds and problems; the interval is for new seeds and problems, of one seed for new problems only."""
    if not trials or is_cost(metric):
        return None
    columns = [board.scores(trial, metric) for trial in trials]
    keys = [key for key in columns[0] if all(key in column for column in columns)]
    if not keys:
        return None
    score_SP = np.array([[column[key] for key in keys] for column in columns])
    found = estimate(score_SP, share=describe(metric)["unit"] == "share")
    return {**found._asdict(), "over": found.over}


def _trial(board: Board, name: str, survey: Survey) -> dict[str, Any]:
    trial, suites = survey.wanted[name]
    state = board.states.get(name, TrialState())
    result = state.result or {}
    done = {s: one for s, one in result.get("evaluated", {}).items() if suites.get(s) == one["hash"]}
    home = f"trials/{name}"
    begun = sorted((board.folder / home / "runs").glob("rung*/*/config.json"))
    run = f"{home}/{result['run']}" if result else None
    if not result and begun:
        run = begun[-1].parent.relative_to(board.folder).as_posix()
    shown = [m for view in survey.stages for m in shown_metrics(board, view) if suite_of(m) in done]
    metrics = {m: measured(board, [name], m) for m in dict.fromkeys(shown)}
    return {
        "id": name,
        "hash": trial.hash,
        "seed": trial.seed,
        "settings": trial.settings,
        "status": state.status,
        "stages": [{"stage": stage, "arm": arm} for stage, arm in survey.owners[name]],
        "run": run,
        "attempts": state.attempts,
        "identity": trial.identity,
        "data": result.get("data"),
        "seconds": result.get("seconds"),
        "retention": result.get("retention") or {},
        "evaluations": {s: {m: f"{home}/{path}" for m, path in one["members"].items()} for s, one in done.items()},
        "metrics": {m: {k: one[k] for k in ("value", "low", "high", "problems")} for m, one in metrics.items() if one},
    }
