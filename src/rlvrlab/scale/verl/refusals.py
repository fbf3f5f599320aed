"""What a recipe may ask that verl cannot honour: by key, by what its plug-ins declare, and by its sizes."""

from __future__ import annotations

from rlvrlab.recipe import Recipe, Resolved
from rlvrlab.registry import find, names
from rlvrlab.train.phases.base import OnlinePhase, Phase

REFUSED = {
    "rollout.type": "verl draws each answer by itself; a tree would need its agent loop",
    "data.test_file": "verl makes no cards between phases; use `rlvr eval --data FILE` on the finished run",
    "eval.test_size": "verl makes no cards between phases; use `rlvr eval` on the finished run",
    "eval.test_n": "verl makes no cards between phases; use `rlvr eval` on the finished run",
    "stop.patience": "verl runs all its steps",
    "stop.target": "verl runs all its steps",
    "stop.no_signal_steps": "verl runs all its steps",
    "stop.deadline_s": "verl waits for its workers itself",
    "entropy.floor": "verl's entropy bonus counts in every update; set entropy.coef alone",
    "pipeline.lag": "verl overlaps sampling and training by its own settings; see engine.overrides",
    "pipeline.limits": "limits are learnt in the loop of this package; set the environment's timeout_s",
    "filter.max_refills": "verl samples other problems until the batch is full",
}
"""Key -> why; refused where the value is not the default."""


def online_phase(resolved: Resolved) -> OnlinePhase:
    """The one phase that verl trains."""
    return resolved.phase(resolved.recipe.phases[0])


def refusals(resolved: Resolved) -> list[str]:
    """What verl cannot honour, each with the key, why, and what to do."""
    recipe, found = resolved.recipe, list[str]()
    phases: list[Phase] = [resolved.phase(name) for name in recipe.phases]
    if len(phases) > 1 or not phases[0].online:
        remedy = "`rlvr train RECIPE --engine verl --plan` prints the commands that train it phase by phase"
        found.append(f"phases: verl trains one online phase, not {recipe.phases}; {remedy}")
    elif why := untrained(phases[0]):
        found.append(f'phases: {phases[0].name!r} {why}; use "grpo", or engine.type = "hf"')
    found += [f"{key}: {REFUSED[key]}; leave it out for verl" for key in refused_keys(resolved)]
    if recipe.optimizer.type != "adam":
        found.append('optimizer.type: verl is driven with AdamW here; set optimizer.type = "adam"')
    found += _refused_plugins(resolved)
    if not found:
        found += _refused_sizes(resolved)
    return found


def refused_keys(resolved: Resolved) -> list[str]:
    """The keys of REFUSED that the recipe sets; a list of no files says nothing."""
    plain, default = resolved.recipe.model_dump(), Recipe().model_dump()
    pairs = [(key, *key.split(".")) for key in REFUSED]
    return [key for key, section, name in pairs if plain[section][name] not in (default[section][name], [])]


def untrained(phase: Phase) -> str:
    """Why verl does not train this phase; empty where it does."""
    if not phase.online:
        return "trains on answers that are there before it begins, and verl trains on-line phases"
    if phase.tries > 1:
        return "asks again after the verdicts of a whole group, and verl's agent loop knows one answer at a time"
    return ""


def _refused_plugins(resolved: Resolved) -> list[str]:
    """What the plug-ins say they need and verl's step cannot give them."""
    objective, credit, surgery, guard, protocol = (
        resolved.build(kind) for kind in ("objective", "credit", "surgery", "guard", "protocol")
    )
    middle = "draws new answers in the middle of verl's step, which is not possible"
    found = []
    if objective is not None and not objective.uses_advantages:
        able = ", ".join(name for name in names("objective") if find("objective", name).uses_advantages)
        found.append(f"objective.type: {objective.name!r} has no advantage to train on; use {able}")
    if credit is not None and credit.needs_sampling:
        found.append(f"credit: {credit.name} as set here {middle}; use an estimator and interventions that only cut")
    if credit is not None and credit.remembers:
        why = "learns from step to step, and verl's checkpoints do not hold what it has learnt"
        found.append(f'credit: {credit.name} {why}; use another credit, or engine.type = "hf"')
    if surgery is not None and surgery.scope == "module":
        found.append('surgery.scope: shards have no modules; use "global"')
    if guard is not None and guard.needs_sampling:
        found.append(f"guard: {guard.name} as set here {middle}; use a gradient and a trigger that need none")
    if guard is not None and guard.needs_distributions:
        why = "compares whole distributions, and verl's workers return the log-probability of the chosen token alone"
        found.append(f'guard: {guard.name} as set here {why}; use another loss or gradient, or engine.type = "hf"')
    if guard is not None and guard.settles:
        why = "moves the parameters between steps with vectors of its own, for which verl's step has no place"
        found.append(f'guard.type: {guard.name!r} {why}; use l2, or engine.type = "hf"')
    if protocol is not None and resolved.recipe.filter.dead_groups == "refill":
        why = "verl would take replacements from the problems of later steps"
        found.append(f'filter.dead_groups: with a protocol {why}; use "drop" or "keep"')
    if resolved.recipe.filter.dead_groups == "count":
        found.append('filter.dead_groups: verl takes its mean over the rows that it computes; use "keep" or "drop"')
    if protocol is not None and protocol.changes_length:
        found.append("protocol.lengths: verl has one longest answer for the whole run; leave it out")
    if protocol is not None and protocol.restarts_optimizer:
        found.append("protocol.carry_optimizer: verl keeps its optimiser from stage to stage; set it to true")
    return found


def _refused_sizes(resolved: Resolved) -> list[str]:
    """Sizes that verl would stop at after everything was loaded."""
    recipe, engine = resolved.recipe, resolved.recipe.engine
    phase, found = online_phase(resolved), []
    if phase.batch_size % phase.minibatches:
        found.append(f"{phase.name}.minibatches: {phase.minibatches} parts of {phase.batch_size} problems; must divide")
    world = engine["gpus"] * engine["nodes"]
    rows = phase.batch_size // phase.minibatches * recipe.rollout.n
    if rows % world:
        found.append(f"{phase.name}.batch_size: an update has {rows} answers, not a multiple of {world} GPUs")
    if world % engine["tensor_parallel"]:
        found.append(f"engine.tensor_parallel: {engine['tensor_parallel']} does not divide {world} GPUs")
    longest = engine["prompt_tokens"] + recipe.rollout.max_tokens
    if engine["micro_tokens"] and engine["micro_tokens"] < longest:
        found.append(f"engine.micro_tokens: {engine['micro_tokens']} is less than one row of {longest}; raise it")
    return found
