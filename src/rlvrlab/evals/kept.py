"""An evaluation that leaves a folder: resumable, auditable, complete."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, remedied
from rlvrlab.evals.answering import Answerer
from rlvrlab.evals.evaluate import Evaluation, Observer, evaluate
from rlvrlab.evals.hacks.signals import WEAK_SHARE, findings
from rlvrlab.evals.metrics import Sample, dataset_metrics, grouped
from rlvrlab.evals.protocol import Protocol, asked_facts
from rlvrlab.evals.qa import qa_log
from rlvrlab.record.evaluation import EvaluationFolder
from rlvrlab.record.experiment import renew_experiment
from rlvrlab.record.final import note_look
from rlvrlab.record.redact import redact
from rlvrlab.record.sinks.base import Sink
from rlvrlab.rewards.total import PartialCredit
from rlvrlab.shares import percent
from rlvrlab.types import Environment, Problem, RewardFunction


@dataclass(frozen=True)
class Kept:
    """A finished evaluation: where it is kept and what it says."""

    folder: Path
    evaluation: Evaluation
    metrics: dict[str, Any]
    summary: dict[str, Any]

    def numbers(self, name: str) -> dict[str, float]:
        """Every number as a tracker takes it: eval/<data set>/<metric>."""
        return {f"eval/{name}/{k}": float(v) for k, v in self.metrics.items() if isinstance(v, int | float)}


@remedied("free space; the same command with the same --output then goes on from what is judged")
def evaluate_into(
    folder: Path, answerer: Answerer, env: Environment, problems: Sequence[Problem], protocol: Protocol, *,
    seed: int = 0, data: str = "", facts: Mapping[str, Any] | None = None, observe: Observer | None = None,
    run: Path | None = None, reward: RewardFunction | None = None,
) -> Kept:  # fmt: skip
    """Evaluate into `folder`, new or begun before with the same questions; `facts` go into run_info.json.

    `run` is the run folder whose policy answers: there a look at test problems is counted, and EXPERIMENT.md renewed.
    """
    name, identity = data or env.name, answerer.identity()
    examined = examined_facts(identity, env, problems, protocol, seed, name)
    given = {**(facts or {}), "answered_by": identity}
    if isinstance(reward, PartialCredit):
        given["partial_credit"] = repr(reward)
    with EvaluationFolder.begin(folder, problems, examined, given) as kept:
        if run is not None:
            note_look(run, name, problems, str(folder.resolve()))
        try:
            evaluation = evaluate(
                answerer, env, problems, protocol, seed=seed, data=name, store=kept, observe=observe, reward=reward
            )
        except LabError as error:
            kept.info(status="failed", why=str(error))
            raise
        except BaseException:  # Ctrl-C, or a wait that was ended
            kept.info(status="interrupted")
            raise
        metrics = evaluation.metrics()
        summary = summarise(evaluation, metrics)
        rows, counts = qa_log(evaluation.judged, seed, name)
        kept.finish({name: metrics}, summary, {name: rows}, {name: counts})
        kept.info(answered_by=answerer.identity(), **integrity_of(metrics))
    if run is not None:
        renew_experiment(run)
    return Kept(folder, evaluation, metrics, summary)


def integrity_of(metrics: Mapping[str, Any]) -> dict[str, str]:
    """What run_info.json says of verdicts that could have been forged; nothing where none could."""
    share = metrics.get(WEAK_SHARE)
    return {"integrity": f"weak: {percent(share)} of the verdicts could have been forged"} if share else {}


def track(kept: Kept, sinks: Mapping[str, Sink], name: str) -> list[str]:
    """Copy the numbers of one evaluation to trackers; one that fails is named, the folder is the truth."""
    facts = {"protocol": kept.evaluation.protocol.facts()}
    return track_numbers(kept.folder, name, facts, kept.numbers(kept.evaluation.data), sinks)


def track_numbers(
    folder: Path, name: str, facts: Mapping[str, Any], numbers: Mapping[str, float], sinks: Mapping[str, Sink]
) -> list[str]:
    """Copy numbers to trackers, which `sinks_of` has found before; returns what went wrong, in words."""
    troubles = []
    for sink, tracker in sinks.items():
        try:
            with redirect_stdout(sys.stderr):
                tracker.open(folder, name, redact(dict(facts)))
                tracker.log(0, dict(numbers))
                tracker.close()
        except Exception as error:  # a tracker that is down must not cost the evaluation
            troubles.append(f"sink {sink} failed ({error}); {folder / 'metrics.json'} has it all")
    return troubles


def examined_facts(
    identity: Mapping[str, Any], env: Environment, problems: Sequence[Problem], protocol: Protocol, seed: int, data: str
) -> dict[str, Any]:
    """All that decides the result: an evaluation folder can be resumed only while none of it has changed."""
    # Two halves of one evaluation may differ in addresses and troubles.
    who = {name: value for name, value in identity.items() if name != "servers"}
    return {**asked_facts(env, problems, protocol, seed, data), "who": who}


def summarise(evaluation: Evaluation, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """metrics.json in full: by skill and level, the retries, and the reasons of what failed."""
    lost = [one for one in evaluation.judged if one.verdict.correct is None]
    failures = Counter((one.answer.error or one.verdict.detail)[:200] for one in lost)
    return {
        "data": evaluation.data,
        "protocol": evaluation.protocol.name,
        "protocol_hash": evaluation.protocol.hash,
        "wall_s": round(evaluation.wall_s, 3),
        "total": dict(metrics),
        "by_skill": _split(evaluation, lambda s: s.skill),
        "by_level": _split(evaluation, lambda s: s.level),
        "unjudged_because": dict(failures.most_common(20)),
        "retried": sum(one.answer.attempts > 1 for one in evaluation.judged),
        "findings": [one.text for one in findings(metrics)],
    }


def _split(evaluation: Evaluation, key: Callable[[Sample], str]) -> dict[str, Any]:
    until_solved = evaluation.protocol.budget is not None
    return {
        name: dataset_metrics(members, until_solved=until_solved, executed=evaluation.executed)
        for name, members in sorted(grouped(evaluation.samples, key).items())
        if name
    }
