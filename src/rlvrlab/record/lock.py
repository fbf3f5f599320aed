"""One writer per run folder; the kernel drops the lock when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path

from rlvrlab.errors import RunLocked


class Lock:
    """Held from creation to `release`."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / ".lock").open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "an unknown process"
            self._file.close()
            raise RunLocked(f"{folder}: in use by {holder}; wait for it or stop it") from None
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        self._file.flush()

    def release(self) -> None:
        """Let the next one in."""
        self._file.close()
