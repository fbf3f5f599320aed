"""The hf engine's verbs over a causal language model; vectors are flat float32 tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.base import Policy, Scope, ValueObjective
from rlvrlab.engines.hf import heap, load, store, threads, ways
from rlvrlab.engines.hf.body import Body
from rlvrlab.engines.hf.config import EMBEDDED, HfConfig
from rlvrlab.engines.hf.critic import Critic
from rlvrlab.engines.hf.drawing import Drawing
from rlvrlab.engines.hf.generate import PlainSampler
from rlvrlab.engines.hf.memory import held_by_others, out_of_memory
from rlvrlab.engines.hf.opening import opened
from rlvrlab.engines.hf.passes import GradientPass, Hidden, hidden_rows, score_rows
from rlvrlab.engines.hf.sampler import HfSampler
from rlvrlab.engines.hf.untrained import untrained
from rlvrlab.engines.hf.vectors import FlatOptimizer, Trainable, combine, gramian
from rlvrlab.engines.hf.weights import obstacle
from rlvrlab.errors import UserError
from rlvrlab.notes import note
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Loss, Objective, Tokenizer

Result = TypeVar("Result")


class HfEngine(Drawing):
    """All of engines/base.py on a causal language model, our own or that of Transformers and PEFT (opening.py)."""

    name = "hf"

    def __init__(self, config: HfConfig, optimizer: Optimizer, *, own: bool = True) -> None:
        """Without `own` the model is Transformers' also where ours would do."""
        self.config, self.optimizer_settings = config, optimizer
        self.device = load.device_of(config)
        self.model, self.peft, self.tokenizer = opened(config, self.device, own=own)
        self._use_threads(threads.threads_for(sum(one.numel() for one in self.model.parameters()), self.device.type))
        self.body = Body(self.model, packing=config.packing)
        self.window = self.body.window
        if config.gradient_checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        self.ways: ways.Ways | None = None
        self.weights = Trainable(self.model)
        self.precision = str(self.weights.dtype).removeprefix("torch.")
        self.micro_tokens = config.tokens_at_once(self.device.type)
        self._halved = self._gave_back = False
        self.reference = self.weights.copy.clone()
        self.critic = Critic(self.model.config.hidden_size, optimizer, self.device)
        self.version = 0
        self.optimizer = FlatOptimizer(optimizer, self.weights.theta)
        if config.sampler != EMBEDDED:  # a server that is not there or not right is found out now
            from rlvrlab.engines.hf.served import ServedSampler

            self._sampler, self._stale = ServedSampler(self), False

    def _use_threads(self, count: int) -> None:
        self.threads = count
        if self.device.type == "cpu":
            threads.use_threads(count)
            heap.keep_freed_memory()

    def fresh_optimizer(self) -> None:
        """Zero moments for policy and critic, made now, before the sampler asks how much memory is left."""
        self.optimizer = FlatOptimizer(self.optimizer_settings, self.weights.theta).ready()
        self.critic.fresh_optimizer()

    def _new_sampler(self) -> HfSampler | PlainSampler:
        return embedded_sampler(self.model, self.tokenizer, self.device)

    def logprobs(self, batch: TokenBatch, policy: Policy = "current") -> tuple[Floats, Floats]:
        """Float32 scores of every seen token."""
        self._choose_ways()
        named = {"current": None, "reference": self.reference}
        with self.weights.swapped(named[policy] if isinstance(policy, str) else policy):
            return self._sparing(lambda: score_rows(self.body, batch, self.micro_tokens), often=True)

    def gradient(self, batch: TokenBatch, objective: Objective) -> tuple[Tensor, float, dict[str, float]]:
        """One forward pass per micro-batch; a batch-coupled objective is asked once, before them."""
        work = self._sparing(self._backward, batch, objective)
        return work.total, work.value, work.metrics

    def anchor_kl(self, batch: TokenBatch, anchor: Tensor) -> tuple[Tensor, float]:
        """Two forward passes and one backward pass; logits of the anchor are made again, never stored."""
        work = self._sparing(self._backward, batch, anchor)
        return work.total, work.value

    def values(self, batch: TokenBatch) -> Floats:
        """The value head's opinion before each token."""
        return self._value_BT(batch, self._sparing(self._hidden, batch))

    def fit_values(self, batch: TokenBatch, objective: ValueObjective, learning_rate: float) -> float:
        """One optimiser step on the value head's loss."""
        parts = self._sparing(self._hidden, batch)
        loss, c_BT = objective(self._value_BT(batch, parts), batch)
        total = torch.zeros_like(self.critic.weight)
        for part in parts:
            c_K = self.body.tensor(part.layout.gather_places(c_BT[part.rows]).astype(np.float32))
            total += self.critic.gradient(part.state_KD, c_K)
        self.critic.step(total, learning_rate)
        return loss

    def _value_BT(self, batch: TokenBatch, parts: list[Hidden]) -> Floats:
        value_BT = np.zeros(batch.tokens_BT.shape)
        for part in parts:
            value_K = self.critic(part.state_KD).double().cpu().numpy()
            value_BT[part.rows] = part.layout.spread_places(value_K)
        return value_BT

    def snapshot(self) -> Tensor:
        """A copy of the trainable parameters."""
        return self.weights.theta.clone()

    def freeze_reference(self) -> None:
        """Kept in the model's own precision: it is only ever computed with."""
        self.reference = self.weights.copy.clone()

    def fisher(self, batch: TokenBatch) -> Tensor:
        """Row by row: squaring the batch mean would be another quantity."""
        total = torch.zeros_like(self.weights.theta)
        for i in range(len(batch)):
            row = batch.rows([i])
            log_likelihood = Loss(0.0, row.loss_BT.astype(np.float64))
            total += self._sparing(self._backward, row, log_likelihood).total.square_()
        return total / max(1, len(batch))

    def pull(self, snapshot: Tensor, diagonal: Tensor | None = None) -> Tensor:
        """θ − θ*, weighted."""
        difference = self.weights.theta - snapshot
        return difference if diagonal is None else difference.mul_(diagonal)

    def gramian(self, vectors: Sequence[Tensor], scope: Scope = "global") -> dict[str, Floats]:
        """Dot products in double precision."""
        parts = {"global": [slice(None)]} if scope == "global" else self.weights.modules()
        return {name: gramian(vectors, slices) for name, slices in parts.items()}

    def combine(self, vectors: Sequence[Tensor], weights: Mapping[str, Sequence[float]]) -> Tensor:
        """A weighted sum, module by module where the weights are."""
        parts = {"global": [slice(None)]} if "global" in weights else self.weights.modules()
        total = torch.zeros_like(vectors[0])
        for name, weight_S in weights.items():
            for part in parts[name]:
                total[part] = combine([vector[part] for vector in vectors], weight_S)
        return total

    def step(self, vectors: Sequence[Tensor], weights: Sequence[float], learning_rate: float) -> Tensor:
        """Descend along the weighted sum; the displacement is what float32 really kept of the move."""
        before = self.weights.theta.clone()
        self.weights.add(self.optimizer.displacement(before, combine(vectors, weights), learning_rate))
        return torch.sub(self.weights.theta, before, out=before)

    def shift(self, vectors: Sequence[Tensor], weights: Sequence[float]) -> None:
        """Move without telling the optimiser."""
        self.weights.add(combine(vectors, weights))

    def publish(self) -> int:
        """The next `sample` copies the parameters; until then nothing is spent."""
        self.version += 1
        self._stale = True
        return self.version

    def release(self, vectors: Sequence[Tensor]) -> None:
        """Python's garbage collector does it."""

    def untrained(self, texts: Sequence[str]) -> list[str]:
        """Named tokens whose rows of the output layer were never trained and stay as they are beside an adapter."""
        head, inner = self.model.get_output_embeddings(), self.tokenizer.inner
        if self.peft is None or head.weight.requires_grad or hasattr(head, "lora_A"):
            return []
        held = {token for text in texts for token in self.tokenizer.encode(text)} & inner.added_tokens_decoder.keys()
        return inner.convert_ids_to_tokens(untrained(head.weight.detach(), sorted(held)))

    def saved_bytes(self) -> int:
        """The merged model, and parameters, reference, moments and adapter in the trainer's precision."""
        moments = 2 if self.optimizer_settings.type == "adam" else 1
        trained = self.weights.theta.nbytes * (1 + moments) + self.reference.nbytes * (1 if self.peft is None else 2)
        if self.config.quantize != "none":
            return trained
        return trained + sum(x.nbytes for name, x in self.model.named_parameters() if ".lora_" not in name)

    def save(self, folder: Path) -> None:
        """Trainer state, the merged model in huggingface/, and the adapter in PEFT's layout."""
        state = {"theta": self.weights.theta, "reference": self.reference, "critic": self.critic.weight}
        state |= {f"optimizer.{key}": value for key, value in self.optimizer.state().items()}
        state |= {f"critic_optimizer.{key}": value for key, value in self.critic.optimizer.state().items()}
        halved = {"max_rows": self.max_rows, "micro_tokens": self.micro_tokens if self._halved else None}
        store.save(folder, state, self._facts() | {"halved": halved, "threads": self.threads})
        quantized = self.config.quantize != "none"
        store.export(folder / "huggingface", self.model, self.tokenizer, quantized=quantized)
        if self.peft is not None:
            store.export_adapter(folder / "adapter", self.peft)

    def load(self, folder: Path) -> None:
        """Refuses the state of another model or adapter."""
        state, facts = store.load(folder, self.device, self._facts())
        self.weights.set(state["theta"])
        self.reference, self.critic.weight = state["reference"], state["critic"]
        for prefix, optimizer in (("optimizer.", self.optimizer), ("critic_optimizer.", self.critic.optimizer)):
            optimizer.restore({key.removeprefix(prefix): x for key, x in state.items() if key.startswith(prefix)})
        self.version = int(facts["version"])
        # Another number of threads rounds differently. A run of an older version used torch's own.
        self._use_threads(int(facts.get("threads", threads.USUAL_THREADS)))
        halved = facts.get("halved") or {}
        self.max_rows = halved.get("max_rows") or self.max_rows
        if self.max_rows and self._sampler is not None:
            self._sampler.max_rows = self.max_rows
        if halved.get("micro_tokens"):
            self._halved, self.micro_tokens = True, int(halved["micro_tokens"])
        self._stale = True

    def save_vectors(self, folder: Path, vectors: Mapping[str, Tensor]) -> None:
        """Safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        store.write_tensors(folder / store.VECTORS, vectors)

    def load_vectors(self, folder: Path) -> dict[str, Tensor]:
        """Back from them."""
        return store.read_tensors(folder / store.VECTORS, self.device)

    def _facts(self) -> dict[str, Any]:
        """What tells a checkpoint of this engine from one that it cannot continue."""
        trained = [[name, list(shape)] for name, shape in zip(self.weights.names, self.weights.shapes, strict=True)]
        return {
            "model": self.config.model,
            "version": self.version,
            "precision": self.precision,
            "optimizer": self.optimizer_settings.type,
            "trained": trained,
        }

    def _choose_ways(self) -> None:
        """Before the first pass that scores or trains: who only samples need not find out what is fastest."""
        if self.ways is None:
            self.ways = ways.choose(self.model, self.body, adapters=self.peft is not None, blocks=self.peft is not None)

    def _hidden(self, batch: TokenBatch) -> list[Hidden]:
        self._choose_ways()
        return hidden_rows(self.body, batch, self.micro_tokens)

    def _backward(self, batch: TokenBatch, asked: Objective | Loss | Tensor) -> GradientPass:
        """The gradient of an objective, of known coefficients, or of the KL to an anchor's parameters."""
        self._choose_ways()
        work = GradientPass(self.body, self.weights, self.micro_tokens, batch)
        checkpointed = self.config.gradient_checkpointing
        if checkpointed:  # Transformers does so only in training mode; changing the mode visits every module
            self.model.train()
        try:
            if isinstance(asked, Tensor):
                work.anchor_kl(asked)
            else:
                _ = work.given(asked) if isinstance(asked, Loss) else work.asked(asked)
        finally:
            if checkpointed:
                self.model.eval()
        return work

    def _sparing(self, work: Callable[..., Result], *args: Any, often: bool = False) -> Result:
        """Out of memory: see `_spared`. What fails leaves nothing behind, so the next try begins anew.

        A training that has to halve again would be slow for long, which its user should know. A pass that only scores
        halves as `often` as it takes: answers that were drawn for it would be lost.
        """
        while True:
            try:
                return work(*args)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error, self.device):
                    raise
                again = often and self.micro_tokens > 1
                if self._halved and not again and not self._holds_buffers():
                    small = f"{self.device} with micro-batches of {self.micro_tokens} tokens"
                    remedy = "lower engine.micro_tokens, or set engine.gradient_checkpointing = true"
                    raise UserError(f"out of memory on {small}{held_by_others(self.device)}; {remedy}") from error
            self._spared(again)

    def _spared(self, again: bool) -> None:
        """The sampler's buffers go first, by themselves the first time: an examination needs larger ones than training.
        Then the micro-batch is halved, once in an engine's life unless `again`; the next time it is the user's turn."""
        words, held = "out of memory", self._holds_buffers()
        if held:
            self._sampler.forget()
            words += ": the sampler gave its buffers back"
        if (again or not self._halved) and (self._gave_back or not held):
            self._halved, self.micro_tokens = True, max(1, self.micro_tokens // 2)
            words += f": micro-batches are halved to {self.micro_tokens} tokens"
            warnings.warn(words, stacklevel=4)
            words += f"; set engine.micro_tokens = {self.micro_tokens}"
        self._gave_back = self._gave_back or held
        note("memory", words)
        self._free()


def embedded_sampler(model: Any, tokenizer: Tokenizer, device: torch.device) -> HfSampler | PlainSampler:
    """The fast decoder where it knows the architecture, else the model's own cached forward pass."""
    if obstacle(model):
        return PlainSampler(model, tokenizer, device)
    return HfSampler(model, tokenizer, device)
