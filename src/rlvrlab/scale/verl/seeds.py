"""A seed of its own for every answer, so that an update made again after a resume draws what it drew the first time.

verl seeds its sampler once, when it starts: a resumed run would begin that stream of random numbers anew, in the middle
of the training. Here the seed follows from the recipe's seed, the step, the problem and the number of the answer. Only
the sampler on a CPU is asked in this way: a seed per request costs vLLM its fast path, and does not make its answers
repeatable in bfloat16 (docs/cluster.md); SGLang has another name for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rlvrlab.randomness import plain_seed
from rlvrlab.scale.verl.job import current

_asked: dict[tuple[int, str], list[str]] = {}
"""(step, problem) -> verl's names for each time that it was asked in this step, in order."""


def seeded(sampling: Mapping[str, Any], row: Mapping[str, Any], turn: int = 0) -> dict[str, Any]:
    """verl's sampling parameters with the seed of this answer, where its sampler is ours."""
    recipe = current().resolved.recipe
    if recipe.engine["rollout"] != "cpu":
        return dict(sampling)
    step, problem = int(row["global_steps"]), str((row.get("extra_info") or {}).get("id"))
    for old in [key for key in _asked if key[0] != step]:
        del _asked[old]
    # A batch may hold the problem twice, with answers of its own each: how often was it asked before in this step?
    uids, uid = _asked.setdefault((step, problem), []), str(row["uid"])
    if uid not in uids:
        uids.append(uid)
    again = uids.index(uid)
    key = (recipe.seed, "verl", step, problem, again, int(row["session_id"]), turn)
    return {**sampling, "seed": plain_seed(*key)}


class AnswerHooks:
    """Mixin placed before verl's agent loop of one turn."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        """One answer to a row of the data."""
        return await super().run(seeded(sampling_params, row), **row)  # type: ignore[misc]


def answer_loop(**named: Any) -> Any:
    """An agent loop, as verl instantiates them."""
    from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

    return loop_class("RlvrAnswers", AnswerHooks, SingleTurnAgentLoop)(**named)


@cache
def loop_class(name: str, hooks: type, verls_own: type) -> Any:
    """An agent loop of verl's with hooks before it: one class in a process, however many loops it has."""
    return type(name, (hooks, verls_own), {})
