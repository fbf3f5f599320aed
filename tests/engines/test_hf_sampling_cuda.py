"""Kernels and graphs on a real GPU: against Transformers' own forward, and against the plain operations."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the hf engine needs torch")
if not torch.cuda.is_available():  # asked first: every worker comes here, and Transformers take a second
    pytest.skip("needs a GPU", allow_module_level=True)
pytest.importorskip("transformers", reason="the hf engine needs Transformers")
pytest.importorskip("triton", reason="the kernels need Triton")

from test_hf_refill import MANY as WAITING  # noqa: E402
from test_hf_refill import drawn_with  # noqa: E402
from test_hf_sampling import END, RAGGED, VOCAB, Letters, model_of, prompt, tokens_of  # noqa: E402
from tiny_models import whole  # noqa: E402

from rlvrlab.batch import batch_of  # noqa: E402
from rlvrlab.engines.hf import Hf, kernels, train_kernels  # noqa: E402
from rlvrlab.engines.hf.blocks import Cache, new_cache  # noqa: E402
from rlvrlab.engines.hf.decode_cuda import GraphDecoder  # noqa: E402
from rlvrlab.engines.hf.kernels import TritonOperations  # noqa: E402
from rlvrlab.engines.hf.operations import State, TorchOperations, new_state  # noqa: E402
from rlvrlab.engines.hf.sampler import HfSampler  # noqa: E402
from rlvrlab.recipe.schema import Optimizer  # noqa: E402
from rlvrlab.types import Completion, Request, Sampling  # noqa: E402

MANY = [
    *RAGGED,
    Request(prompt(9), 64, ("many",), Sampling(40)),
    Request(prompt(2), 9, ("p",), Sampling(20, top_p=0.7)),
]


def scores(model: Any, request: Request, completion: Completion) -> Any:
    ids = torch.tensor([request.tokens + completion.tokens], device="cuda")
    with torch.inference_mode():
        logits = model(ids).logits[0, len(request.tokens) - 1 : -1].float()
    z = (logits / (request.sampling.temperature or 1.0)).log_softmax(-1)
    return z.gather(1, ids[0, len(request.tokens) :, None])[:, 0].cpu()


def gaps(model: Any, other: Any, answers: list[list[Completion]]) -> tuple[float, float]:
    """Mean distance of the sampler and of `other` from `model`, over rows without a nucleus."""
    ours, theirs = [], []
    for request, group in zip(MANY, answers, strict=True):
        for one in group if request.sampling.top_p == 1 else ():
            exact = scores(model, request, one)
            ours.append((torch.tensor(one.logprobs) - exact).abs())
            theirs.append((scores(other, request, one) - exact).abs())
    return float(torch.cat(ours).mean()), float(torch.cat(theirs).mean())


@pytest.mark.parametrize("name", ["llama", "llama-bias", "llama-yarn", "qwen2", "qwen3", "mistral"])
def test_float32_is_the_models_own(name: str) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    model = model_of(name).cuda()
    sampler = HfSampler(model, Letters(), "cuda")
    assert isinstance(sampler._graphs.ops, TritonOperations)
    answers = sampler.sample(MANY, 0)
    assert gaps(model, model, answers)[0] < 1e-4
    assert sampler.sample(MANY, 0) == answers, "replayed graphs differ from the eager first run"
    plain = HfSampler(model, Letters(), "cuda")
    plain._graphs = GraphDecoder(plain.weights, TorchOperations(plain.weights))
    assert tokens_of(plain.sample(MANY, 0)) == tokens_of(answers)
    assert any(one.tokens[-1] == END for one in answers[4])


def test_bfloat16_errs_no_more_than_the_model_itself() -> None:
    model = model_of("llama").cuda().bfloat16()
    answers = HfSampler(model, Letters(), "cuda").sample(MANY, 0)
    ours, theirs = gaps(copy.deepcopy(model).float(), model, answers)
    assert ours < 1.5 * theirs + 1e-3


def test_graphs_see_refreshed_weights() -> None:
    model = model_of("llama").cuda()
    sampler = HfSampler(model, Letters(), "cuda")
    before = sampler.sample(MANY, 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    assert sampler.sample(MANY, 0) == before
    sampler.refresh()
    after = sampler.sample(MANY, 0)
    assert tokens_of(after) != tokens_of(before)
    assert gaps(model, model, after)[0] < 1e-4
    assert max(max(one.tokens) for group in after for one in group) < VOCAB


PLACES, SLOTS, PROMPT, NEW = 9, 4, 64, 128


def scattered_state() -> State:
    """Places that are at different steps of different answers; two are empty, one has ended."""
    drawn = np.random.default_rng(0)
    state = new_state(torch.device("cuda"), PLACES, NEW)
    for buffer, values in (
        (state.token, drawn.integers(2, VOCAB, PLACES)),
        (state.step, [0, 1, 15, 16, 17, 77, 0, NEW - 1, 40]),
        (state.group, [3, 0, 3, 1, 2, 2, 0, 1, 0]),
        (state.length, [1, 64, 33, 16, 17, 5, 0, 63, 0]),
        (state.limit, [1, 2, 60, 17, NEW, NEW, 1, NEW, 50]),
        (state.living, [1, 1, 1, 1, 1, 1, 0, 1, 0]),
        (state.temperature, [1.0, 0.0, 0.7, 1.5, 1.0, 0.0, 1.0, 1.0, 0.5]),
        (state.top_p, [1.0, 1.0, 0.6, 1.0, 0.9, 1.0, 1.0, 0.3, 0.5]),
        (state.uniform, drawn.random((PLACES, NEW))),
    ):
        buffer.copy_(torch.from_numpy(np.asarray(values)))
    state.end.fill_(END)
    state.out_token.fill_(-1)
    return state


@pytest.mark.parametrize("name", ["llama", "qwen3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_attention_of_places_at_different_steps_is_the_references(name: str, dtype: Any) -> None:
    model = model_of(name, max_position_embeddings=PROMPT + NEW).to("cuda", dtype)
    weights = HfSampler(model, Letters(), "cuda").weights
    weights.reach(PROMPT + NEW)
    shape, state = weights.shape, scattered_state()
    qkv = torch.randn(PLACES, (shape.heads + 2 * shape.kv_heads) * shape.head_dim, device="cuda").to(dtype)
    caches, found = [], []
    for operations in (TritonOperations(weights), TorchOperations(weights)):
        torch.manual_seed(1)
        cache: Cache = new_cache(weights, SLOTS, PROMPT, PLACES, NEW)
        for kv in (*cache.prefix_k, *cache.prefix_v, *cache.own_k, *cache.own_v):
            kv.normal_()
        found.append(operations.attend(1, weights.layers[1], qkv.clone(), state, cache, NEW))
        caches.append(cache)
    near = {"rtol": 1e-4, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 3e-2, "atol": 3e-2}
    torch.testing.assert_close(*found, **near)
    for one, other in ((caches[0].own_k, caches[1].own_k), (caches[0].own_v, caches[1].own_v)):
        torch.testing.assert_close(one[1], other[1], **near)


@pytest.mark.parametrize("nucleus", [False, True])
def test_tokens_of_places_at_different_steps_are_the_references(nucleus: bool) -> None:
    weights = HfSampler(model_of("llama").cuda(), Letters(), "cuda").weights
    states = [scattered_state(), scattered_state()]
    for turn in range(3):
        logits = 3 * torch.randn(PLACES, VOCAB, device="cuda", generator=torch.Generator("cuda").manual_seed(turn))
        for operations, state in zip((TritonOperations(weights), TorchOperations(weights)), states, strict=True):
            operations.choose(logits.clone(), state, nucleus)
            state.step.add_(state.living)
        for one, other in zip(*(state.by_place() for state in states), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    written = (states[0].out_token >= 0).sum(1).tolist()
    assert written[0] == written[1] == written[3] == written[7] == 1 and written[6] == written[8] == 0
    assert states[0].living.tolist()[6:] == [0, 0, 0] and int(states[0].step[7]) == NEW - 1


@pytest.mark.parametrize("places", [1, 3, 8])
def test_answers_do_not_depend_on_refilling(places: int) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    sampler, plain = (HfSampler(model_of("qwen3").cuda(), Letters(), "cuda") for _ in range(2))
    plain._graphs = GraphDecoder(plain.weights, TorchOperations(plain.weights))
    requests = [*WAITING, *MANY]
    waves = drawn_with(sampler, 500, requests)
    refilled = drawn_with(sampler, places, requests)
    assert tokens_of(refilled) == tokens_of(waves)
    assert drawn_with(sampler, places, requests) == refilled, "replayed graphs differ from the eager first run"
    assert tokens_of(drawn_with(plain, places, requests)) == tokens_of(waves)
    pairs = zip((x for group in refilled for x in group), (x for group in waves for x in group), strict=True)
    assert all(one.logprobs == pytest.approx(other.logprobs, abs=1e-4) for one, other in pairs)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_what_is_compiled_while_weights_are_read_is_all_that_a_step_uses(kind: str, tmp_path: Path) -> None:
    sizes = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16, "tie_word_embeddings": False}
    folder = str(whole(kind, tmp_path, **sizes))
    functions = [one for module in (kernels, train_kernels) for one in vars(module).values() if hasattr(one, "fn")]
    for one in functions:
        one.device_caches.clear()
    engine = Hf(folder, lora_rank=4, device="cuda").build(Optimizer())
    early = compiled(functions)
    assert sum(early.values()) >= 12
    (answers,) = engine.sample([Request((5, 6, 7, 8), 3, ("early",), Sampling(6))])
    engine.fisher(batch_of([(5, 6, 7, 8)], [answers[0].tokens]))
    assert engine.ways is not None and engine.ways.head and engine.ways.layers
    assert compiled(functions) == early


def compiled(functions: list[Any]) -> dict[str, int]:
    """How many variants of each kernel this process holds."""
    return {one.__name__: sum(len(cache[0]) for cache in one.device_caches.values()) for one in functions}
