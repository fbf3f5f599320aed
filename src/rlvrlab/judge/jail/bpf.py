"""Small programs for the kernel's filter machine: decide a system call by its number, then by its arguments."""

from __future__ import annotations

import errno

LOAD, JUMP, EQUAL, AT_LEAST, BITS_SET, AND, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x54, 0x06
RET_KILL, RET_ERRNO, RET_ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
OFFSET_NUMBER, OFFSET_ARCH, OFFSET_ARGUMENTS = 0, 4, 16
FARTHEST = 255
"""How far a conditional jump reaches; an unconditional one has no such limit."""
X32_BIT = 0x40000000
WORD = 0xFFFFFFFF

Instruction = tuple[int, int, int, int]
Block = tuple[Instruction, ...]
DENY = RET_ERRNO | errno.EPERM
ALLOW: Block = ((RETURN, 0, 0, RET_ALLOW),)
REFUSE: Block = ((RETURN, 0, 0, DENY),)
PRETEND: Block = ((RETURN, 0, 0, RET_ERRNO),)


def failing(code: int) -> Block:
    """Answer with this errno."""
    return ((RETURN, 0, 0, RET_ERRNO | code),)


def argument(index: int) -> Instruction:
    """Load the lower half of an argument, which is all of it where the kernel takes an int."""
    return (LOAD, 0, 0, OFFSET_ARGUMENTS + 8 * index)


def one_of(index: int, values: tuple[int, ...], then: Block, otherwise: Block) -> Block:
    """Go on with `then` if the argument is one of the values."""
    last = len(values) - 1
    tests = [(EQUAL, last - i, len(then) if i == last else 0, value) for i, value in enumerate(values)]
    return (argument(index), *tests, *then, *otherwise)


def by_bits(index: int, cases: tuple[tuple[int, Block], ...], otherwise: Block) -> Block:
    """Go on with the block of the first case of which the argument has any bit."""
    steps = [step for bits, then in cases for step in ((BITS_SET, 0, len(then), bits), *then)]
    return (argument(index), *steps, *otherwise)


def exactly(index: int, bits: int, optional: int, then: Block, otherwise: Block) -> Block:
    """Go on with `then` if the argument has these bits, perhaps some of the optional ones, and no other."""
    return (argument(index), (AND, 0, 0, WORD & ~optional), (EQUAL, 0, len(then), bits), *then, *otherwise)


def refuse_unless_zero(index: int) -> Block:
    """Refuse the call unless the argument is 0; both 32-bit halves are tested, since it may be a pointer."""
    at = OFFSET_ARGUMENTS + 8 * index
    return ((LOAD, 0, 0, at), (EQUAL, 0, 2, 0), (LOAD, 0, 0, at + 4), (EQUAL, 1, 0, 0), *REFUSE)


def decision(blocks: dict[int, Block], architecture: int, otherwise: Block = REFUSE) -> list[Instruction]:
    """A search tree over the call numbers: the kernel walks it for every number when it is installed."""
    edges: list[tuple[int, Block]] = []
    for number, block in sorted(blocks.items()):
        if edges and edges[-1][0] == number:
            edges[-1] = (number, block)
        else:
            edges.append((number, block))
        edges.append((number + 1, otherwise))
    merged = [(0, otherwise)]
    for start, block in edges:
        if merged[-1][0] == start:
            merged.pop()
        if not merged or merged[-1][1] != block:
            merged.append((start, block))
    return [
        (LOAD, 0, 0, OFFSET_ARCH),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, RET_KILL),
        (LOAD, 0, 0, OFFSET_NUMBER),
        (AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, RET_KILL),
        *_tree(merged),
    ]


def _tree(edges: list[tuple[int, Block]]) -> Block:
    if len(edges) == 1:
        return edges[0][1]
    middle = len(edges) // 2
    below, above = _tree(edges[:middle]), _tree(edges[middle:])
    if len(below) <= FARTHEST:
        return ((AT_LEAST, len(below), 0, edges[middle][0]), *below, *above)
    return ((AT_LEAST, 0, 1, edges[middle][0]), (JUMP, 0, 0, len(below)), *below, *above)
