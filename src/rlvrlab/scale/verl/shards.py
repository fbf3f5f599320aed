"""Vectors of gradients where every process holds a shard of each: what the update needs of an engine's verbs.

A vector is the list of this process's gradient tensors, one per trained parameter (None where a parameter took no
part). Dot products are taken on the shards in double precision and added up over the processes that share the
parameters: one all-reduce of an S × S matrix. Works on plain parameters, on FSDP1's flat ones and on FSDP2's DTensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.batch import Floats

Vector = list[Any]
CHUNK = 1 << 22
"""Numbers taken to double precision at a time."""


class Shards:
    """The trained parameters of this process."""

    def __init__(
        self,
        parameters: Iterable[Any],
        group: Any = None,
        distributed: bool = False,
        apply: Callable[[], Any] = lambda: None,
        displacement: bool = False,
    ) -> None:
        """`apply` clips and lets the optimiser step on what is in the gradients; `displacement` asks what it did."""
        self.parameters = [p for p in parameters if p.requires_grad]
        self._group, self._distributed = group, distributed
        self._apply, self._displacement = apply, displacement

    def take(self) -> Vector:
        """What backward left in the gradients, which are empty afterwards."""
        vector = [p.grad for p in self.parameters]
        for p in self.parameters:
            p.grad = None
        return vector

    def gramian(self, vectors: Sequence[Vector], scope: str = "global") -> dict[str, Floats]:
        """Dot products of all pairs, summed over the processes."""
        import torch

        size = len(vectors)
        device = _local(self.parameters[0]).device
        total = torch.zeros(size, size, dtype=torch.float64, device=device)
        for column in zip(*vectors, strict=True):
            present = [i for i, tensor in enumerate(column) if tensor is not None]
            flat = [_local(column[i]).detach().reshape(-1) for i in present]
            length = flat[0].numel() if flat else 0
            for start in range(0, length, CHUNK):
                rows = torch.stack([one[start : start + CHUNK].double() for one in flat])
                index = torch.tensor(present, device=device)
                total[index[:, None], index[None, :]] += rows @ rows.T
        if self._distributed:
            torch.distributed.all_reduce(total, group=self._group)
        return {"global": np.asarray(total.cpu().numpy())}

    def combine(self, vectors: Sequence[Vector], weights: Mapping[str, Sequence[float]]) -> Vector:
        """Σ wᵢvᵢ as a new vector; only as a whole, because shards have no modules."""
        copies = [[None if one is None else one.detach().clone() for one in vector] for vector in vectors]
        return [_combined(column, weights["global"]) for column in zip(*copies, strict=True)]

    def step(self, vectors: Sequence[Vector], weights: Sequence[float], learning_rate: float) -> Vector:
        """Σ wᵢgᵢ into the gradients, the optimiser's step, and what it really did (where that is asked for)."""
        import torch

        for i, p in enumerate(self.parameters):
            p.grad = _combined([vector[i] for vector in vectors], weights)
        if not self._displacement:
            self._apply()
            return [None] * len(self.parameters)
        before = [_local(p).detach().clone() for p in self.parameters]
        self._apply()
        with torch.no_grad():
            return [_local(p).detach() - old for p, old in zip(self.parameters, before, strict=True)]

    def shift(self, vectors: Sequence[Vector], weights: Sequence[float]) -> None:
        """θ += Σ wᵢvᵢ; the optimiser's state stays as it is."""
        import torch

        with torch.no_grad():
            for i, p in enumerate(self.parameters):
                for vector, weight in zip(vectors, weights, strict=True):
                    if vector[i] is not None:
                        _local(p).add_(_local(vector[i]).to(_local(p).dtype), alpha=weight)

    def snapshot(self) -> Vector:
        """A copy of the parameters."""
        return [p.detach().clone() for p in self.parameters]

    def restore(self, snapshot: Vector) -> None:
        """Back to a snapshot, to the last bit."""
        import torch

        with torch.no_grad():
            for p, stored in zip(self.parameters, snapshot, strict=True):
                _local(p).copy_(_local(stored))

    def pull(self, snapshot: Vector, diagonal: Vector | None = None) -> Vector:
        """Gradient of ½ Σ dᵢ (θᵢ − θ*ᵢ)², with d = 1 where no diagonal is given."""
        distance = [p.detach() - anchor for p, anchor in zip(self.parameters, snapshot, strict=True)]
        if diagonal is None:
            return distance
        return [None if d is None else d * one for d, one in zip(diagonal, distance, strict=True)]

    def release(self, vectors: Sequence[Vector]) -> None:
        """Their memory is free again."""
        for vector in vectors:
            vector[:] = [None] * len(vector)

    def write(self, path: Path) -> None:
        """This process's shards into a file."""
        from safetensors.torch import save_file

        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({str(i): _local(p).detach().cpu().contiguous() for i, p in enumerate(self.parameters)}, path)

    def read(self, path: Path) -> None:
        """Back from `write`."""
        import torch
        from safetensors.torch import load_file

        stored = load_file(path)
        with torch.no_grad():
            for i, p in enumerate(self.parameters):
                _local(p).copy_(stored[str(i)])


def _local(tensor: Any) -> Any:
    """This process's part; a view of it, so that it can be written to."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _combined(tensors: Sequence[Any], weights: Sequence[float]) -> Any:
    """Σ wᵢtᵢ in the memory of the first one there is; the vectors are used up."""
    there = [(tensor, weight) for tensor, weight in zip(tensors, weights, strict=True) if tensor is not None]
    if not there:
        return None
    first, weight = there[0]
    target = _local(first)
    target.mul_(weight)
    for tensor, other in there[1:]:
        target.add_(_local(tensor), alpha=other)
    return first
