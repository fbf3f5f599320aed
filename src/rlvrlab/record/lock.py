"""One writer per run folder; the kernel drops the lock when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from rlvrlab.errors import RunError, RunLocked
from rlvrlab.plain_files import parsed
from rlvrlab.record.files import StorageError


class Lock:
    """An exclusive lock on a folder, held from creation to `release`."""

    def __init__(self, folder: Path) -> None:
        path = folder / ".lock"
        try:
            self._file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise StorageError(path, error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = "another process"
            with suppress(ValueError, KeyError, TypeError):
                facts = parsed(self._file.read())
                holder = f"process {facts['pid']} on {facts['host']}"
            self._file.close()
            raise RunLocked(f"{folder}: in use by {holder}; wait for it or stop it") from None
        except OSError as error:  # some network file systems have no locks
            self._file.close()
            why = error.strerror or error
            raise RunError(f"{folder}: files cannot be locked here ({why}); put output_dir on a local disk") from None
        with suppress(OSError):  # on a full disk the holder stays unnamed; the lock itself needs no space
            self._file.truncate(0)
            self._file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
            self._file.flush()

    def release(self) -> None:
        """Release the folder for the next writer."""
        with suppress(OSError):
            self._file.close()
