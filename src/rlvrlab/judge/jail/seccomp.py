"""Seccomp: which system calls a jailed process may make. Everything not listed is refused with EPERM.

A list of what is allowed, not of what is forbidden: a call added to the kernel tomorrow is refused today.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from rlvrlab.judge.jail import kernel

ALLOWED = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise dup dup2 pause nanosleep
getitimer alarm setitimer getpid sendfile sendto recvfrom shutdown getsockname getpeername socketpair setsockopt
getsockopt exit wait4 uname flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir
creat link unlink symlink readlink umask gettimeofday getrlimit getrusage sysinfo times getuid getgid geteuid getegid
getppid getpgrp getgroups getresuid getresgid getpgid getsid rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack
statfs fstatfs getpriority gettid time futex sched_getaffinity epoll_create getdents64 set_tid_address restart_syscall
fadvise64 clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl waitid openat mkdirat newfstatat
unlinkat renameat linkat symlinkat readlinkat faccessat pselect6 ppoll set_robust_list epoll_pwait fallocate eventfd2
epoll_create1 dup3 pipe2 preadv pwritev getcpu renameat2 getrandom membarrier copy_file_range statx rseq close_range
openat2 faccessat2 epoll_pwait2 futex_waitv
"""

PRETENDED = "chmod fchmod fchmodat fchmodat2 utime utimes utimensat"
"""Answered with success and not done: Landlock does not govern them, and shutil.copy calls them."""

PROCESSES = " fork vfork clone execve kill setpgid setsid prctl arch_prctl"
"""Allowed as well where a pid namespace bounds what may be started."""

LOAD, JUMP, EQUAL, AT_LEAST, BITS_SET, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
RET_KILL, RET_ERRNO, RET_ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
OFFSET_NUMBER, OFFSET_ARCH, OFFSET_ARGUMENTS = 0, 4, 16
FARTHEST = 255
"""How far a conditional jump reaches; an unconditional one has no such limit."""
CLONE_THREAD, X32_BIT = 0x10000, 0x40000000
SIGKILL, SIGSTOP = 9, 19
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15
FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX = 0x8901, 0x8902, 0x5412, 0x541C
SET_MODE_FILTER, RLIMIT_CPU = 1, 0
PID_PLACEHOLDER = 0x7F123457

Instruction = tuple[int, int, int, int]
Block = tuple[Instruction, ...]
DENY = RET_ERRNO | errno.EPERM
ALLOW: Block = ((RETURN, 0, 0, RET_ALLOW),)
REFUSE: Block = ((RETURN, 0, 0, DENY),)


class Filter:
    """A BPF program ready for the system call `seccomp`; the owner's pid is filled in after the fork."""

    def __init__(self, processes: bool = False) -> None:
        program = _program(processes)
        (pid_at,) = (i for i, step in enumerate(program) if step[3] == PID_PLACEHOLDER)
        raw = b"".join(struct.pack("HBBI", *step) for step in program)
        self._code = ctypes.create_string_buffer(raw, len(raw))
        header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(self._code))
        self.header = ctypes.create_string_buffer(header, 16)
        """The `struct sock_fprog` that seccomp() takes: number of instructions and their address."""
        self.pid = ctypes.c_uint32.from_buffer(self._code, 8 * pid_at + 4)
        """Whose own threads `tgkill` may reach."""


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
    named |= dict.fromkeys(PRETENDED.split(), ((RETURN, 0, 0, RET_ERRNO),))
    # glibc falls back from clone3, whose flags a filter cannot read, to clone.
    named["clone3"] = ((RETURN, 0, 0, RET_ERRNO | errno.ENOSYS),)
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
    # These make the kernel send a chosen signal to a descriptor's owner: a way around the refused kill().
    named["fcntl"] = _unless_argument(1, F_SETOWN, F_SETSIG, F_SETOWN_EX)
    named["ioctl"] = _unless_argument(1, FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX)
    return {kernel.NUMBERS[name]: block for name, block in named.items() if name in kernel.NUMBERS}


def _refuse_unless_zero(index: int) -> Block:
    """Refuse the call unless the argument is 0; both 32-bit halves are tested, since it may be a pointer."""
    at = OFFSET_ARGUMENTS + 8 * index
    return ((LOAD, 0, 0, at), (EQUAL, 0, 2, 0), (LOAD, 0, 0, at + 4), (EQUAL, 1, 0, 0), (RETURN, 0, 0, DENY))


def _unless_argument(index: int, *values: int) -> Block:
    tests = [(EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    load = (LOAD, 0, 0, OFFSET_ARGUMENTS + 8 * index)
    return (load, *tests, (RETURN, 0, 0, RET_ALLOW), (RETURN, 0, 0, DENY))
