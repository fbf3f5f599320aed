"""A trained policy on a suite: evaluation folders inside its run, and the scores that selection needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import UserError
from rlvrlab.evals.answering import AT_ONCE, EngineAnswerer
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import USUAL_SIZE, Protocol, eval_at_1, eval_at_k
from rlvrlab.plain_files import file_name
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.schema import instantiate
from rlvrlab.record.evaluation import read_evaluation
from rlvrlab.record.files import place_in, write_json
from rlvrlab.record.final import POLICY
from rlvrlab.study.load import ON_TEST
from rlvrlab.study.measures import Scores, scores_of
from rlvrlab.study.schema import Suite
from rlvrlab.train.policy import policy_of
from rlvrlab.types import Environment, Problem, RewardFunction


class Member(NamedTuple):
    """One data set of a suite."""

    name: str
    env: Environment
    type: str
    folder: Path
    problems: tuple[Problem, ...]
    protocol: Protocol
    reward: RewardFunction | None
    """The recipe's, where this is the environment it was trained with: its partial credit is part of mean accuracy."""


class Prepared(NamedTuple):
    """A suite with its problems, before anything is trained: what cannot be examined is found out early."""

    name: str
    hash: str
    suite: Suite
    members: list[Member]
    skipped: dict[str, str]


def prepared(name: str, job: dict[str, Any], resolved: Resolved) -> Prepared:
    """Draw the problems of a suite, as the trial's job.json describes it."""
    suite, folder = Suite.model_validate(job["suite"]), Path(job["folder"])
    if suite.suite is not None:
        # Named suites bring every reader and environment along: a trial without one starts in half the time.
        from rlvrlab.evals.suites import members_of
        from rlvrlab.evals.suites.base import Skipped, data_folder, prepare

        data = folder / suite.data if suite.data else data_folder()
        wanted = [member for member in members_of(suite.suite) if not suite.only or member.name in suite.only]
        limits = {"max_tokens": suite.max_tokens, "size": suite.size}
        made = [prepare(replace(member, role=suite.role), suite.tier, data, {}, **limits) for member in wanted]
        skipped = {one.name: one.why for one in made if isinstance(one, Skipped)}
        ready = [(one, one.member) for one in made if not isinstance(one, Skipped)]
        if not ready:
            raise UserError(f"suites.{name}: no member can be examined here: {skipped}")
        members = [
            Member(of.name, one.env, of.env, Path(), one.problems, one.protocol, _reward(resolved, of.env))
            for one, of in ready
        ]
        return Prepared(name, job["hash"], suite, members, skipped)
    table, home = (suite.env, folder) if suite.env else (resolved.recipe.env, resolved.folder)
    env: Environment = instantiate("env", table, home)
    longest = suite.max_tokens or resolved.recipe.rollout.max_tokens
    several = eval_at_k(suite.n, (1, suite.n), suite.temperature, max_tokens=longest) if suite.n > 1 else None
    protocol = replace(several or eval_at_1(longest), run_timeout_s=None, memory_mb=None)  # the environment's own
    size = suite.size or USUAL_SIZE
    if name.endswith(ON_TEST):  # there may be fewer test problems than the file asks dev problems for
        from rlvrlab.evals.suites.base import most_problems

        problems = most_problems(env, suite.role, size, suite.seed)
    else:
        problems = env.problems(suite.role, size, suite.seed)
    only = Member(name, env, table["type"], home, tuple(problems), protocol, _reward(resolved, table["type"]))
    return Prepared(name, job["hash"], suite, [only], {})


def _reward(resolved: Resolved, env: str) -> RewardFunction | None:
    return resolved.build("reward") if resolved.recipe.env["type"] == env else None


def examine(trial: Path, run: Path, ready: Prepared) -> dict[str, Any]:
    """Evaluate on every member, resuming what was begun; returns what result.json keeps of it."""
    suite, stem = ready.suite, f"{file_name(ready.name)}_{ready.hash[:8]}"
    policy = policy_of(run, suite.policy)
    answerer = EngineAnswerer(policy.engine, policy.facts, AT_ONCE)
    folders: dict[str, str] = {}
    scores: dict[str, Scores] = {}
    for one in ready.members:
        below = stem if one.name == ready.name else f"{stem}_{file_name(one.name)}"
        folder = place_in(run, f"evaluations/{below}")
        facts = {"scorer_type": one.type, "scorer_folder": str(one.folder.resolve()), POLICY: suite.policy}
        asked = (answerer, one.env, one.problems, one.protocol)
        evaluate_into(folder, *asked, seed=suite.seed, data=one.name, facts=facts, run=run, reward=one.reward)
        folders[one.name] = folder.relative_to(trial).as_posix()
        scores[one.name] = scores_of(read_evaluation(folder), sorted({suite.n, *one.protocol.ks}))
    kept = place_in(trial, "scores") / f"{stem}.json"
    kept.parent.mkdir(exist_ok=True)
    write_json(kept, scores)
    below = kept.relative_to(trial).as_posix()
    return {"hash": ready.hash, "members": folders, "skipped": ready.skipped, "scores": below}
