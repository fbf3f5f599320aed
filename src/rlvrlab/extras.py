"""What to install for a part that is not there, said once: torch's usual build on Linux brings gigabytes of CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

TORCH = "torch==2.13.0"
"""The version that rlvrlab is tested with."""
GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Files that are there where the driver of a GPU is."""


class Lookup(NamedTuple):
    """Something a recipe names, and whether it is there."""

    what: str
    """The key, or what needs it."""
    state: Literal["found", "wrong", "missing here", "not checked"]
    """wrong: the recipe must be changed. missing here: this machine lacks it."""
    words: str
    reason: str = ""
    """Of what was not checked: why not, in a few words."""


def packages(what: str, names: Sequence[str], remedy: str) -> Lookup:
    """Whether packages are installed; they are not imported."""
    lacking = [name for name in names if find_spec(name) is None]
    if lacking:
        return Lookup(what, "missing here", f"{', '.join(lacking)} not installed; {remedy}")
    return Lookup(what, "found", f"{', '.join(names)} installed")


def has_gpu() -> bool:
    """Whether a GPU's driver is loaded; asks nothing that would have to be installed."""
    return any(Path(device).exists() for device in GPU_DEVICES)


def install_hf() -> str:
    """How to get the extra `hf`, for the end of a message: in a clone by make, elsewhere by pip."""
    command = "`make hf`" if (Path(__file__).parents[2] / "Makefile").is_file() else "`pip install 'rlvrlab[hf]'`"
    if has_gpu():
        return command
    first = f"no GPU here, so with PyTorch's CPU build of {TORCH} (the usual one brings gigabytes of CUDA)"
    return f"{command}, {first}: docs/engines.md has the whole command"
