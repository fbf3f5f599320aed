"""What would make the steps of a run shorter: where its time went, and which keys of its recipe can still change that.

Only keys that the recipe's own tables have are named, and none that is set already: a toy policy has no adapter, an SFT
phase draws no answers, and verl's loop has no pipeline of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.record.profile import Spent
from rlvrlab.registry import find, names
from rlvrlab.shares import about

WORTH = 0.1
"""Share of all seconds of a run's steps from which on a part is worth a word."""


class Phase(NamedTuple):
    """A phase that takes long, and the recipe it belongs to."""

    name: str
    recipe: Mapping[str, Any]
    draws: bool
    """Are answers drawn in its steps?"""

    def value(self, key: str) -> Any:
        """What the recipe says of a dotted key; None where it has no such key."""
        table, _, leaf = key.partition(".")
        whole = self.recipe.get(table) or (self.recipe.get("phase_tables") or {}).get(table)
        return whole.get(leaf) if isinstance(whole, Mapping) else None

    def own(self, leaf: str) -> Any:
        """What the recipe says of a key of this phase."""
        return self.value(f"{self.name}.{leaf}")

    def above(self, key: str, least: int) -> bool:
        """Is this a number that could still be lower, down to `least`?"""
        found = self.value(key)
        return isinstance(found, int | float) and found > least

    @property
    def on_verl(self) -> bool:
        """Does verl own the loop?"""
        return bool(self.value("engine.type") == "verl")


def advice(profile: Sequence[Spent], recipe: Mapping[str, Any]) -> list[str]:
    """What would make the run shorter, one line per part that takes much of its phase; `recipe` as tables.

    What takes little of the whole run is left alone, however much of a short phase it is.
    """
    drawing = {spent.phase for spent in profile if spent.part == "sample"}
    least, told = WORTH * sum(spent.seconds for spent in profile), []
    for part, (many, remedies) in REMEDIES.items():
        for spent in (one for one in profile if one.part == part and one.share >= many and one.seconds >= least):
            found = remedies(Phase(spent.phase, recipe, spent.phase in drawing))
            if found:
                told.append(f"{spent.phase}: {about(spent.share)} is {spent.words}; {_listed(found)}")
    return told


def _listed(remedies: Sequence[str]) -> str:
    *first, last = remedies
    return f"{', '.join(first)}{', or ' if len(first) > 1 else ' or '}{last}" if first else last


def _judge(at: Phase) -> list[str]:
    """One thing at a time: shorter limits first, then judging beside sampling, then more places to judge."""
    if not _judged_elsewhere(at):
        few = " or fewer answers (rollout.n)" if at.above("rollout.n", 2) else ""
        return [f"this environment judges in the training process, so only a faster verify{few} helps"]
    shorter = ["lower env.timeout_s"] if at.value("env.timeout_s") is not None else []
    if not at.on_verl and at.value("pipeline.limits") == "fixed":
        return ['stop endless programs sooner with pipeline.limits = "learnt"', *shorter]
    if not at.on_verl and at.value("pipeline.lag") == 0 and _may_lag(at):
        return ["judge a step while the next is sampled: pipeline.lag = 1"]
    return ["give the judge more cores", "servers of its own (`rlvr serve judge`, RLVR_JUDGE)"]


def _judged_elsewhere(at: Phase) -> bool:
    """Do other processes run the answers? Where the environment is not one of ours, that is taken for granted."""
    name = at.value("env.type")
    return name not in names("env") or find("env", name).judged_elsewhere is not BaseEnvironment.judged_elsewhere


def _may_lag(at: Phase) -> bool:
    """Second tries and refills wait for verdicts, so they cannot be judged beside sampling."""
    again = at.name in names("phase") and find("phase", at.name).tries > 1
    return at.draws and not again and at.value("filter.dead_groups") != "refill"


def _limits(at: Phase) -> list[str]:
    return ["each problem's reference runs once, so this ends when all have been drawn"] if at.draws else []


def _credit(at: Phase) -> list[str]:
    return ["examine fewer answers or steps: see the keys of [credit]"]


def _evaluate(at: Phase) -> list[str]:
    more = ["raise eval.every"] if _repeats(at, "eval.every") else []
    return more + (["lower data.dev_size"] if at.above("data.dev_size", 1) else [])


def _record(at: Phase) -> list[str]:
    """Evaluations count too: each writes EXPERIMENT.md anew, and a new best result is saved."""
    found = [f"raise {key}" for key in ("checkpoint.every", "eval.every") if _repeats(at, key)]
    if at.draws and not at.on_verl and at.value("record.rollouts") == "all":
        found.append('set record.rollouts = "none"')
    return found


def _repeats(at: Phase, key: str) -> bool:
    """Does what happens every so many steps happen before the end of the phase? 0 is never, or only at the end."""
    every, steps = at.value(key), at.own("steps")
    return isinstance(every, int) and every > 0 and (not isinstance(steps, int) or every < steps)


def _sample(at: Phase) -> list[str]:
    found = ["lower rollout.max_tokens if few answers reach it"] if at.above("rollout.max_tokens", 1) else []
    if at.value("engine.sampler") == "embedded":
        adapter = "" if at.above("engine.lora_rank", 0) else ", which take a LoRA adapter"
        found.append(f"let servers sample (engine.sampler{adapter})")
    return found


def _score(at: Phase) -> list[str]:
    return ["kl.coef = 0 saves the reference's pass"] if at.draws and at.above("kl.coef", 0) else []


def _update(at: Phase) -> list[str]:
    found = ["train a LoRA adapter (engine.lora_rank)"] if at.value("engine.lora_rank") == 0 else []
    if at.value("engine.gradient_checkpointing"):
        found.append("set engine.gradient_checkpointing = false if memory allows")
    if at.value("engine.micro_tokens") is not None:
        found.append("raise engine.micro_tokens as far as memory allows")
    if at.above(f"{at.name}.epochs", 1):
        found.append(f"lower {at.name}.epochs")
    size = "rollout.n" if at.draws and at.above("rollout.n", 2) else f"{at.name}.batch_size"
    return found + ([f"lower {size}"] if at.above(size, 1) else [])


def _critic(at: Phase) -> list[str]:
    key = f"{at.name}.value_epochs"
    return [f"lower {key}"] if at.above(key, 1) else []


REMEDIES: Mapping[str, tuple[float, Callable[[Phase], list[str]]]] = {
    "judge": (0.2, _judge),
    "limits": (0.2, _limits),
    "credit": (0.3, _credit),
    "critic": (0.3, _critic),
    "score": (0.3, _score),
    "evaluate": (0.3, _evaluate),
    "record": (0.2, _record),
    "sample": (0.6, _sample),
    "update": (0.6, _update),
}
"""Part -> the share of a phase's time from which it deserves advice, and what may be done; the most telling first."""
