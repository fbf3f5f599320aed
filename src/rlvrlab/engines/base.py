"""What an engine must be able to do: a handful of verbs over opaque vectors in parameter space.

Objectives, credit, surgery and the training loop are written once against `Engine` and run on any engine; contract.py
holds the checks that every engine passes. `EngineTable` is the [engine] table of a recipe, which builds one.
Suffixes of array names: B rows, T completion positions.

Clipping needs no verb: the norm of Σ wᵢgᵢ is √(wᵀGw) with the Gramian G, so clipping is a factor on the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.recipe.schema import Optimizer, PluginTable
from rlvrlab.types import Objective, Sampler

if TYPE_CHECKING:
    from rlvrlab.extras import Lookup

Vector = Any
"""A point or direction in the engine's trainable parameters; only the engine that made it can read it."""
Snapshot = Any
"""A frozen copy of the trainable parameters: a vector too, so copies can be combined."""
Policy = Literal["current", "reference"] | Any
"""Whose log-probabilities: the policy being trained, the frozen reference, or a Snapshot."""
Scope = Literal["global", "module"]
ValueObjective = Callable[[Floats, TokenBatch], tuple[float, Floats]]
"""(value_BT, batch) -> (loss, d loss / d value_BT)."""


class Trainable(Protocol):
    """A policy's parameters as updates, surgery and guards see them; verl's shards have these verbs too."""

    def gradient(self, batch: TokenBatch, objective: Objective) -> tuple[Vector, float, dict[str, float]]:
        """Gradient of the loss, its value, and the objective's metrics, whatever the micro-batch size."""

    def snapshot(self) -> Snapshot:
        """A frozen copy of the trainable parameters."""

    def fisher(self, batch: TokenBatch) -> Vector:
        """Diagonal Fisher estimate: the mean over rows of the squared gradient of that row's log-likelihood."""

    def pull(self, snapshot: Snapshot, diagonal: Vector | None = None) -> Vector:
        """Gradient of ½ Σ dᵢ (θᵢ − θ*ᵢ)²: L2 without a diagonal, EWC with one."""

    def gramian(self, vectors: Sequence[Vector], scope: Scope = "global") -> dict[str, Floats]:
        """Dot products of all pairs, summed over shards; by module, they add up to the global one."""

    def combine(self, vectors: Sequence[Vector], weights: Mapping[str, Sequence[float]]) -> Vector:
        """Σ wᵢvᵢ as a new vector; the weights are for the whole ("global") or by module, as `gramian` names them."""

    def step(self, vectors: Sequence[Vector], weights: Sequence[float], learning_rate: float) -> Vector:
        """Hand Σ wᵢgᵢ to the optimiser as the gradient; returns the displacement it really applied."""

    def shift(self, vectors: Sequence[Vector], weights: Sequence[float]) -> None:
        """θ += Σ wᵢvᵢ; the optimiser's state stays as it is."""

    def release(self, vectors: Sequence[Vector]) -> None:
        """These vectors will not be used again."""


class ScoringSampler(Sampler, Protocol):
    """A policy that answers and scores answers: all that an examination asks for."""

    name: str

    def logprobs(self, batch: TokenBatch) -> tuple[Floats, Floats]:
        """Log-probability and entropy at each completion token; 0 where nothing is seen."""


class Engine(ScoringSampler, Trainable, Protocol):
    """A policy that can be sampled, scored and moved."""

    @property
    def precision(self) -> str:
        """Arithmetic of the parameters: float64, float32, bfloat16."""

    def logprobs(self, batch: TokenBatch, policy: Policy = "current") -> tuple[Floats, Floats]:
        """Log-probability and entropy at each completion token; 0 where nothing is seen."""

    def anchor_kl(self, batch: TokenBatch, anchor: Snapshot) -> tuple[Vector, float]:
        """Gradient and value of KL(anchor ‖ current) over the whole vocabulary, a mean over the batch's loss tokens."""

    def values(self, batch: TokenBatch) -> Floats:
        """The critic's value before each completion token."""

    def fit_values(self, batch: TokenBatch, objective: ValueObjective, learning_rate: float) -> float:
        """One critic update; returns the loss before it."""

    def freeze_reference(self) -> None:
        """The current policy becomes the reference; saved and restored with the engine."""

    def fresh_optimizer(self) -> None:
        """Forget momentum, e.g. when a new phase begins."""

    def publish(self) -> int:
        """Make the current parameters the ones `sample` uses; returns the policy version."""

    def save(self, folder: Path) -> None:
        """Everything needed to go on exactly: parameters, optimiser, critic, reference, version. Never pickle."""

    def load(self, folder: Path) -> None:
        """Continue from `save`."""

    def save_vectors(self, folder: Path, vectors: Mapping[str, Vector]) -> None:
        """Vectors by name, to the last bit."""

    def load_vectors(self, folder: Path) -> dict[str, Vector]:
        """Back from `save_vectors`."""


@runtime_checkable
class KnowsUntrained(Protocol):
    """An engine that can tell which tokens its model will never write, however it is trained."""

    def untrained(self, texts: Sequence[str]) -> list[str]:
        """The tokens in these texts that no training moved before and this one will not move either."""


@runtime_checkable
class KnowsItsSize(Protocol):
    """An engine whose checkpoints are large enough that the disk may be too small for them."""

    def saved_bytes(self) -> int:
        """About what `save` writes; rather less than more."""


class EngineTable(PluginTable, ABC):
    """The [engine] table of a recipe; a plug-in of kind `engine` is a frozen dataclass that derives from it."""

    machines: ClassVar[str] = "Seconds on any laptop"
    """What its recipes run on, as a heading of `rlvr recipes`."""
    needs: ClassVar[str] = ""
    """What must be there beyond the core, in a few words for `rlvr recipes`."""
    draws_within_steps: ClassVar[bool] = True
    """Can guard and credit have answers drawn in the middle of a step? Where not, guards remember by references."""

    @classmethod
    def installed(cls) -> Lookup | None:
        """Whether the packages that it needs are there; None where it needs none beyond the core."""
        return None

    @abstractmethod
    def build(self, optimizer: Optimizer) -> Engine:
        """The engine, with its policy loaded."""

    def read(self, optimizer: Optimizer) -> ScoringSampler:
        """The policy before training, for who will only examine it: the engine, or what is there sooner."""
        return self.build(optimizer)

    def alone(self) -> Self:
        """The same policy without other programs that help to train it: answers are drawn in this process."""
        return self

    def lookups(self) -> list[Lookup]:
        """What this table names outside itself (a model, packages) and whether it is there; nothing is loaded."""
        return []

    def cannot_learn(self, train: Sequence[str], dev: Sequence[str]) -> str:
        """Why this policy cannot learn from these training prompts what these held-out ones ask; empty if it may."""
        return ""
