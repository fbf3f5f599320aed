"""Keyed sampling: each request draws its own uniforms first, so its answers do not depend on its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.engines.toy.features import PromptView, advance, view_prompts
from rlvrlab.engines.toy.policy import Inputs, Layout, log_softmax
from rlvrlab.engines.toy.tokenizer import ToyTokenizer
from rlvrlab.randomness import generator
from rlvrlab.types import Completion, Finish, Request, Sampling


class Published(NamedTuple):
    """The policy that answers are drawn from."""

    theta: Floats
    layout: Layout
    tokenizer: ToyTokenizer
    scale: float
    version: int


def sample(policy: Published, requests: Sequence[Request]) -> list[list[Completion]]:
    """Requests of equal sampling settings go abreast."""
    out: list[list[Completion]] = [[] for _ in requests]
    for settings in dict.fromkeys(request.sampling for request in requests):
        chosen = [i for i, request in enumerate(requests) if request.sampling == settings]
        drawn = iter(_abreast(policy, [requests[i] for i in chosen], settings))
        for i in chosen:
            out[i] = [next(drawn) for _ in range(requests[i].n)]
    return out


def _abreast(policy: Published, requests: Sequence[Request], settings: Sampling) -> list[Completion]:
    prompts = [request.tokens for request in requests for _ in range(request.n)]
    uniform_NT = np.concatenate(
        [generator("sample", *request.key).random((request.n, settings.max_tokens)) for request in requests]
    )
    view = view_prompts(prompts, policy.tokenizer, policy.layout.slots, policy.scale)
    shape_N = view.shape_N
    tokens: list[list[int]] = [[] for _ in prompts]
    logprobs: list[list[float]] = [[] for _ in prompts]
    live_N = np.arange(len(prompts))
    for t in range(settings.max_tokens):
        logp_NV = _distribution(policy, view, shape_N, live_N, t, settings)
        if settings.temperature == 0.0:
            token_N: Ints = logp_NV.argmax(axis=1)
        else:
            cumulative = np.cumsum(np.exp(logp_NV, dtype=np.float64), axis=1)
            token_N = (cumulative < uniform_NT[live_N, t, None] * cumulative[:, -1:]).sum(axis=1)
        for i, token, logp in zip(live_N, token_N, logp_NV[np.arange(len(token_N)), token_N], strict=True):
            tokens[i].append(int(token))
            logprobs[i].append(float(logp))
        shape_N = shape_N.copy()
        shape_N[live_N] = advance(shape_N[live_N], view.slots_NM[live_N], token_N)
        live_N = live_N[[not _ended(policy, tokens[i], settings) for i in live_N]]
        if not len(live_N):
            break
    finishes = [Finish.STOP if _ended(policy, one, settings) else Finish.LENGTH for one in tokens]
    return [
        Completion(policy.tokenizer.decode(chosen), tuple(chosen), tuple(logp), finish, policy.version)
        for chosen, logp, finish in zip(tokens, logprobs, finishes, strict=True)
    ]


def _distribution(
    policy: Published, view: PromptView, shape_N: Ints, live_N: Ints, t: int, settings: Sampling
) -> Floats:
    """Log-probs actually sampled from: at the temperature, within the nucleus."""
    position_N = np.full(len(live_N), t)
    inputs = Inputs.of(view.dense_ND[live_N], view.slots_NM[live_N], position_N, shape_N[live_N], policy.layout)
    logp_NV = log_softmax(policy.theta, policy.layout, inputs)
    if settings.temperature not in (0.0, 1.0):
        logp_NV = _renormalise(logp_NV / settings.temperature)
    if settings.top_p < 1.0:
        order = np.argsort(-logp_NV, axis=1, kind="stable")
        mass_before = np.cumsum(np.exp(np.take_along_axis(logp_NV, order, 1)), axis=1)
        outside = np.roll(mass_before, 1, axis=1) >= settings.top_p
        outside[:, 0] = False
        np.put_along_axis(logp_NV, order, np.where(outside, -np.inf, np.take_along_axis(logp_NV, order, 1)), 1)
        logp_NV = _renormalise(logp_NV)
    return logp_NV


def _renormalise(z_NV: Floats) -> Floats:
    z_NV = z_NV - z_NV.max(axis=1, keepdims=True)
    return np.asarray(z_NV - np.log(np.exp(z_NV).sum(axis=1, keepdims=True)))


def _ended(policy: Published, tokens: list[int], settings: Sampling) -> bool:
    if tokens[-1] == policy.tokenizer.end:
        return True
    return bool(settings.stop) and policy.tokenizer.decode(tokens).endswith(settings.stop)
