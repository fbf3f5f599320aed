"""The sparse testbed: programs of 16 operations out of 24, accepted with three required and without four harmful ones.

The answer's reward is 1 or 0 and about 1 % of first answers are right, so a group of eight mostly has nothing to tell.
The true credit of an operation is known. The policy is autoregressive and log-linear in the prompt, the previous
operation and whether an operation was used before. Estimators, normalisation and mapping are the library's own; the
verifier is vectorised over altered programs. Runs of several seeds go abreast, each with its own task, policy and
random numbers, so a seed's result does not depend on its neighbours.
Suffixes: R runs, N programs of a run, T operations, V vocabulary, P prompts, E edits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rlvrlab.advantages.grpo import DrGrpo, Grpo
from rlvrlab.advantages.rloo import Rloo
from rlvrlab.batch import Bools, Floats, Ints, RewardBatch
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.credit.edits import Edit
from rlvrlab.credit.estimators import step_groups
from rlvrlab.randomness import generator

ADVANTAGES = {"grpo": Grpo(), "dr_grpo": DrGrpo(), "rloo": Rloo()}
GROUP = 8
THRESHOLD = 0.8
CAP = 12_800
"""Trajectories after which a run is given up; it then counts as this many."""
EVALUATED = 256
EVALUATE_EVERY = 2


class Programs:
    """Which operations each prompt of each run requires and which it forbids."""

    prompts, vocabulary, length, required, harmful = 4, 24, 16, 3, 4

    def __init__(self, seeds: Sequence[int]) -> None:
        shape = (len(seeds), self.prompts, self.vocabulary)
        self.required_RPV, self.harmful_RPV = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for run, seed in enumerate(seeds):
            rng = generator("programs", 100 + seed)
            for prompt in range(self.prompts):
                order_V = rng.permutation(self.vocabulary)
                self.required_RPV[run, prompt, order_V[: self.required]] = True
                self.harmful_RPV[run, prompt, order_V[self.required : self.required + self.harmful]] = True

    def judge(self, run_N: Ints, prompt_N: Ints, program_NT: Ints, kept_NT: Bools | None = None) -> Floats:
        """1 for accepted programs."""
        present_NV = np.zeros((len(program_NT), self.vocabulary + 1), dtype=bool)
        shown_NT = program_NT if kept_NT is None else np.where(kept_NT, program_NT, self.vocabulary)
        np.put_along_axis(present_NV, shown_NT, True, axis=1)
        present_NV = present_NV[:, :-1]
        complete_N = (present_NV | ~self.required_RPV[run_N, prompt_N]).all(axis=1)
        return (complete_N & ~(present_NV & self.harmful_RPV[run_N, prompt_N]).any(axis=1)).astype(np.float64)


class Drawn(NamedTuple):
    """Sampled programs and what their gradient needs."""

    program_NT: Ints
    probability_NTV: Floats
    previous_NT: Ints
    used_NTV: Floats


class Policies:
    """logit = W_prompt[p] + W_previous[o] + W_used · used, one policy per run."""

    def __init__(self, seeds: Sequence[int]) -> None:
        prompts, size = Programs.prompts, Programs.vocabulary
        draws = [generator("policy", seed) for seed in seeds]
        self.weights = [
            np.stack([0.01 * rng.standard_normal((prompts, size)) for rng in draws]),
            np.stack([0.01 * rng.standard_normal((size + 1, size)) for rng in draws]),
            np.zeros((len(seeds), size)),
        ]

    def sample(self, run_N: Ints, prompt_N: Ints, uniform_NT: Floats, prefix_NT: Ints | None = None) -> Drawn:
        """One program per row; the first operations may be given."""
        count, length = uniform_NT.shape
        size, given = Programs.vocabulary, 0 if prefix_NT is None else prefix_NT.shape[1]
        out = Drawn(
            np.zeros((count, length), dtype=np.int64),
            np.zeros((count, length, size)),
            np.zeros((count, length), dtype=np.int64),
            np.zeros((count, length, size)),
        )
        by_prompt_NV, by_use_NV = self.weights[0][run_N, prompt_N], self.weights[2][run_N]
        previous_N, used_NV = np.full(count, size), np.zeros((count, size))
        for t in range(length):
            logit_NV = by_prompt_NV + self.weights[1][run_N, previous_N] + by_use_NV * used_NV
            probability_NV = np.exp(logit_NV - logit_NV.max(axis=1, keepdims=True))
            mass_NV = probability_NV.cumsum(axis=1)
            chosen_N = (uniform_NT[:, t, None] * mass_NV[:, -1:] < mass_NV).argmax(axis=1)
            if prefix_NT is not None and t < given:
                chosen_N = prefix_NT[:, t]
            out.program_NT[:, t], out.probability_NTV[:, t] = chosen_N, probability_NV / mass_NV[:, -1:]
            out.previous_NT[:, t], out.used_NTV[:, t] = previous_N, used_NV
            previous_N = chosen_N
            used_NV[np.arange(count), chosen_N] = 1
        return out

    def gradient(self, runs: int, prompt_N: Ints, drawn: Drawn, advantage_NT: Floats) -> list[Floats]:
        """Of each run's mean over programs of Σ advantage · log p, to be climbed; rows of a run are neighbours."""
        count, length, size = drawn.probability_NTV.shape
        rows = count // runs
        score_NTV = -drawn.probability_NTV
        score_NTV[np.arange(count)[:, None], np.arange(length)[None], drawn.program_NT] += 1
        score_NTV *= advantage_NT[..., None] / rows
        prompt_RPN = np.eye(Programs.prompts)[prompt_N].reshape(runs, rows, -1).transpose(0, 2, 1)
        previous_RVN = np.eye(size + 1)[drawn.previous_NT].reshape(runs, rows * length, -1).transpose(0, 2, 1)
        return [
            prompt_RPN @ score_NTV.sum(axis=1).reshape(runs, rows, size),
            previous_RVN @ score_NTV.reshape(runs, rows * length, size),
            (score_NTV * drawn.used_NTV).sum(axis=1).reshape(runs, rows, size).sum(axis=1),
        ]


@dataclass
class Adam:
    """Ascent; every run for itself."""

    rate: float
    beta1: float = 0.9
    beta2: float = 0.99
    step: int = 0
    moments: list[list[Floats]] = field(default_factory=list)

    def climb(self, weights: list[Floats], gradients: list[Floats], live_R: Ints) -> None:
        """One step of the runs that are still going."""
        self.step += 1
        self.moments = self.moments or [[np.zeros_like(w), np.zeros_like(w)] for w in weights]
        for weight, gradient, (mean, square) in zip(weights, gradients, self.moments, strict=True):
            mean[live_R] += (1 - self.beta1) * (gradient - mean[live_R])
            square[live_R] += (1 - self.beta2) * (gradient**2 - square[live_R])
            scale = np.sqrt(square[live_R] / (1 - self.beta2**self.step)) + 1e-8
            weight[live_R] += self.rate * mean[live_R] / (1 - self.beta1**self.step) / scale


class Method(NamedTuple):
    """A group advantage, and step credit on top of it where there is any."""

    name: str
    advantage: str = "grpo"
    credit: Counterfactual | None = None


class Result(NamedTuple):
    """What it took to reach the threshold."""

    reached: bool
    trajectories: int
    verifier_calls: int
    tokens: int
    """Generated operations, continuations included."""


def train(method: Method, seeds: Sequence[int], rate: float, cap: int = CAP) -> list[Result]:
    """Each run until 80 % of its sampled programs are accepted, or the cap."""
    task, policies, optimizer = Programs(seeds), Policies(seeds), Adam(rate)
    draws, watching = [generator("training", seed) for seed in seeds], [generator("evaluation", seed) for seed in seeds]
    length, per_step = Programs.length, Programs.prompts * GROUP
    results: dict[int, Result] = {}
    calls_R, tokens_R = np.zeros(len(seeds), dtype=np.int64), np.zeros(len(seeds), dtype=np.int64)
    for step in range(1, cap // per_step + 1):
        live_R = np.array([run for run in range(len(seeds)) if run not in results])
        if not len(live_R):
            break
        run_N, prompt_N = (
            np.repeat(live_R, per_step),
            np.tile(np.repeat(np.arange(Programs.prompts), GROUP), len(live_R)),
        )
        uniform_NT = np.concatenate([draws[run].random((per_step, length)) for run in live_R])
        drawn = policies.sample(run_N, prompt_N, uniform_NT)
        asking = Asking(task, policies, run_N, prompt_N, drawn.program_NT, [(seeds[run], step) for run in live_R])
        reward_N = asking.judge(np.arange(len(run_N)), drawn.program_NT)
        advantage_NT = _advantage(method, asking, reward_N)
        calls_R[live_R] += np.bincount(run_N, asking.calls_N, len(seeds)).astype(np.int64)[live_R]
        tokens_R[live_R] += np.bincount(run_N, asking.tokens_N + length, len(seeds)).astype(np.int64)[live_R]
        optimizer.climb(policies.weights, policies.gradient(len(live_R), prompt_N, drawn, advantage_NT), live_R)
        if step % EVALUATE_EVERY == 0:
            success_R = _success(task, policies, live_R, watching)
            for run, success in zip(map(int, live_R), success_R, strict=True):
                if success >= THRESHOLD:
                    results[run] = Result(True, step * per_step, int(calls_R[run]), int(tokens_R[run]))
    failed = {run: Result(False, cap, int(calls_R[run]), int(tokens_R[run])) for run in range(len(seeds))}
    return [results.get(run, failed[run]) for run in range(len(seeds))]


def _success(task: Programs, policies: Policies, live_R: Ints, draws: Sequence[np.random.Generator]) -> Floats:
    run_N = np.repeat(live_R, EVALUATED)
    prompt_N = np.tile(np.repeat(np.arange(Programs.prompts), EVALUATED // Programs.prompts), len(live_R))
    uniform_NT = np.concatenate([draws[run].random((EVALUATED, Programs.length)) for run in live_R])
    program_NT = policies.sample(run_N, prompt_N, uniform_NT).program_NT
    return task.judge(run_N, prompt_N, program_NT).reshape(len(live_R), EVALUATED).mean(axis=1)


@dataclass
class Asking:
    """One collection of all live runs, and what is asked about it; counts calls and tokens per program."""

    task: Programs
    policies: Policies
    run_N: Ints
    prompt_N: Ints
    program_NT: Ints
    keys: Sequence[tuple[int, int]]
    """Seed and step of each run."""

    def __post_init__(self) -> None:
        self.calls_N, self.tokens_N = np.zeros(len(self.run_N)), np.zeros(len(self.run_N))
        self.per_run = len(self.run_N) // len(self.keys)

    def judge(self, row_E: Ints, program_ET: Ints, kept_ET: Bools | None = None) -> Floats:
        """Programs that are versions of the rows named; each is a call of the verifier."""
        np.add.at(self.calls_N, row_E, 1)
        return self.task.judge(self.run_N[row_E], self.prompt_N[row_E], program_ET, kept_ET)

    def key(self, row: int) -> tuple[int, int, int]:
        """Of a row's randomness: seed, step, place in the run's collection."""
        return (*self.keys[row // self.per_run], row % self.per_run)


def _advantage(method: Method, asking: Asking, reward_N: Floats) -> Floats:
    mask_NT = np.ones(asking.program_NT.shape, dtype=bool)
    outcome_NT = np.zeros(asking.program_NT.shape)
    outcome_NT[:, -1] = reward_N
    group_N = asking.run_N * Programs.prompts + asking.prompt_N
    batch = RewardBatch(outcome_NT, mask_NT, group_N, np.ones(len(group_N), dtype=bool))
    group_NT = ADVANTAGES[method.advantage](batch).advantage_BT
    if method.credit is None:
        return group_NT
    credit = _credit(method.credit, asking, reward_N, group_N)
    step_T = np.arange(Programs.length)
    return np.stack([method.credit.mapped(g, step_T, c) for g, c in zip(group_NT, credit, strict=True)])


def _credit(plugin: Counterfactual, asking: Asking, reward_N: Floats, group_N: Ints) -> list[Floats]:
    length = Programs.length
    if plugin.estimator == "step_groups":
        places = [[program_T[:t].tobytes() for t in range(length)] for program_T in asking.program_NT]
        return [plugin.normalised(c, np.nan) for c in step_groups(places, reward_N, group_N)]
    random = plugin.counterfactual_k > 0 or plugin.estimator == "shapley"
    one = None if random else plugin.plan(length, generator("credit"))  # without chance all plans are equal
    plans = [one or plugin.plan(length, generator("credit", asking.key(n))) for n in range(len(reward_N))]
    asked = [(n, edit) for n, plan in enumerate(plans) for edit in plan.edits]
    value_E = _replay(plugin, asking, asked)
    out, at = [], 0
    for n, plan in enumerate(plans):
        estimate = plan.solve(value_E[at : at + len(plan.edits)], float(reward_N[n]))
        at += len(plan.edits)
        out.append(plugin.normalised(estimate.credit_S, np.nan))
    return out


def _replay(plugin: Counterfactual, asking: Asking, asked: Sequence[tuple[int, Edit]]) -> Floats:
    """The value of each edit; continuations from one place are drawn together."""
    value_E, length = np.full(len(asked), np.nan), Programs.length
    fixed = [e for e, (_, edit) in enumerate(asked) if not edit.sampled]
    if fixed:
        row_E = np.array([asked[e][0] for e in fixed])
        kept_ET = np.frombuffer(b"".join(asked[e][1].kept for e in fixed), dtype=np.bool_).reshape(-1, length)
        value_E[fixed] = asking.judge(row_E, asking.program_NT[row_E], kept_ET)
    for step in sorted({edit.step for _, edit in asked if edit.sampled}):
        some = [e for e, (_, edit) in enumerate(asked) if edit.sampled and edit.step == step]
        row_E = np.repeat([asked[e][0] for e in some], plugin.samples)
        uniform_ET = np.concatenate(
            [generator("replay", asking.key(asked[e][0]), step).random((plugin.samples, length)) for e in some]
        )
        before_ET = asking.program_NT[row_E][:, :step]
        program_ET = asking.policies.sample(
            asking.run_N[row_E], asking.prompt_N[row_E], uniform_ET, before_ET
        ).program_NT
        written = length - step
        if asked[some[0]][1].how == "substitute":
            written, chosen_E, program_ET = 1, program_ET[:, step], asking.program_NT[row_E].copy()
            program_ET[:, step] = chosen_E
        np.add.at(asking.tokens_N, row_E, written)
        value_E[some] = asking.judge(row_E, program_ET).reshape(len(some), -1).mean(axis=1)
    return value_E
