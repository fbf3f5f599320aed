"""The toy engine: a policy in plain NumPy that closes the whole loop on any laptop, with exact gradients."""

from rlvrlab.engines.toy.engine import ToyEngine

__all__ = ["ToyEngine"]
