"""Messages between two jailed children over a socket: four bytes of length, then JSON."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

LARGEST_FRAME = 16 << 20


class PeerGone(Exception):
    """The other side ended, or sent what is no message."""


class Frames:
    """One end of the conversation; the functions it needs are kept, so nobody can swap them later."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read, self._write, self._loads, self._dumps = os.read, os.write, json.loads, json.dumps

    def send(self, message: object) -> None:
        """Write one message."""
        body = self._dumps(message).encode()
        data = struct.pack("=I", len(body)) + body
        try:
            while data:
                data = data[self._write(self._descriptor, data) :]
        except OSError as error:
            raise PeerGone(str(error)) from None

    def ask(self) -> None:
        """One byte that says: send me your message now."""
        self._write(self._descriptor, b"?")

    def receive(self) -> Any:
        """Read one message."""
        (size,) = struct.unpack("=I", self._exactly(4))
        if size > LARGEST_FRAME:
            raise PeerGone(f"a message of {size} bytes")
        try:
            return self._loads(self._exactly(size))
        except (ValueError, RecursionError):
            raise PeerGone("not a message") from None

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            piece = self._read(self._descriptor, min(size, 1 << 20))
            if not piece:
                raise PeerGone("the other side ended")
            parts.append(piece)
            size -= len(piece)
        return b"".join(parts)
