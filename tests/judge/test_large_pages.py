"""What jobs are forked from lies on large pages, and what makes these whole is no job's memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from rlvrlab.judge.jail.large_pages import LARGE
from rlvrlab.judge.jail.limits import MEGABYTE, Limits
from rlvrlab.judge.workers.orders import Image, Order
from rlvrlab.judge.workers.worker import PACKAGE_ROOT, Worker

PREPARED = """
import sys
sys.path.append(sys.argv[1])
from rlvrlab.judge.jail.arenas import reserve
reserve()
from rlvrlab.judge.jail import heap, large_pages, packages
heap.preload()
before = packages.own_memory()[1]
large_pages.fill_up()
grown = packages.own_memory()[1] - before
large_pages.gather()
end = large_pages._grow(0)
large = sum("AnonHugePages" in line and int(line.split()[1]) for line in open("/proc/self/smaps"))
print(large, end, grown, *large_pages._empty)
"""
KERNEL_HAS_THEM = Path("/sys/kernel/mm/transparent_hugepage/khugepaged").exists()


@pytest.mark.skipif(not KERNEL_HAS_THEM, reason="this kernel has no large pages")
def test_most_of_what_a_worker_prepares_lies_on_large_pages() -> None:
    command = [sys.executable, "-s", "-S", "-P", "-c", PREPARED, PACKAGE_ROOT]
    told = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    kilobytes, end, grown, *empty = map(int, told.split())
    assert kilobytes * 1024 >= 3 * LARGE
    assert end % LARGE == 0 and grown in (0, empty[-1])
    assert all(0 < size < LARGE for size in empty)


def test_memory_that_only_makes_large_pages_whole_does_not_count_against_a_job() -> None:
    asked = "import resource, sys; pages = sys.modules['rlvrlab.judge.jail.large_pages']\n"
    asked += "print(resource.getrlimit(resource.RLIMIT_DATA)[0], pages.empty())"

    async def told_by_a_job() -> list[int]:
        worker = Worker(Image())
        try:
            await worker.ready()
            ran = await worker.run(Order({"role": "program", "code": asked}, Limits(memory_mb=64)))
            return [int(word) for word in ran.stdout.split()]
        finally:
            worker.close()

    for _ in range(3):  # how much it is depends on where the kernel puts things
        limit, empty = asyncio.run(told_by_a_job())
        assert 0 < empty <= limit - 64 * MEGABYTE
