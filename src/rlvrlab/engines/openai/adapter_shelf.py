"""Adapters that came over the network, in a folder of this process alone: each whole and checked, or not there.

A draft grows by one piece after another and says how much of it is there, so a sender that was cut off goes on where it
was; two who send the same adapter help each other. What is kept, and how many drafts there are, is bounded: the one
that was asked for longest ago goes first.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvrlab.engines.openai.adapter_files import Announced, check_tensors
from rlvrlab.errors import UserError
from rlvrlab.models.tensors import ADAPTER_CONFIG, ADAPTER_TENSORS

MOST_KEPT = 8
"""Adapters of several trainers; each keeps one, and two while it changes them."""
MOST_DRAFTS = 4
SPARE_DISK = 256 << 20
"""Bytes of the disk that are left to others."""
QUIET_S = 600.0
"""A draft that nobody has sent anything of for so long makes room where there is none."""


@dataclass
class Draft:
    """An adapter of which a part has come."""

    adapter: Announced
    folder: Path
    have: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    heard: float = field(default_factory=time.monotonic)
    """When something came for it."""

    @property
    def missing(self) -> int:
        """Bytes that are still to come, for which room is kept."""
        return self.adapter.size - self.have


class Shelf:
    """Its methods may be called from several threads; each is done before the next begins."""

    def __init__(self, home: Path) -> None:
        """`home` should be nobody else's."""
        self._home, self._lock = home, threading.Lock()
        self._kept: dict[str, Announced] = {}
        """By name, the one that was asked for last at the end."""
        self._drafts: dict[tuple[str, str], Draft] = {}
        """By name and digest, in the same order."""

    def begin(self, adapter: Announced) -> Path | int:
        """Its folder where it is here, else how many of its bytes are."""
        config = adapter.config_text()  # before the lock, for which others wait
        with self._lock:
            if (kept := self._kept.pop(adapter.name, None)) is not None:
                if kept != adapter:
                    self._kept[adapter.name] = kept
                    raise UserError(f"{adapter.name}: another adapter is here under this name; use another name")
                if self._is_there(adapter):
                    self._kept[adapter.name] = adapter
                    return self._home / adapter.name
            return self._draft_of(adapter, config).have

    def add(self, name: str, sha256: str, start: int, piece: bytes) -> Path | int:
        """Append a piece that begins where the draft ends; any other changes nothing. The folder when it is whole.

        LookupError where nobody announced it, e.g. before this process was started.
        """
        with self._lock:
            draft = self._drafts.get((name, sha256))
            if draft is None:
                if (kept := self._kept.get(name)) is not None and kept.sha256 == sha256:
                    return self._home / name  # another sender was faster
                raise LookupError(f"{name}: not announced, or forgotten since; announce it first")
            if start != draft.have:
                return draft.have
            if start + len(piece) > draft.adapter.size:
                raise UserError(f"{name}: more than the {draft.adapter.size} bytes that were announced")
            try:
                with (draft.folder / ADAPTER_TENSORS).open("ab") as file:
                    file.write(piece)
                draft.digest.update(piece)
                draft.have += len(piece)
                draft.heard = time.monotonic()
                return draft.have if draft.have < draft.adapter.size else self._finish(draft)
            except BaseException:
                self._drop(draft)
                raise

    def forget(self, name: str) -> None:
        """Remove an adapter; whether it was here does not matter."""
        with self._lock:
            if self._kept.pop(name, None) is not None:
                shutil.rmtree(self._home / name, ignore_errors=True)

    def _is_there(self, adapter: Announced) -> bool:
        """Folders for temporary files are tidied by others on many machines."""
        folder = self._home / adapter.name
        if (folder / ADAPTER_CONFIG).is_file() and (folder / ADAPTER_TENSORS).is_file():
            return True
        shutil.rmtree(folder, ignore_errors=True)
        return False

    def _draft_of(self, adapter: Announced, config: str) -> Draft:
        key = (adapter.name, adapter.sha256)
        draft = self._drafts.pop(key, None)
        if draft is not None and (draft.adapter != adapter or not (draft.folder / ADAPTER_TENSORS).is_file()):
            shutil.rmtree(draft.folder, ignore_errors=True)
            draft = None
        if draft is None:
            while len(self._drafts) >= MOST_DRAFTS:
                self._drop(next(iter(self._drafts.values())))
            draft = self._new_draft(adapter, config)
        draft.heard = time.monotonic()
        self._drafts[key] = draft
        return draft

    def _new_draft(self, adapter: Announced, config: str) -> Draft:
        self._home.mkdir(mode=0o700, exist_ok=True)
        self._reserve(adapter.size)
        folder = self._home / f"draft_{adapter.name}_{adapter.sha256}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / ADAPTER_CONFIG).write_text(config, encoding="utf-8")
        (folder / ADAPTER_TENSORS).touch()
        return Draft(adapter, folder)

    def _reserve(self, size: int) -> None:
        """Room for an adapter beside all that others have announced, or OSError."""
        quiet = [draft for draft in self._drafts.values() if time.monotonic() - draft.heard > QUIET_S]
        while True:
            free = shutil.disk_usage(self._home).free
            promised = sum(draft.missing for draft in self._drafts.values())
            if size + promised + SPARE_DISK <= free:
                return
            if not quiet:
                words = f"{size} bytes, {promised} for others and {SPARE_DISK} to spare are needed, {free} are free"
                raise OSError(errno.ENOSPC, words, str(self._home))
            self._drop(quiet.pop(0))

    def _finish(self, draft: Draft) -> Path:
        """What is whole is checked, and takes its name in one move."""
        adapter = draft.adapter
        if draft.digest.hexdigest() != adapter.sha256:
            raise UserError(f"{adapter.name}: its bytes are not those that were announced (sha256); send it again")
        check_tensors(draft.folder / ADAPTER_TENSORS)
        if adapter.name in self._kept:
            raise UserError(f"{adapter.name}: another adapter has come under this name; use another name")
        folder = draft.folder.rename(self._home / adapter.name)
        del self._drafts[adapter.name, adapter.sha256]
        while len(self._kept) >= MOST_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            shutil.rmtree(self._home / oldest, ignore_errors=True)
        self._kept[adapter.name] = adapter
        return folder

    def _drop(self, draft: Draft) -> None:
        self._drafts.pop((draft.adapter.name, draft.adapter.sha256), None)
        shutil.rmtree(draft.folder, ignore_errors=True)
