"""Gradients by known slopes: those of torch.autograd to the last bit, and without its import of SymPy."""

from __future__ import annotations

import subprocess
import sys

import pytest
from needs_torch import torch
from tiny_models import tiny

from rlvrlab.engines.hf.slopes import along

ONE_GRADIENT = """
import sys
import numpy as np
from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf
from rlvrlab.objectives.sft import Sft
from rlvrlab.recipe.schema import Optimizer

engine = Hf(sys.argv[1], device="cpu", lora_rank=2).build(Optimizer())
batch = batch_of([[1, 2, 3], [1, 2, 3]], [[4, 5], [6, 7, 8]])
gradient, _, _ = engine.gradient(batch, Sft())
print(bool(gradient.abs().sum() > 0), sorted({"sympy", "torch._dynamo", "torch._inductor"} & sys.modules.keys()))
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_they_are_autograds_own(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    given, matrix = torch.randn(5, 3, dtype=dtype, requires_grad=True), torch.randn(3, 4, dtype=dtype)
    slope = torch.randn(5, 4)  # in float32, as slopes of logits in bfloat16 are
    (by_torch,) = torch.autograd.grad(given @ matrix, given, slope)
    (by_us,) = torch.autograd.grad(along(given @ matrix, slope), given)
    assert torch.equal(by_us, by_torch) and by_us.dtype == dtype
    with pytest.raises(AssertionError, match="slope for every value"):
        along(given @ matrix, slope[:3])


@pytest.mark.slow
def test_a_gradient_imports_no_algebra_system_and_no_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_GRADIENT, str(tiny())], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == "True []"
