"""Messages between two jailed children over a socket: four bytes of length, then JSON.

Texts cross as they are: escaped, two halves of a character (`"\\ud83d" + "\\ude00"`) would be read as the whole one.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

LARGEST_FRAME = 16 << 20
LENGTH = struct.Struct("=I")
PIECE = 1 << 16

_encode = json.encoder.c_make_encoder  # type: ignore[attr-defined]
_pieces = _encode and _encode(None, None, json.encoder.encode_basestring, None, ": ", ", ", False, False, True)
"""The encoder behind json.dumps, made once: each object touched on the way to it costs every fork a copied page."""
HALVES = "surrogatepass"
"""How halves of characters are written as bytes, and read."""
scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def text(value: object) -> str:
    """Lists, tuples and scalars as JSON, with halves of characters as they are."""
    return "".join(_pieces(value, 0)) if _pieces else json.dumps(value, ensure_ascii=False)


class PeerGone(Exception):
    """The other side ended, or sent what is no message."""


class Frames:
    """One end of the conversation; the functions it needs are kept, so nobody can swap them later."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._rest = descriptor, b""
        self._read, self._write, self._scan, self._text = os.read, os.write, scan, text
        self._pack, self._unpack = LENGTH.pack, LENGTH.unpack_from

    def send(self, message: object) -> None:
        """Write one message; PeerGone when nobody reads it."""
        body = self._text(message).encode("utf-8", HALVES)
        data = self._pack(len(body)) + body
        try:
            while data:
                data = data[self._write(self._descriptor, data) :]
        except OSError as error:
            raise PeerGone(str(error)) from None

    def ask(self) -> None:
        """One byte that says: send me your message now."""
        self._write(self._descriptor, b"?")

    def receive(self) -> Any:
        """Read one message; what came along behind it is kept for the next time."""
        data = self._at_least(self._rest, LENGTH.size)
        (size,) = self._unpack(data)
        if size > LARGEST_FRAME:
            raise PeerGone(f"a message of {size} bytes")
        end = LENGTH.size + size
        data = self._at_least(data, end)
        self._rest = data[end:]
        try:
            body = str(data[LENGTH.size : end], "utf-8", HALVES)
            message, read = self._scan(body, 0)
        except (StopIteration, ValueError, RecursionError):
            raise PeerGone("not a message") from None
        if read != len(body):
            raise PeerGone("not one message")
        return message

    def _at_least(self, data: bytes, size: int) -> bytes:
        if len(data) >= size:
            return data
        parts, missing = [data], size - len(data)
        while missing > 0:
            piece = self._read(self._descriptor, PIECE)
            if not piece:
                raise PeerGone("the other side ended")
            parts.append(piece)
            missing -= len(piece)
        return b"".join(parts)
