"""Packages a worker imports before its first fork, for the programs and tests of its children.

A child finds them imported, so it needs no path to search; it may read the folders of the packages that were really
imported, for the submodules they load late, and nothing else of what is installed.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from types import ModuleType

from rlvrlab.judge.jail import files

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # the allocator of pyarrow, which pandas imports
}
"""Environment variables that keep packages from starting threads: a process with threads cannot be forked."""
OWN = "rlvrlab"
USED_OFTEN = {
    "numpy": "numpy.linalg numpy.random numpy.fft numpy.polynomial numpy.ma numpy.testing",
    "pandas": "numpy.random pandas.testing",
    "scipy": "scipy.special scipy.linalg scipy.optimize scipy.stats scipy.spatial scipy.integrate scipy.signal",
}
"""Submodules that programs import so often that every child would pay for them."""


def load(names: Iterable[str]) -> None:
    """Import these, before anything of the laboratory's own that may start a thread."""
    for name in names:
        importlib.import_module(name)
        for part in USED_OFTEN.get(name, "").split():
            importlib.import_module(part)
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208 - a count of threads
        raise RuntimeError(f"{', '.join(names)} started threads on import; such a package cannot be preloaded")
    if "numpy" in sys.modules:
        # Seeded like `random`: the verdict on a careless program must not depend on the worker it met.
        importlib.import_module("numpy.random").seed(0)


def places(site: list[str]) -> list[str]:
    """Where the packages lie that were imported from the folders of `site`, with the shared libraries beside them."""
    found: set[str] = set()
    for name, module in list(sys.modules.items()):
        spec = module.__spec__ if isinstance(module, ModuleType) else None
        if spec is None or name.partition(".")[0] == OWN:
            continue
        places = [spec.origin or "", *(spec.submodule_search_locations or ())]
        for folder in site:
            inside = [place.removeprefix(f"{folder}/") for place in places if place.startswith(f"{folder}/")]
            found |= {f"{folder}/{part.partition('/')[0]}" for part in inside}
    return sorted(found | {f"{place}.libs" for place in found if files.is_folder(f"{place}.libs")})


def own_memory() -> tuple[int, int]:
    """Bytes of address space and of data that this process holds."""
    pages = [int(word) for word in files.content("/proc/self/statm").split()]
    size = os.sysconf("SC_PAGESIZE")
    return pages[0] * size, pages[5] * size
