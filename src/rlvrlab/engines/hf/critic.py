"""A linear value head on the direction of the last hidden state, in float32, with an optimiser of its own.

Hidden states are brought to length 1 first, so that one learning rate means the same for every model: an Adam step
moves a value by at most learning_rate · (√D + 1).
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlvrlab.engines.hf.vectors import FlatOptimizer
from rlvrlab.recipe.schema import Optimizer


class Critic:
    """value = w·h/|h| + b; it reads the policy's hidden states and never moves them."""

    def __init__(self, size: int, settings: Optimizer, device: torch.device) -> None:
        self.settings = settings
        self.weight = torch.zeros(size + 1, device=device)
        self.fresh_optimizer()

    def fresh_optimizer(self) -> None:
        """Forget momentum."""
        self.optimizer = FlatOptimizer(self.settings, self.weight)

    def __call__(self, hidden_KD: Tensor) -> Tensor:
        """The value at each place."""
        return _direction(hidden_KD) @ self.weight[:-1] + self.weight[-1]

    def gradient(self, hidden_KD: Tensor, c_K: Tensor) -> Tensor:
        """The gradient, by the weights, of a loss whose derivative by each value is `c_K`."""
        return torch.cat([c_K @ _direction(hidden_KD), c_K.sum()[None]])

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        """Move the weights by one step of the optimiser."""
        self.weight += self.optimizer.displacement(self.weight, gradient, learning_rate)


def _direction(hidden_KD: Tensor) -> Tensor:
    return torch.nn.functional.normalize(hidden_KD.float(), dim=-1)
