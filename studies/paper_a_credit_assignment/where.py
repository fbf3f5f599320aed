"""Where credit lands: by kind of statement, and on statements that are known to be idle.

    python studies/paper_a_credit_assignment/where.py [--problems 60] [--output FILE]
    python studies/paper_a_credit_assignment/where.py --run experiments/RUN [--step N]

Without a run, the answers are made: right minicode programs with idle work put into them (the `min` skill's questions),
so it is known which statements do nothing; by deleting each in turn, and by Shapley. With a run, the answers of one of
its steps.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.cli.credit import NoPolicy, _of_run
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.envs.minicode import Minicode
from rlvrlab.rewards.binary import Binary
from rlvrlab.train.credit.methods import StepCredits, credit_of
from rlvrlab.types import Completion, Problem, Reward, Rollout, Sampling

SHAPLEY = Counterfactual(estimator="shapley")
DELETE_ALL = Counterfactual(counterfactual_k=0, intervention_types=("delete",))


def idle_programs(count: int) -> tuple[list[Rollout], list[str]]:
    """Right answers with statements that do nothing, and the same programs without them."""
    env = Minicode(skills=("gen", "min"), levels=(2, 3))
    problems = [problem for problem in env.problems("train", 4 * count, 0) if problem.skill == "min"][:count]
    asked = [Problem(p.id, p.source, "gen", p.prompt, _open(p.reference), p.meta) for p in problems]
    texts = [str(problem.reference["given"]) for problem in problems]
    verdicts = env.verify_many(list(zip(asked, texts, strict=True)))
    kept = [i for i, verdict in enumerate(verdicts) if verdict.correct]
    rollouts = [Rollout(str(i), str(i), asked[i], (), _completion(texts[i]), verdicts[i], Reward(1.0)) for i in kept]
    return rollouts, [str(problems[i].meta["solution"]) for i in kept]


def _open(reference: dict[str, Any]) -> dict[str, Any]:
    """The same tests, without the demand to be shorter than what was given."""
    return {key: value for key, value in reference.items() if key not in ("given", "below")} | {"skill": "gen"}


def _completion(text: str) -> Completion:
    return Completion(text, tuple(map(ord, text)), ())


def by_kind(found: StepCredits) -> dict[str, dict[str, float]]:
    """Mean credit of each kind of statement, and how often it is nothing or unknown."""
    values: dict[str, list[float]] = defaultdict(list)
    for one in found.answers.values():
        for step, credit in zip(one.trajectory.segments.steps, one.raw_S, strict=True):
            values[step.kind].append(float(credit))
    return {kind: _facts(np.array(credits)) for kind, credits in sorted(values.items())}


def _facts(credits: np.ndarray) -> dict[str, float]:
    known = credits[~np.isnan(credits)]
    return {
        "statements": len(credits),
        "mean": round(float(known.mean()), 3) if len(known) else float("nan"),
        "zero": round(float((known == 0).mean()), 3) if len(known) else float("nan"),
        "unknown": round(1 - len(known) / len(credits), 3),
    }


def by_truth(found: StepCredits, solutions: list[str]) -> dict[str, dict[str, float]]:
    """Statements of the solution against statements put in: alone, or as a pair that undoes itself."""
    values: dict[str, list[float]] = defaultdict(list)
    for one, solution in zip(found.answers.values(), solutions, strict=True):
        needed, put_in = solution.split("\n"), list[float]()
        for step, credit in zip(one.trajectory.segments.steps, one.raw_S, strict=True):
            if step.text.rstrip("\n") in needed:
                needed.remove(step.text.rstrip("\n"))
                values["of the solution"].append(float(credit))
            else:
                put_in.append(float(credit))
        values["put in alone" if len(put_in) == 1 else "put in as a pair"] += put_in
    return {name: _facts(np.array(credits)) for name, credits in values.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--step", type=int)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    if asked.run:
        found = _of_run(DELETE_ALL, asked.run, asked.step, 10**6)
        result: dict[str, Any] = {"by_kind": by_kind(found), "cost": found.metrics}
    else:
        env = Minicode(skills=("gen",), levels=(2, 3))
        rollouts, solutions = idle_programs(asked.problems)
        found = credit_of(DELETE_ALL, rollouts, env, Binary(), NoPolicy(), Sampling())
        examples = [
            {"program": one.trajectory.rollout.completion.text.split("\n")[:-1], "credit": one.raw_S.tolist()}
            for one in list(found.answers.values())[:3]
        ]
        shared = credit_of(SHAPLEY, rollouts, env, Binary(), NoPolicy(), Sampling())
        truth = {"delete": by_truth(found, solutions), "shapley": by_truth(shared, solutions)}
        cost = {"delete": found.metrics, "shapley": shared.metrics}
        result = {"by_kind": by_kind(found), "by_truth": truth, "examples": examples, "cost": cost}
    text = json.dumps(result, indent=1)
    print(text)
    if asked.output:
        asked.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
