"""Whatever one job did, the next one finds a worker, its folder and its memory as if it were the first.

A program returns what it sees; what another did before it must make no difference.
"""

# ruff: noqa: E501 - a program per line
from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_channels import START
from test_pool import processes_below

from rlvrlab.judge.isolation import probe
from rlvrlab.judge.jail import privileges
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask
from rlvrlab.judge.workers.orders import Image, Order
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.judge.workers.worker import PACKAGE_ROOT


def seen(judge: Judge, *expressions: str) -> list[str]:
    """What each program, run one after the other, sees; the words of a wrong answer show it."""
    code = "{start}def f():\n    return repr({expression})\n"
    values = []
    for number, expression in enumerate(expressions):
        program = code.format(start=START, expression=expression) + f"# {number} {os.urandom(8).hex()}"
        detail = judge.verify(CallsTask("f", (Call((), None),)), program).detail
        values.append(detail.partition("returned ")[2] or detail)
    return values


MAKE = "[open(str(i), 'w').close() or os.stat(str(i)).st_ino for i in range({})][-1]"


@pytest.fixture(scope="module")
def lonely() -> Iterator[Judge]:
    """A judge with one worker: every job meets what the last one left."""
    if probe().best == "weak":
        pytest.skip("this machine cannot isolate code")
    with Judge(workers=1) as one:
        yield one


def test_inode_numbers_do_not_tell_how_many_files_there_were(lonely: Judge) -> None:
    new = "(open('new', 'x').close(), os.stat('new').st_ino)[1]"  # one that was there already would keep its number
    first, _, again = seen(lonely, new, MAKE.format(500), new)
    assert first == again and first.strip("'\"").isdigit()


ACTS = [
    "1",
    "os.mkdir('d')",
    "os.symlink('a', 'b')",
    "tempfile.TemporaryFile().write(b'x')",
    "[os.mkdir('d') or os.rmdir('d') for _ in range(50)]",
    "(os.chmod('.', 0o755), os.utime('.', (5, 5)), os.listdir('.'), os.listdir('..') if os.access('..', 4) else 0)",
]
SEEN_OF_A_FOLDER = (
    "('st_mode', 'st_ino', 'st_dev', 'st_nlink', 'st_uid', 'st_gid', 'st_size', 'st_atime', 'st_mtime', 'st_blocks')"
)
LOOK = (
    f"hash(repr(([[getattr(os.stat(folder), name) for name in {SEEN_OF_A_FOLDER}] for folder in ('.', '..')], "
    "os.listdir('.'), [part for at, part in enumerate(os.statvfs('.')) if at != 10], entries('.'), "
    f"{MAKE.format(1)}, entries('.'), os.getcwd())))"
)
"""All that `stat` and its like tell; of what statvfs tells, not the name that some kernels draw for every mount (f_fsid)."""
TIMES = (
    "[(os.stat(folder).st_mtime, os.stat(folder).st_atime, time.time() - os.stat(folder).st_ctime < 0.2) "
    "for folder in ('.', '..')]"
)


NEW = "[(0.0, 0.0, True)"
"""What TIMES begins with where the folder seems to have been made with the job."""


@pytest.mark.parametrize("act", ACTS, ids=range(len(ACTS)))
def test_whatever_a_job_did_the_next_folder_looks_the_same(lonely: Judge, act: str) -> None:
    for _ in range(5):  # somebody else on this machine may take the device number, or the processors for a while
        before, _, after, times = seen(lonely, LOOK, act, LOOK, TIMES)
        if before == after and NEW in times:
            break
    assert before == after and re.search(r"\d{9}", before) and NEW in times


@pytest.mark.parametrize("act", ["1", "os.mkdir('d')", "time.sleep(0.05)"], ids=range(3))
def test_the_folder_is_replaced_after_every_job_whether_or_not_it_was_used(lonely: Judge, act: str) -> None:
    """Otherwise what a new one shows (its device, how many mounts there were) would tell whether it was."""
    births = [(seen(lonely, act), birth_of_the_folder(lonely))[1] for _ in range(2)]
    assert births[0] != births[1]


def birth_of_the_folder(judge: Judge) -> tuple[int, ...]:
    """When the scratch folder of a judge's only worker was made, as seen from outside."""
    (worker,) = judge.pools["code"]._workers
    told = ctypes.create_string_buffer(256)
    inside = f"/proc/{worker.process.pid}/root{worker.scratch}/job".encode()
    if ctypes.CDLL(None).statx(-100, inside, 0, 0x800, told) or not struct.unpack_from("=I", told.raw)[0] & 0x800:
        pytest.skip("no mount namespace here, or its files have no time of birth")
    return struct.unpack_from("=qi", told.raw, 80)


PLAIN_FOLDER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_what_is_left import TIMES, Judge, seen
with Judge(workers=1) as judge:
    for act in ("1", "os.mkdir('d')"):
        print(seen(judge, act, "time.sleep(0.3)", TIMES)[-1])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
@pytest.mark.parametrize("withheld", ["-sys_admin", "-sys_admin,-setuid"])
def test_a_folder_that_is_no_mount_does_not_tell_when_the_last_job_ended(tmp_path: Path, withheld: str) -> None:
    """Neither does the one above it, in which it is replaced. Its inode number on the disk is told (docs/judge.md)."""
    command = ["setpriv", f"--bounding-set={withheld}", sys.executable, "-c", PLAIN_FOLDER]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": PACKAGE_ROOT}
    tmp_path.chmod(0o755)
    told = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=True).stdout
    assert told.count("[(0.0, 0.0, True), (0.0, 0.0, True)]") == 2, told


def test_nobody_can_tell_who_held_a_namespace(lonely: Judge) -> None:
    """Its file keeps its time from job to job, whether or not one has opened it meanwhile: the worker holds it."""
    look = "[os.stat(f'/proc/self/ns/{name}').st_ctime_ns for name in 'cgroup ipc mnt net pid time user uts'.split()]"
    hold = "[os.open(f'/proc/self/ns/{name}', os.O_RDONLY) for name in ('net', 'ipc', 'user')] and time.sleep(0.1)"
    before, _, after = seen(lonely, look, hold, look)
    assert before == after and re.search(r"\d{15}", before)


def test_reading_a_library_does_not_change_when_it_was_last_read(tmp_path: Path) -> None:
    """A file that was last read long ago, as every file of a library once was: the kernel would note the time."""
    folder = tmp_path / "lib"
    folder.mkdir()
    file = folder / "module.py"
    file.write_text("x = 1\n")
    os.utime(file, ns=(0, 10**18))

    async def go() -> tuple[bytes, bool]:
        pool = Pool(Image(readable=(str(tmp_path),), roles=("sql",)), size=1)
        code = f"import os\nprint(open({str(file)!r}).read(), os.listdir({str(folder)!r}), flush=True)"
        ran = await pool.run(Order({"role": "program", "code": code}, Limits()))
        worker = next(iter(pool._workers))
        bounded = f"{worker.scratch} tmpfs" in Path(f"/proc/{worker.process.pid}/mounts").read_text()
        pool.close()
        return ran.stdout, bounded

    printed, bounded = asyncio.run(go())
    if not bounded:
        pytest.skip("no mount namespace here: times of last access are to be seen (docs/judge.md)")
    assert b"x = 1" in printed and file.stat().st_atime_ns == 0


def test_the_host_has_another_name(lonely: Judge) -> None:
    name, machine = seen(lonely, "os.uname().nodename", "socket.gethostname()")
    assert "judge" in name and "judge" in machine


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_where_the_judge_is_root_a_job_owns_nothing(lonely: Judge) -> None:
    user, own, groups = seen(lonely, "os.getresuid()", "os.stat('.').st_uid", "os.getgroups()")
    number = int(own.strip("\"'"))
    assert number > 1 << 15 and user.count(str(number)) == 3 and "[]" in groups
    with pytest.raises(KeyError):
        pwd.getpwuid(number)
    folders = [sysconfig.get_path("stdlib"), "/usr/lib", "/dev"]
    owned = subprocess.run(["find", *folders, "-uid", str(number)], capture_output=True, text=True)
    assert owned.stdout == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_two_workers_of_root_are_two_users() -> None:
    with Judge(workers=2) as judge:
        judge.verify_many([(StdioTask((("", ""),)), f"import time; time.sleep(0.2)  # {i}") for i in range(2)])
        pids = [worker.process.pid for worker in judge.pools["code"]._workers]
        assert len({Path(f"/proc/{pid}").stat().st_uid for pid in pids} - {0}) == len(pids) == 2


def test_a_child_has_no_capability_but_to_read(lonely: Judge) -> None:
    """Its worker keeps what it needs for a new scratch folder; the child has lost it."""
    program = (
        "import ctypes, struct\nlibc = ctypes.CDLL(None)\n"
        "def f():\n"
        "    return [libc.unshare(0x20000), libc.umount2(b'.', 2), libc.prctl(23, 21, 0, 0, 0),\n"
        "            libc.setresuid(0, 0, 0)]\n"
    )
    assert lonely.verify(CallsTask("f", (Call((), [-1, -1, -1, -1]),)), program).detail == "accepted"
    worker = next(iter(lonely.pools["code"]._workers))
    slow = asyncio.run_coroutine_threadsafe(
        lonely.averify_many([(StdioTask((("", ""),)), "import time; time.sleep(0.5)")]), lonely._loop
    )
    children: list[int] = []
    while not children and not slow.done():
        children = processes_below(worker.process.pid)
    time.sleep(0.2)
    status = Path(f"/proc/{children[0]}/status").read_text()
    slow.result()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    assert effective & ~(1 << privileges.DAC_READ_SEARCH) == 0


def test_process_numbers_do_not_tell_how_many_threads_there_were(lonely: Judge) -> None:
    threads = "[(t := threading.Thread(target=int), t.start(), t.join()) for _ in range(300)] and None"
    number = "(os.getpid(), threading.get_native_id(), os.getppid(), os.getpgid(0), os.getsid(0))"
    first, _, second = seen(lonely, number, threads, number)
    if "(0, " not in seen(lonely, "(os.getppid(), )")[0].replace(",)", ", "):
        pytest.skip("no pid namespace here: process numbers are to be seen (docs/judge.md)")
    assert first == second and "1000" in first


@pytest.fixture(scope="module")
def numbered(lonely: Judge) -> Judge:
    """The same, where jobs have a pid namespace and with it a /proc of their own."""
    if "1000" not in seen(lonely, "os.getpid()")[0]:
        pytest.skip("no pid namespace here: the host's /proc is to be seen (docs/judge.md)")
    return lonely


def test_proc_shows_a_job_itself_and_no_number_of_the_host(numbered: Judge) -> None:
    """Links and times in /proc are not Landlock's: reading a link and `stat` work where opening a file does not."""
    own, thread, all_there_are = seen(
        numbered,
        "int(os.readlink('/proc/self'))",
        "os.readlink('/proc/thread-self') == '1000/task/1000'",
        "[n for n in range(1, 33000) if os.path.exists(f'/proc/{n}')]",
    )
    assert (own, thread, all_there_are) == tuple(repr(repr(text)) for text in ("1000", "True", "[1000]"))


@pytest.mark.parametrize("folder", ["/proc/sys/vm", "/proc", "/sys", "/sys/kernel/mm"])
def test_no_file_keeps_the_time_at_which_a_job_first_asked_for_it(numbered: Judge, folder: str) -> None:
    """The kernel makes such files when they are asked for, with the time of that moment: a bit for each of thousands."""
    names = [entry.name for entry in Path(folder).iterdir() if not entry.name.isdigit() and not entry.is_symlink()]
    assert names
    (there,) = seen(numbered, f"[n for n in {names!r} if os.path.exists({folder!r} + '/' + n)]")
    assert "[]" in there


DICTIONARY_CHANGES = "ctypes.c_uint64.from_address(id({}) + 24).value" if sys.version_info[:2] == (3, 11) else "0"
"""The interpreter counts every change of a dictionary, and each new one bears that number."""
COUNTED = f"""
import ctypes, gc, sys
def f():
    collections = sum(n for generation in gc.get_stats() for n in generation.values())
    return repr((gc.get_count()[0], len(gc.get_objects()), gc.get_freeze_count(), sys.getallocatedblocks(),
                 {DICTIONARY_CHANGES}, sys.getrefcount(None), sys.getrefcount(True), collections))
"""


def counted(judge: Judge) -> list[str]:
    """What the interpreter of a program has counted; it imports nothing that its worker does not have already."""
    verdict = judge.verify(CallsTask("f", (Call((), None),)), f"{COUNTED}# {os.urandom(8).hex()}")
    return re.findall(r"\d+", verdict.detail.partition("returned ")[2])


BESIDE_EACH_OTHER = "[threading.Thread(target=time.sleep, args=(0.3,)).start() for _ in range(60)]"


@pytest.mark.parametrize("act", ["1", MAKE.format(3), "time.sleep(0.15)", BESIDE_EACH_OTHER], ids=range(4))
def test_what_a_worker_had_to_watch_is_not_seen_in_its_memory(lonely: Judge, act: str) -> None:
    """A worker that keeps or counts what it did has more of it after a job with many threads, and later jobs see it."""
    before, _, after = [counted(lonely) for _ in range(4)][-1], seen(lonely, act), counted(lonely)
    assert len(before) == 8 and before == after


@pytest.mark.parametrize("act", ["1", MAKE.format(3), "time.sleep(0.4)"], ids=range(3))
def test_the_first_job_of_its_kind_is_not_seen_either(act: str) -> None:
    """What a worker does for the first time leaves more in its memory than what it has done before."""
    if probe().best == "weak":
        pytest.skip("this machine cannot isolate code")
    with Judge(workers=1) as fresh:
        before, _, after = [counted(fresh) for _ in range(4)][-1], seen(fresh, act), counted(fresh)
    assert len(before) == 8 and before == after


FREE = "struct.unpack('hhqqi', fcntl.fcntl(f, fcntl.F_GETLK, struct.pack('hhqqi', 1, 0, 0, 0, 0)))[0] == 2"


@pytest.mark.parametrize(
    ("hold", "is_free"),
    [("fcntl.lockf(f, fcntl.LOCK_SH)", FREE), ("fcntl.flock(f, 2)", "fcntl.flock(f, 2 | fcntl.LOCK_NB) is None")],
)
def test_a_lock_on_a_library_file_is_not_seen_outside(judge: Judge, hold: str, is_free: str) -> None:
    """One job holds a lock while another, beside it, looks for it."""
    start = "import fcntl, os, struct, time\ndef f():\n    f = open(os.__file__)\n"
    holder = f"{start}    {hold}\n    time.sleep(0.4)\n    return True\n"
    seeker = f"{start}    time.sleep(0.2)\n    return {is_free}\n"
    task = CallsTask("f", (Call((), True),))
    assert [verdict.detail for verdict in judge.verify_many([(task, holder), (task, seeker)])] == ["accepted"] * 2
