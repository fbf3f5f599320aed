"""Several environments as one: problems of all of them in given proportions, each judged by its own.

    [env]
    type = "mixture"
    ratios = [2, 1]
    members = [{type = "countdown", style = "bare"}, {type = "minicode", label = "code", skills = ["gen"]}]

    id      minicode:gen:1:5f0c… of member 1  ->  1/minicode:gen:1:5f0c…
    skill   the member's own (gen), or its label (code) where it has one
    meta    {…, "member": 1, "own_skill": "gen"}

Prepared files of the members' own rows (`data.train_file = ["mbpp_train.jsonl", "mbpp_code_repair_train.jsonl"]`) are
mixed likewise: each row goes to the first member that judges it. Without `ratios` all rows are taken, spread evenly.

Trap: two members may make the same problem under different rules; ids carry the member's number to keep them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rlvrlab.envs.base import BaseEnvironment, GivesFeedback
from rlvrlab.errors import UserError
from rlvrlab.recipe.remedies import instantiate_part
from rlvrlab.registry import register
from rlvrlab.types import Check, Environment, Positive, Problem, Role, Verdict


def one_does(declared: str) -> Any:
    """The property that a mixture declares this where one of its members does."""

    def declares(env: Environment) -> bool:
        return isinstance(env, BaseEnvironment) and bool(getattr(env, declared))

    return property(lambda self: any(map(declares, self.environments)))


@register("env", "mixture")
@dataclass(frozen=True)
class Mixture(BaseEnvironment):
    """One environment made of several."""

    members: tuple[dict[str, Any], ...] = ({"type": "countdown"},)
    """Tables of environments; `label` names the skill of all of a member's problems."""
    ratios: tuple[Positive, ...] = ()
    """Weights of the members, in their order; empty weighs all alike."""

    @cached_property
    def version(self) -> str:  # type: ignore[override]
        """Names and versions of the members, so that it changes when any member's version does."""
        return "1(" + ",".join(f"{env.name}:{env.version}" for env in self.environments) + ")"

    @cached_property
    def environments(self) -> list[Environment]:
        """The members, built from their tables."""
        own = [{key: value for key, value in table.items() if key != "label"} for table in self.members]
        return [instantiate_part("env", table, f"mixture: members[{i}]", Path()) for i, table in enumerate(own)]

    judged_elsewhere = one_does("judged_elsewhere")  # it is what a step waits for
    runs_answers = one_does("runs_answers")
    uses_tools = one_does("uses_tools")

    def __post_init__(self) -> None:
        if not self.members:
            raise UserError("mixture: members is empty; give at least one environment table")
        if self.ratios and len(self.ratios) != len(self.members):
            raise UserError(f"mixture: {len(self.ratios)} ratios for {len(self.members)} members; one each or none")
        _ = self.environments  # a mistake in a member is told at once

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Interleaved, so that the beginning of a long list has the same proportions."""
        order = _interleaved(self.ratios or (1.0,) * len(self.members), size)
        made = [iter(env.problems(role, order.count(i), seed)) for i, env in enumerate(self.environments)]
        return [self._labelled(i, next(made[i])) for i in order]

    def judge_of(self, problem: Problem) -> Environment | None:
        """The first member that judges such a problem; of one that a mixture has made, the member it names."""
        if "member" in problem.meta:
            return self.environments[problem.meta["member"]] if problem.meta["member"] < len(self.members) else None
        judges = (env.judge_of(problem) for env in self.environments if isinstance(env, BaseEnvironment))
        return next((judge for judge in judges if judge is not None), None)

    def adopted(self, problem: Problem) -> Problem:
        """As if its member had made it."""
        judge = self.judge_of(problem)
        assert judge is not None, "asked before it is adopted"
        member = next(i for i, env in enumerate(self.environments) if env is judge)
        return problem if "member" in problem.meta else self._labelled(member, problem)

    def in_proportion(self, problems: Sequence[Problem], size: int | None) -> list[Problem]:
        """Interleaved: without ratios all of them, else until a member that is due has none left."""
        parts = [[p for p in problems if p.meta["member"] == i] for i in range(len(self.members))]
        weights = self.ratios or tuple(float(len(part)) for part in parts)
        left = [iter(part) for part in parts]
        mixed: list[Problem] = []
        for member in _interleaved(weights, len(problems) if size is None else min(size, len(problems))):
            problem = next(left[member], None)
            if problem is None:
                break
            mixed.append(problem)
        return mixed

    def _labelled(self, member: int, problem: Problem) -> Problem:
        """A member's problem as one of the mixture: its number before the id, its label as the skill."""
        skill = str(self.members[member].get("label", problem.skill))
        meta = {**problem.meta, "member": member, "own_skill": problem.skill}
        return replace(problem, id=f"{member}/{problem.id}", skill=skill, meta=meta)

    def gold(self, problem: Problem) -> str | None:
        """The answer of the member that made the problem."""
        env, inner = self._inner(problem)
        return env.gold(inner)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """The cheats that the member knows for its problem."""
        env, inner = self._inner(problem)
        return env.cheats(inner) if isinstance(env, BaseEnvironment) else {}

    def verify(self, problem: Problem, text: str) -> Verdict:
        """The member that made the problem judges the answer."""
        env, inner = self._inner(problem)
        return env.verify(inner, text)

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """One call per member, so that each can judge its own abreast."""
        verdicts: dict[int, Verdict] = {}
        for member, env in enumerate(self.environments):
            places = [i for i, (problem, _) in enumerate(items) if problem.meta["member"] == member]
            own = env.verify_many([(self._inner(items[i][0])[1], items[i][1]) for i in places])
            verdicts |= zip(places, own, strict=True)
        return [verdicts[i] for i in range(len(items))]

    def refuse_judge(self, problems: Sequence[Problem]) -> None:
        """As each member does for its own problems."""
        for member, env in enumerate(self.environments):
            if isinstance(env, BaseEnvironment):
                env.refuse_judge([self._inner(p)[1] for p in problems if p.meta["member"] == member])

    def self_check(self) -> list[Check]:
        """The checks of all members, one after the other."""
        return [check for env in self.environments for check in env.self_check()]

    def second_turn(self, problem: Problem, text: str, verdict: Verdict) -> str:
        """The member's feedback, where it gives any."""
        env, inner = self._inner(problem)
        if not isinstance(env, GivesFeedback):
            raise UserError(f"mixture: member {env.name!r} gives no feedback for a second turn")
        return env.second_turn(inner, text, verdict)

    def _inner(self, problem: Problem) -> tuple[Environment, Problem]:
        """The member that asked, and the problem as that member made it."""
        member = problem.meta["member"]
        own = replace(problem, id=problem.id.removeprefix(f"{member}/"), skill=problem.meta["own_skill"])
        return self.environments[member], own


def _interleaved(ratios: Sequence[float], size: int) -> list[int]:
    """Which member each place belongs to: whoever is furthest behind its share."""
    total, given = sum(ratios), [0] * len(ratios)
    order = []
    for place in range(1, size + 1):
        behind = [ratio / total * place - count for ratio, count in zip(ratios, given, strict=True)]
        member = behind.index(max(behind))
        given[member] += 1
        order.append(member)
    return order
