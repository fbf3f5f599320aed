"""Which files a reader has read: who prepares data writes them down, so that the same problems can be made again.

    with files_read() as files:
        …                        lines_of(path) says `was_read(path)`
    list(files)                  every file, in the order in which it was read

What is kept in memory, because it takes long to read, is said to be read whenever it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
Files = dict[Path, None]
"""In the order in which they were read, each once."""
_read: ContextVar[Files | None] = ContextVar("read", default=None)


@contextmanager
def files_read() -> Iterator[Files]:
    """The files that are read within the block; who listens around it hears of them too."""
    files: Files = {}
    before = _read.set(files)
    try:
        yield files
    finally:
        _read.reset(before)
        were_read(files)


def was_read(path: Path) -> None:
    """Tell whoever listens that this file is being read."""
    were_read([path])


def were_read(paths: Iterable[Path]) -> None:
    """The same of several."""
    files = _read.get()
    if files is not None:
        files.update(dict.fromkeys(path.absolute() for path in paths))


class Kept(Generic[P, T]):
    """A function whose latest results are kept, each with the files that it was made from."""

    def __init__(self, make: Callable[P, T], most: int) -> None:
        def made(*args: P.args, **kwargs: P.kwargs) -> tuple[T, tuple[Path, ...]]:
            with files_read() as files:
                return make(*args, **kwargs), tuple(files)

        update_wrapper(self, make)
        self._made = lru_cache(maxsize=most)(made)
        self.cache_clear = self._made.cache_clear

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result; its files were read now or before."""
        value, files = self._made(*cast(tuple[Hashable, ...], args), **cast(dict[str, Hashable], kwargs))
        were_read(files)
        return value


def kept_with_files(most: int) -> Callable[[Callable[P, T]], Kept[P, T]]:
    """As lru_cache(maxsize=most), for a function that reads files."""
    return lambda make: Kept(make, most)
