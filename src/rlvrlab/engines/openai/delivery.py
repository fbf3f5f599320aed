"""How a trainer's adapter comes to a server: by its path where both see one folder, else through the server's door.

write -> (send to the door, which says where it is now) -> the server loads it by path -> the one before is forgotten

A door that is lost makes its server lost: the same error, waiting and return (engines/openai/servers.py). It is asked
before every loading whether it has the adapter, so one that was started again is sent it again, and one that was cut
off in the middle is sent the rest.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.engines.openai.adapters import load_adapter, unload_adapter
from rlvrlab.errors import UserError
from rlvrlab.http_client import BadAnswer, Host, Refused, Response, reason
from rlvrlab.http_messages import BYTES, JSON
from rlvrlab.models.tensors import ADAPTER_CONFIG, ADAPTER_TENSORS
from rlvrlab.types import KEY_ENV

PIECE = 8 << 20
LONGEST_PATH = 4096


@dataclass(frozen=True)
class Adapter:
    """One that was written."""

    name: str
    folder: Path
    sha256: str
    """Of its tensors."""


class Delivery:
    """Brings adapters to servers, each in its own way."""

    def __init__(self, door_of: Callable[[str], str | None], key: str | None) -> None:
        """`door_of` tells the door of a server's address, as it is now; None where it sees the trainer's folder."""
        self._door_of, self._key = door_of, key
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Servers of one machine share a door: the second of them finds there what was sent for the first."""

    async def load(self, host: Host, adapter: Adapter) -> None:
        """Have a server serve this adapter; one it serves already is left alone."""
        url = self._door_of(host.url)
        if url is None:
            await load_adapter(host, adapter.name, str(adapter.folder))
            return
        async with self._turns[url], self._door(url) as door:
            place = await send_adapter(door, adapter)
        await load_adapter(host, adapter.name, place)

    async def unload(self, host: Host, name: str) -> None:
        """Have a server, and its door, forget an adapter."""
        await unload_adapter(host, name)
        url = self._door_of(host.url)
        if url is not None:
            async with self._door(url) as door:
                await door.request("/forget", {"name": name})

    @asynccontextmanager
    async def _door(self, url: str) -> AsyncIterator[Host]:
        """A connection to a door; what is wrong with it is said of it, not of the server."""
        door = Host(url, self._key)
        try:
            yield door
        except (OSError, BadAnswer) as error:
            raise type(error)(f"its adapter door {door.url}: {error or type(error).__name__}") from None
        finally:
            await door.close()


async def send_adapter(door: Host, adapter: Adapter) -> str:
    """The folder where the door has put the adapter; only bytes that it does not have are sent."""
    tensors, config = (
        adapter.folder / ADAPTER_TENSORS,
        json.loads((adapter.folder / ADAPTER_CONFIG).read_text(encoding="utf-8")),
    )
    size = tensors.stat().st_size
    announced = {"name": adapter.name, "config": config, "size": size, "sha256": adapter.sha256}
    sent, (place, have) = -1, await _told(door, "/adapters", announced)
    with tensors.open("rb") as file:
        while not place:
            if not sent < have < size:
                raise BadAnswer(f"says that it has {have} of {size} bytes, after {sent}")
            sent = file.seek(have)
            query = f"name={adapter.name}&sha256={adapter.sha256}&start={have}"
            place, have = await _told(door, f"/pieces?{query}", file.read(PIECE))
    return place


async def _told(door: Host, path: str, content: dict[str, Any] | bytes) -> tuple[str, int]:
    """The folder where all of it is there, else the bytes that are."""
    response = await door.request(path, content, BYTES if isinstance(content, bytes) else JSON)
    if response.status != 200:
        raise _refusal(door, response)
    told = response.json()
    place, have = told.get("folder", ""), told.get("have", 0)
    if not isinstance(place, str) or len(place) > LONGEST_PATH or type(have) is not int or have < 0:
        raise BadAnswer("the answer is not that of an adapter door")
    return place, have


def _refusal(door: Host, response: Response) -> Exception:
    """What waiting may mend is the server's trouble; everything else is the user's to mend."""
    status, words = response.status, reason(response)
    if status >= 500 or status in (408, 409, 425, 429):
        return Refused(response)
    if status in (401, 403):
        return UserError(f"adapter door {door.url}: status {status}: {words}; the key comes from {KEY_ENV}")
    if status in (404, 405):
        remedy = "write adapters=ADDRESS as `rlvr serve model PATH --adapters RANK --receive PORT` prints it"
        return UserError(f"{door.url} is no adapter door (status {status}); {remedy}")
    return UserError(f"adapter door {door.url} does not take the adapter: {words}")
