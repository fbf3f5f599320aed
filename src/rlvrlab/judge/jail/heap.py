"""A heap that is cheap to fork: what every child touches lies close together, and new objects on pages of their own.

The standard library comes first and its holes are filled; only then are the judge's own modules loaded, so that they
lie side by side instead of one object here and one there on pages a child would have to copy.
"""

from __future__ import annotations

import ctypes
import importlib

from rlvrlab.judge.jail import large_pages

PRELOADED = """
_sitebuiltins array ast atexit bisect collections contextlib copy ctypes dataclasses datetime decimal enum fcntl
fractions functools heapq itertools json math operator os random re resource select signal string
struct threading time typing
"""
"""Read from disk once instead of in every child; more than half are what candidates import."""

LARGEST_SMALL, STEP, POOL, POOL_HEAD = 512, 16, 1 << 14, 48
"""CPython keeps objects up to 512 bytes in pools of 16 kB, one size to a pool."""
BYTES_HEAD = 33
MOST_HELD = 600
LARGEST_CHUNK, SMALLEST_CHUNK, CHUNK_HEAD = 1 << 16, LARGEST_SMALL + STEP, 16

THREAD_STACK, M_ARENA_MAX = 4 << 20, -8

_fillers: list[object] = []


def preload() -> None:
    """Import the modules of PRELOADED, then fill the gaps that they left between objects."""
    large_pages.reserve()
    for name in PRELOADED.split():
        importlib.import_module(name)
    fill_holes()


def give_back() -> None:
    """Return what is free to the kernel: every page that is there is work for each fork and each end of a child."""
    ctypes.CDLL(None).malloc_trim(0)


def fill_holes() -> None:
    """Occupy what is free between objects, so that a child's own begin on fresh pages."""
    for size in range(3 * STEP, LARGEST_SMALL + 1, STEP):
        for _ in range(MOST_HELD):
            filler = bytes(size - BYTES_HEAD)
            if id(filler) % POOL == POOL_HEAD:  # the first of a new pool: the old ones are full
                break
            _fillers.append(filler)
    _fill_chunks()


def _fill_chunks() -> None:
    """The same for larger blocks: held until two of a size come out adjacent, which means from the heap's end."""
    libc = ctypes.CDLL(None)
    malloc, free = libc.malloc, libc.free
    malloc.restype, malloc.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    size, held = LARGEST_CHUNK, 0
    while size >= SMALLEST_CHUNK and held < MOST_HELD:
        first, second = malloc(size), malloc(size)
        free(second)
        if second - first == size + CHUNK_HEAD:
            free(first)
            size = size * 7 // 8 // STEP * STEP
        else:
            held += 1


def make_threads_small() -> None:
    """Let dozens of threads fit into a job's memory, of which each would take 8 MB for its stack and 64 MB for a heap.

    Both are address space that idle threads never touch, but they count. One heap serves all threads, of which Python
    runs one at a time. Deep recursion takes the main thread, or a thread for which the program asks for a larger stack.
    """
    libc = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(256)
    libc.mallopt(M_ARENA_MAX, 1)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(THREAD_STACK))
    if libc.pthread_setattr_default_np(attributes):
        raise OSError("the size of stacks cannot be set")
    libc.pthread_attr_destroy(attributes)
