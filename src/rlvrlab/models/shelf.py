"""Names of models: what is built in, what is in the cache, and where a name or path leads."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import ModelUnavailable, UnknownName, UserError, suggestion
from rlvrlab.models import cache, nano, smollm2
from rlvrlab.models.inspection import parameters_in

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([MmBb])(?![A-Za-z0-9])")
"""`135M` or `1.5B` in a model's name."""
SEED_MARK = "@"


class Entry(NamedTuple):
    """A model that can be had by name."""

    name: str
    parameters: int
    about: str


BUILT_IN = {
    **{
        name: Entry(name, nano.parameters(size), "built here from a seed; learns minicode on a CPU")
        for name, size in nano.SIZES.items()
    },
    smollm2.NAME: Entry(smollm2.NAME, smollm2.PARAMETERS, "SmolLM2-135M-Instruct from the package index, Apache-2.0"),
}


def resolve(name_or_path: str | Path) -> Path:
    """Where a model is: a built-in name (`nano@3` for seed 3), a folder, or a hub id as it stands.

    nano is built on the spot; nothing is ever downloaded here. A built-in name wins over a folder of the same name,
    which is `./nano`.
    """
    text = str(name_or_path)
    name, seed = split_seed(text)
    if name in nano.SIZES:
        return stored_nano(name, seed)
    if text == smollm2.NAME:
        target = cache.models() / smollm2.NAME
        if not target.is_dir():
            missing = f"{smollm2.NAME}: not on this machine yet"
            raise ModelUnavailable(f"{missing}; `rlvr model get {smollm2.NAME}` fetches it (93 MB)")
        return target
    folder = Path(text).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(f"{folder}: no model (no config.json); name a folder that Transformers can load")
        return folder
    if folder.exists():
        raise UserError(f"{folder}: a file; name the folder of a model in Hugging Face's layout")
    if HUB_ID.fullmatch(text) and not text.startswith("."):
        return Path(text)
    if "/" in text or "\\" in text:
        raise UserError(f"{text}: no such folder, and no hub id (owner/name); `rlvr model list` shows what is on hand")
    others = "or a folder here, or a hub id with its owner (openai-community/gpt2)"
    raise UserError(f"unknown model {text!r}{suggestion(text, BUILT_IN)}; {others}")


def locate(text: str, folder: Path) -> str:
    """A model folder named in a recipe, as an absolute path: beside the recipe first, then in the working directory.

    Absolute, so that a run can be resumed from anywhere. Built-in names and what is no folder stay as they are.
    """
    if split_seed(text)[0] in BUILT_IN:
        return text
    for base in (folder, Path()):
        found = base / Path(text).expanduser()
        if found.is_dir():
            return str(found.absolute())
    return text


def parameters_of(text: str) -> int | None:
    """How large a model is, without loading or fetching it: by its files, or by its name (`Qwen2.5-3B`); else None."""
    name = split_seed(text)[0]
    if name in BUILT_IN:
        return BUILT_IN[name].parameters
    folder = Path(text).expanduser()
    if folder.is_dir():
        return parameters_in(folder) or None
    stated = SIZE.findall(text)
    return round(float(stated[-1][0]) * {"M": 1e6, "B": 1e9}[stated[-1][1].upper()]) if stated else None


def split_seed(text: str) -> tuple[str, int]:
    """`nano@3` is nano with seed 3; without a mark the seed is 0."""
    name, mark, digits = text.rpartition(SEED_MARK)
    if not mark or name not in nano.SIZES:
        return text, 0
    return name, checked_seed(digits)


def checked_seed(digits: str | int) -> int:
    """A whole number that is not negative."""
    text = str(digits)
    if not (text.isascii() and text.isdigit()) or int(text) > nano.LARGEST_SEED:
        raise UserError(f"seed {text!r}: a whole number from 0 to {nano.LARGEST_SEED}, e.g. nano@3")
    return int(text)


def stored_nano(name: str, seed: int) -> Path:
    """A nano in the cache, built if it is not there; the folder's name changes with the recipe of its making."""
    target = cache.models() / f"{name}{SEED_MARK}{seed}-{nano.fingerprint(name)}"
    return target if target.is_dir() else cache.make(target, partial(nano.build, name=name, seed=seed))


def get(name: str, output: Path | None, seed: int, wheel: Path | None, say: smollm2.Say) -> Path:
    """Build or fetch a built-in model, into the cache or a folder of the user's choice."""
    if name not in BUILT_IN:
        raise UnknownName("model to get", name, BUILT_IN)
    if name in nano.SIZES:
        if wheel:
            raise UserError(f"--wheel is for {smollm2.NAME}; {name} is built here")
        seed = checked_seed(seed)
        return cache.make_new(output, partial(nano.build, name=name, seed=seed)) if output else stored_nano(name, seed)
    build = partial(smollm2.build, wheel=wheel, say=say)
    if output:
        return cache.make_new(output, build)
    target = cache.models() / smollm2.NAME
    return target if target.is_dir() else cache.make(target, build)


def on_hand() -> list[dict[str, Any]]:
    """What `rlvr model list` shows: built-in names first, then what else the cache holds."""
    folders = sorted(p for p in cache.models().glob("*") if p.is_dir() and not p.name.startswith("."))
    rows = []
    for entry in BUILT_IN.values():
        mine = [p for p in folders if p.name.partition(SEED_MARK)[0] == entry.name]
        folders = [p for p in folders if p not in mine]
        rows.append(_row(entry.name, entry.parameters, mine, entry.about))
    return rows + [_row(p.name, None, [p], "in the cache") for p in folders]


def _row(name: str, parameters: int | None, folders: list[Path], about: str) -> dict[str, Any]:
    size = sum(cache.size_of(folder) for folder in folders)
    return {"name": name, "parameters": parameters, "cached": [str(p) for p in folders], "bytes": size, "about": about}
