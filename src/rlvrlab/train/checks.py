"""What is found out about a recipe, its data and the user's own code before a run folder is made."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvrlab.engines.base import KnowsItsSize, KnowsUntrained
from rlvrlab.envs.base import BaseEnvironment, FollowsPrograms, ShowsTurns
from rlvrlab.errors import UserError
from rlvrlab.notes import note
from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.recipe.parse import flatten
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.record.redact import HIDDEN, redact
from rlvrlab.registry import is_own
from rlvrlab.train.lab import SOME, Lab, Supplies, build_supplies, with_policy
from rlvrlab.train.phases.base import Phase
from rlvrlab.train.state import Difficulty, Stage
from rlvrlab.types import skills_of

if TYPE_CHECKING:
    from rlvrlab.train.guards.base import Guard


def owns(recipe: Recipe) -> tuple[bool, bool]:
    """Whether the environment, and whether the reward, names code of the user's own."""
    own_env, own_reward = (any(is_own(value) for _, value in flatten(one)) for one in (recipe.env, recipe.reward))
    return own_env, own_reward


def ready_lab(resolved: Resolved) -> Lab:
    """Everything a new run needs; what cannot work together is refused here, before anything is trained."""
    has = build_supplies(resolved)
    refuse_files(has)
    return ready(has)


def refuse_files(has: Supplies) -> None:
    """Refuse files that a phase would read in vain, before the phases ahead of it are trained."""
    for name in has.recipe.phases:
        has.resolved.phase(name).check_files(has)


def ready(has: Supplies) -> Lab:
    """The same from what is there already; the user's own code is tried first, since a policy may take long to load."""
    try_own_code(has)
    if isinstance(has.env, BaseEnvironment):
        has.env.refuse_judge(has.train)
    lab = with_policy(has)
    refuse_unworkable(lab)
    return lab


def refuse_unworkable(has: Supplies) -> None:
    """Refuse what cannot be trained, as far as that is known without the policy."""
    check_phases(has)
    if words := has.table.cannot_learn([p.prompt for p in has.train], [p.prompt for p in has.dev]):
        raise UserError(words)


def note_surprises(lab: Lab) -> None:
    """Note what can be trained but hardly as it is meant."""
    note_left_out(lab)
    note_long_references(lab)
    note_untrained_tokens(lab)
    note_idle_sizes(lab)


def note_left_out(lab: Lab) -> None:
    """Note that one skill alone is trained where nobody has said which."""
    alone = lab.protocol.taken_unnamed(lab.train) if lab.protocol is not None else ""
    if alone:
        others = ", ".join(skill for skill in skills_of(lab.train) if skill != alone)
        what = f"not named, so {alone} alone is trained; the others ({others}) are only evaluated"
        note("warning", f'protocol.skill: {what}; name one, or train all with protocol.type = "mixed"')


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


def note_idle_sizes(lab: Lab) -> None:
    """Note sizes that somebody has set beyond what there is, so that they do nothing more than a smaller one."""
    for phase in map(lab.resolved.phase, lab.recipe.phases):
        groups, problems = phase.batch_size, len(lab.train)
        if phase.online and phase.minibatches > groups:
            key, most = f"{phase.name}.minibatches = {phase.minibatches}", f"at most {groups} updates"
            note("warning", f"{key}: a step has {groups} groups, and so {most}; {groups} says the same, 1 is usual")
        key = f"{phase.name}.references"
        given = lab.recipe.phase_tables[phase.name].get("references", 0)
        if given > problems and lab.resolved.origins.get(key, "default") != "default":
            what = f"{key} = {given}: there are {problems} training problems, and no more references"
            note("warning", f"{what}; {problems} says the same, and more problems come with data.train_size")


def refuse_full_disk(lab: Lab, there: int = 0) -> None:
    """Refuse to train what cannot be kept, and note where only some of the checkpoints will fit.

    `there`: how many the run has already; they take no more room.
    """
    if not isinstance(lab.engine, KnowsItsSize):
        return
    place = Path(lab.recipe.output_dir).resolve()
    while not place.is_dir():
        place = place.parent
    free, size = shutil.disk_usage(place).free, lab.engine.saved_bytes()
    kept = lab.recipe.checkpoint
    written = sum(lab.resolved.phase(name).steps // kept.every + 1 for name in lab.recipe.phases)
    at_once = min(kept.keep + 2, written)  # the newest, the best, and one that is being written
    more = max(1, at_once - there)
    if free >= more * size:
        return
    what = f"output_dir: {free / 1e9:.1f} GB are free on the disk of {lab.recipe.output_dir}"
    if free < size:
        raise UserError(f"{what}, and one checkpoint takes {size / 1e9:.1f} GB; make room, or name another place")
    remedy = "make room, lower checkpoint.keep, or name another place"
    note("warning", f"{what}, and up to {more} more checkpoints of {size / 1e9:.1f} GB are there at once; {remedy}")


def check_phases(has: Supplies) -> None:
    """Whatever cannot work in an on-line phase is said before anything is trained.

    Stages must fit the phase and the data, and a guard must have something to protect.
    """
    phases = [has.resolved.phase(name) for name in has.recipe.phases]
    if has.credit is not None and has.credit.follows and not isinstance(has.env, FollowsPrograms):
        why = f"compares what programs do, and {has.env.name!r} runs none"
        raise UserError(f"credit.type: {why}; take an environment of programs, or another credit")
    tools = isinstance(has.env, BaseEnvironment) and has.env.uses_tools
    if has.shape is not None and tools != (has.shape.boundary == "turns"):
        # Answers branch between turns where there are tools, and within the one turn where there are none.
        why = f"{has.env.name!r} has {'tools' if tools else 'no tools, so its answers are one turn'}"
        allowed = '"turns"' if tools else '"lines" or "tokens"'
        raise UserError(f'credit.boundary: "{has.shape.boundary}": {why}; use {allowed}')
    if tools:
        _check_tools(has, phases)
    if has.surgery is not None and not has.surgery.needs_pass_rates:
        has.grouping.names(has.train, Difficulty())  # a problem whose group is not known is told before training
    for phase in phases:
        phase.check(has)
        if not phase.online or not has.remembers:
            continue
        stages = has.stages(phase.steps)
        if has.guard is not None:
            _check_guard(has, has.guard, phase, stages)


def _check_guard(has: Supplies, guard: Guard, phase: Phase, stages: Sequence[Stage]) -> None:
    """A guard must name skills that there are, and have something to protect in some stage."""
    from rlvrlab.recipe.meant import either
    from rlvrlab.train.protocols.base import check_skills

    check_skills("guard.protected", guard.protected, has.train)
    if any(guard.protected_in(stage, stages) for stage in stages):
        return
    skills = skills_of(has.train)
    if len(skills) == 1:
        why = f"all training problems have one skill, {skills[0]}, and a guard protects skills from one another"
        raise UserError(f'guard: {why}; train several (env.type = "mixture"), or leave the guard out')
    remedies = ["list other skills in guard.protected", 'set protocol.type = "sequential"']
    if not guard.protects_trained:
        remedies.append('take guard.type = "skill_safe", which also protects skills that are trained together')
    trained = ", ".join(dict.fromkeys(skill for stage in stages for skill in stage.skills))
    told = f"{phase.name} trains {trained} in {'one stage' if len(stages) == 1 else 'every stage'}"
    raise UserError(f"guard: nothing to protect: {told}; {either(remedies)}")


def _check_tools(has: Supplies, phases: Sequence[Phase]) -> None:
    """What would train on the results of tools as if the policy had written them is refused."""
    shown = isinstance(has.env, ShowsTurns)
    blind = [phase.name for phase in phases if not (phase.trains_turns and (phase.online or shown))]
    if blind:
        remedy = "allowed: on-line phases" + (" and sft" if shown else "")
        raise UserError(f"phases: {blind[0]!r} trains on whole answers, and {has.env.name!r} has tools; {remedy}")
    if has.credit is not None and has.credit.needs_sampling:
        remedy = "with tools take an estimator and interventions that only cut"
        raise UserError(f"credit: as set here it writes answers anew in one turn; {remedy}")


def try_own_code(has: Supplies) -> None:
    """Call the user's own verifier and reward on some problems of each role; built-in ones need no trial."""
    own_env, own_reward = owns(has.recipe)
    if own_env or own_reward:
        from rlvrlab.rollout.trial import pays_backwards, try_all

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
