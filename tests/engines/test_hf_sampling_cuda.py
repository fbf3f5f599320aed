"""Kernels and graphs on a real GPU: against Transformers' own forward, and against the plain operations."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hf engine needs torch")
if not torch.cuda.is_available():  # asked first: every worker comes here, and Transformers take a second
    pytest.skip("needs a GPU", allow_module_level=True)
pytest.importorskip("transformers", reason="the hf engine needs Transformers")
pytest.importorskip("triton", reason="the kernels need Triton")

from test_hf_sampling import END, RAGGED, VOCAB, Letters, model_of, prompt, tokens_of  # noqa: E402
from tiny_models import whole  # noqa: E402

from rlvrlab.batch import batch_of  # noqa: E402
from rlvrlab.engines.hf import Hf, kernels, train_kernels  # noqa: E402
from rlvrlab.engines.hf.decode_cuda import GraphDecoder  # noqa: E402
from rlvrlab.engines.hf.kernels import TritonOperations  # noqa: E402
from rlvrlab.engines.hf.operations import TorchOperations  # noqa: E402
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
