"""The hf engine: any causal language model of Transformers, from a folder or the hub, with LoRA or all parameters."""

from rlvrlab.engines.hf.table import Hf

__all__ = ["Hf"]
