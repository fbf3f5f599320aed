"""Seccomp: which system calls a jailed process may make. Everything not listed is refused with EPERM.

A list of what is allowed, not of what is forbidden: a call added to the kernel tomorrow is refused today. The same
holds for the commands of the calls that bundle many (ioctl, fcntl, prctl, socket options). What decides is whether a
command leaves something behind that a later job could read (a flag of a library file, what the page cache holds), and
whether it shows the host or its processes.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from typing import NamedTuple

from rlvrlab.judge.jail import kernel
from rlvrlab.judge.jail.bpf import (
    ALLOW,
    AT_LEAST,
    BITS_SET,
    EQUAL,
    PRETEND,
    REFUSE,
    WORD,
    Block,
    Instruction,
    argument,
    by_bits,
    decision,
    exactly,
    failing,
    one_of,
    refuse_unless_zero,
)

ALLOWED = """
read write close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
pread64 pwrite64 readv writev access pipe select sched_yield mremap dup dup2 pause nanosleep getitimer alarm
setitimer getpid sendfile recvfrom shutdown getsockname getpeername exit wait4 uname truncate ftruncate
getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink umask gettimeofday getrlimit
getrusage times getuid getgid geteuid getegid getppid getpgrp getgroups getresuid getresgid rt_sigpending
rt_sigtimedwait rt_sigsuspend sigaltstack statfs fstatfs gettid time epoll_create getdents64 set_tid_address
restart_syscall exit_group epoll_wait epoll_ctl waitid mkdirat newfstatat unlinkat renameat linkat symlinkat
readlinkat faccessat pselect6 ppoll set_robust_list epoll_pwait fallocate eventfd2 epoll_create1 dup3 pipe2 preadv
pwritev getcpu renameat2 getrandom membarrier copy_file_range rseq faccessat2 epoll_pwait2
"""

PRETENDED = """
chmod fchmod fchmodat fchmodat2 utime utimes utimensat fadvise64 fsync fdatasync msync sync syncfs sync_file_range
"""
"""Answered with success and not done: Landlock does not govern them, and honest programs call them. Advice about a file
would empty the page cache of it, which the next job could notice. Nothing in here has to outlive the machine, and to
wait for a disk, also for that of a library's file, would hold a worker for next to no CPU time."""

ALONE = " flock"
"""Pretended too where no second process can want the lock. A real one on a library file would be seen by other jobs."""

ATTRIBUTES = """
setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr
fremovexattr
"""
MISSING = {
    "clone3": errno.ENOSYS,  # glibc falls back to clone: a filter cannot read the flags of this one,
    "openat2": errno.ENOSYS,  # nor of this one
    "statx": errno.ENOSYS,  # `stat` tells neither when a folder was made nor how many mounts there were before its own
    **dict.fromkeys(ATTRIBUTES.split(), errno.EOPNOTSUPP),
}
"""Answered as by a kernel or a file system without them: shutil.copy2 and the C library know how to go on."""

PROCESSES = " fork vfork clone execve kill setpgid setsid flock getpgid getsid getpriority sched_getaffinity"
"""Allowed as well where a pid namespace bounds what may be started and seen."""

OF_THE_JOB = """
capset clone getpgid getpriority getsid kill landlock_add_rule landlock_create_ruleset landlock_restrict_self open
openat prctl prlimit64 recvmsg sched_getaffinity seccomp sendmsg tgkill utimensat
"""
"""Calls that a template makes to fork a job, that a job makes to enter the jail, or that may name the job's process.
These alone are decided by a filter that each job installs; all others by one that a template installs once and its jobs
inherit, for the kernel takes a quarter of a millisecond to check and translate it. What either refuses is refused."""


class Commands(NamedTuple):
    """The commands that a call may be made with; any other is refused as a kernel without it would do."""

    argument: int
    """Which argument names the command; the kernel reads its lower 32 bits."""
    refusal: int
    """The errno of any other command."""
    allowed: tuple[int, ...]


COMMANDS = {
    # FIONREAD FIONBIO FIONCLEX FIOCLEX. There is no terminal in here, so isatty() hears from us what the kernel says.
    "ioctl": Commands(1, errno.ENOTTY, (0x541B, 0x5421, 0x5450, 0x5451)),
    # F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_OFD_GETLK F_DUPFD_CLOEXEC F_GETPIPE_SZ F_GET_SEALS
    "fcntl": Commands(1, errno.EPERM, (0, 1, 2, 3, 4, 5, 36, 1030, 1032, 1034)),
    # AF_UNIX
    "socketpair": Commands(0, errno.EAFNOSUPPORT, (1,)),
    # DONTNEED NORMAL FREE DONTFORK DOFORK HUGEPAGE NOHUGEPAGE DONTDUMP DODUMP WIPEONFORK KEEPONFORK POPULATE_READ
    # POPULATE_WRITE GUARD_INSTALL GUARD_REMOVE. PAGEOUT and COLD would empty the page cache.
    "madvise": Commands(2, errno.EINVAL, (4, 0, 8, 10, 11, 14, 15, 16, 17, 18, 19, 22, 23, 102, 103)),
}
PROCESS_COMMANDS = {
    # PR_GET_PDEATHSIG PR_GET_DUMPABLE PR_SET_NAME PR_GET_NAME PR_GET_SECCOMP PR_CAPBSET_READ PR_GET_TIMERSLACK
    # PR_SET_NO_NEW_PRIVS PR_GET_NO_NEW_PRIVS PR_SET_VMA
    "prctl": Commands(0, errno.EPERM, (2, 3, 15, 16, 21, 23, 30, 38, 39, 0x53564D41)),
    # ARCH_SET_FS ARCH_GET_FS: a program's start needs the first.
    "arch_prctl": Commands(0, errno.EINVAL, (0x1002, 0x1003)),
}
"""Where programs may be started; elsewhere both calls are refused altogether."""
LOCKS = 6, 7, 37, 38
"""F_SETLK F_SETLKW F_OFD_SETLK F_OFD_SETLKW of fcntl, which go the way of flock."""
SOCKET_OPTIONS = {
    # REUSEADDR TYPE ERROR SNDBUF RCVBUF KEEPALIVE LINGER RCVTIMEO SNDTIMEO ACCEPTCONN PROTOCOL DOMAIN
    "getsockopt": Commands(2, errno.ENOPROTOOPT, (2, 3, 4, 7, 8, 9, 13, 20, 21, 30, 38, 39)),
    "setsockopt": Commands(2, errno.ENOPROTOOPT, (2, 9, 13, 20, 21)),
}
"""Of SOL_SOCKET, the only level; none that names the peer's process or counts the host's sockets."""
BUFFER_SIZES = 7, 8
"""SO_SNDBUF and SO_RCVBUF, which are not changed: what waits in a socket is the kernel's memory, and no limit of a job
counts it. A kernel that cuts the size down to its own bound answers with success, too."""

THREAD = 0x50F00
"""CLONE_VM, FS, FILES, SIGHAND, THREAD and SYSVSEM: what every library starts a thread with. One that had descriptors
or a folder of its own would be a process in all but name."""
OF_THREADS = 0x780000
"""CLONE_SETTLS, PARENT_SETTID, CHILD_CLEARTID and DETACHED: what some add. Not CLONE_PIDFD: the inode number of such a
descriptor counts all processes and threads that the machine has ever had."""
OF_FORKS = THREAD | OF_THREADS | 0x10040FF
"""CLONE_CHILD_SETTID, VFORK and a signal at its end beside them; no namespace and no descriptor of a process."""
TMPFILE, PATH, DIRECT = 0x400000, 0x200000, {"x86_64": 0x4000, "aarch64": 0x10000}
"""Flags of opened files. A file without a name would not show in its folder that it was made; Landlock does not govern
what is opened as a path only; reading past the page cache waits for a disk each time."""
SET_STATUS_FLAGS, SEQUENTIALLY = 4, (1, 2, 3)
"""F_SETFL of fcntl; MADV_RANDOM, SEQUENTIAL and WILLNEED, which choose how many pages of a file are read at once."""
FUTEX_PRIVATE, FUTEX_WAITS = 128, (0, 9, 256, 265)
"""FUTEX_WAIT and FUTEX_WAIT_BITSET, each with and without FUTEX_CLOCK_REALTIME."""
CLOSE_RANGE_UNSHARE = 2
"""Of close_range: the thread gets descriptors of its own, and with them as many again as a process may have."""
SIGKILL, SIGSTOP = 9, 19
SET_MODE_FILTER, RLIMIT_CPU, SOL_SOCKET = 1, 0, 1
NEGATIVE, THREAD_CLOCK = 0x80000000, 4
PID_PLACEHOLDER = 0x7F123457


class Filter:
    """A BPF program ready for the system call `seccomp`; the owner's pid is filled in after the fork."""

    def __init__(self, program: list[Instruction]) -> None:
        raw = b"".join(struct.pack("HBBI", *step) for step in program)
        self._code = ctypes.create_string_buffer(raw, len(raw))
        header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(self._code))
        self.header = ctypes.create_string_buffer(header, 16)
        """The `struct sock_fprog` that seccomp() takes: number of instructions and their address."""
        places = [8 * i + 4 for i, step in enumerate(program) if step[3] == PID_PLACEHOLDER]
        self._pids = [ctypes.c_uint32.from_buffer(self._code, place) for place in places]

    def belong_to(self, pid: int) -> None:
        """Fill in the process that the filter is for: it may ask about itself and send its threads signals."""
        for place in self._pids:
            place.value = pid


def programs(processes: bool) -> tuple[list[Instruction], list[Instruction]]:
    """The filter of a template, which its jobs inherit, and the one that each job adds."""
    blocks = decided(processes)
    later = [kernel.NUMBERS[name] for name in OF_THE_JOB.split() if name in kernel.NUMBERS]
    architecture = kernel.AUDIT_ARCH[kernel.MACHINE]
    inherited = decision(blocks | dict.fromkeys(later, ALLOW), architecture)
    return inherited, decision({number: blocks.get(number, REFUSE) for number in later}, architecture, ALLOW)


def decided(processes: bool) -> dict[int, Block]:
    """What happens for each call of a job, by its number on this machine; any other is refused."""
    named = _listed(processes) | _by_argument(processes)
    return {kernel.NUMBERS[name]: block for name, block in named.items() if name in kernel.NUMBERS}


def _listed(processes: bool) -> dict[str, Block]:
    """What happens for each call of the lists."""
    named: dict[str, Block] = dict.fromkeys((ALLOWED + PROCESSES if processes else ALLOWED).split(), ALLOW)
    named |= dict.fromkeys((PRETENDED if processes else PRETENDED + ALONE).split(), PRETEND)
    named |= {call: failing(code) for call, code in MISSING.items()}
    for call, commands in (COMMANDS | PROCESS_COMMANDS if processes else COMMANDS).items():
        named[call] = _only(commands)
    for call, options in SOCKET_OPTIONS.items():
        of_sockets = one_of(2, BUFFER_SIZES, PRETEND, _only(options)) if call == "setsockopt" else _only(options)
        named[call] = one_of(1, (SOL_SOCKET,), of_sockets, failing(options.refusal))
    named["madvise"] = one_of(2, SEQUENTIALLY, PRETEND, named["madvise"])
    return named


def _by_argument(processes: bool) -> dict[str, Block]:
    """What happens for each call whose arguments decide."""
    named = _of_files(processes) | _of_threads(processes)
    # A negative clock is that of a process, of a descriptor or of a thread; the kernel asks that a thread be our own.
    is_clock = (argument(0), (AT_LEAST, 0, 2, NEGATIVE), (BITS_SET, 1, 0, THREAD_CLOCK))
    for call in ("clock_gettime", "clock_getres", "clock_nanosleep"):
        named[call] = (*is_clock, *failing(errno.EINVAL), *ALLOW)
    # os.nice(0) asks for the priority that it has. To be lower than others is not done, to be higher is refused.
    named["setpriority"] = (argument(2), (AT_LEAST, 1, 0, NEGATIVE), *PRETEND, *REFUSE)
    # Only this process's own limits.
    # It may read its CPU limit but not set it: a limit of its own would end it by SIGKILL, which counts as our failure.
    reading_only = refuse_unless_zero(2)
    is_cpu = (argument(1), (EQUAL, 0, len(reading_only), RLIMIT_CPU))
    named["prlimit64"] = (*refuse_unless_zero(0), *is_cpu, *reading_only, *ALLOW)
    # With an address, a datagram from socketpair() reaches any socket file on the machine, past Landlock.
    named["sendto"] = (*refuse_unless_zero(4), *ALLOW)
    return named


def _of_files(processes: bool) -> dict[str, Block]:
    """Opening files, and changing how an open one is used."""
    unbuffered = (DIRECT[kernel.MACHINE], failing(errno.EINVAL))
    how = ((TMPFILE, failing(errno.EOPNOTSUPP)), (PATH, REFUSE), unbuffered)
    named = {call: by_bits(flags, how, ALLOW) for call, flags in (("open", 1), ("openat", 2))}
    locks = one_of(1, LOCKS, ALLOW if processes else PRETEND, _only(COMMANDS["fcntl"]))
    named["fcntl"] = one_of(1, (SET_STATUS_FLAGS,), by_bits(2, (unbuffered,), ALLOW), locks)
    named["close_range"] = by_bits(2, ((CLOSE_RANGE_UNSHARE, failing(errno.EINVAL)),), ALLOW)
    return named


def _of_threads(processes: bool) -> dict[str, Block]:
    """Starting threads, waking them and sending them signals: this process's own."""
    named = {"clone": exactly(0, THREAD, OF_THREADS, ALLOW, REFUSE)}
    # Waiting for the end of a thread is not private in glibc; but nobody in another process may be woken.
    private = by_bits(1, ((FUTEX_PRIVATE, ALLOW),), one_of(1, FUTEX_WAITS, ALLOW, failing(errno.EINVAL)))
    named["futex"] = ALLOW if processes else private
    # abort() and raise() go through tgkill(own pid, thread, signal). A SIGKILL always comes from outside.
    for call, signal in (("kill", 1), ("tgkill", 2)):
        signals = one_of(signal, (SIGKILL, SIGSTOP), REFUSE, ALLOW)
        named[call] = one_of(0, (PID_PLACEHOLDER,), signals, REFUSE)
    for call, who in (("getpgid", 0), ("getsid", 0), ("sched_getaffinity", 0), ("getpriority", 1)):
        named[call] = one_of(who, (0, PID_PLACEHOLDER), ALLOW, REFUSE)
    if processes:
        named = {call: ALLOW if call in PROCESSES.split() else block for call, block in named.items()}
        named["clone"] = by_bits(0, ((WORD & ~OF_FORKS, REFUSE),), ALLOW)
    return named


def _only(commands: Commands) -> Block:
    return one_of(commands.argument, commands.allowed, ALLOW, failing(commands.refusal))
