"""Lists of model servers: one address on a line, with its adapter door where it has one, and remarks behind #.

    http://10.0.0.7:8000                                  # sees the trainer's folder
    http://10.0.0.8:8000 adapters=http://10.0.0.8:9000    # is sent its adapters

Of two lines for one server the last counts: a server that was started again may have another door.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import UserError
from rlvrlab.http_client import Host

DOOR = "adapters="


class Listed(NamedTuple):
    """A server, and where it takes adapters when it does not see the trainer's folder."""

    url: str
    door: str | None = None

    def __str__(self) -> str:
        return self.url if self.door is None else f"{self.url} {DOOR}{self.door}"


def listed_of(entry: str) -> Listed:
    """An address, and perhaps the word adapters=ADDRESS behind it; UserError for anything else."""
    url, *words = entry.split()
    Host(url)
    if not words:
        return Listed(url)
    if len(words) > 1 or not words[0].startswith(DOOR):
        odd = words[-1].rpartition("@")[2]
        raise UserError(f"server {Host(url).url}: {odd!r} behind it; only {DOOR}http://HOST:PORT may follow an address")
    door = words[0].removeprefix(DOOR)
    Host(door)
    return Listed(url, door)


def announce_at(file: Path, servers: Sequence[Listed]) -> None:
    """Add servers to a list that trainers read; one that is on it already, with this door, stays where it is."""
    try:
        with file.open("a+", encoding="utf-8") as listed:  # one write: others may add theirs at the same time
            listed.seek(0)
            known = listed.read()
            last = {line.split()[0]: " ".join(line.split()) for line in entries_in(known)}
            new = "".join(f"{server}\n" for server in servers if last.get(server.url) != str(server))
            listed.write("\n" + new if known and not known.endswith("\n") and new else new)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--announce {file}: cannot be written ({error}); choose another file") from None


def entries_in(text: str) -> list[str]:
    """The lines of a list without remarks."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]
