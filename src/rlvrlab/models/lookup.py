"""Is there a model of this name? Asked before a run, without loading or fetching anything."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rlvrlab.data.hub import go_offline_without_network, is_stored
from rlvrlab.errors import ModelUnavailable, UserError
from rlvrlab.extras import Lookup
from rlvrlab.models.nano import SIZES
from rlvrlab.models.shelf import resolve, split_seed

KEY = "engine.model"
PATIENCE_S = 5.0


def looked_up(text: str) -> Lookup:
    """A built-in model, a folder, or a name on the hub, which is asked where it can be reached."""
    try:
        if split_seed(text)[0] in SIZES:
            return Lookup(KEY, "found", f"{text}: built here when it is needed")
        where = resolve(text)
    except ModelUnavailable as error:
        return Lookup(KEY, "missing here", str(error))
    except UserError as error:
        return Lookup(KEY, "wrong", str(error))
    return Lookup(KEY, "found", str(where)) if Path(where).is_dir() else _on_hub(text)


def _on_hub(name: str) -> Lookup:
    if find_spec("huggingface_hub") is None:
        return _not_asked(f"{name} has the form of a hub id", "huggingface_hub is not installed to ask")
    if is_stored(name, "models"):
        return Lookup(KEY, "found", f"{name}: stored by the hub's client")
    if go_offline_without_network():
        return _not_asked(f"{name} has the form of a hub id", "no network to ask the hub")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().model_info(name, timeout=PATIENCE_S)
    except HfHubHTTPError as error:
        if error.response is not None and error.response.status_code in (401, 404):  # the hub says 401 of unknown names
            return Lookup(KEY, "wrong", f"{name}: the hub has no such model, or hides it; check the name, or log in")
        return _not_asked(name, f"the hub answered {type(error).__name__}")
    except OSError as error:
        return _not_asked(name, f"the hub did not answer: {type(error).__name__}")
    return Lookup(KEY, "found", f"{name}: on the hub")


def _not_asked(what: str, reason: str) -> Lookup:
    return Lookup(KEY, "not checked", f"{what}; {reason}", reason)
