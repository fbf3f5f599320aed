"""verl's key names, and how Hydra wants keys and values written.

known_keys.txt holds the names of verl's configuration, so that a misspelt key is caught where verl is not installed:
    python -m rlvrlab.scale.verl.spelling        writes it anew, in an environment that has verl
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import UserError, suggestion

KNOWN = Path(__file__).with_name("known_keys.txt")
ADDED = (
    "ray_kwargs.ray_init.",
    "reward.custom_reward_function.reward_kwargs.",
    "actor_rollout_ref.rollout.engine_kwargs.",
    "actor_rollout_ref.model.override_config.",
    "critic.model.override_config.",
    "actor_rollout_ref.actor.fsdp_config.mixed_precision.",
    "actor_rollout_ref.ref.fsdp_config.mixed_precision.",
    "critic.fsdp.mixed_precision.",
)
"""Under these verl takes any name, with a `+` before it."""
PLAIN = re.compile(r"[A-Za-z0-9_./:@~-]+")
LOOKS_LIKE_MORE = re.compile(r"(?i:true|false|null|none|nan|inf)|[-+]?[0-9._]+(?:e[-+]?[0-9]+)?")


class Raw(NamedTuple):
    """A value in Hydra's own spelling."""

    text: str


@cache
def known_keys() -> frozenset[str]:
    """Names of verl 0.9.1's configuration, tables and leaves."""
    leaves = KNOWN.read_text(encoding="utf-8").split()
    return frozenset(".".join(leaf.split(".")[:n]) for leaf in leaves for n in range(1, leaf.count(".") + 2))


def is_known(key: str) -> bool:
    """Does verl have it, or take it as an addition?"""
    return key in known_keys() or key.startswith(ADDED)


def suggested(key: str) -> str:
    """`; did you mean …?`"""
    return suggestion(key, sorted(known_keys()))


def split(text: str) -> tuple[str, Raw]:
    """An override of the user's into key and value."""
    key, equals, value = text.partition("=")
    key = key.strip().lstrip("+")
    if not equals or not key:
        raise UserError(f"engine.overrides: {text!r} is not `key=value`")
    return key, Raw(value)


def override(key: str, value: Any) -> str:
    """One argument of verl's command line."""
    return f"{'' if key in known_keys() else '+'}{key}={written(value)}"


def written(value: Any) -> str:
    """In Hydra's grammar."""
    if isinstance(value, Raw):
        return value.text
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{written(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(written, value)) + "]"
    text = str(value)
    if PLAIN.fullmatch(text) and not LOOKS_LIKE_MORE.fullmatch(text):
        return text
    escaped = text.replace("'", "\\'")
    return f"'{escaped}'"


def _write_known() -> None:
    """From the installed verl."""
    from hydra import compose, initialize_config_module
    from omegaconf import DictConfig

    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer")

    def leaves(node: Any, prefix: str) -> list[str]:
        if not isinstance(node, DictConfig) or not len(node):
            return [prefix]
        names = [name for name in node if name != "_target_"]
        return [leaf for name in names for leaf in leaves(node._get_node(name), f"{prefix}.{name}".strip("."))]

    KNOWN.write_text("\n".join(sorted(leaves(config, ""))) + "\n", encoding="utf-8")
    print(json.dumps({"keys": len(KNOWN.read_text().split()), "file": KNOWN.name}))


if __name__ == "__main__":
    _write_known()
