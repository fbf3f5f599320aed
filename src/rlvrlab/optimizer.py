"""The [optimizer] table of a recipe, as engines and the learning-rate schedule read it.

Not in recipe/schema.py with the other tables, because an engine does not need the recipe around it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from rlvrlab.types import CountOrZero, Fraction01, NonNegative, Positive


class Optimizer(BaseModel, extra="forbid", strict=True, frozen=True, allow_inf_nan=False):
    """How an engine turns gradients into steps; the learning rate itself belongs to the phase."""

    type: Literal["adam", "sgd"] = Field("adam", description="adam is AdamW")
    beta1: Fraction01 = Field(0.9, description="momentum")
    beta2: Fraction01 = Field(0.99, description="decay of squared gradients")
    epsilon: Positive = Field(1e-8, description="floor under the root of the squared gradient")
    weight_decay: NonNegative = Field(0.0, description="decoupled")
    max_grad_norm: NonNegative = Field(1.0, description="clip the gradient to this norm; 0 never clips")
    warmup_steps: CountOrZero = Field(0, description="linear rise of the learning rate in each phase")
    decay: Literal["constant", "linear", "cosine"] = Field("constant", description="fall of the learning rate after it")
    final_ratio: Fraction01 = Field(0.1, description="share of the learning rate left at the end of a decay")
