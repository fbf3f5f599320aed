"""safetensors files by hand: a header of plain JSON and raw numbers, so neither torch nor a download is needed.

8 bytes little-endian: length of the header; the header {name: {dtype, shape, data_offsets}}; the numbers.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlvrlab.errors import UserError
from rlvrlab.http_messages import MOST_PARSED, parsed_size
from rlvrlab.plain_files import distinct_keys, opened

BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2,
    "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
LARGEST_HEADER = 100 * 2**20
"""The format's own limit."""
MOST_AXES = 16
ADAPTER_CONFIG, ADAPTER_TENSORS = "adapter_config.json", "adapter_model.safetensors"
"""PEFT's names of the two files of a LoRA adapter."""


class Tensor(NamedTuple):
    """A tensor to be written; the numbers are made when their turn comes, so one at a time is in memory."""

    dtype: str
    shape: tuple[int, ...]
    numbers: Callable[[], npt.NDArray[Any]]


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """One file, in the order given, with the mark of PyTorch's layout that Transformers asks for."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + BYTES[tensor.dtype] * math.prod(tensor.shape)
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, tensor in tensors.items():
            numbers = np.ascontiguousarray(tensor.numbers())
            begin, end = header[name]["data_offsets"]
            assert numbers.shape == tensor.shape and numbers.nbytes == end - begin, name
            file.write(numbers.tobytes())


def read_header(path: Path, largest: int = LARGEST_HEADER) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name -> (dtype, shape) of a file from anywhere; one whose header does not describe every byte once is refused."""
    try:
        with opened(path, holes=True) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if length > min(largest, size - 8):
                raise ValueError(f"a header of {length} bytes in a file of {size}; at most {largest} are read")
            text = file.read(length)
        header = _header(text)
        tensors, spans = {}, []
        for name, facts in header.items():
            dtype, shape, (begin, end) = str(facts["dtype"]), tuple(facts["shape"]), facts["data_offsets"]
            # Bounded before they are multiplied: the product of a million numbers takes hours.
            whole = len(shape) <= MOST_AXES and all(type(n) is int and 0 <= n <= size for n in (*shape, begin, end))
            if not whole or (dtype in BYTES and end - begin != BYTES[dtype] * math.prod(shape)) or len(facts) != 3:
                raise ValueError("a tensor's size and shape differ")
            tensors[name] = (dtype, shape)
            spans.append((begin, end))
        if _end_of(spans) != size - 8 - length:
            raise ValueError("the file is longer or shorter than its tensors")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: damaged, no safetensors file ({error}); fetch it again") from None
    return tensors


def _header(text: bytes) -> dict[str, Any]:
    """Everything but remarks, which must be texts."""
    if not text.startswith(b"{") or parsed_size(text) > MOST_PARSED:
        raise ValueError("its header is no JSON object, or has too many members")
    header: dict[str, Any] = json.loads(text, object_pairs_hook=distinct_keys)
    remarks = header.pop("__metadata__", {})
    if not isinstance(remarks, dict) or not all(isinstance(one, str) for one in remarks.values()):
        raise ValueError("__metadata__ must be texts by name")
    return header


def _end_of(spans: list[tuple[int, int]]) -> int:
    """Where the last tensor ends, each beginning where another ends."""
    last = 0
    for begin, end in sorted(spans):
        if begin != last:
            raise ValueError(f"tensors overlap or leave a gap at byte {last}")
        last = end
    return last


def to_bfloat16(numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The upper half of each float32, rounded to nearest, ties to even; NumPy has no bfloat16 of its own."""
    bits = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
