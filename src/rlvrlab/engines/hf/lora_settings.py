"""What adapter_config.json may say of an adapter that is merged here: a list of all that is understood, so that a
variant of LoRA that nobody here has heard of is refused instead of being merged as if it were a plain one."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from rlvrlab.engines.hf.config import ALL_LINEAR
from rlvrlab.errors import UserError, cut, quoted
from rlvrlab.models.tensors import ADAPTER_CONFIG

TAKEN = {"peft_type", "r", "lora_alpha", "use_rslora", "bias", "init_lora_weights", "target_modules",
         "exclude_modules", "layers_to_transform", "layers_pattern"}  # fmt: skip
WITHOUT_PART = {
    "auto_mapping", "base_model_name_or_path", "eva_config", "fan_in_fan_out", "inference_mode", "lora_dropout",
    "megatron_core", "peft_version", "qalora_group_size", "revision", "runtime_config", "task_type",
}  # fmt: skip
"""They change no number of a merged weight; all others may only say nothing: null, false, an empty list or table."""
BEGINNINGS: tuple[Any, ...] = (None, True, False, "gaussian", "eva", "orthogonal")
"""First values that leave the model as it is; with others PEFT changes its weights too when it loads the adapter."""
PATTERN_S = 1.0
"""Seconds that a pattern may take for one name: it comes with the adapter, and some patterns never end."""
LONGEST_PATTERN = 10_000
NAME = re.compile(r"[A-Za-z0-9_]+\Z")
NUMBERED = re.compile(r".*?\.[^.]*\.(\d+)\.")


class Settings(NamedTuple):
    """What holds for all layers of an adapter."""

    rank: int
    scale: float
    targets: Any = None
    left_out: Any = None
    layers: list[int] | None = None
    containers: tuple[str, ...] = ()

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Settings:
        """From settings that `obstacle` has nothing to say of; ValueError where a number is none."""
        rank, alpha, rooted = facts["r"], facts["lora_alpha"], facts.get("use_rslora") or False
        if type(rank) is not int or type(alpha) not in (int, float) or not isinstance(rooted, bool):
            raise ValueError("r is a whole number, lora_alpha a number and use_rslora true or false")
        scale = float(alpha) / (math.sqrt(rank) if rooted else rank)
        layers, containers = facts.get("layers_to_transform"), facts.get("layers_pattern") or ()
        return cls(
            rank, scale, facts.get("target_modules"), facts.get("exclude_modules"),
            [layers] if isinstance(layers, int) else layers or None,
            (containers,) if isinstance(containers, str) else tuple(containers),
        )  # fmt: skip

    def reaches(self, module: str) -> bool:
        """Whether PEFT puts an adapter there; tensors for any other module it leaves out."""
        if self.left_out and _names(self.left_out, module):
            return False
        if self.targets is None or self.targets == ALL_LINEAR:
            return True
        if not _names(self.targets, module):
            return False
        return isinstance(self.targets, str) or module in self.targets or self._is_numbered(module)

    def _is_numbered(self, module: str) -> bool:
        if self.layers is None:
            return True
        found = [re.match(rf"(?:^|.*?\.){one}\.(\d+)\.", module) for one in self.containers] or [NUMBERED.match(module)]
        first = next((one for one in found if one is not None), None)
        return first is not None and int(first[1]) in self.layers


def obstacle(facts: Any) -> str | None:
    """Why an adapter with these settings is not merged, or None where it is."""
    if not isinstance(facts, dict) or facts.get("peft_type", "LORA") != "LORA" or facts.get("bias", "none") != "none":
        return "another type"
    if type(facts.get("r")) is int and facts["r"] < 1:
        return "another type: r is below 1"
    known = TAKEN | WITHOUT_PART
    odd = [key for key, value in facts.items() if key not in known and not _says_nothing(value)]
    if odd:
        return ", ".join(cut(key, 40) for key in odd[:5])
    begins = facts.get("init_lora_weights", True)
    if not any(begins is one or (isinstance(one, str) and begins == one) for one in BEGINNINGS):
        return f"init_lora_weights {quoted(begins, 40)}, with which the model's own weights change"
    return _odd_place(facts)


def _odd_place(facts: dict[str, Any]) -> str | None:
    """Places are names or one pattern; layers are numbers."""
    for key in ("target_modules", "exclude_modules"):
        told = facts.get(key)
        if not (told is None or _are(told, str) or (isinstance(told, str) and len(told) <= LONGEST_PATTERN)):
            return f"{key} that are neither names nor a pattern of at most {LONGEST_PATTERN} characters"
    layers, containers = facts.get("layers_to_transform"), facts.get("layers_pattern") or []
    if not (layers is None or type(layers) is int or _are(layers, int)):
        return "layers_to_transform that are no whole numbers"
    words = [containers] if isinstance(containers, str) else containers
    if not _are(words, str) or not all(NAME.match(one) for one in words):
        return "layers_pattern that are no plain names"
    return None


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(one) is kind for one in values)


def _says_nothing(value: Any) -> bool:
    return value is None or value is False or value in ([], {})


def _names(places: str | list[str], module: str) -> bool:
    """Whether these are the module: a pattern of its whole name, or ends of it."""
    if not isinstance(places, str):
        return any(f".{module}".endswith(f".{one}") for one in places)
    # Transformers needs it too; unlike Python's own it can be told when to stop.
    import regex  # type: ignore[import-untyped]

    try:
        return regex.fullmatch(places, module, timeout=PATTERN_S) is not None
    except (regex.error, TimeoutError) as error:
        text = f"{ADAPTER_CONFIG}: the pattern {quoted(places, 100)} cannot be used ({type(error).__name__})"
        raise UserError(f"{' '.join(text.split())}; name the modules") from None
