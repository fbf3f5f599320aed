"""Landlock: which files a process may touch, without root and for good.

A ruleset is built once per worker and applied by every forked child; building costs 0.15 ms, applying 0.05 ms.
Landlock does not govern chmod, utime, stat and sockets: those are seccomp's (see seccomp.py).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from rlvrlab.judge.jail import files, kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
VERSION_FLAG, RULE_PATH_BENEATH = 1, 1


def version() -> int:
    """Landlock's ABI on this kernel; 0 when it has none."""
    try:
        return kernel.syscall("landlock_create_ruleset", None, 0, VERSION_FLAG)
    except OSError:
        return 0


def ruleset(readable: Iterable[str], writable: Iterable[str] = (), executable: Iterable[str] = ()) -> int:
    """A descriptor of a ruleset: everything not named here is refused."""
    abi = version()
    rights = (1 << 13) - 1
    for needed, bit in ((2, 13), (3, 14), (5, 15)):
        if abi >= needed:
            rights |= 1 << bit
    network, scope = 3, 3  # bind and connect of TCP; abstract sockets and signals leaving the domain
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    attributes = struct.pack("=QQQ", rights, network, scope)
    rules = kernel.syscall("landlock_create_ruleset", attributes, size, 0)
    for path in readable:
        _allow(rules, path, READ_FILE | READ_DIR)
    for path in executable:
        _allow(rules, path, READ_FILE | READ_DIR | EXECUTE)
    for path in writable:
        _allow(rules, path, rights & ~EXECUTE)
    return rules


def _allow(rules: int, path: str, rights: int) -> None:
    if not files.kind(path):
        return
    if not files.is_folder(path):
        rights &= FILE_RIGHTS
    beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        # Bytes, not a buffer of ctypes, which makes a class for each size: later children would find what it left.
        kernel.syscall("landlock_add_rule", rules, RULE_PATH_BENEATH, struct.pack("=Qi", rights, beneath), 0)
    finally:
        os.close(beneath)
