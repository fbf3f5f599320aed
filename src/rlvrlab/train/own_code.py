"""What is found out about the user's own data, code and settings before a run folder is made."""

from __future__ import annotations

from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.parse import flatten
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.record.redact import HIDDEN, redact
from rlvrlab.registry import is_own
from rlvrlab.rollout.trial import tried
from rlvrlab.train.lab import Lab


def try_own_code(lab: Lab) -> None:
    """Call the user's own verifier and reward on one problem; a built-in one needs no trial."""
    own_env, own_reward = (_has_own(getattr(lab.recipe, table)) for table in ("env", "reward"))
    if own_env or own_reward:
        tried(lab.env, lab.reward, lab.train[0], lab.engine.tokenizer.encode, own_env=own_env)


def refuse_secrets(resolved: Resolved) -> None:
    """Refuse a key that would be stored as [redacted]: such a run could neither be evaluated nor resumed."""
    tables = {kind: resolved.recipe.model_dump()[kind] or {} for kind in PLUGIN_TABLES}
    if hidden := hidden_keys(redact(tables)):
        remedy = "let the plug-in read it from the environment, or rename the key if it is no secret"
        raise UserError(f"{', '.join(hidden)}: looks like a secret, which no run stores; {remedy}")


def hidden_keys(tables: dict[str, Any]) -> list[str]:
    """Keys whose value was redacted."""
    return [key for key, value in flatten(tables) if HIDDEN in str(value)]


def _has_own(table: dict[str, Any]) -> bool:
    return any(is_own(value) for _, value in flatten(table))
