"""System calls through ctypes: the numbers of x86_64 and aarch64, and the few calls Python has no name for."""

from __future__ import annotations

import ctypes
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_NO_NEW_PRIVS = 1, 15, 38
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x04000000, 0x10000000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 0x20, 0x1000, 0x4000, 0x40000
)  # fmt: skip
MNT_DETACH, MOUNT_ATTR_RDONLY, AT_RECURSIVE, AT_FDCWD = 2, 1, 0x8000, -100

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINE = os.uname().machine

# name, number on x86_64, number on aarch64; "-" where the machine has no such call.
TABLE = """
read 0 63; write 1 64; open 2 -; close 3 57; stat 4 -; fstat 5 80; lstat 6 -; poll 7 -; lseek 8 62; mmap 9 222;
mprotect 10 226; munmap 11 215; brk 12 214; rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139;
ioctl 16 29; pread64 17 67; pwrite64 18 68; readv 19 65; writev 20 66; access 21 -; pipe 22 -; select 23 -;
sched_yield 24 124; mremap 25 216; msync 26 227; mincore 27 232; madvise 28 233; dup 32 23; dup2 33 -; pause 34 -;
nanosleep 35 101; getitimer 36 102; alarm 37 -; setitimer 38 103; getpid 39 172; sendfile 40 71; sendto 44 206;
recvfrom 45 207; sendmsg 46 211; recvmsg 47 212; shutdown 48 210; getsockname 51 204; getpeername 52 205;
socketpair 53 199; setsockopt 54 208;
getsockopt 55 209; clone 56 220; fork 57 -; vfork 58 -; execve 59 221; exit 60 93; wait4 61 260; kill 62 129;
uname 63 160; fcntl 72 25; flock 73 32; fsync 74 82; fdatasync 75 83; truncate 76 45; ftruncate 77 46; getdents 78 -;
getcwd 79 17; chdir 80 49; fchdir 81 50; rename 82 -; mkdir 83 -; rmdir 84 -; creat 85 -; link 86 -; unlink 87 -;
symlink 88 -; readlink 89 -; chmod 90 -; fchmod 91 52; umask 95 166; gettimeofday 96 169; getrlimit 97 163;
getrusage 98 165; sysinfo 99 179; times 100 153; getuid 102 174; getgid 104 176; geteuid 107 175; getegid 108 177;
setpgid 109 154; getppid 110 173; getpgrp 111 -; setsid 112 157; getgroups 115 158; getresuid 118 148;
getresgid 120 150; getpgid 121 155; getsid 124 156; capset 126 91; rt_sigpending 127 136; rt_sigtimedwait 128 137;
rt_sigsuspend 130 133; sigaltstack 131 132; utime 132 -; statfs 137 43; fstatfs 138 44; getpriority 140 141;
setpriority 141 140; sync 162 81; prctl 157 167; arch_prctl 158 -; gettid 186 178; setxattr 188 5; lsetxattr 189 6;
fsetxattr 190 7; getxattr 191 8; lgetxattr 192 9; fgetxattr 193 10; listxattr 194 11; llistxattr 195 12;
flistxattr 196 13; removexattr 197 14; lremovexattr 198 15; fremovexattr 199 16; time 201 -; futex 202 98;
sched_getaffinity 204 123; epoll_create 213 -; getdents64 217 61; set_tid_address 218 96; restart_syscall 219 128;
fadvise64 221 223; clock_gettime 228 113; clock_getres 229 114; clock_nanosleep 230 115; exit_group 231 94;
epoll_wait 232 -; epoll_ctl 233 21; tgkill 234 131; utimes 235 -; waitid 247 95; openat 257 56; mkdirat 258 34;
newfstatat 262 79; unlinkat 263 35; renameat 264 38; linkat 265 37; symlinkat 266 36; readlinkat 267 78;
fchmodat 268 53; faccessat 269 48; pselect6 270 72; ppoll 271 73; set_robust_list 273 99; utimensat 280 88;
epoll_pwait 281 22; sync_file_range 277 84; fallocate 285 47; eventfd2 290 19; epoll_create1 291 20; dup3 292 24;
pipe2 293 59; preadv 295 69; pwritev 296 70; prlimit64 302 261; syncfs 306 267; getcpu 309 168; renameat2 316 276;
seccomp 317 277; getrandom 318 278; membarrier 324 283; copy_file_range 326 285; statx 332 291; rseq 334 293;
clone3 435 435; close_range 436 436; openat2 437 437; faccessat2 439 439; epoll_pwait2 441 441; mount_setattr 442 442;
landlock_create_ruleset 444 444; landlock_add_rule 445 445; landlock_restrict_self 446 446; futex_waitv 449 449;
fchmodat2 452 452
"""


def numbers_on(machine: str) -> dict[str, int]:
    """The call numbers of a processor by name; empty where they are not known."""
    column = {"x86_64": 1, "aarch64": 2}.get(machine)
    rows = [row.split() for row in TABLE.split(";")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"} if column else {}


NUMBERS = numbers_on(MACHINE)


def checked(result: int, what: str) -> int:
    """The result of a libc call, or OSError with its errno."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(name: str, *arguments: object) -> int:
    """A raw system call by name."""
    if name not in NUMBERS:
        raise OSError(38, f"{name}: not known on {MACHINE}")
    return checked(libc.syscall(NUMBERS[name], *arguments), name)


def no_new_privileges() -> None:
    """From here on no set-uid program can raise this process; needed by Landlock and seccomp without root."""
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def unshare(flags: int) -> None:
    """Leave the parent's namespaces."""
    checked(libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system in this mount namespace."""
    checked(libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()), "mount")


def unmount(target: str) -> None:
    """Take a file system away; it is gone when its last file is closed."""
    checked(libc.umount2(target.encode(), MNT_DETACH), "umount")


def make_read_only() -> None:
    """All that is mounted in this mount namespace, so that reading does not change when a file was last read."""
    attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0), 32)
    syscall("mount_setattr", AT_FDCWD, b"/", AT_RECURSIVE, attributes, 32)
