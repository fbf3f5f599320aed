"""The one directory a job may write to: a small tmpfs of the worker's own where possible, a plain directory otherwise.

The tmpfs lives in the worker's mount namespace, so it is bounded in bytes and inodes and vanishes with the worker. All
else is read-only in there, and the host has another name. After every job that may write, the directory is replaced: an
emptied one would still tell by its inode numbers how many files there had been, and one that is replaced only when it
was used would tell by its device number whether it was. It lies in another one, the holder, which stays, holds nothing
else and cannot be written to: the rules of Landlock name the holder, so whoever forks the jobs need not know whether
the directory was replaced. When that happened cannot be seen: the time of birth takes `statx`, which jobs do not have,
and every job sets the other times anew as it enters (walls.py).
"""

from __future__ import annotations

import os
from contextlib import suppress

from rlvrlab.judge.jail import files, kernel

INODES = 4096
STAMP = 0
NAME = "job"
HOST = b"judge"
FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
HOLDER_OPTIONS = "size=4k,nr_inodes=2,mode=0711"
HIDDEN = "/sys"
"""An empty folder in the jail. A file in there is made when somebody first asks for it, with the time of that moment:
thousands of bits that one job could set and the next read, by `stat` alone. Those of /proc are hidden in numbers.py."""

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - to be hidden
"""Empty and full in the jail: `multiprocessing.Value` and `Array` then take the scratch directory by themselves. Where
a job may start processes it is the scratch directory, for semaphores that they share are files in there."""


class Scratch:
    """A directory that is empty, and looks like a new one, at the start of every job."""

    def __init__(self, base: str, size_mb: int, user: int | None = None, processes: bool = False) -> None:
        self._user, self._processes = user, processes
        owner = "" if user is None else f",uid={user},gid={user}"
        self._options = f"size={size_mb}m,nr_inodes={INODES},mode=0700{owner}"
        self.own_mounts = _leave_mounts()
        self.bounded = self.own_mounts and _mounted(base, HOLDER_OPTIONS)
        self.holder = base if self.bounded else f"{base}/{os.getpid()}-{os.urandom(6).hex()}"
        self.path = f"{self.holder}/{NAME}"
        if self.bounded:
            os.mkdir(self.path)  # noqa: PTH102
            kernel.mount("none", base, "none", FLAGS | kernel.MS_REMOUNT | kernel.MS_RDONLY, HOLDER_OPTIONS)
        else:
            if user is not None:
                os.chmod(base, 0o711)  # noqa: PTH101, S103 - or its new owner could not come here
            os.mkdir(self.holder, 0o711)  # noqa: PTH102
            if user is not None:
                os.chown(self.holder, user, user)  # so that a job can set its times before it enters the jail
        self._make()
        os.environ["TMPDIR"] = os.environ["HOME"] = self.path

    @property
    def counted_apart(self) -> bool:
        """Do threads of this worker's jobs count for nobody else, by a user number or a user namespace of its own?"""
        return self._user is not None or (self.own_mounts and os.geteuid() != 0)

    @property
    def writable(self) -> list[str]:
        """The folders in which a job may write to whatever is mounted there."""
        shares = self._processes and self.bounded
        return [self.holder, SHARED_MEMORY.rpartition("/")[0]] if shares else [self.holder]

    def _make(self) -> None:
        if self.bounded:
            if not _mounted(self.path, self._options):
                raise OSError(f"the scratch directory {self.path} could not be mounted")
            if self._processes:
                kernel.mount(self.path, SHARED_MEMORY, "none", kernel.MS_BIND)
        else:
            self._open_holder(True)
            os.mkdir(self.path, 0o700)  # noqa: PTH102
            if self._user is not None:
                os.chown(self.path, self._user, self._user)
            self._open_holder(False)
        os.utime(self.path, ns=(STAMP, STAMP))

    def _open_holder(self, writable: bool) -> None:
        os.chmod(self.holder, 0o711 if writable else 0o511)  # noqa: PTH101

    def renew(self) -> None:
        """A new directory in place of the one the last job had."""
        if self.bounded:
            if self._processes:
                kernel.unmount(SHARED_MEMORY)
            kernel.unmount(self.path)
        else:
            remove_tree(self.path)
            self._open_holder(True)
            os.rmdir(self.path)  # noqa: PTH106
        self._make()

    def close(self) -> None:
        """Leave nothing behind; a tmpfs vanishes with the worker's mount namespace."""
        if self.bounded:
            return
        with suppress(OSError):
            remove_tree(self.path)
            self._open_holder(True)
            os.rmdir(self.path)  # noqa: PTH106
            os.rmdir(self.holder)  # noqa: PTH106


def _mounted(path: str, options: str) -> bool:
    try:
        kernel.mount("tmpfs", path, "tmpfs", FLAGS, options)
    except OSError:
        return False
    return True


def _leave_mounts() -> bool:
    """Could this process leave the others' mounts? Then it sees them read-only, and another name of the host."""
    try:
        if os.geteuid() == 0:
            kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS)
        else:
            uid, gid = os.getuid(), os.getgid()
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS)
            files.write("/proc/self/setgroups", b"deny")
            files.write("/proc/self/uid_map", f"{uid} {uid} 1".encode())
            files.write("/proc/self/gid_map", f"{gid} {gid} 1".encode())
        kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.libc.sethostname(HOST, len(HOST))
    except OSError:
        return False
    with suppress(OSError):  # Linux before 5.12
        kernel.make_read_only()
    with suppress(OSError):
        kernel.mount("tmpfs", HIDDEN, "tmpfs", FLAGS | kernel.MS_RDONLY, "size=4k,nr_inodes=1,mode=0755")
    with suppress(OSError):
        kernel.mount("ramfs", SHARED_MEMORY, "ramfs", FLAGS | kernel.MS_RDONLY)
    return True


def remove_tree(path: str) -> None:
    """Empty a directory without recursion and without long paths: hostile trees are thousands of levels deep."""
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while subdirectories := _unlink_files(root):
            for name in subdirectories:
                _flatten(root, name)
    finally:
        os.close(root)


def _unlink_files(directory: int) -> list[str]:
    subdirectories = []
    for name in os.listdir(directory):
        try:
            os.unlink(name, dir_fd=directory)
        except OSError:
            subdirectories.append(name)
    return subdirectories


def _flatten(root: int, name: str) -> None:
    """Remove one directory, moving its subdirectories up to the root so that depth never grows."""
    with suppress(OSError):
        os.chmod(name, 0o700, dir_fd=root)
        directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
        try:
            for index, inner in enumerate(_unlink_files(directory)):
                os.chmod(inner, 0o700, dir_fd=directory)  # a directory that may not be written cannot be moved either
                os.rename(inner, f".{directory}.{index}.{os.urandom(6).hex()}", src_dir_fd=directory, dst_dir_fd=root)
        finally:
            os.close(directory)
        os.rmdir(name, dir_fd=root)
