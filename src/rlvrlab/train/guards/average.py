"""Weight averaging along the run: between steps the parameters are drawn to an average of where the stage has been.

    a ← a + (1 − decay) (θ − a)      after every step; a begins at θ*, where the stage began
    θ ← θ − weight (θ − a)           at the end of the stage, or every few steps

With decay = 1 the average stays θ*: interpolation with the anchor (Lin et al. 2023, arXiv 2309.06256), and with
`every = 1` a spring to it outside the optimiser. With decay below 1 it is an exponential average of the steps, to which
the stage jumps when it ends (weight = 1), as in WARP (Ramé et al. 2024, arXiv 2406.16768).
It costs no pass at all, only a copy of the parameters. The optimiser does not hear of the moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.registry import register
from rlvrlab.train.guards.base import Guard, Settled
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import CountOrZero, Fraction01


@register("guard", "average")
@dataclass(frozen=True)
class Average(Guard):
    """Average the weights, while there is something to protect."""

    weight: Fraction01 = 0.5
    """How far the parameters go to the average: 0 stays, 1 takes the average."""
    decay: Fraction01 = 1.0
    """Share of the average that a step keeps; 1 keeps the parameters with which the stage began."""
    every: CountOrZero = 0
    """Steps between two moves to the average; 0 moves only when the stage ends."""

    settles: ClassVar[bool] = True

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """The average begins with the stage."""
        return kept._replace(vectors={"average": now.engine.snapshot()} if now.protected else {})

    def settle(self, now: Moment, kept: Kept) -> Settled:
        """One more step in the average; at the end of a stage, or when it is time, the parameters move to it."""
        if not now.protected:
            return Settled(kept, False, {})
        average, engine = kept.vectors["average"], now.engine
        if self.decay < 1:
            away = engine.pull(average)
            average = engine.combine([average, away], {"global": [1.0, 1.0 - self.decay]})
            engine.release([away])
        done = now.phase_step + 1 - now.stage.first
        due = now.phase_step + 1 == now.stage.last or bool(self.every and done % self.every == 0)
        away = engine.pull(average)
        distance = float(engine.gramian([away])["global"][0, 0]) ** 0.5
        if due:
            engine.shift([away], [-self.weight])
        engine.release([away])
        return Settled(kept._replace(vectors={"average": average}), due, {"guard/distance": distance})
