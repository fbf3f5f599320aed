"""The servers that `engine.sampler` names: addresses, and files of addresses that are read again and again.

    engine.sampler = "http://127.0.0.1:8000/v1, servers.txt"

A file has one address on a line, `adapters=ADDRESS` behind it where the server does not see our folder; what follows a
# is a remark. A line that is added while a run trains brings a server into it, one that is removed takes it out. A file
that cannot be read, or names nobody, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlvrlab.engines.openai.roster import Listed, entries_in, listed_of
from rlvrlab.errors import UserError
from rlvrlab.http_client import Host

LARGEST_FILE = 1 << 20


def is_file(entry: str) -> bool:
    """Is it a file of addresses, and not an address?"""
    return "://" not in entry


def entries_of(sampler: str) -> list[str]:
    """The parts of the key."""
    return [entry.strip() for entry in sampler.split(",") if entry.strip()]


class Addresses:
    """What the key says now."""

    def __init__(self, sampler: str) -> None:
        """Refuses a file that is not there and what is no address: it is the user's to mend before a run begins."""
        self._entries = entries_of(sampler)
        self._odd: dict[str, str] = {}
        """Lines that are no address, with what is wrong with them."""
        self._told: set[str] = set()
        self.urls: list[str] = []
        self._doors: dict[str, str | None] = {}
        self._take([listed_of(line) for entry in self._entries for line in _lines(entry)])
        if not self.urls:
            raise UserError(f"engine.sampler: {sampler!r} names no server; put an address on a line of its own")

    def renew(self) -> list[str]:
        """As the files are now; a line that is no address is passed over."""
        try:
            lines = [line for entry in self._entries for line in _lines(entry)]
        except UserError:
            return self.urls  # being written, or gone: the servers known so far
        self._take([server for line in lines if (server := self._usable(line))])
        return self.urls

    def door_of(self, url: str) -> str | None:
        """Where the server of this address (a Host's) takes adapters; None where it sees the trainer's folder."""
        return self._doors.get(url)

    def _take(self, servers: Sequence[Listed]) -> None:
        if servers:
            self.urls = list(dict.fromkeys(server.url for server in servers))
            self._doors = {Host(server.url).url: server.door for server in servers}

    def _usable(self, line: str) -> Listed | None:
        try:
            return listed_of(line)
        except UserError as error:
            self._odd[line] = f"a line of engine.sampler's file is passed over: {error}"
            return None

    def complaints(self) -> list[str]:
        """What is wrong with lines that were passed over, once each."""
        fresh = self._odd.keys() - self._told
        self._told |= fresh
        return [self._odd[line] for line in sorted(fresh)]


def _lines(entry: str) -> list[str]:
    if not is_file(entry):
        return [entry]
    try:
        with Path(entry).open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "not a text"
        raise UserError(f"engine.sampler: {entry}: {words}; give addresses, or a file with one on a line") from None
    return entries_in(text)
