"""AdamW and SGD with momentum on one flat vector; state that can be saved to the last bit."""

from __future__ import annotations

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.recipe.schema import Optimizer


class FlatOptimizer:
    """Turns a gradient into a displacement."""

    def __init__(self, settings: Optimizer, size: int, dtype: str) -> None:
        self.settings = settings
        self.count = 0
        self.first = np.zeros(size, dtype=dtype)
        self.second = np.zeros(size if settings.type == "adam" else 0, dtype=dtype)

    def displacement(self, theta: Floats, gradient: Floats, learning_rate: float) -> Floats:
        """What to add to the parameters; updates the moments."""
        s = self.settings
        self.count += 1
        if s.type == "sgd":
            self.first = s.beta1 * self.first + gradient
            direction = self.first
        else:
            self.first = s.beta1 * self.first + (1 - s.beta1) * gradient
            self.second = s.beta2 * self.second + (1 - s.beta2) * gradient**2
            mean = self.first / (1 - s.beta1**self.count)
            direction = mean / (np.sqrt(self.second / (1 - s.beta2**self.count)) + s.epsilon)
        return np.asarray(-learning_rate * (direction + s.weight_decay * theta))

    def state(self) -> dict[str, Floats]:
        """Arrays to save."""
        return {"count": np.array(self.count), "first": self.first, "second": self.second}

    def restore(self, state: dict[str, Floats]) -> None:
        """Continue from saved arrays."""
        self.count = int(state["count"])
        self.first, self.second = state["first"], state["second"]
