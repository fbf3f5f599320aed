"""Nothing that one job does is left for a later one to find, and none sees the host or its processes.

Each program tries one way and returns what the kernel answered: 0 or more where it worked, -errno where not.
"""

# ruff: noqa: E501 - a program per line
from __future__ import annotations

import ctypes
import errno
import mmap
import os
from pathlib import Path
from textwrap import indent

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask

START = """
import sys
del sys.path[0]  # to look for a module there would be this job's own touch of the folder
import ctypes, errno, fcntl, mmap, os, signal, socket, struct, tempfile, threading, time

libc = ctypes.CDLL(None, use_errno=True)

def answer(result):
    return result if result >= 0 else -ctypes.get_errno()

FUTEX = 202 if os.uname().machine == "x86_64" else 98

def raised(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return -error.errno
    return 0

def call(on_x86_64, on_aarch64, *arguments):
    return answer(libc.syscall(on_x86_64 if os.uname().machine == "x86_64" else on_aarch64, *arguments))

def entries(folder):  # inode number and offset of each
    buffer, found, at = ctypes.create_string_buffer(4096), [], 0
    size = call(217, 61, os.open(folder, os.O_RDONLY), buffer, 4096)
    while at < size:
        inode, offset, length = struct.unpack_from("=qqH", buffer.raw, at)
        found.append((inode, offset))
        at += length
    return found

def library():
    return os.open(os.__file__, os.O_RDONLY)

def ioctl(fd, command, size=64):
    return answer(libc.ioctl(fd, ctypes.c_ulong(command), ctypes.create_string_buffer(size)))

def unchanged(fd, command):  # without the value to set: one that gets through is EFAULT and does no harm
    return answer(libc.ioctl(fd, ctypes.c_ulong(command), None))

def network(command):
    a, b = socket.socketpair()
    return ioctl(a.fileno(), command)

def control(fd, command, argument=0):
    return answer(libc.fcntl(fd, command, ctypes.c_long(argument)))

def option(level, name, size=64):
    a, b = socket.socketpair()
    length = ctypes.c_uint32(size)
    return answer(libc.getsockopt(a.fileno(), level, name, ctypes.create_string_buffer(size), ctypes.byref(length)))

def set_option(name):
    a, b = socket.socketpair()
    return answer(libc.setsockopt(a.fileno(), 1, name, ctypes.byref(ctypes.c_int(1)), 4))

def pair(family, kind=1, protocol=0):
    return answer(libc.socketpair(family, kind, protocol, (ctypes.c_int * 2)()))

def clock(number, call="clock_gettime"):
    return answer(getattr(libc, call)(number, ctypes.create_string_buffer(16)))

def mapped(fd):
    libc.mmap.restype = ctypes.c_void_p
    return ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0)))

def advise(advice):
    return answer(libc.madvise(mapped(library()), ctypes.c_size_t(4096), advice))

"""

# name: the errno that is right, and the program that tries.
REFUSED = {
    # What a file keeps: flags, version, project, write hints.
    "get_file_flags": (errno.ENOTTY, "ioctl(library(), 0x80086601)"),
    "set_file_flags": (errno.ENOTTY, "unchanged(library(), 0x40086602)"),
    "get_file_version": (errno.ENOTTY, "ioctl(library(), 0x80087601)"),
    "set_file_version": (errno.ENOTTY, "unchanged(library(), 0x40087602)"),
    "get_project": (errno.ENOTTY, "ioctl(library(), 0x801C581F)"),
    "set_project": (errno.ENOTTY, "unchanged(library(), 0x401C5820)"),
    "file_label": (errno.ENOTTY, "ioctl(library(), 0x81009431, 256)"),
    "where_a_file_lies": (errno.ENOTTY, "ioctl(library(), 0xC020660B)"),
    "file_system_name": (errno.ENOTTY, "ioctl(library(), 0x80111500)"),
    "birth_of_the_scratch_folder": (
        errno.ENOSYS,
        "call(332, 291, -100, b'.', 0, 0x800, ctypes.create_string_buffer(256))",
    ),
    "mount_of_the_scratch_folder": (
        errno.ENOSYS,
        "call(332, 291, -100, b'.', 0, 0x5000, ctypes.create_string_buffer(256))",
    ),
    "handle_of_the_scratch_folder": (
        errno.EPERM,
        "call(303, 264, -100, b'.', ctypes.create_string_buffer(bytes([128, 0, 0, 0]), 200), ctypes.byref(ctypes.c_int()), 0)",
    ),
    "attributes_of_the_scratch_folder": (
        errno.EPERM,
        "call(468, 468, -100, b'.', ctypes.create_string_buffer(64), 24, 0)",
    ),
    "mounts_by_number": (
        errno.EPERM,
        "call(458, 458, ctypes.create_string_buffer(64), ctypes.create_string_buffer(512), 64, 0)",
    ),
    "mounts_in_proc": (errno.EACCES, "raised(open, '/proc/self/mountinfo')"),
    "mount_of_a_descriptor": (errno.EACCES, "raised(open, '/proc/self/fdinfo/0')"),
    "flags_of_the_scratch_folder": (errno.ENOTTY, "ioctl(os.open('.', os.O_RDONLY), 0x40086602)"),
    "get_write_hint": (errno.EPERM, "control(library(), 1035)"),
    "set_write_hint": (
        errno.EPERM,
        "answer(libc.fcntl(library(), 1036, ctypes.byref(ctypes.c_uint64(0))))",
    ),
    # What the page cache holds.
    "resident_pages": (
        errno.EPERM,
        "answer(libc.mincore(mapped(library()), ctypes.c_size_t(4096), (ctypes.c_ubyte * 1)()))",
    ),
    "page_out": (errno.EINVAL, "advise(21)"),
    "cold_pages": (errno.EINVAL, "advise(20)"),
    "merge_pages": (errno.EINVAL, "advise(12)"),
    "collapse_pages": (errno.EINVAL, "advise(25)"),
    # What would be kept beside a file, or made without showing in its folder.
    "get_attribute": (errno.EOPNOTSUPP, "raised(os.getxattr, os.__file__, 'user.x')"),
    "set_attribute": (errno.EOPNOTSUPP, "raised(os.setxattr, os.__file__, 'user.x', b'1')"),
    "list_attributes": (errno.EOPNOTSUPP, "raised(os.listxattr, os.__file__)"),
    "remove_attribute": (errno.EOPNOTSUPP, "raised(os.removexattr, os.__file__, 'user.x')"),
    "file_without_a_name": (errno.EOPNOTSUPP, "raised(os.open, '.', os.O_TMPFILE | os.O_RDWR)"),
    "path_of_a_file_only": (errno.EPERM, "raised(os.open, os.__file__, os.O_PATH)"),
    "path_of_a_namespace_only": (errno.EPERM, "raised(os.open, '/proc/self/ns/net', os.O_PATH | os.O_NOFOLLOW)"),
    # What waits for a disk each time.
    "reading_past_the_page_cache": (errno.EINVAL, "raised(os.open, os.__file__, os.O_DIRECT)"),
    "reading_past_the_page_cache_later": (errno.EINVAL, "control(library(), fcntl.F_SETFL, os.O_DIRECT)"),
    "times_of_a_file_without_reading": (errno.EPERM, "raised(os.open, os.__file__, os.O_RDONLY | os.O_NOATIME)"),
    # The machine's load, memory and number of processes.
    "state_of_the_machine": (errno.EPERM, "answer(libc.sysinfo(ctypes.create_string_buffer(256)))"),
    # A thread of another process, asleep on the same page of a library.
    "wake_others": (errno.EINVAL, "answer(libc.syscall(FUTEX, mapped(library()), 1, 1, None, None, 0))"),
    "requeue_others": (
        errno.EINVAL,
        "answer(libc.syscall(FUTEX, mapped(library()), 3, 1, 1, mapped(library()), 0))",
    ),
    # What makes others wait, or tells of them.
    "read_lease": (errno.EPERM, "control(library(), 1024, fcntl.F_RDLCK)"),
    "get_lease": (errno.EPERM, "control(library(), 1025)"),
    "directory_notices": (errno.EPERM, "control(os.open(os.path.dirname(os.__file__), 0), 1026, 0x80000001)"),
    "signal_owner": (errno.EPERM, "control(os.pipe()[0], 8, os.getppid())"),
    "pipe_size": (errno.EPERM, "control(os.pipe()[0], 1031, 1 << 20)"),
    "signal_owner_by_ioctl": (errno.ENOTTY, "ioctl(os.pipe()[0], 0x5452)"),
    # Sockets of other families, other processes behind sockets, the host's interfaces.
    "internet_pair": (errno.EAFNOSUPPORT, "pair(2)"),
    "internet_6_pair": (errno.EAFNOSUPPORT, "pair(10)"),
    "netlink_pair": (errno.EAFNOSUPPORT, "pair(16, 3)"),
    "packet_pair": (errno.EAFNOSUPPORT, "pair(17, 3)"),
    "tipc_pair": (errno.EAFNOSUPPORT, "pair(30, 5)"),
    "algorithm_pair": (errno.EAFNOSUPPORT, "pair(38, 5)"),
    "machine_pair": (errno.EAFNOSUPPORT, "pair(40)"),
    "peer_credentials": (errno.ENOPROTOOPT, "option(1, 17)"),
    "peer_groups": (errno.ENOPROTOOPT, "option(1, 59, 256)"),
    "peer_process": (errno.ENOPROTOOPT, "option(1, 77, 4)"),
    "socket_cookie": (errno.ENOPROTOOPT, "option(1, 57, 8)"),
    "network_cookie": (errno.ENOPROTOOPT, "option(1, 71, 8)"),
    "socket_memory": (errno.ENOPROTOOPT, "option(1, 55)"),
    "socket_filter": (errno.ENOPROTOOPT, "set_option(26)"),
    "pass_credentials": (errno.ENOPROTOOPT, "set_option(16)"),
    "interfaces": (errno.ENOTTY, "network(0x8912)"),
    "interface_name": (errno.ENOTTY, "network(0x8910)"),
    "interface_address": (errno.ENOTTY, "network(0x8915)"),
    "network_namespace": (errno.ENOTTY, "network(0x894C)"),
    # Other processes.
    "clock_of_the_parent": (errno.EINVAL, "clock(~os.getppid() << 3 | 2)"),
    "clock_of_the_first_process": (errno.EINVAL, "clock(~1 << 3 | 2)"),
    "precision_of_a_process_clock": (errno.EINVAL, "clock(~1 << 3 | 2, 'clock_getres')"),
    "clock_of_a_descriptor": (errno.EINVAL, "clock(~library() << 3 | 3)"),
    "group_of_the_first_process": (errno.EPERM, "answer(libc.getpgid(1))"),
    "session_of_the_first_process": (errno.EPERM, "answer(libc.getsid(1))"),
    "priority_of_the_first_process": (errno.EPERM, "answer(libc.getpriority(0, 1))"),
    "processors_of_the_first_process": (
        errno.EPERM,
        "answer(libc.sched_getaffinity(1, ctypes.c_size_t(128), ctypes.create_string_buffer(128)))",
    ),
    # A thread with a pidfd (its inode number counts what the machine has ever started), or with what a process has.
    "thread_with_a_pidfd": (errno.EPERM, "call(56, 220, 0x51F00, None, ctypes.create_string_buffer(8), None, None)"),
    "thread_with_descriptors_of_its_own": (errno.EPERM, "call(56, 220, 0x50B00, None, None, None, None)"),
    "thread_with_a_namespace": (errno.EPERM, "call(56, 220, 0x10050F00, None, None, None, None)"),
    "pidfd_of_itself": (errno.EPERM, "call(434, 434, os.getpid(), 0)"),
    "descriptor_of_a_pidfd": (errno.EPERM, "call(438, 438, 0, 0, 0)"),
    "signal_to_the_group": (errno.EPERM, "raised(os.kill, 0, 0)"),
    "signal_to_the_parent": (errno.EPERM, "raised(os.kill, os.getppid(), 0)"),
    "signal_that_only_comes_from_outside": (errno.EPERM, "raised(os.kill, os.getpid(), 9)"),
    # The process's own switches.
    "dumpable": (errno.EPERM, "answer(libc.prctl(4, 1, 0, 0, 0))"),
    "death_signal": (errno.EPERM, "answer(libc.prctl(1, 0, 0, 0, 0))"),
    "timer_slack": (errno.EPERM, "answer(libc.prctl(29, 1, 0, 0, 0))"),
    "adopt_orphans": (errno.EPERM, "answer(libc.prctl(36, 1, 0, 0, 0))"),
    "allow_a_tracer": (errno.EPERM, "answer(libc.prctl(0x59616D61, -1, 0, 0, 0))"),
}

# What honest programs do with the same calls; each line is true where it works as it does outside.
WORKS = {
    "not_a_terminal": "not any(os.isatty(fd) for fd in range(4)) and not os.isatty(library())",
    "terminal_size": "__import__('shutil').get_terminal_size() == (80, 24)",
    "unread_bytes": "(lambda r, w: os.write(w, b'abc') and struct.unpack('i', fcntl.ioctl(r, 0x541B, bytes(4)))[0] == 3)(*os.pipe())",
    "inheritable": "(lambda fd: (os.set_inheritable(fd, True), os.get_inheritable(fd))[1])(library())",
    "blocking": "(lambda fd: (os.set_blocking(fd, False), not os.get_blocking(fd))[1])(os.pipe()[0])",
    "duplicates": "fcntl.fcntl(library(), fcntl.F_DUPFD, 20) >= 20 and fcntl.fcntl(library(), fcntl.F_DUPFD_CLOEXEC, 30) >= 30",
    "status_flags": "fcntl.fcntl(library(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY",
    "pipe_size": "fcntl.fcntl(os.pipe()[0], 1032) >= 4096",
    "lock_a_file": "(lambda f: (fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB), fcntl.lockf(f, fcntl.LOCK_UN)))(open('x', 'w'))",
    "lock_a_whole_file": "(lambda f: (fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB), fcntl.flock(f, fcntl.LOCK_UN)))(open('x', 'w'))",
    "advice_about_a_file": "os.posix_fadvise(library(), 0, 0, os.POSIX_FADV_SEQUENTIAL) is None",
    "advice_about_memory": "(lambda m: (m.madvise(mmap.MADV_DONTNEED), m.madvise(mmap.MADV_HUGEPAGE), m[:1])[2] == bytes(1))(mmap.mmap(-1, 8192))",
    "advice_how_to_read": "(lambda m: all(m.madvise(advice) is None for advice in (1, 2, 3)))(mmap.mmap(library(), 4096, prot=1))",
    "on_the_disk": "os.fsync(library()) is os.fdatasync(library()) is os.sync() is mmap.mmap(library(), 4096, prot=1).flush()",
    "signal_to_itself": "(lambda got: (signal.signal(10, lambda number, _: got.append(number)), os.kill(os.getpid(), 10), got)[2] == [10])([])",
    "own_niceness": "os.nice(0) == os.getpriority(os.PRIO_PROCESS, 0)",
    "socket_pair": "(lambda a, b: (a.sendall(b'hi'), b.recv(9))[1] == b'hi')(*socket.socketpair())",
    "socket_types": "all(socket.socketpair(socket.AF_UNIX, kind) for kind in (1, 2, 5))",
    "socket_options": "(lambda a: (a.setsockopt(1, 8, 9000), a.getsockopt(1, 8) >= 9000 and a.getsockopt(1, 4) == 0)[1])(socket.socketpair()[0])",
    "socket_by_number": "(lambda a: socket.socket(fileno=os.dup(a.fileno())).type == socket.SOCK_STREAM)(socket.socketpair()[0])",
    "connection": "(lambda a, b: (a.send([1]), b.recv())[1] == [1])(*__import__('multiprocessing').Pipe())",
    "one_way_connection": "(lambda a, b: (b.send([1]), a.recv())[1] == [1])(*__import__('multiprocessing').Pipe(False))",
    "clocks": "all(clock(number) == 0 and clock(number, 'clock_getres') == 0 for number in (0, 1, 2, 3, 4, 5, 6, 7))",
    "clock_of_a_thread": "time.clock_gettime(time.pthread_getcpuclockid(threading.get_ident())) >= 0",
    "own_processors": "os.sched_getaffinity(0) == os.sched_getaffinity(os.getpid())",
    "own_group": "os.getpgid(0) == os.getpgid(os.getpid()) and os.getsid(0) == os.getsid(os.getpid())",
    "own_priority": "os.getpriority(os.PRIO_PROCESS, 0) == os.getpriority(os.PRIO_PROCESS, os.getpid())",
    "database": (
        "(lambda c: c.execute('create table t (x)') and c.execute('insert into t values (3)') and (c.commit(), "
        "__import__('sqlite3').connect('d.db').execute('select x from t').fetchall())[1] == [(3,)])"
        "(__import__('sqlite3').connect('d.db'))"
    ),
}  # fmt: skip


def returned(judge: Judge, names: list[str], attempts: list[str], expected: list[object]) -> list[str]:
    """Run each expression in a job of its own; the names of those that return something else, and what they return."""
    tasks = [CallsTask("f", (Call((), value),), limits=Limits(cpu_s=20.0, job_cpu_s=20.0)) for value in expected]
    codes = [f"{START}def f():\n{indent(f'return {attempt}', '    ')}\n" for attempt in attempts]
    verdicts = judge.verify_many(list(zip(tasks, codes, strict=True)))
    return [f"{name}: {verdict.detail}" for name, verdict in zip(names, verdicts, strict=True) if not verdict.correct]


def test_every_channel_is_refused(judge: Judge) -> None:
    attempts = [attempt for _, attempt in REFUSED.values()]
    assert returned(judge, list(REFUSED), attempts, [-code for code, _ in REFUSED.values()]) == []


def test_every_channel_is_refused_beside_numpy_too(numpy_judge: Judge) -> None:
    attempts = [f"__import__('numpy') and {attempt}" for _, attempt in REFUSED.values()]
    assert returned(numpy_judge, list(REFUSED), attempts, [-code for code, _ in REFUSED.values()]) == []


def test_honest_uses_of_the_same_calls_work(judge: Judge) -> None:
    attempts = [f"bool({attempt})" for attempt in WORKS.values()]
    assert returned(judge, list(WORKS), attempts, [True] * len(WORKS)) == []


def test_advice_does_not_empty_the_page_cache(judge: Judge) -> None:
    """POSIX_FADV_DONTNEED is answered with success and not done: the file's pages stay."""
    file = Path(os.__file__).with_name("this.py")
    file.read_bytes()
    before = resident_pages(file)
    code = (
        f"import os\ndef f():\n    fd = os.open({str(file)!r}, os.O_RDONLY)\n"
        "    return os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\n"
    )
    assert judge.verify(CallsTask("f", (Call((), None),)), code).detail == "accepted"
    assert resident_pages(file) == before > 0


def resident_pages(file: Path) -> int:
    """How many pages of a file the page cache holds; all, where the file is not ours and the kernel does not tell."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as memory:
        first = ctypes.c_char.from_buffer(memory)
        pages = (ctypes.c_ubyte * (len(memory) // mmap.PAGESIZE + 1))()
        ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(memory)), pages)
        del first
        return sum(page & 1 for page in pages)
