"""Every engine that must keep the contract: a new one adds one line."""

from __future__ import annotations

from rlvrlab.engines.base import Engine
from rlvrlab.engines.contract import Make
from rlvrlab.engines.hf import Hf
from rlvrlab.engines.toy.engine import Toy, ToyEngine
from rlvrlab.recipe.schema import Optimizer


def toy(precision: str = "float64", optimizer: str = "adam", engine: type[ToyEngine] = ToyEngine) -> Make:
    """A small one: fewer buckets and numbers than the default, so that a check takes milliseconds."""

    def make(rows: int) -> Engine:
        config = Toy(micro_batch=rows, precision=precision, buckets=8, max_number=40)
        return engine(config, Optimizer(type=optimizer))

    return make


def hf(kind: str = "llama", rank: int = 4, *, own: bool = True, **keys: object) -> Make:
    """A language model of a few thousand parameters; about 14 tokens make a row of the contract's. Without `own` it is
    Transformers' in any case."""

    def make(rows: int) -> Engine:
        from tiny_models import tiny

        config = Hf(tiny(kind), lora_rank=rank, micro_tokens=14 * rows or 1 << 20, device="cpu", **keys)
        if own:
            return config.build(Optimizer())
        from rlvrlab.engines.hf.engine import HfEngine

        return HfEngine(config, Optimizer(), own=False)

    return make


ENGINES: dict[str, Make] = {
    "toy-float64": toy(),
    "toy-float32": toy("float32"),
    "toy-sgd": toy(optimizer="sgd"),
}
HF_ENGINES: dict[str, Make] = {
    "hf-llama-lora": hf("llama", 4),
    "hf-llama-peft": hf("llama", 4, own=False),
    "hf-qwen2-full": hf("qwen2", 0),
    "hf-gpt2-lora": hf("gpt2", 4),
    "hf-llama-padded": hf("llama", 0, packing=False),
}
"""Those that need torch."""
