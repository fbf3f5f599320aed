"""The one directory a job may write to: a small tmpfs of the worker's own where possible, a plain directory otherwise.

The tmpfs lives in the worker's mount namespace, so it is bounded in bytes and inodes and vanishes with the worker.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from rlvrlab.judge.jail import kernel

INODES = 4096


class Scratch:
    """A directory that is empty at the start of every job."""

    def __init__(self, base: str, size_mb: int) -> None:
        self.bounded = _mount_tmpfs(base, size_mb)
        self.path = base if self.bounded else f"{base}/{os.getpid()}-{os.urandom(6).hex()}"
        if not self.bounded:
            Path(self.path).mkdir(mode=0o700)
        os.chdir(self.path)
        os.environ["TMPDIR"] = os.environ["HOME"] = self.path

    def empty(self) -> None:
        """Remove every file and directory the last job left."""
        remove_tree(self.path)

    def close(self) -> None:
        """Leave nothing behind; a tmpfs vanishes with the worker's mount namespace."""
        with suppress(OSError):
            remove_tree(self.path)
            if not self.bounded:
                Path(self.path).rmdir()


def _mount_tmpfs(path: str, size_mb: int) -> bool:
    """Whether this process could leave the others' mounts and mount a file system of its own here."""
    options = f"size={size_mb}m,nr_inodes={INODES},mode=0700"
    try:
        if os.geteuid() == 0:
            kernel.unshare(kernel.CLONE_NEWNS)
        else:
            uid, gid = os.getuid(), os.getgid()
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("tmpfs", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC, options)
    except OSError:
        return False
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
