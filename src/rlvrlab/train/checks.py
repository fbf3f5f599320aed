"""What is found out about a recipe, its data and the user's own code before a run folder is made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rlvrlab.data.roles import Use
from rlvrlab.engines.base import KnowsUntrained
from rlvrlab.envs.base import BaseEnvironment, FollowsPrograms, ShowsTurns
from rlvrlab.errors import UserError
from rlvrlab.extras import Lookup
from rlvrlab.notes import hearing, note
from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.recipe.parse import flatten
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.record.redact import HIDDEN, redact
from rlvrlab.registry import is_own
from rlvrlab.rollout.trial import Tried, try_all
from rlvrlab.train.grouping import Difficulty
from rlvrlab.train.guards.base import protected_in
from rlvrlab.train.lab import Lab, Supplies, build_supplies, with_policy
from rlvrlab.train.phases.base import Phase
from rlvrlab.train.protocols.base import check_skills
from rlvrlab.types import Problem, Role

ROLES: dict[Role, Use] = {"train": "train", "dev": "tune"}
SOME = 64
"""Training problems whose right answers are measured."""
BACKWARD_SHOWN = 3
"""Problems that a warning about the reward names."""


def lookups(resolved: Resolved) -> list[Lookup]:
    """Everything that can be looked up without loading a model; problems are read from one of each role."""
    found = list(resolved.build("engine").lookups())
    try:
        env = resolved.build("env")
    except UserError as error:
        return [*found, Lookup("env", "wrong", str(error))]
    found += [_problems(resolved, env, role) for role in ROLES]
    return found if any(one.state == "wrong" for one in found) else found + _own_code(resolved)


def _problems(resolved: Resolved, env: Any, role: Role) -> Lookup:
    """The file of a role where the recipe has one, else a first problem of the environment's own."""
    file = getattr(resolved.recipe.data, f"{role}_file")
    if file is not None:
        path = resolved.folder / file
        there = path.is_file()
        remedy = "" if there else "; no such file: make it with `rlvr data prepare`, or name another"
        return Lookup(f"data.{role}_file", "found" if there else "wrong", f"{path}{remedy}")
    try:
        env.problems(role, 1, resolved.recipe.data.seed)
    except UserError as error:
        return Lookup(f"env, {role} problems", "wrong", str(error))
    return Lookup(f"env, {role} problems", "found", f"{env.name} has some")


def _own_code(resolved: Resolved) -> list[Lookup]:
    """The user's own verifier and reward, tried as before training; nothing where all is built in."""
    if not any(_owns(resolved.recipe)):
        return []
    told: list[str] = []
    try:
        with hearing(lambda _, words: told.append(words)):
            try_own_code(build_supplies(resolved))
    except UserError as error:
        return [Lookup("own code", "wrong", str(error))]
    return [Lookup("own code", "wrong" if told else "found", "; ".join(told) or "tried on some problems of each role")]


def _owns(recipe: Recipe) -> tuple[bool, bool]:
    """Whether the environment, and whether the reward, names code of the user's own."""
    own_env, own_reward = (any(is_own(value) for _, value in flatten(one)) for one in (recipe.env, recipe.reward))
    return own_env, own_reward


def ready_lab(resolved: Resolved) -> Lab:
    """Everything a run needs; what cannot work together is refused here, before anything is trained."""
    return ready(build_supplies(resolved))


def ready(has: Supplies) -> Lab:
    """The same from what is there already; the user's own code is tried first, since a policy may take long to load."""
    try_own_code(has)
    lab = with_policy(has)
    check_phases(lab)
    if words := lab.table.cannot_learn([p.prompt for p in lab.train], [p.prompt for p in lab.dev]):
        raise UserError(words)
    return lab


def note_long_references(lab: Lab) -> None:
    """Note that right answers which are known do not fit into rollout.max_tokens, where that is so.

    The end token is not counted: an answer that is cut just before it is judged as it stands.
    """
    limit, env = lab.recipe.rollout.max_tokens, lab.env
    if isinstance(env, BaseEnvironment) and env.uses_tools:
        return  # its answers are turns, each of which has the limit to itself
    golds = [gold for problem in lab.train[:SOME] if (gold := env.gold(problem)) is not None]
    lengths = [len(lab.engine.tokenizer.encode(gold)) for gold in golds]
    longer = sum(length > limit for length in lengths)
    if longer:
        what = f"rollout.max_tokens = {limit}: {longer} of {len(golds)} right answers that are known need more"
        note("warning", f"{what}, up to {max(lengths)} tokens; raise it, or they can never be given")


def note_untrained_tokens(lab: Lab) -> None:
    """Note that right answers hold tokens which this model never learnt and adapters cannot teach it."""
    env, some = lab.env, lab.train[:SOME]
    texts = [gold for problem in some if (gold := env.gold(problem)) is not None]
    texts += [turn for problem in some for turn in env.gold_turns(problem)] if isinstance(env, ShowsTurns) else []
    names = lab.engine.untrained(texts) if isinstance(lab.engine, KnowsUntrained) else []
    if names:
        what = f"the model never learnt {' and '.join(names)}, which right answers hold, and adapters do not move them"
        instead = (
            "give env.style=fence, which asks for tool calls without them, or " if isinstance(env, ShowsTurns) else ""
        )
        remedy = f"{instead}train all parameters (engine.lora_rank=0)"
        note("warning", f"engine.model: {what}: it will write other tokens in their place; {remedy}")


def pays_backwards(paid: Sequence[Tried]) -> str:
    """In words, for which problems a wrong answer earned at least as much as a right one; empty where none did.

    Problems are looked at one by one: a reward that is upside down for half of them pays right answers as much on
    average as one that pays half.
    """
    pairs, backward = _paid_pairs(paid), backward_pairs(paid)
    if not backward:
        return ""
    if len(backward) == len(pairs):
        right, wrong = (sum(one[side].value for one in pairs) / len(pairs) for side in (0, 1))
        more = "less than" if right < wrong else "no more than"
        what = f"reward: a right answer earns {more} a wrong one ({right:g} and {wrong:g})"
        return f"{what}, so training teaches nothing that is right; mend it"
    which = f"for {len(backward)} of {len(pairs)} problems that were tried"
    what = f"reward: {which} a right answer earns no more than a wrong one"
    shown = [f"{one.problem.named}: {one.text!r:.40} is right and earns {one.value:g}, "
             f"{other.text!r:.40} is wrong and earns {other.value:g}"
             for one, other in backward[:BACKWARD_SHOWN]]  # fmt: skip
    more = f"; and {len(backward) - len(shown)} more" if len(backward) > len(shown) else ""
    return f"{what}, so training teaches wrong answers there; mend it: {'; '.join(shown)}{more}"


class Pay(NamedTuple):
    """What one tried answer earned."""

    problem: Problem
    text: str
    value: float


def backward_pairs(paid: Sequence[Tried]) -> list[tuple[Pay, Pay]]:
    """A right and a wrong answer to each problem for which the wrong one earned at least as much."""
    return [(right, wrong) for right, wrong in _paid_pairs(paid) if right.value <= wrong.value]


def _paid_pairs(paid: Sequence[Tried]) -> list[tuple[Pay, Pay]]:
    """Of each problem the right answer and the wrong answer that earned most, where both were tried."""
    pairs = []
    for _, same in groupby(paid, key=lambda one: one.problem.id):
        earned: dict[bool, list[Pay]] = {True: [], False: []}
        for one in same:
            if one.reward is not None and one.verdict.correct is not None:
                earned[one.verdict.correct].append(Pay(one.problem, one.text, one.reward.value))
        if earned[True] and earned[False]:
            right, wrong = (max(earned[kind], key=lambda pay: pay.value) for kind in (True, False))
            pairs.append((right, wrong))
    return pairs


def check_phases(lab: Lab) -> None:
    """Whatever cannot work in an on-line phase is said before anything is trained.

    Stages must fit the phase and the data, and a guard must have something to protect.
    """
    phases = [lab.resolved.phase(name) for name in lab.recipe.phases]
    if lab.credit is not None and lab.credit.follows and not isinstance(lab.env, FollowsPrograms):
        why = f"compares what programs do, and {lab.env.name!r} runs none"
        raise UserError(f"credit.type: {why}; take an environment of programs, or another credit")
    tools = isinstance(lab.env, BaseEnvironment) and lab.env.uses_tools
    if lab.shape is not None and tools != (lab.shape.boundary == "turns"):
        # Answers branch between turns where there are tools, and within the one turn where there are none.
        why = f"{lab.env.name!r} has {'tools' if tools else 'no tools, so its answers are one turn'}"
        allowed = '"turns"' if tools else '"lines" or "tokens"'
        raise UserError(f'credit.boundary: "{lab.shape.boundary}": {why}; use {allowed}')
    if tools:
        _check_tools(lab, phases)
    if lab.surgery is not None and not lab.surgery.needs_pass_rates:
        lab.grouping.names(lab.train, Difficulty())  # a problem whose group is not known is told before training
    for phase in phases:
        phase.check(lab)
        if not phase.online or not lab.remembers:
            continue
        stages = lab.stages(phase.steps)
        if lab.guard is None:
            continue
        check_skills("guard.protected", lab.guard.protected, lab.train)
        if not any(protected_in(stage, stages, lab.guard) for stage in stages):
            raise UserError(
                f"guard: nothing to protect: {phase.name} trains {', '.join(stages[-1].skills)} in one stage; list "
                'other skills in guard.protected, set protocol.type = "sequential", or take guard.type = "skill_safe", '
                "which also protects skills that are trained together from each other"
            )


def _check_tools(lab: Lab, phases: Sequence[Phase]) -> None:
    """What would train on the results of tools as if the policy had written them is refused."""
    shown = isinstance(lab.env, ShowsTurns)
    blind = [phase.name for phase in phases if not (phase.trains_turns and (phase.online or shown))]
    if blind:
        remedy = "allowed: on-line phases" + (" and sft" if shown else "")
        raise UserError(f"phases: {blind[0]!r} trains on whole answers, and {lab.env.name!r} has tools; {remedy}")
    if lab.credit is not None and lab.credit.needs_sampling:
        remedy = "with tools take an estimator and interventions that only cut"
        raise UserError(f"credit: as set here it writes answers anew in one turn; {remedy}")


def try_own_code(has: Supplies) -> None:
    """Call the user's own verifier and reward on some problems of each role; built-in ones need no trial."""
    own_env, own_reward = _owns(has.recipe)
    if own_env or own_reward:
        paid = try_all(has.env, has.reward, (*has.train, *has.dev, *has.test), own_env=own_env)
        if words := pays_backwards(paid):
            note("warning", words)


def refuse_secrets(resolved: Resolved) -> None:
    """Refuse a key that would be stored as [redacted]: such a run could neither be evaluated nor resumed."""
    tables = {kind: resolved.recipe.model_dump()[kind] or {} for kind in PLUGIN_TABLES}
    if hidden := hidden_keys(redact(tables)):
        remedy = "let the plug-in read it from the environment, or rename the key if it is no secret"
        raise UserError(f"{', '.join(hidden)}: looks like a secret, which no run stores; {remedy}")


def hidden_keys(tables: dict[str, Any]) -> list[str]:
    """Keys whose value was redacted."""
    return [key for key, value in flatten(tables) if HIDDEN in str(value)]
