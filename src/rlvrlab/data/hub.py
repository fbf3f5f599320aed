"""The Hugging Face hub, asked only where it can be reached: without a network its client retries for half a minute."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

PATIENCE_S = 2.0
"""Seconds in which a connection must be there."""
ENDPOINT, OFFLINE = "HF_ENDPOINT", "HF_HUB_OFFLINE"


def go_offline_without_network() -> bool:
    """Tell the hub's client to use only what it has stored where the hub cannot be reached; True when that is so."""
    if os.environ.get(OFFLINE):
        return True
    if _reachable():
        return False
    os.environ[OFFLINE] = "1"
    constants = sys.modules.get("huggingface_hub.constants")
    if constants is not None:  # it was read already
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    return True


def is_stored(repository: str, kind: Literal["datasets", "models"] = "datasets") -> bool:
    """Whether the client has a model, or may have a data set: where its folders are elsewhere, it may."""
    owner, _, name = repository.partition("/")
    if kind == "models":
        cache = Path(importlib.import_module("huggingface_hub.constants").HF_HUB_CACHE)
        return any(cache.glob(f"models--{owner}--{name}/snapshots/*/config.json"))
    if any(os.environ.get(name) for name in ("HF_DATASETS_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")):
        return True
    home = Path(importlib.import_module("huggingface_hub.constants").HF_HOME)
    return any(home.glob(f"hub/datasets--{owner}--{name}")) or any(home.glob(f"datasets/{owner}___{name}*"))


def _reachable() -> bool:
    """Whether the hub, or the proxy that leads to it, takes a connection in time; a name may take long to look up."""
    given = next(filter(None, map(os.environ.get, ("HTTPS_PROXY", "https_proxy", ENDPOINT))), None)
    address = urlsplit(given or str(importlib.import_module("huggingface_hub.constants").ENDPOINT))
    answered = threading.Event()

    def ask() -> None:
        try:
            port = address.port or (80 if address.scheme == "http" else 443)
            socket.create_connection((address.hostname or "", port), PATIENCE_S).close()
            answered.set()
        except (OSError, ValueError):
            pass

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    return answered.is_set()
