"""A LoRA adapter in PEFT's layout, read in two steps: what its header says, then its numbers.

settings + header -> the shapes, which the caller compares with its model -> numbers, in memory of their own

So a file takes no more memory than the model's own layers allow at its rank, whatever it claims or whatever holes are
in it; and it may be changed or removed once it is read. Only safetensors and JSON are read.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlvrlab import plain_files
from rlvrlab.engines.hf.lora_settings import Settings, obstacle
from rlvrlab.engines.openai.adapter_files import check_tensors
from rlvrlab.errors import UserError, cut
from rlvrlab.models.tensors import ADAPTER_CONFIG, ADAPTER_TENSORS

PREFIX = "base_model.model."
LARGEST_CONFIG = 1 << 20
BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, UserError)
"""What files can bring about that are no adapter."""


class Shape(NamedTuple):
    """The update of one layer, before its numbers are read."""

    stem: str
    """Its tensors are STEM.lora_B.weight and STEM.lora_A.weight."""
    out: int
    into: int

    def of_weight(self, *, transposed: bool) -> tuple[int, int]:
        """The shape of a weight that it can be added to."""
        return (self.into, self.out) if transposed else (self.out, self.into)


class Delta(NamedTuple):
    """The low-rank update of one layer: scale · B·A, added to its weight."""

    b_OR: Tensor
    a_RI: Tensor
    scale: float
    transposed: bool

    def reach(self) -> float:
        """What no entry of the update exceeds; nan where there is one in it."""
        return abs(self.scale) * float(self.b_OR.abs().max()) * float(self.a_RI.abs().max()) * len(self.a_RI)


def read_settings(folder: Path) -> Settings:
    """Anything that is more than plain LoRA is refused."""
    with _found(folder):
        facts = plain_files.parsed(_plain_file(folder / ADAPTER_CONFIG, LARGEST_CONFIG).read_text(encoding="utf-8"))
        odd = obstacle(facts)
        settings = None if odd else Settings.of(facts)
    if settings is None:
        raise UserError(f"{folder}: only plain LoRA is served, this has {odd}")
    if not math.isfinite(settings.scale):
        raise UserError(f"{folder}: no finite scale in it")
    return settings


def read_shapes(folder: Path, rank: int) -> dict[str, Shape]:
    """The updates by module, as the header tells them: two matrices of this rank each, and nothing else."""
    with _found(folder):
        tensors = check_tensors(_plain_file(folder / ADAPTER_TENSORS))
    shapes: dict[str, Shape] = {}
    if strange := [name for name in tensors if not name.startswith(PREFIX)]:
        raise UserError(f"{folder}: {cut(strange[0], 200)} is no name of PEFT's, which begin with {PREFIX}")
    for stem in sorted({name.rpartition(".lora_")[0] for name in tensors}):
        names = _pair(stem)
        missing = [name for name in names if name not in tensors]
        if missing:
            raise UserError(f"{folder}: no {cut(missing[0], 200)} in it; only plain LoRA is served")
        b_OR, a_RI = (tensors[name][1] for name in names)
        if len(b_OR) != 2 or len(a_RI) != 2 or b_OR[1] != rank or a_RI[0] != rank:
            raise UserError(f"{folder}: {cut(stem, 200)} is no update of rank {rank}: {b_OR} and {a_RI}")
        shapes[stem.removeprefix(PREFIX)] = Shape(stem, b_OR[0], a_RI[1])
    if 2 * len(shapes) != len(tensors):
        raise UserError(f"{folder}: more than one pair of matrices for a layer; only plain LoRA is served")
    return shapes


def read_delta(file: Any, folder: Path, shape: Shape, settings: Settings, *, transposed: bool) -> Delta:
    """The numbers of one layer from an open file, if they are still what its header said."""
    wanted = [(shape.out, settings.rank), (settings.rank, shape.into)]
    with _found(folder):
        if [tuple(file.get_slice(name).get_shape()) for name in _pair(shape.stem)] != wanted:
            raise ValueError("it changed while it was read")
        # Copied: a tensor of the file is the file, and changes with it.
        b_OR, a_RI = (file.get_tensor(name).to(torch.float32, copy=True) for name in _pair(shape.stem))
    return Delta(b_OR, a_RI, settings.scale, transposed)


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    """Its tensors, for `read_delta`."""
    from safetensors import safe_open

    with _found(folder):
        file = safe_open(folder / ADAPTER_TENSORS, "pt")
    with file as tensors:
        yield tensors


@contextmanager
def _found(folder: Path) -> Iterator[None]:
    """What a broken or missing file brings about is the user's to mend."""
    from safetensors import SafetensorError

    try:
        yield
    except (*BROKEN, SafetensorError) as error:
        raise UserError(f"No adapter found for {folder}: {type(error).__name__}: {error}") from None


def _pair(stem: str) -> tuple[str, str]:
    return f"{stem}.lora_B.weight", f"{stem}.lora_A.weight"


def _plain_file(path: Path, most: int | None = None) -> Path:
    """A path that can be read to its end: a pipe or a device would hold its reader up for ever."""
    state = path.stat()
    if not stat.S_ISREG(state.st_mode) or (most is not None and state.st_size > most):
        raise ValueError(f"{path.name} is no plain file" + (f" of at most {most} bytes" if most else ""))
    return path
