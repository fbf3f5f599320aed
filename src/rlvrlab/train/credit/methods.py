"""Step credit of a collection, by the method of the recipe's [credit] table.

The group's advantage is computed as ever; credit is mapped onto it afterwards. A group whose answers all earned the
same has no advantage, yet deleting a step may show what its answers are made of: such groups are kept when credit has
something to say. Whatever is not known (not examined, not judged, no longer running) leaves the token its group's
advantage, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from rlvrlab.credit.base import Remembered, StepCredit
from rlvrlab.rollout.replay import Replayer
from rlvrlab.train.credit.credited import StepCredits, combined
from rlvrlab.train.credit.replays import replay_credits
from rlvrlab.train.credit.trace import trace_credits
from rlvrlab.train.credit.tree import tree_credits
from rlvrlab.types import Environment, RewardFunction, Rollout, Sampler, Sampling

NOTHING: Remembered = MappingProxyType({})


def credit_of(
    plugin: StepCredit,
    rollouts: Sequence[Rollout],
    env: Environment,
    reward: RewardFunction,
    sampler: Sampler,
    sampling: Sampling,
    remembered: Remembered = NOTHING,
    *,
    cached: bool = True,
) -> StepCredits:
    """Credit of all judged answers; `remembered` is from earlier steps. `cached` is for tests: results are the same."""
    if plugin.parts:
        found = [
            credit_of(part, rollouts, env, reward, sampler, sampling, remembered, cached=cached)
            for part in plugin.parts
        ]
        return combined(plugin, found, remembered)
    if plugin.grows:
        return tree_credits(plugin, rollouts, sampler.tokenizer.decode)
    if plugin.follows:
        return trace_credits(plugin, rollouts, env, sampler.tokenizer.decode)
    replayer = Replayer(env, reward, sampler, sampling, plugin.samples, plugin.invalid, cached)
    return replay_credits(plugin, rollouts, replayer, remembered, sampler.tokenizer.decode)
