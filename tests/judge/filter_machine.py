"""A small BPF machine: what the kernel makes of the filters of a job."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from rlvrlab.judge.jail import bpf
from rlvrlab.judge.jail.bpf import Instruction

ACTION = 0xFFFF0000
STRICTEST_FIRST = [bpf.RET_KILL, bpf.RET_ERRNO, bpf.RET_ALLOW]


def decide(programs: Sequence[list[Instruction]], architecture: int, number: int, *arguments: int) -> int:
    """The answer that allows least; of two that do the same, that of the filter which was added last."""
    answers = [answer(program, architecture, number, *arguments) for program in reversed(programs)]
    return min(answers, key=lambda given: STRICTEST_FIRST.index(given & ACTION))


def answer(program: list[Instruction], architecture: int, number: int, *arguments: int) -> int:
    """Run one filter; `struct seccomp_data` is number, architecture, address and six arguments."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    at, value = 0, 0
    while True:
        code, yes, no, operand = program[at]
        at += 1
        match code:
            case bpf.LOAD:
                value = struct.unpack_from("=I", data, operand)[0]
            case bpf.JUMP:
                at += operand
            case bpf.EQUAL:
                at += yes if value == operand else no
            case bpf.AT_LEAST:
                at += yes if value >= operand else no
            case bpf.BITS_SET:
                at += yes if value & operand else no
            case bpf.AND:
                value &= operand
            case bpf.RETURN:
                return operand
            case _:
                raise AssertionError(f"no instruction of ours: {code:#x}")
