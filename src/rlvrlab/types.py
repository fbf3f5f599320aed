"""The records that flow through the laboratory, and the protocols of what plugs into it.

Problem -> Completion -> Verdict -> Reward; the four together are a Rollout, which may be cut into Steps. Rollouts
become a RewardBatch, Advantages and a TokenBatch (batch.py), and an objective makes a Loss of these.
Nothing here knows an engine, a path or a clock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

from annotated_types import Ge, Gt, Le, Lt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rlvrlab.batch import TokenBatch

Role = Literal["train", "dev", "test"]
SHOWN = 50
"""Characters of a prompt in a message."""
LIMIT = "limit_s"
"""Key of a problem's meta: CPU seconds per test that answers to it may take, where it is less than usual."""
TESTS_LEFT_OUT = "tests_left_out"
"""Key of a problem's meta: how many of its tests the environment's own limit leaves out."""
RULES = "rules"
"""Key of a problem's meta: by name, whether a rule that looks at little of the question would be right."""
KEY_ENV = "RLVR_API_KEY"
"""Environment variable with the key of servers that sample, where no other is named."""
ONLY_OUTCOME = "only_outcome"
"""Key of a problem's meta: only whether an answer is right counts, so a test that ends its program is the last."""
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Fraction01 = Annotated[float, Ge(0), Le(1)]
Memory01 = Annotated[float, Ge(0), Lt(1)]
"""What a running mean keeps of itself when a value arrives; at 1 it would never take one in."""
Temperature = Annotated[float, Ge(0.01), Le(100)]
"""Of a softmax over tokens; beyond, answers are as good as greedy or as good as noise, and numbers overflow."""
Count = Annotated[int, Ge(1)]
CountOrZero = Annotated[int, Ge(0)]


class Finish(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    """The policy emitted its end token or a stop string."""
    LENGTH = "length"
    """Cut at max_tokens: counted as truncated, an end token is missing."""
    ERROR = "error"
    """The sampler failed; the completion is not judged."""


class ErrorKind(StrEnum):
    """What kept an answer from being right."""

    NONE = "none"
    """Nothing: the answer is correct."""
    FORMAT = "format"
    """No answer could be extracted in the demanded form."""
    SYNTAX = "syntax"
    """The extracted answer does not parse or compile."""
    RUNTIME = "runtime"
    """The answer raised, crashed or was killed by a signal."""
    TIMEOUT = "timeout"
    """The answer used up its CPU or wall time."""
    MEMORY = "memory"
    """The answer used up its memory."""
    OUTPUT = "output"
    """The answer printed more than allowed."""
    WRONG = "wrong_answer"
    """The answer is well formed and not correct."""
    RULE = "rule"
    """The answer breaks a rule of the task (a number used twice, a forbidden operator)."""
    TAMPERED = "tampered"
    """The answer tried to forge its verdict."""
    INFRA = "infra"
    """The judge failed, not the answer: `correct` is None, masked and counted."""
    BAD_TASK = "bad_task"
    """The task cannot be judged as it is written, whatever is answered: `correct` is None, masked and counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One task instance, e.g. numbers 3 7 with target 21."""

    id: str
    """Unique within its source, stable across runs: `countdown:2:3,7=21`."""
    source: str
    """Environment or data set it came from: `countdown`."""
    skill: str
    """Name under which success, forgetting and surgery are reported."""
    prompt: str
    """What the policy sees, before any chat template."""
    reference: Any = None
    """Ground truth in plain data, as the verifier wants it. Never shown to the policy."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Level, seed, solver proof and whatever else the environment keeps."""
    role: Role = "train"
    """What it may be used for; enforced where data is loaded."""

    @property
    def named(self) -> str:
        """For messages: its id, which is often a hash, and how its prompt begins."""
        words = " ".join(self.prompt.split())
        return f"{self.id} ({words if len(words) <= SHOWN else words[:SHOWN] + '…'!r})"

    @property
    def key(self) -> str:
        """Content hash over prompt and reference: equal content, equal key."""
        content = json.dumps([self.source, self.prompt, self.reference], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def skills_of(problems: Sequence[Problem]) -> list[str]:
    """The skills in order of first appearance."""
    return list(dict.fromkeys(problem.skill for problem in problems))


def content_hash(problems: Sequence[Problem]) -> str:
    """Hash of the problems' contents, in order: how runs and evaluations name what they were given."""
    return hashlib.sha256("\n".join(problem.key for problem in problems).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw completions."""

    max_tokens: int = 64
    """Hard limit on new tokens."""
    temperature: float = 1.0
    """0 means greedy."""
    top_p: float = 1.0
    """Nucleus mass; anything below 1 makes the sampler differ from the trained policy."""
    stop: tuple[str, ...] = ()
    """Strings that end a completion (kept in the text)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to sample from."""

    tokens: tuple[int, ...]
    """The prompt's tokens."""
    n: int
    """Completions wanted."""
    key: tuple[Any, ...]
    """Randomness key: equal key and policy give equal samples, whatever shares the batch."""
    sampling: Sampling
    begun: int = 0
    """How many of the tokens, counted from the end, are the policy's own answer so far, with which it is to go on."""


class Branch(NamedTuple):
    """A stretch of an answer that grew on a tree: drawn once, and shared by all answers that go on from it."""

    path: tuple[int, ...]
    """Which child of which child of the prompt; negative for an answer drawn beside the tree."""
    end: int
    """Where it ends, in tokens of the completion; it begins where the one before it ends."""
    share: int
    """Answers that were to grow from it; fewer do where the policy ended before the next branching."""


class Turn(NamedTuple):
    """A stretch of an episode: what the policy wrote, or what a tool gave back."""

    by: Literal["policy", "tool"]
    text: str
    span: tuple[int, int]
    """Tokens [start, end) of the completion."""
    tool: str = ""
    """Which tool; empty for the policy, and for a call that named none."""
    ok: bool = True
    """False where the call was refused or failed."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the policy answered."""

    text: str
    """Decoded tokens without the end token."""
    tokens: tuple[int, ...]
    """Tokens as sampled, end token included when there is one."""
    logprobs: tuple[float, ...]
    """The sampler's log-probability of each token, at the sampling temperature."""
    finish: Finish = Finish.STOP
    """Why it ended."""
    policy_version: int = 0
    """Which published policy drew it."""
    turns: tuple[Turn, ...] = ()
    """The parts of an episode with tools; empty means that the policy wrote all of it in one turn."""
    branches: tuple[Branch, ...] = ()
    """Its way from the root where it grew on a tree of answers; empty where it was drawn by itself."""

    @property
    def given(self) -> list[tuple[int, int]]:
        """Token spans that the policy did not write: context, never trained on."""
        return [turn.span for turn in self.turns if turn.by == "tool"]


@dataclass(frozen=True, slots=True)
class Step:
    """One segment of a completion to which credit can be given."""

    index: int
    """Position among the steps."""
    kind: str
    """statement, clause, turn, paragraph, …"""
    span: tuple[int, int]
    """Characters [start, end) in the completion text."""
    text: str
    """The characters themselves."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the environment found out about one answer."""

    correct: bool | None
    """True, False, or None when it could not be judged: masked and counted, never reward 0."""
    score: float = 0.0
    """Partial success in [0, 1], e.g. the share of tests passed."""
    error: ErrorKind = ErrorKind.NONE
    """Why it is not correct."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Named components in [0, 1] that a reward may weigh: {"format": 1, "numbers": 1, "correct": 0}."""
    passed: int = 0
    """Tests passed."""
    total: int = 0
    """Tests run."""
    answer: str | None = None
    """The answer as extracted."""
    detail: str = ""
    """One line for a reader."""
    isolation: str = "none"
    """How foreign code was held: none (nothing was executed), landlock, bwrap, weak, …"""
    flags: tuple[str, ...] = ()
    """Oddities worth counting: early_exit, blocked_syscall, nonplain_return, stopped_early, …"""
    cost: Mapping[str, float] = field(default_factory=dict)
    """Measured judge cost (cpu_s, wall_s, peak_mb): varies from run to run, never decides a reward."""


def unjudged(detail: str, **fields: Any) -> Verdict:
    """The verdict of an infrastructure failure: no opinion about the answer."""
    return Verdict(correct=None, error=ErrorKind.INFRA, detail=detail, **fields)


def bad_task(detail: str, **fields: Any) -> Verdict:
    """The verdict on a task that nobody could solve as it is written: no opinion about the answer, and no retry."""
    return Verdict(correct=None, error=ErrorKind.BAD_TASK, detail=f"bad task: {detail}", flags=("bad_task",), **fields)


@dataclass(frozen=True, slots=True)
class Reward:
    """A number made from a verdict."""

    value: float
    """What the policy is trained on."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Weighted named parts; they add up to value."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One judged answer inside a group of answers to the same problem."""

    id: str
    """`<step>/<problem id>/<sample>`: unique within a run."""
    group_id: str
    """Shared by the answers to one problem in one collection."""
    problem: Problem
    prompt_tokens: tuple[int, ...]
    """The prompt as the engine saw it."""
    completion: Completion
    verdict: Verdict
    reward: Reward | None
    """None when the verdict is None."""
    steps: tuple[Step, ...] = ()
    """Segments for step credit; empty means the whole completion is one."""
    turn: int = 0
    """0 for a first try, 1 for the answer to feedback on it."""
    previous: str = ""
    """The rollout that this one tries to repair."""
    asked: str = ""
    """The prompt's text where it is not the problem's own: feedback on the try before."""


class Check(NamedTuple):
    """One line of an environment's self-check."""

    name: str
    """What was tried: `gold`, `cheat: number used twice`."""
    text: str
    """The answer handed in."""
    expected: bool
    """Whether it must be judged correct."""
    verdict: Verdict

    @property
    def ok(self) -> bool:
        """Did the environment judge as it must?"""
        return self.verdict.correct is self.expected


class Loss(NamedTuple):
    """An objective's answer: a value to minimise and its derivative in coefficient form."""

    value: float
    """Loss, already divided by the global normaliser, so micro-batches add up."""
    c_logp_BT: NDArray[np.float64]
    """d value / d log p of each chosen token."""
    c_entropy_BT: NDArray[np.float64] | None = None
    """d value / d entropy of each token's distribution, when the objective has one."""

    def rows(self, index: NDArray[np.int64]) -> Loss:
        """The coefficients of some rows; the value stays with the whole."""
        c_entropy_BT = None if self.c_entropy_BT is None else self.c_entropy_BT[index]
        return Loss(0.0, self.c_logp_BT[index], c_entropy_BT)


class Tokenizer(Protocol):
    """Text to tokens and back."""

    vocab_size: int
    end: int
    """Token that ends a completion, and with which right answers are taught to end."""
    ends: frozenset[int]
    """Every token that ends a completion, `end` among them."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokens of a text, without an end token."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens, end token dropped."""


class Sampler(Protocol):
    """Whatever can answer: an engine, or a server."""

    @property
    def tokenizer(self) -> Tokenizer:
        """How its prompts and answers become tokens."""

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """`n` completions for each request; tokens in, tokens out."""


Told = Callable[[Sequence[tuple[int, int, Completion]]], None]
"""Takes (request, sample, completion) of answers that are complete, in the thread that samples."""

Unwanted = Callable[[int], bool]
"""Whether nobody waits for the answers to a request any more, which is asked while they are drawn."""


@runtime_checkable
class StreamingSampler(Protocol):
    """A sampler that tells of answers while others are still being drawn."""

    def sample_streaming(self, requests: Sequence[Request], told: Told) -> list[list[Completion]]:
        """As `sample`; `told` hears of every answer once it is complete, and may hear of one twice."""


Couples = Literal["row", "pair", "batch"]
Aggregation = Literal["token-mean", "token-sum", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"]
"""How token losses become one number; objectives/base.py has the formulas."""


class Objective(Protocol):
    """A pure function of log-probabilities; gradient = Σ c_logp ∇log p + Σ c_entropy ∇H."""

    @property
    def couples(self) -> Couples:
        """Which rows must be seen together: each alone, a preference pair, or all."""

    @property
    def aggregation(self) -> Aggregation:
        """How token losses become one number."""

    def __call__(self, logp_BT: NDArray[np.float64], entropy_BT: NDArray[np.float64], batch: TokenBatch) -> Loss:
        """Value and coefficients; `logp_BT` and `entropy_BT` are detached."""

    def metrics(
        self, logp_BT: NDArray[np.float64], entropy_BT: NDArray[np.float64], batch: TokenBatch
    ) -> dict[str, float]:
        """Diagnostics already divided by the global normaliser: sums over micro-batches are right."""


@runtime_checkable
class Environment(Protocol):
    """Problems and their verifier."""

    name: str
    """Registered name."""
    version: str
    """Changes whenever scoring changes."""

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """`size` distinct problems of that role, deterministic; roles never share a problem."""

    def gold(self, problem: Problem) -> str | None:
        """A completion that scores 1, or None when the environment has none."""

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Judge one completion's text."""

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge many, in order; the place where concurrency lives."""

    def self_check(self) -> list[Check]:
        """Gold must be correct, every listed cheat must not."""


class RewardFunction(Protocol):
    """Turns a verdict into a number; never reads the raw text again."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The reward of a judged answer."""
