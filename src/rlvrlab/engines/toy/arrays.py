"""Arrays of a checkpoint as `np.savez` writes them, read only where name, shape and size are what they must be.

Whoever has made the file may have packed gigabytes of zeros into a few bytes: what is packed is refused, and so is a
header that tells of another shape, before any of the array is read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from rlvrlab import plain_files
from rlvrlab.batch import Floats
from rlvrlab.errors import CheckpointError

ENDING = ".npy"
Shape = tuple[int, ...]


def read_arrays(path: Path, shapes: Mapping[str, Collection[Shape]]) -> dict[str, Floats]:
    """The arrays of these names, each of one of its shapes; others in the file are left alone."""
    return _read(path, shapes)


def read_vectors(path: Path, size: int) -> dict[str, Floats]:
    """Every array in the file, each a vector of this size."""
    return _read(path, None, size)


def _read(path: Path, shapes: Mapping[str, Collection[Shape]] | None, size: int = 0) -> dict[str, Floats]:
    try:
        with plain_files.opened(path) as file, zipfile.ZipFile(file) as archive:
            there = [name.removesuffix(ENDING) for name in archive.namelist()]
            wanted = {name: [(size,)] for name in there} if shapes is None else shapes
            return {name: _array(archive, name, allowed) for name, allowed in wanted.items()}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"{path}: not the arrays of this engine ({error}); restore it") from None


def _array(archive: zipfile.ZipFile, name: str, allowed: Collection[Shape]) -> Floats:
    facts = archive.getinfo(name + ENDING)
    if facts.compress_type != zipfile.ZIP_STORED or facts.compress_size != facts.file_size:
        raise ValueError(f"{name} is packed")
    with archive.open(facts) as file:
        major, _ = np.lib.format.read_magic(file)
        headers = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
        shape, _, kind = headers[major](file)
    if shape not in allowed or kind.kind not in "fi":
        raise ValueError(f"{name} is {kind} of shape {shape}, not of {' or '.join(map(str, allowed))}")
    with archive.open(facts) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
