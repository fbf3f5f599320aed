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

ALLOWED = """
read write close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
pread64 pwrite64 readv writev access pipe select sched_yield mremap msync dup dup2 pause nanosleep getitimer alarm
setitimer getpid sendfile recvfrom shutdown getsockname getpeername exit wait4 uname fsync fdatasync truncate ftruncate
getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink umask gettimeofday getrlimit
getrusage times getuid getgid geteuid getegid getppid getpgrp getgroups getresuid getresgid rt_sigpending
rt_sigtimedwait rt_sigsuspend sigaltstack statfs fstatfs gettid time epoll_create getdents64 set_tid_address
restart_syscall exit_group epoll_wait epoll_ctl waitid mkdirat newfstatat unlinkat renameat linkat symlinkat
readlinkat faccessat pselect6 ppoll set_robust_list epoll_pwait fallocate eventfd2 epoll_create1 dup3 pipe2 preadv
pwritev getcpu renameat2 getrandom membarrier copy_file_range rseq close_range faccessat2 epoll_pwait2
"""

PRETENDED = "chmod fchmod fchmodat fchmodat2 utime utimes utimensat fadvise64"
"""Answered with success and not done: Landlock does not govern them, and shutil.copy calls them. Advice about a file
would empty the page cache of it, which the next job could notice."""

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
    # NORMAL RANDOM SEQUENTIAL WILLNEED DONTNEED FREE DONTFORK DOFORK HUGEPAGE NOHUGEPAGE DONTDUMP DODUMP WIPEONFORK
    # KEEPONFORK POPULATE_READ POPULATE_WRITE GUARD_INSTALL GUARD_REMOVE; PAGEOUT and COLD would empty the page cache.
    "madvise": Commands(2, errno.EINVAL, (4, 0, 1, 2, 3, 8, 10, 11, 14, 15, 16, 17, 18, 19, 22, 23, 102, 103)),
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
    "setsockopt": Commands(2, errno.ENOPROTOOPT, (2, 7, 8, 9, 13, 20, 21)),
}
"""Of SOL_SOCKET, the only level; none that names the peer's process or counts the host's sockets."""

LOAD, JUMP, EQUAL, AT_LEAST, BITS_SET, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
RET_KILL, RET_ERRNO, RET_ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
OFFSET_NUMBER, OFFSET_ARCH, OFFSET_ARGUMENTS = 0, 4, 16
FARTHEST = 255
"""How far a conditional jump reaches; an unconditional one has no such limit."""
CLONE_THREAD, X32_BIT, TMPFILE = 0x10000, 0x40000000, 0x400000
FUTEX_PRIVATE, FUTEX_WAITS = 128, (0, 9, 256, 265)
"""FUTEX_WAIT and FUTEX_WAIT_BITSET, each with and without FUTEX_CLOCK_REALTIME."""
SIGKILL, SIGSTOP = 9, 19
SET_MODE_FILTER, RLIMIT_CPU, SOL_SOCKET = 1, 0, 1
NEGATIVE, THREAD_CLOCK = 0x80000000, 4
PID_PLACEHOLDER = 0x7F123457

Instruction = tuple[int, int, int, int]
Block = tuple[Instruction, ...]
DENY = RET_ERRNO | errno.EPERM
ALLOW: Block = ((RETURN, 0, 0, RET_ALLOW),)
REFUSE: Block = ((RETURN, 0, 0, DENY),)
PRETEND: Block = ((RETURN, 0, 0, RET_ERRNO),)


class Filter:
    """A BPF program ready for the system call `seccomp`; the owner's pid is filled in after the fork."""

    def __init__(self, processes: bool = False) -> None:
        program = _program(processes)
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


def _program(processes: bool) -> list[Instruction]:
    """A search tree over the call numbers: the kernel walks it for every number when it is installed."""
    edges: list[tuple[int, Block]] = []
    for number, block in sorted(_blocks(processes).items()):
        if edges and edges[-1][0] == number:
            edges[-1] = (number, block)
        else:
            edges.append((number, block))
        edges.append((number + 1, REFUSE))
    merged = [(0, REFUSE)]
    for start, block in edges:
        if merged[-1][0] == start:
            merged.pop()
        if not merged or merged[-1][1] != block:
            merged.append((start, block))
    return [
        (LOAD, 0, 0, OFFSET_ARCH),
        (EQUAL, 1, 0, kernel.AUDIT_ARCH[kernel.MACHINE]),
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


def _blocks(processes: bool) -> dict[int, Block]:
    """What happens for each call number that is not simply refused."""
    named: dict[str, Block] = dict.fromkeys((ALLOWED + PROCESSES if processes else ALLOWED).split(), ALLOW)
    named |= dict.fromkeys((PRETENDED if processes else PRETENDED + ALONE).split(), PRETEND)
    for call, commands in (COMMANDS | PROCESS_COMMANDS if processes else COMMANDS).items():
        named[call] = _only(commands)
    named["fcntl"] = _on(1, LOCKS, ALLOW if processes else PRETEND, named["fcntl"])
    for call, options in SOCKET_OPTIONS.items():
        named[call] = _on(1, (SOL_SOCKET,), _only(options), ((RETURN, 0, 0, RET_ERRNO | options.refusal),))
    # A negative clock is that of a process, of a descriptor or of a thread; the kernel asks that a thread be our own.
    is_clock = ((LOAD, 0, 0, OFFSET_ARGUMENTS), (AT_LEAST, 0, 2, NEGATIVE), (BITS_SET, 1, 0, THREAD_CLOCK))
    for call in ("clock_gettime", "clock_getres", "clock_nanosleep"):
        named[call] = (*is_clock, (RETURN, 0, 0, RET_ERRNO | errno.EINVAL), *ALLOW)
    for call, who in (("getpgid", 0), ("getsid", 0), ("sched_getaffinity", 0), ("getpriority", 1)):
        named.setdefault(call, _on(who, (0, PID_PLACEHOLDER), ALLOW, REFUSE))
    named |= {call: ((RETURN, 0, 0, RET_ERRNO | code),) for call, code in MISSING.items()}
    # A file without a name would not show in its folder that it was made.
    for call, flags in (("open", 1), ("openat", 2)):
        nameless = ((LOAD, 0, 0, OFFSET_ARGUMENTS + 8 * flags), (BITS_SET, 0, 1, TMPFILE))
        named[call] = (*nameless, (RETURN, 0, 0, RET_ERRNO | errno.EOPNOTSUPP), *ALLOW)
    # Waiting for the end of a thread is not private in glibc; but nobody in another process may be woken.
    named["futex"] = ALLOW if processes else (
        (LOAD, 0, 0, OFFSET_ARGUMENTS + 8), (BITS_SET, 0, 1, FUTEX_PRIVATE), *ALLOW,
        *_on(1, FUTEX_WAITS, ALLOW, ((RETURN, 0, 0, RET_ERRNO | errno.EINVAL),)),
    )  # fmt: skip
    is_thread = ((LOAD, 0, 0, OFFSET_ARGUMENTS), (BITS_SET, 1, 0, CLONE_THREAD))
    named.setdefault("clone", (*is_thread, *REFUSE, *ALLOW))
    # Only this process's own limits, and only its own threads: abort() and raise() go through tgkill.
    # It may read its CPU limit but not set it: a limit of its own would end it by SIGKILL, which counts as our failure.
    reading_only = _refuse_unless_zero(2)
    is_cpu = ((LOAD, 0, 0, OFFSET_ARGUMENTS + 8), (EQUAL, 0, len(reading_only), RLIMIT_CPU))
    named["prlimit64"] = (*_refuse_unless_zero(0), *is_cpu, *reading_only, *ALLOW)
    # With an address, a datagram from socketpair() reaches any socket file on the machine, past Landlock.
    named["sendto"] = (*_refuse_unless_zero(4), *ALLOW)
    # tgkill(own pid, thread, signal), but neither SIGKILL nor SIGSTOP: a SIGKILL always comes from outside.
    is_own = ((LOAD, 0, 0, OFFSET_ARGUMENTS), (EQUAL, 0, 3, PID_PLACEHOLDER))
    is_final = ((LOAD, 0, 0, OFFSET_ARGUMENTS + 16), (EQUAL, 1, 0, SIGKILL), (EQUAL, 0, 1, SIGSTOP))
    named["tgkill"] = (*is_own, *is_final, *REFUSE, *ALLOW)
    return {kernel.NUMBERS[name]: block for name, block in named.items() if name in kernel.NUMBERS}


def _refuse_unless_zero(index: int) -> Block:
    """Refuse the call unless the argument is 0; both 32-bit halves are tested, since it may be a pointer."""
    at = OFFSET_ARGUMENTS + 8 * index
    return ((LOAD, 0, 0, at), (EQUAL, 0, 2, 0), (LOAD, 0, 0, at + 4), (EQUAL, 1, 0, 0), (RETURN, 0, 0, DENY))


def _only(commands: Commands) -> Block:
    return _on(commands.argument, commands.allowed, ALLOW, ((RETURN, 0, 0, RET_ERRNO | commands.refusal),))


def _on(index: int, values: tuple[int, ...], then: Block, otherwise: Block) -> Block:
    """Go on with `then` if the lower half of the argument is one of the values."""
    last = len(values) - 1
    tests = [(EQUAL, last - i, len(then) if i == last else 0, value) for i, value in enumerate(values)]
    return ((LOAD, 0, 0, OFFSET_ARGUMENTS + 8 * index), *tests, *then, *otherwise)
