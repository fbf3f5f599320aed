"""Every engine that must keep the contract: a new one adds one line."""

from __future__ import annotations

from rlvrlab.engines.base import Engine
from rlvrlab.engines.contract import Make
from rlvrlab.engines.toy.engine import Toy, ToyEngine
from rlvrlab.types import OptimizerSettings


def toy(precision: str = "float64", optimizer: str = "adam", engine: type[ToyEngine] = ToyEngine) -> Make:
    """A small one: fewer buckets and numbers than the default, so that a check takes milliseconds."""

    def make(rows: int) -> Engine:
        config = Toy(micro_batch=rows, precision=precision, buckets=8, max_number=40)
        return engine(config, OptimizerSettings(type=optimizer))

    return make


ENGINES: dict[str, Make] = {
    "toy-float64": toy(),
    "toy-float32": toy("float32"),
    "toy-sgd": toy(optimizer="sgd"),
}
