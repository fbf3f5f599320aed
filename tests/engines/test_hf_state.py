"""What an hf engine saves, loads and exports; and what happens when memory or disk run out."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from engine_factories import hf
from needs_torch import torch
from tiny_models import tiny

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import store
from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.engines.hf.threads import idle_cores, use_threads
from rlvrlab.engines.hf.vectors import Trainable
from rlvrlab.errors import CheckpointError, StorageError, UserError
from rlvrlab.models.rescoring import rescore
from rlvrlab.notes import noting
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.sft import Sft
from rlvrlab.train import checkpoint
from rlvrlab.train.state import State
from rlvrlab.types import Request, Sampling

SETTINGS = Sampling(max_tokens=6)


def practice(engine, steps: range) -> list[float]:
    """A little on-policy training; everything that could differ shows in what it returns."""
    prompts = [engine.tokenizer.encode_prompt(text) for text in ("3 7 = 21\n", "4 5 = 20\n")]
    shown = []
    for step in steps:
        drawn = engine.sample([Request(prompt, 4, ("practice", step, i), SETTINGS) for i, prompt in enumerate(prompts)])
        rows = [(prompt, c) for prompt, group in zip(prompts, drawn, strict=True) for c in group]
        batch = batch_of([prompt for prompt, _ in rows], [c.tokens for _, c in rows])
        reward_B = np.array([sum(c.tokens) % 7 for _, c in rows]) - 3.0
        batch = replace(batch, advantage_BT=np.where(batch.seen_BT, reward_B[:, None], 0.0))
        vector, value, metrics = engine.gradient(batch, PpoClip())
        engine.step([vector], [1.0], 1e-2)
        engine.publish()
        shown += [value, *metrics.values(), float(engine.logprobs(batch, "reference")[0].sum())]
    return shown


@pytest.mark.parametrize(("rank", "kind"), [(4, "llama"), pytest.param(0, "qwen2", marks=pytest.mark.slow)])
def test_a_resumed_run_is_the_same_run(tmp_path, rank: int, kind: str) -> None:
    straight = hf(kind, rank)(0)
    practice(straight, range(1))
    straight.freeze_reference()
    straight.save(tmp_path / "actor")
    expected = practice(straight, range(1, 4))
    resumed = hf(kind, rank)(0)
    resumed.load(tmp_path / "actor")
    assert practice(resumed, range(1, 4)) == expected
    assert torch.equal(resumed.weights.theta, straight.weights.theta)
    assert not list(tmp_path.rglob("*.bin")) and not list(tmp_path.rglob("*.pt"))


def test_the_reference_is_the_policy_at_the_freeze_not_the_base() -> None:
    engine = hf("llama", 4)(0)
    batch = batch_of([(3, 4)], [(5, 6, 7)])
    base = engine.logprobs(batch, "reference")[0]
    engine.step([engine.gradient(batch, Sft())[0]], [1.0], 0.1)
    frozen = engine.logprobs(batch)[0]
    engine.freeze_reference()
    engine.step([engine.gradient(batch, Sft())[0]], [1.0], 0.1)
    assert np.array_equal(engine.logprobs(batch, "reference")[0], frozen)
    assert np.abs(frozen - base).max() > 0.05


@pytest.mark.parametrize(
    ("kind", "rank"), [("llama", 4), *(pytest.param(*x, marks=pytest.mark.slow) for x in (("gpt2", 4), ("qwen2", 0)))]
)
def test_the_export_is_what_others_load(tmp_path, kind: str, rank: int) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    engine = hf(kind, rank)(0)
    batch = batch_of([(3, 4)], [(5, 6, 7)])
    engine.step([engine.gradient(batch, Sft())[0]], [1.0], 0.1)
    engine.save(tmp_path)
    pairs = [([3, 4], [5, 6, 7]), ([9, 8, 7], [6, 5, 4])]
    exported = rescore(tmp_path / "huggingface", pairs).logprobs
    mine_BT = engine.logprobs(batch_of([prompt for prompt, _ in pairs], [answer for _, answer in pairs]))[0]
    assert np.abs(np.array(exported) - mine_BT).max() < 1e-4
    assert AutoTokenizer.from_pretrained(tmp_path / "huggingface").eos_token_id == engine.tokenizer.end
    if rank:
        from peft import PeftModel

        with_adapter = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny(kind)), tmp_path / "adapter")
        logits = with_adapter(input_ids=torch.tensor([[3, 4, 5, 6, 7]])).logits[0, 1:-1].log_softmax(-1)
        mine = engine.logprobs(batch)[0][0]
        assert np.abs(logits.detach().numpy()[np.arange(3), [5, 6, 7]] - mine).max() < 1e-5


@pytest.mark.slow
def test_a_checkpoint_is_written_where_the_card_has_no_room_left(tmp_path, monkeypatch) -> None:
    engine = hf("llama", 4)(0)
    engine.step([engine.gradient(batch_of([(3, 4)], [(5, 6, 7)]), Sft())[0]], [1.0], 0.1)
    engine.save(tmp_path / "room")
    merge, tried = store.merged_weight, set()

    def full_at_first(owner, weight, device):
        if id(owner) not in tried:
            tried.add(id(owner))
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 54.00 MiB.")
        return merge(owner, weight, device)

    def second_model_on_the_card(*_, **__):
        raise AssertionError("a copy beside the original")

    monkeypatch.setattr(store, "merged_weight", full_at_first)
    monkeypatch.setattr(torch.Tensor, "clone", second_model_on_the_card)
    engine.save(tmp_path / "none")
    for name in ("engine.safetensors", "huggingface/model.safetensors", "adapter/adapter_model.safetensors"):
        assert (tmp_path / "none" / name).read_bytes() == (tmp_path / "room" / name).read_bytes()
    assert tried


def test_the_state_of_another_engine_and_damaged_files_are_refused(tmp_path) -> None:
    hf("llama", 4)(0).save(tmp_path)
    with pytest.raises(CheckpointError, match="other parameters"):
        hf("llama", 8)(0).load(tmp_path)
    facts = json.loads((tmp_path / "engine.json").read_text())
    (tmp_path / "engine.json").write_text(json.dumps({**facts, "optimizer": "sgd"}))
    with pytest.raises(CheckpointError, match="optimizer sgd"):
        hf("llama", 4)(0).load(tmp_path)
    (tmp_path / "engine.json").write_text(json.dumps(facts))
    state = tmp_path / "engine.safetensors"
    state.write_bytes(state.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="cannot be read"):
        hf("llama", 4)(0).load(tmp_path)


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path) -> None:
    """The kernel's limit on a file's size stands for the full disk: writing fails half-way with an error of the OS."""
    engine = hf("llama", 4)(0)
    kept = checkpoint.save(tmp_path, engine, State(step=1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
        with pytest.raises(StorageError):
            checkpoint.save(tmp_path, engine, State(step=2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert checkpoint.defect(kept) is None and [p.name for p in tmp_path.iterdir()] == ["global_step_1"]


class Full:
    """A body that runs out of memory while micro-batches are larger than it likes."""

    def __init__(self, engine, most: int, error: Exception) -> None:
        self.engine, self.most, self.error, self.inner = engine, most, error, engine.body.hidden

    def __call__(self, layout, **keys):
        if layout.ids.size > self.most:
            raise self.error
        return self.inner(layout, **keys)


OUT = (
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried …"),
)


@pytest.mark.parametrize("error", OUT, ids=["gpu", "cpu"])
def test_out_of_memory_halves_once_and_then_names_the_key(error, monkeypatch) -> None:
    rows = ([tuple(range(3, 13))] * 8, [(i + 3, 4, 5, 6, 7, 8) for i in range(8)])
    engine, batch = hf("llama", 4)(5), batch_of(*rows)
    expected = engine.gradient(batch, Sft())
    monkeypatch.setattr(engine.body, "hidden", Full(engine, 40, error))
    with pytest.warns(UserWarning, match="halved to 35 tokens"):
        again = engine.gradient(batch, Sft())
    assert (again[0] - expected[0]).norm() < 1e-5 * expected[0].norm() and again[1] == pytest.approx(expected[1])
    monkeypatch.setattr(engine.body, "hidden", Full(engine, 8, error))
    with pytest.raises(UserError, match=r"lower engine\.micro_tokens"):
        engine.gradient(batch, Sft())


def test_scores_are_found_however_often_it_takes_to_halve(monkeypatch) -> None:
    rows = ([tuple(range(3 + i, 13 + i)) for i in range(8)], [(i + 3, 4, 5, 6, 7, 8) for i in range(8)])
    engine, batch = hf("llama", 4)(5), batch_of(*rows)
    expected = engine.logprobs(batch)[0]
    monkeypatch.setattr(engine.body, "hidden", Full(engine, 20, OUT[0]))
    with pytest.warns(UserWarning, match="halved"):
        found = engine.logprobs(batch)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    monkeypatch.setattr(engine.body, "hidden", Full(engine, 8, OUT[0]))
    with pytest.warns(UserWarning, match="halved"), pytest.raises(UserError, match="out of memory"):
        engine.logprobs(batch)


def test_other_errors_are_not_taken_for_a_lack_of_memory(monkeypatch) -> None:
    engine = hf("llama", 4)(0)
    monkeypatch.setattr(engine.body, "hidden", Full(engine, 0, RuntimeError("shapes do not fit")))
    with pytest.raises(RuntimeError, match="shapes"):
        engine.logprobs(batch_of([(3,)], [(4,)]))


@pytest.mark.parametrize("error", [*OUT, MemoryError()], ids=["gpu", "cpu", "python"])
def test_out_of_memory_while_sampling_halves_the_rows_and_is_remembered(error, monkeypatch, tmp_path) -> None:
    engine, told = hf("llama", 4)(5), []
    requests = [Request((3, 4, 5), 8, ("memory",), Sampling(max_tokens=4))]
    expected = engine.sample(requests)
    whole, engine.max_rows = HfSampler._decode, None

    def decode(self, requests, rows, uniform, ended, unwanted):
        if len(rows) > 3:
            raise error
        return whole(self, requests, rows, uniform, ended, unwanted)

    monkeypatch.setattr(HfSampler, "_decode", decode)
    with noting(lambda kind, words: told.append((kind, words))):
        again = engine.sample(requests)
    assert [one.tokens for one in again[0]] == [one.tokens for one in expected[0]]
    assert engine.max_rows == 2 and len(told) == 2, "halving begins with the eight answers that there are"
    assert told[-1] == ("memory", f"out of memory while sampling: {engine.max_rows} answers abreast from now on")
    engine.save(tmp_path / "actor")
    resumed = hf("llama", 4)(5)
    resumed.load(tmp_path / "actor")
    assert resumed.max_rows == engine.max_rows, "a resumed run does not run into it again"
    monkeypatch.setattr(HfSampler, "_decode", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(UserError, match="while sampling one answer"):
        engine.sample(requests)


def test_a_small_model_computes_on_one_thread_and_a_run_keeps_its_number(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("rlvrlab.engines.hf.threads.USUAL_THREADS", 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    engine = hf("llama", 4)(0)
    assert engine.threads == torch.get_num_threads() == 1
    engine.save(tmp_path / "one")
    monkeypatch.setattr("rlvrlab.engines.hf.threads.ONE_THREAD_BELOW", 0)
    monkeypatch.setattr("rlvrlab.engines.hf.threads.idle_cores", lambda: 1.1)
    assert hf("llama", 4)(0).threads == torch.get_num_threads() == 1, "another process works on the second core"
    monkeypatch.setattr("rlvrlab.engines.hf.threads.idle_cores", lambda: 1.9)
    larger = hf("llama", 4)(0)
    assert larger.threads == torch.get_num_threads() == 2
    larger.load(tmp_path / "one")
    assert larger.threads == torch.get_num_threads() == 1

    facts = tmp_path / "one" / "engine.json"
    known = json.loads(facts.read_text())
    facts.write_text(json.dumps({key: value for key, value in known.items() if key != "threads"}))
    engine.load(tmp_path / "one")
    assert engine.threads == 2  # of an older version, which used torch's own number
    torch.set_num_threads(1)


def test_one_thread_is_one_thread() -> None:
    """The products of matrices, too: a process with one thread cannot use more CPU time than passes."""
    use_threads(1)
    x, weight = torch.randn(512, 256), torch.randn(512, 256)
    torch.nn.functional.linear(x, weight)
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() < wall + 0.15:
        torch.nn.functional.linear(x, weight)
    assert time.process_time() - cpu <= 1.1 * (time.perf_counter() - wall)


def test_idle_cores_are_read_from_the_system() -> None:
    assert 0 <= idle_cores() <= (os.cpu_count() or 1) * 1.2


def test_parts_of_the_vector_are_named_by_layer_and_block() -> None:
    names = ["base.model.embed_tokens.weight", "base.model.layers.3.self_attn.q_proj.lora_A.default.weight",
             "base.model.layers.3.self_attn.o_proj.weight", "base.model.layers.10.mlp.up_proj.weight"]  # fmt: skip
    slices = [slice(i, i + 1) for i in range(4)]
    found = Trainable.modules(SimpleNamespace(names=names, slices=slices))  # type: ignore[arg-type]
    assert found == {"embed_tokens": slices[:1], "layers.3.self_attn": slices[1:3], "layers.10.mlp": slices[3:]}
