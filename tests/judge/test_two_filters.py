"""A job inherits one filter and adds another: together they decide every call as one filter of all rules would."""

from __future__ import annotations

import pytest
from filter_machine import answer, decide
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvrlab.judge.jail import bpf, kernel, seccomp

ARCHITECTURE = kernel.AUDIT_ARCH[kernel.MACHINE]
INTERESTING = sorted(
    {value for rule in seccomp.decided(False).values() for *_, value in rule}
    | {0, 1, 9, 19, seccomp.THREAD, seccomp.OF_FORKS, seccomp.PATH, seccomp.TMPFILE, 0xFFFFFFFF}
)
ONES = (1,) * 6
Arguments = tuple[int, ...]


words = st.one_of(st.sampled_from(INTERESTING), st.integers(0, 2**32 - 1))
wide = st.one_of(words, st.builds(lambda low, high: low | high << 32, words, words))


@pytest.mark.parametrize("processes", [False, True])
@given(arguments=st.tuples(*[wide] * 6))
@settings(max_examples=150, deadline=None)
def test_the_two_filters_of_a_job_decide_as_one_would(processes: bool, arguments: Arguments) -> None:
    whole = bpf.decision(seccomp.decided(processes), ARCHITECTURE)
    both = seccomp.programs(processes)
    for number in range(470):
        assert decide(both, ARCHITECTURE, number, *arguments) == answer(whole, ARCHITECTURE, number, *arguments)


@pytest.mark.parametrize("processes", [False, True])
def test_both_filters_kill_what_comes_from_another_architecture(processes: bool) -> None:
    for program in seccomp.programs(processes):
        assert answer(program, ARCHITECTURE ^ 1, 0) == bpf.RET_KILL
        assert answer(program, ARCHITECTURE, bpf.X32_BIT) == bpf.RET_KILL


def test_what_a_template_may_do_beyond_its_jobs_is_the_short_list_alone() -> None:
    inherited, _ = seccomp.programs(processes=False)
    whole = bpf.decision(seccomp.decided(processes=False), ARCHITECTURE)
    names = {number: name for name, number in kernel.NUMBERS.items()}
    looser = {
        names.get(number, str(number))
        for number in range(470)
        if answer(inherited, ARCHITECTURE, number, *ONES) != answer(whole, ARCHITECTURE, number, *ONES)
    }
    assert looser <= set(seccomp.OF_THE_JOB.split())
