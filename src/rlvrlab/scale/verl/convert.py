"""A recipe for another engine, as one for verl: keys that both have stay, and none that says something is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from rlvrlab.errors import UserError
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.registry import find, keys_of

KEPT_ELSEWHERE = {
    "lora_targets": "actor_rollout_ref.model.target_modules",
    "dtype": "actor_rollout_ref.actor.fsdp_config.dtype",
}
"""Key of the hf engine -> the setting of verl that takes its place in engine.overrides."""


def recipe_for_verl(path: Path, overrides: Sequence[str]) -> Resolved:
    """Load a recipe with engine.type = "verl"; what its own engine says and verl's table cannot is refused by name."""
    asked = [text.lstrip("-") for text in overrides]
    if not any(text.startswith("engine.type") for text in asked):
        own = verls_own()
        plain = load_recipe(path, [text for text in overrides if text.lstrip("-").partition("=")[0] not in own])
        if plain.recipe.engine["type"] != "verl":
            _refuse_losses(plain)
            overrides = [*overrides, "engine.type=verl"]
    return load_recipe(path, overrides)


def verls_own() -> set[str]:
    """Keys that only verl's table has: another engine of a recipe would refuse them."""
    return {f"engine.{key}" for key in set(keys_of(find("engine", "verl"))) - set(keys_of(find("engine", "hf")))}


def _refuse_losses(plain: Resolved) -> None:
    table = plain.recipe.engine
    if table["type"] != "hf":
        raise UserError(f'engine.type: {table["type"]!r} has no model that verl can train; set engine.type = "verl"')
    has = set(keys_of(find("engine", "verl")))
    usual = {item.name: item.default for item in fields(find("engine", "hf")) if item.default is not MISSING}
    for key, value in table.items():
        if key in has or key == "type" or value == usual.get(key, value):
            continue
        other = KEPT_ELSEWHERE.get(key)
        remedy = f"say it in engine.overrides as {other}=…" if other else "leave it out"
        raise UserError(f"engine.{key} = {value!r}: verl's engine has no such key; {remedy}")
