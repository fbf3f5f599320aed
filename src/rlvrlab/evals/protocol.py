"""How a policy is examined: named settings, hashed into every result, the same in training and afterwards.

EVAL@1       one greedy answer per problem
EVAL@k       n answers per problem: unbiased pass@k, pass^k, majority
EVAL@budget  answers until a problem is solved or the budget is spent: what a budget buys
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from rlvrlab.errors import UserError
from rlvrlab.types import Environment, Problem, Sampling, content_hash

VERSION = 1
"""Changes whenever the same settings would give another number."""
MAX_NEW_TOKENS = 2048
RUN_TIMEOUT_S = 30.0
MEMORY_MB = 1024
USUAL_SIZE = 200
"""Problems that an environment is asked to make where nobody says how many."""
USUAL_N = 8
"""Answers per problem under EVAL@k, where nobody says how many."""
MOST_ANSWERS = 256
"""Most answers per problem under EVAL@budget, so that it ends even where answers cost nothing."""
LIMITS = {"timeout_s": "run_timeout_s", "memory_mb": "memory_mb"}
"""An environment's key -> the protocol's field that sets it."""

Spent = Literal["tokens", "judge_s", "wall_s"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What EVAL@budget may spend."""

    kind: Spent
    """tokens and judge_s are counted per problem, wall_s for the whole data set."""
    amount: float

    def __str__(self) -> str:
        return f"{self.amount:g} {self.kind.replace('_s', ' seconds')}"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way to examine; make it with eval_at_1, eval_at_k or eval_at_budget."""

    name: Literal["EVAL@1", "EVAL@k", "EVAL@budget"]
    n: int
    """Answers per problem; under EVAL@budget at most so many."""
    ks: tuple[int, ...]
    """For which k pass@k and pass^k are reported."""
    sampling: Sampling
    budget: Budget | None = None
    run_timeout_s: float | None = None
    """Seconds for one run of a program; None leaves it to the environment."""
    memory_mb: int | None = None
    """Memory for it; None leaves it to the environment."""
    tries: int = 1
    """2: a failed first answer is followed by a greedy second try after feedback, and by a blind one as its control."""

    def __post_init__(self) -> None:
        wrong = [k for k in self.ks if not 1 <= k <= self.n]
        if wrong:
            raise UserError(
                f"k = {wrong[0]} of {self.n} samples: k must be between 1 and the number of samples; draw more with --n"
            )
        if self.n < 1 or self.sampling.max_tokens < 1:
            raise UserError(f"{self.name}: n = {self.n}, max_tokens = {self.sampling.max_tokens}: both at least 1")
        if self.sampling.temperature < 0 or not 0 < self.sampling.top_p <= 1:
            raise UserError(f"{self.name}: temperature must be 0 or more and top_p in (0, 1]")
        if self.n > 1 and self.sampling.temperature == 0:
            raise UserError(f"{self.name}: {self.n} greedy answers are {self.n} times the same; set --temperature")
        if self.tries not in (1, 2) or (self.tries > 1 and self.budget is not None):
            raise UserError(f"{self.name}: tries = {self.tries}: 1 or 2, and 1 under EVAL@budget, which tries anyway")
        if self.budget is not None and not self.budget.amount > 0:
            raise UserError(f"{self.name}: a budget of {self.budget} buys nothing; give more than 0")

    @property
    def hash(self) -> str:
        """Equal settings, equal hash; two results compare only under one."""
        settings = json.dumps([VERSION, self.facts()], sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:12]

    def facts(self) -> dict[str, Any]:
        """The settings as plain JSON values."""
        facts: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        if self.tries == 1:  # first tries are asked alike with and without second ones after them
            del facts["tries"]
        return facts

    def applied(self, env: Environment, chosen: Collection[str] = ()) -> tuple[Environment, Protocol]:
        """The environment under this protocol's limits, and the protocol as it is in force.

        A key in `chosen` was set by the user and stays; a limit that the environment has no key for becomes None.
        """
        keys: set[str] = {item.name for item in fields(env)} if is_dataclass(env) else set()
        changes: dict[str, Any] = {}
        in_force: dict[str, Any] = {}
        for key, name in LIMITS.items():
            if key not in keys:
                in_force[name] = None
            elif key in chosen or getattr(self, name) is None:
                in_force[name] = getattr(env, key)
            else:
                changes[key] = in_force[name] = getattr(self, name)
        limited: Any = replace(env, **changes) if changes and is_dataclass(env) else env
        return limited, replace(self, **in_force)


def eval_at_1(max_tokens: int = MAX_NEW_TOKENS) -> Protocol:
    """EVAL@1: greedy, 2048 new tokens, programs 30 s and 1024 MB."""
    return Protocol("EVAL@1", 1, (1,), Sampling(max_tokens, 0.0), None, RUN_TIMEOUT_S, MEMORY_MB)


def eval_at_k(
    n: int = 8, ks: Sequence[int] = (1, 8), temperature: float = 1.0, top_p: float = 1.0,
    max_tokens: int = MAX_NEW_TOKENS,
) -> Protocol:  # fmt: skip
    """EVAL@k: `n` sampled answers per problem."""
    sampling = Sampling(max_tokens, temperature, top_p)
    return Protocol("EVAL@k", n, tuple(sorted(set(ks))), sampling, None, RUN_TIMEOUT_S, MEMORY_MB)


def eval_at_budget(
    budget: Budget, temperature: float = 1.0, top_p: float = 1.0, max_tokens: int = MAX_NEW_TOKENS,
    n: int = MOST_ANSWERS,
) -> Protocol:  # fmt: skip
    """EVAL@budget: answers one after the other until solved or spent."""
    return Protocol("EVAL@budget", n, (), Sampling(max_tokens, temperature, top_p), budget, RUN_TIMEOUT_S, MEMORY_MB)


def named_protocol(
    name: str, *, max_tokens: int = MAX_NEW_TOKENS, n: int | None = None, ks: Sequence[int] = (), budget: str = "",
    temperature: float | None = None, top_p: float = 1.0, tries: int = 1, dashes: str = "",
) -> Protocol:  # fmt: skip
    """The protocol that a user names `@1`, `@k` or `@budget`, with the settings that belong to it.

    A setting of another protocol is refused: it would be asked for and not be there. `dashes` stand before a setting
    where it is an option.
    """
    if name != "@budget" and budget:
        raise UserError(f"{dashes}budget belongs to {dashes}protocol @budget")
    if name == "@1":
        wrong = [key for key, given in (("n", n), ("k", ks), ("temperature", temperature)) if given]
        wrong += ["top-p"] if top_p != 1 else []
        if wrong:
            raise UserError(f"{dashes}{wrong[0]}: @1 is one greedy answer; take {dashes}protocol @k")
        return replace(eval_at_1(max_tokens), tries=tries)
    usual = 1.0 if temperature is None else temperature
    if name == "@k":
        n = n or USUAL_N
        return replace(eval_at_k(n, tuple(ks) or sorted({1, n}), usual, top_p, max_tokens), tries=tries)
    if name != "@budget":
        raise UserError(f"{dashes}protocol {name}: unknown; allowed: @1, @k, @budget")
    kind, _, amount = budget.partition("=")
    said = f"{dashes}budget {budget}:" if budget else f"{dashes}protocol @budget needs {dashes}budget:"
    example = f"{dashes}budget tokens=2000" if dashes else 'budget = "tokens=2000"'
    refusal = UserError(f"{said} write {example}, judge_s=5 or wall_s=60")
    if kind not in get_args(Spent):
        raise refusal
    try:
        spent = Budget(kind, float(amount))  # type: ignore[arg-type]
    except ValueError:
        raise refusal from None
    return replace(eval_at_budget(spent, usual, top_p, max_tokens, n or MOST_ANSWERS), tries=tries)


def asked_facts(
    env: Environment, problems: Sequence[Problem], protocol: Protocol, seed: int, data: str
) -> dict[str, Any]:
    """What was asked and by whom it is judged: what two results must have alike to be compared."""
    return {
        "data": data,
        "data_hash": content_hash(problems),
        "problems": len(problems),
        "roles": sorted({problem.role for problem in problems}),
        "scorer": scorer_of(env),
        "protocol": protocol.facts(),
        "protocol_hash": protocol.hash,
        "seed": seed,
    }


def scorer_of(env: Environment) -> dict[str, Any]:
    """Who judged: name, version and the keys it was built with."""
    try:
        keys = TypeAdapter(type(env)).dump_python(env, mode="json")
    except Exception:  # an environment that is no plug-in has no keys to tell
        keys = {}
    return {"environment": env.name, "version": env.version, "keys": keys if isinstance(keys, dict) else {}}
