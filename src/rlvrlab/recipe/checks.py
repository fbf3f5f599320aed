"""Contradictions between keys that are each fine alone."""

from __future__ import annotations

import re

from rlvrlab.recipe.schema import Recipe

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
RESERVED = {"con", "prn", "aux", "nul"}
"""Names that are devices on one system or another."""


def contradictions(recipe: Recipe) -> list[str]:
    """One line each, with the remedy."""
    found = []
    if not NAME.fullmatch(recipe.name) or recipe.name.lower() in RESERVED:
        rule = "1–80 letters, digits, . _ - beginning with a letter or digit"
        found.append(f"name: {recipe.name[:90]!r} cannot name a run folder; allowed: {rule}")
    if len(set(recipe.phases)) < len(recipe.phases):
        found.append(f"phases: {recipe.phases} names a phase twice; each has one table")
    for name in recipe.phases:
        size = recipe.phase_tables.get(name, {}).get("batch_size", 0)
        if size > recipe.data.train_size:
            found.append(f"{name}.batch_size: {size} problems per step but data.train_size is {recipe.data.train_size}")
    for key in ("top_p", "temperature"):
        value = getattr(recipe.rollout, key)
        if value != 1 and recipe.correction.level == "none":
            remedy = "set correction.level = 'token'"
            found.append(f"rollout.{key}: at {value} the sampler is not the trained policy; {remedy}")
    if recipe.rollout.n == 1 and "grpo" in recipe.phases and recipe.advantage is None:
        found.append("rollout.n: grpo compares answers to one problem and needs n ≥ 2; raise it or use reinforce")
    return found
