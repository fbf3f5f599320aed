"""The embedded sampler against Transformers itself: greedy tokens, log-probs, distribution, independence of the batch.

Every test runs on both decoders: the CPU's, and (slow) the GPU's with its plain operations and without graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from needs_torch import torch

from rlvrlab.engines.hf import blocks
from rlvrlab.engines.hf import sampler as sampling
from rlvrlab.engines.hf.generate import PlainSampler
from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.engines.hf.weights import obstacle
from rlvrlab.errors import TrainingDiverged, UserError
from rlvrlab.types import Completion, Finish, Request, Sampling

pytestmark = pytest.mark.slow

VOCAB, END, WINDOW = 61, 1, 96
TOLERANCE = 1e-4
"""Of a float32 log-prob on a CPU."""
SMALL = {
    "vocab_size": VOCAB, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": WINDOW, "initializer_range": 0.3,
    "bos_token_id": None, "eos_token_id": END, "pad_token_id": 0,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0, "original_max_position_embeddings": 24}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"tie_word_embeddings": True}),
    "llama-bias": ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False}),
    "llama-yarn": ("Llama", {"rope_parameters": YARN}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"tie_word_embeddings": True}),
    "mistral": ("Mistral", {"sliding_window": None}),
}


class Letters:
    """Tokens 0…60 as single characters."""

    vocab_size, end, ends = VOCAB, END, frozenset({END})

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(ord(c) - 64 for c in text)

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(64 + t) for t in tokens if t != END)


def model_of(name: str, **changes: Any) -> Any:
    import transformers

    family, more = MODELS[name]
    torch.manual_seed(len(name))
    config = getattr(transformers, f"{family}Config")(**{**SMALL, **more, **changes})
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    for parameter in model.parameters():  # biases and norms start at 0 and 1, where a mistake would not show
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def prompt(length: int, seed: int = 0) -> tuple[int, ...]:
    return tuple(np.random.default_rng([length, seed]).integers(2, VOCAB, length).tolist())


RAGGED = [
    Request(prompt(3), 4, ("a",), Sampling(24)),
    Request(prompt(17), 1, ("b",), Sampling(9, temperature=0.0)),
    Request(prompt(1), 6, ("c",), Sampling(30, temperature=0.6)),
    Request(prompt(30), 3, ("d",), Sampling(24, temperature=1.5)),
]


def own_scores(model: Any, request: Request, completion: Completion) -> Any:
    """The model's forward over prompt and answer: log-probs (T, V) at the request's temperature."""
    ids = torch.tensor([request.tokens + completion.tokens])
    with torch.inference_mode():
        logits = model(ids).logits[0, len(request.tokens) - 1 : -1].float()
    return (logits / (request.sampling.temperature or 1.0)).log_softmax(-1)


def worst_gap(model: Any, requests: Sequence[Request], answers: list[list[Completion]]) -> float:
    gap = 0.0
    for request, group in zip(requests, answers, strict=True):
        assert len(group) == request.n
        for one in group:
            scores = own_scores(model, request, one).gather(1, torch.tensor(one.tokens)[:, None])[:, 0]
            gap = max(gap, float((scores - torch.tensor(one.logprobs)).abs().max()))
    return gap


def tokens_of(answers: list[list[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[one.tokens for one in group] for group in answers]


@pytest.fixture(
    scope="module", params=[pytest.param(False, id="eager"), pytest.param(True, id="fixed", marks=pytest.mark.slow)]
)
def graphs(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def llama(graphs: bool) -> tuple[Any, HfSampler]:
    model = model_of("llama")
    return model, HfSampler(model, Letters(), "cpu", graphs=graphs)


@pytest.mark.parametrize("name", MODELS)
def test_log_probs_are_the_models_own(name: str, graphs: bool) -> None:
    model = model_of(name)
    answers = HfSampler(model, Letters(), "cpu", graphs=graphs).sample(RAGGED, 5)
    assert worst_gap(model, RAGGED, answers) < TOLERANCE
    assert {one.policy_version for group in answers for one in group} == {5}


@pytest.mark.parametrize("name", ["llama", pytest.param("qwen2", marks=pytest.mark.slow), "qwen3"])
def test_greedy_is_generate(name: str, graphs: bool) -> None:
    model = model_of(name)
    requests = [Request(prompt(n), 1, (n,), Sampling(40, temperature=0.0)) for n in (2, 11, 23)]
    answers = HfSampler(model, Letters(), "cpu", graphs=graphs).sample(requests, 0)
    for request, (one,) in zip(requests, answers, strict=True):
        ids = torch.tensor([request.tokens])
        found = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False)
        assert one.tokens == tuple(found[0, len(request.tokens) :].tolist())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
def test_bfloat16_errs_no_more_than_the_model_itself(graphs: bool) -> None:
    model = model_of("llama").bfloat16()
    wide = model_of("llama").bfloat16().float()
    sampler = HfSampler(model, Letters(), "cpu", dtype=torch.bfloat16, graphs=graphs)
    ours, theirs = [], []
    for request, group in zip(RAGGED, sampler.sample(RAGGED, 0), strict=True):
        for one in group:
            chosen = torch.tensor(one.tokens)[:, None]
            exact, rounded = (own_scores(m, request, one).gather(1, chosen)[:, 0] for m in (wide, model))
            ours.append((torch.tensor(one.logprobs) - exact).abs())
            theirs.append((rounded - exact).abs())
    assert torch.cat(ours).mean() < 1.5 * torch.cat(theirs).mean()


def test_half_precision_is_widened_where_the_cpu_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("llama").bfloat16()
    monkeypatch.setattr("rlvrlab.engines.hf.weights.has_bfloat16", lambda: False)
    sampler = HfSampler(model, Letters(), "cpu")
    assert sampler.weights.dtype == torch.float32
    assert worst_gap(model.float(), RAGGED, sampler.sample(RAGGED, 0)) < TOLERANCE


def test_a_request_does_not_feel_its_neighbours(llama: tuple[Any, HfSampler]) -> None:
    _, sampler = llama
    together = sampler.sample(RAGGED, 0)
    assert tokens_of([sampler.sample([one], 0)[0] for one in RAGGED]) == tokens_of(together)
    assert tokens_of(sampler.sample(RAGGED[::-1], 0)[::-1]) == tokens_of(together)
    again = sampler.sample(RAGGED, 0)
    assert again == together


def test_waves_and_split_groups_change_nothing(llama: tuple[Any, HfSampler], monkeypatch: pytest.MonkeyPatch) -> None:
    _, sampler = llama
    together = sampler.sample(RAGGED, 0)
    monkeypatch.setitem(sampling.MAX_ROWS, "cpu", 5)
    assert tokens_of(sampler.sample(RAGGED, 0)) == tokens_of(together)


@pytest.mark.parametrize("stop", [(), ("A", "Q")])
def test_answers_are_told_as_rows_end(llama: tuple[Any, HfSampler], stop: tuple[str, ...]) -> None:
    many = [Request(prompt(5, i), 8, (i,), Sampling(60, stop=stop)) for i in range(4)]
    heard: list[list[tuple[int, int, Completion]]] = []
    whole = llama[1].sample(many, 0, lambda complete: heard.append(list(complete)))
    assert whole == llama[1].sample(many, 0)
    told = {(i, sample): one for some in heard for i, sample, one in some}
    assert told == {(i, sample): one for i, group in enumerate(whole) for sample, one in enumerate(group)}
    assert sum(map(len, heard)) == len(told) and len(heard) > 2, "each once, and not all at the end"
    assert min(len(one.tokens) for *_, one in heard[0]) < max(len(one.tokens) for *_, one in heard[-1])


def test_what_nobody_waits_for_is_cut_short(llama: tuple[Any, HfSampler]) -> None:
    _, sampler = llama
    requests = [Request(prompt(5 + i), 2, ("waiting", i), Sampling(60)) for i in range(2)]
    whole, asked = sampler.sample(requests, 0), list[int]()

    def unwanted(i: int) -> bool:
        asked.append(i)
        return i in gone

    gone = {0}
    assert tokens_of(sampler.sample(requests, 0, unwanted=unwanted))[1] == tokens_of(whole)[1]
    asked.clear()
    gone = {0, 1}
    sampler.sample(requests, 0, unwanted=unwanted)
    assert 0 < len(asked) <= 4, "each row is asked about once, and then all is over"


def test_nothing_more_begins_for_somebody_who_has_hung_up(llama: tuple[Any, HfSampler], monkeypatch: Any) -> None:
    _, sampler = llama
    monkeypatch.setattr(sampler, "max_rows", 4)
    requests = [Request(prompt(5), 64, ("many", 0), Sampling(20)), Request(prompt(5), 2, ("few", 0), Sampling(8))]
    whole, asked = tokens_of(sampler.sample(requests, 0)), count()
    drawn = tokens_of(sampler.sample(requests, 0, unwanted=lambda i: i == 0 and next(asked) >= 4))
    assert len(drawn[0]) == 4 and drawn[1] == whole[1], "four answers had begun, and the other caller gets all"


def test_the_plain_way_ends_when_nobody_waits_for_any_of_it() -> None:
    sampler = PlainSampler(model_of("llama"), Letters(), torch.device("cpu"))
    requests = [Request(prompt(5 + i), 2, ("waiting", i), Sampling(20)) for i in range(2)]
    whole = tokens_of(sampler.sample(requests, 0))
    assert tokens_of(sampler.sample(requests, 0, unwanted=lambda i: i == 0)) == whole
    assert sampler.sample(requests, 0, unwanted=lambda i: True) == [[], []]
    asked = iter([False] + [True] * 9)
    cut = tokens_of(sampler.sample(requests, 0, unwanted=lambda i: next(asked, True)))
    assert {len(one) for group in cut for one in group} == {1}


def branches(stems: Sequence[int], base: int = 20) -> list[Request]:
    """Answers to one prompt that have begun in different ways, among other requests."""
    begun = [prompt(base) + prompt(length, seed=1) for length in stems]
    grown = [Request(one, 2, ("g", i), Sampling(12), begun=stems[i]) for i, one in enumerate(begun)]
    return [RAGGED[0], *grown, Request(prompt(base), 2, ("whole",), Sampling(12)), RAGGED[2]]


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_what_comes_before_several_begun_answers_is_computed_once(
    name: str, graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, heads = [], blocks.heads

    def counted(weights: Any, layer: Any, x_NI: Any, *more: Any) -> Any:
        computed.append(len(x_NI))
        return heads(weights, layer, x_NI, *more)

    monkeypatch.setattr(blocks, "heads", counted)  # decoding has it under a name of its own
    model = model_of(name)
    requests = branches((1, 9, 4))
    answers = HfSampler(model, Letters(), "cpu", graphs=graphs).sample(requests, 0)
    assert worst_gap(model, requests, answers) < TOLERANCE
    assert sum(computed) / len(model.model.layers) == 3 + 1 + 20 + (20 + 1 + 9 + 4)
    alone = HfSampler(model, Letters(), "cpu", graphs=graphs).sample(requests[2:3], 0)
    assert tokens_of(alone) == tokens_of(answers)[2:3]


def test_more_samples_begin_with_the_fewer(llama: tuple[Any, HfSampler]) -> None:
    model, sampler = llama
    many = Request(prompt(6), 64, ("n",), Sampling(16))
    few = Request(prompt(6), 1, ("n",), Sampling(16))
    answers = sampler.sample([many], 0)
    assert tokens_of(sampler.sample([few], 0))[0] == tokens_of(answers)[0][:1]
    assert len(set(tokens_of(answers)[0])) > 40
    assert worst_gap(model, [many], answers) < TOLERANCE


def chi_square(found: list[int], expected_V: Any) -> float:
    """Probability of so large a deviation, rare tokens pooled."""
    from scipy.stats import chisquare

    expected = np.asarray(expected_V, dtype=float) * len(found)
    count = np.bincount(found, minlength=len(expected)).astype(float)
    assert not count[expected == 0].any()
    rare = expected < 5
    pooled = [np.append(x[~rare], x[rare].sum()) for x in (count, expected)]
    keep = pooled[1] > 0
    return float(chisquare(pooled[0][keep], pooled[1][keep]).pvalue)


@pytest.mark.parametrize("settings", [Sampling(2), Sampling(2, temperature=0.7), Sampling(2, top_p=0.8)], ids=repr)
def test_tokens_follow_the_distribution(llama: tuple[Any, HfSampler], settings: Sampling) -> None:
    model, sampler = llama
    request = Request(prompt(5), 3000, ("chi", settings.top_p, settings.temperature), settings)
    (answers,) = sampler.sample([request], 0)
    scores = own_scores(model, request, Completion("", (2,), (0.0,)))[0]
    expected = scores.double().softmax(-1)
    if settings.top_p < 1:
        order = expected.argsort(descending=True)
        kept = order[(expected[order].cumsum(0) - expected[order]) < settings.top_p]
        expected = torch.zeros_like(expected).index_copy(0, kept, expected[kept])
        expected /= expected.sum()
    assert chi_square([one.tokens[0] for one in answers], expected) > 1e-4
    for one in answers[:50]:
        assert one.logprobs[0] == pytest.approx(float(expected[one.tokens[0]].log()), abs=1e-4)


def test_a_row_ends_at_its_token_limit_or_end(llama: tuple[Any, HfSampler]) -> None:
    _, sampler = llama
    answers = sampler.sample([Request(prompt(4), 64, ("end",), Sampling(40)), *RAGGED], 0)
    finishes = {one.finish for one in answers[0]}
    assert finishes == {Finish.STOP, Finish.LENGTH}
    for one in answers[0]:
        assert END not in one.tokens[:-1] and len(one.tokens) == len(one.logprobs) <= 40
        assert (one.tokens[-1] == END) is (one.finish is Finish.STOP)
        assert one.finish is Finish.STOP or len(one.tokens) == 40
        assert one.text == Letters().decode(one.tokens)


def test_stop_strings_cut_where_they_first_stand(llama: tuple[Any, HfSampler]) -> None:
    model, sampler = llama
    free = Request(prompt(4), 32, ("stop",), Sampling(40))
    (plain,) = sampler.sample([free], 0)
    stop = (plain[0].text[3:5], plain[1].text[10:11])
    halted = Request(free.tokens, free.n, free.key, Sampling(40, stop=stop))
    answers = sampler.sample([halted, *RAGGED], 0)
    for whole, cut in zip(plain, answers[0], strict=True):
        places = [whole.text.find(s) + len(s) for s in stop if s in whole.text]
        length = min(places, default=len(whole.tokens))
        assert cut.tokens == whole.tokens[:length]
        assert cut.finish is (Finish.STOP if places else whole.finish)
        assert any(cut.text.endswith(s) for s in stop) or not places
    assert worst_gap(model, [halted, *RAGGED], answers) < TOLERANCE


def test_buffers_that_do_not_fit_are_made_anew(graphs: bool) -> None:
    sampler = HfSampler(model_of("llama"), Letters(), "cpu", graphs=graphs)
    wide = [Request(prompt(3, i), 40, ("wide", i), Sampling(4)) for i in range(4)]
    waves = [wide, [Request(prompt(2), 1, ("long",), Sampling(94))], RAGGED, wide]
    fresh = [HfSampler(model_of("llama"), Letters(), "cpu", graphs=graphs).sample(wave, 0) for wave in waves]
    assert [tokens_of(sampler.sample(wave, 0)) for wave in waves] == [tokens_of(found) for found in fresh]


def test_weights_are_taken_over_by_refresh_alone(graphs: bool) -> None:
    model = model_of("llama")
    sampler = HfSampler(model, Letters(), "cpu", graphs=graphs)
    before = sampler.sample(RAGGED, 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    assert sampler.sample(RAGGED, 0) == before
    sampler.refresh()
    after = sampler.sample(RAGGED, 1)
    assert tokens_of(after) != tokens_of(before)
    assert worst_gap(model, RAGGED, after) < TOLERANCE


def test_lora_is_merged(graphs: bool) -> None:
    peft = pytest.importorskip("peft", reason="LoRA needs peft")
    chosen = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    model = peft.get_peft_model(model_of("qwen2"), chosen).eval()
    sampler = HfSampler(model, Letters(), "cpu", graphs=graphs)
    assert worst_gap(model, RAGGED, sampler.sample(RAGGED, 0)) < TOLERANCE
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter += 0.2 * torch.randn_like(parameter)
    sampler.refresh()
    assert worst_gap(model, RAGGED, sampler.sample(RAGGED, 0)) < TOLERANCE
    with model.disable_adapter():
        assert worst_gap(model, RAGGED, sampler.sample(RAGGED, 0)) > 0.1


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("llama", {"hidden_act": "gelu"}, "gelu"),
        ("mistral", {"sliding_window": 8}, "sliding window"),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}, "dynamic"),
    ],
)
def test_what_it_does_not_know_is_said(name: str, changes: dict[str, Any], reason: str) -> None:
    model = model_of(name, **changes)
    assert reason in str(obstacle(model))
    with pytest.raises(UserError, match=reason):
        HfSampler(model, Letters(), "cpu")


def test_dora_is_refused() -> None:
    peft = pytest.importorskip("peft", reason="LoRA needs peft")
    chosen = peft.LoraConfig(r=4, target_modules=["q_proj"], use_dora=True, task_type="CAUSAL_LM")
    assert "q_proj" in str(obstacle(peft.get_peft_model(model_of("llama"), chosen)))


@pytest.mark.parametrize(
    ("tokens", "new", "what"),
    [(prompt(80), 17, "window of 96"), ((), 4, "at least one token"), ((VOCAB,), 4, "0…60"), ((3,), 0, "max_tokens 0")],
)
def test_requests_it_cannot_serve(llama: tuple[Any, HfSampler], tokens: tuple[int, ...], new: int, what: str) -> None:
    with pytest.raises(UserError, match=what):
        llama[1].sample([Request(tokens, 1, (), Sampling(new))], 0)


def test_the_window_can_be_filled(llama: tuple[Any, HfSampler]) -> None:
    model, sampler = llama
    full = [Request(prompt(80), 8, ("full",), Sampling(16)), Request(prompt(1), 4, ("long",), Sampling(WINDOW - 1))]
    assert worst_gap(model, full, sampler.sample(full, 0)) < TOLERANCE


def test_scores_that_are_not_finite_are_no_answer(graphs: bool) -> None:
    model = model_of("llama")
    model.model.norm.weight.data.fill_(torch.nan)
    with pytest.raises(TrainingDiverged):
        HfSampler(model, Letters(), "cpu", graphs=graphs).sample(RAGGED, 0)
