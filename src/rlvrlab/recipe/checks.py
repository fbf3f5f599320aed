"""Contradictions between keys that are each fine alone, and names that only the registry knows."""

from __future__ import annotations

from typing import Any

from rlvrlab.errors import UserError, suggestion
from rlvrlab.recipe.schema import Recipe, RolloutTable
from rlvrlab.registry import find, names


def contradictions(recipe: Recipe) -> list[tuple[str, str]]:
    """Pairs of a key and what is wrong with it, remedy included."""
    problems = []
    if len(set(recipe.phases)) < len(recipe.phases):
        problems.append(("phases", f"{recipe.phases} names a phase twice; each has one table"))
    if recipe.phases[0] in names("phase") and find("phase", recipe.phases[0]).control:
        problems.append(
            ("phases", f"{recipe.phases[0]!r} is a control arm and cannot be the first; put its origin before it")
        )
    for name in dict.fromkeys(recipe.phases):
        size = recipe.phase_tables.get(name, {}).get("batch_size", 0)
        if size > recipe.data.train_size:
            words = f"{size} problems per step but data.train_size is {recipe.data.train_size}"
            problems.append((f"{name}.batch_size", words))
        rate, decay = recipe.phase_tables.get(name, {}).get("learning_rate", 0.0), recipe.optimizer.weight_decay
        if rate * decay >= 1:
            why = f"{decay:g} × {name}.learning_rate = {rate:g} takes all of a parameter away in one step, or more"
            problems.append(("optimizer.weight_decay", f"{why}; allowed here: below {1 / rate:g}"))
    for key in ("top_p", "temperature"):
        value = getattr(recipe.rollout, key)
        if value != 1 and recipe.correction.level == "none":
            remedy = "set correction.level = 'token'"
            problems.append((f"rollout.{key}", f"at {value} the sampler is not the trained policy; {remedy}"))
    if recipe.engine.get("sampler", "embedded") != "embedded" and recipe.correction.level == "none":
        remedy = "remove the key or set 'token'"
        problems.append(("correction.level", f"servers never compute exactly as the trainer does; {remedy}"))
    for name in dict.fromkeys(name for name in recipe.phases if recipe.rollout.n == 1 and name in names("phase")):
        advantage = (recipe.advantage or {}).get("type") or find("phase", name).default_advantage
        if advantage in names("advantage") and find("advantage", advantage).needs_groups:
            why = f"{name} compares answers to one problem ({advantage}) and needs n ≥ 2"
            problems.append(("rollout.n", f'{why}; raise it or set advantage.type = "reinforce_pp"'))
    if recipe.kl.coef > 0 and recipe.kl.estimator == "k1" and recipe.kl.place == "loss":
        why = '"k1" in the loss has expected gradient 0 and does not pull to the reference; allowed there: k2, k3'
        problems.append(("kl.estimator", f'{why}; use one of them, or set kl.place = "reward"'))
    if recipe.entropy.floor > 0 and not recipe.entropy.coef:
        why = f"{recipe.entropy.floor:g} has no effect without a bonus"
        problems.append(("entropy.floor", f"{why}; set entropy.coef, e.g. 0.05, or leave the floor out"))
    if recipe.pipeline.lag:
        if recipe.correction.level == "none":
            why = "with pipeline.lag = 1 an older policy drew the answers"
            problems.append(("correction.level", f"{why}; remove the key or set 'token'"))
        if recipe.filter.dead_groups == "refill":
            why = "refills are drawn after the verdicts, which a pipeline does not wait for"
            problems.append(("filter.dead_groups", f'{why}; use "drop" or "keep", or pipeline.lag = 0'))
        for name in (name for name in recipe.phases if name in names("phase")):
            if find("phase", name).online and find("phase", name).tries > 1:
                why = f"{name} asks again after the verdicts, which a pipeline does not wait for"
                problems.append(("pipeline.lag", f"{why}; use grpo, or set it to 0"))
    for name in recipe.record.sinks:
        if ".py:" not in name and name not in names("sink"):
            problems.append(("record.sinks", f"unknown sink {name!r}{suggestion(name, names('sink'))}"))
    return problems


def badly_grown(rollout: RolloutTable, credit: Any) -> list[tuple[str, str]]:
    """What keeps answers from growing on the tree that rollout.type and the credit plug-in ask for."""
    wants = credit is not None and credit.grows
    if rollout.grows and not wants:
        why = "answers that share a beginning are no fair comparison for it, so the tree brings its own credit"
        return [("credit.type", f'with rollout.type = "tree" {why}; leave [credit] out, or set rollout.type = "apart"')]
    if wants and not rollout.grows:
        return [("rollout.type", f'"{rollout.type}": credit.type = "{credit.name}" needs a tree; leave the key out')]
    if wants:
        try:
            credit.shape(rollout.n)
        except UserError as error:
            return [("credit.branches", str(error).removeprefix("credit: "))]
    return []
