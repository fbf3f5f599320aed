"""Rows from where they are: files, folders, the Hugging Face hub. Nothing a data set brings along is executed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvrlab.data.hub import go_offline_without_network, is_stored
from rlvrlab.data.presets import Preset
from rlvrlab.envs.code import quixbugs_folder
from rlvrlab.envs.data_files import (
    DATA,
    ENDINGS,
    Place,
    bare_name,
    ending_of,
    is_data_file,
    near_files,
    read_rows,
    whatever_capitals,
)
from rlvrlab.errors import InfrastructureError, UserError, one_line

NO_NETWORK = "no network: the hub cannot be reached"
HUB_EXTRA = f"the hub needs `pip install 'rlvrlab[hub]'`; or give your copy with --from PATH or in ${DATA}"
HUB = "hub:"
"""Begins the name of a set of the hub that is not among the known ones."""
SAVED = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Files that Dataset.save_to_disk leaves."""


def rows_of(name: str, preset: Preset, origin: Path | None) -> dict[str, Iterator[Place]]:
    """The rows of each split of a preset: of the user's copy, as given or under $RLVRLAB_DATA, or else of the hub's."""
    origin = origin or local_copy(name, preset)
    if origin is None:
        if not preset.hub:
            note = f" ({preset.note})" if preset.note else ""
            raise UserError(f"{name}: is not on the hub in a readable form{note}; give your copy with --from PATH")
        return {split: _hub_rows(preset, split) for split in preset.splits}
    if not origin.exists():
        raise UserError(f"{origin}: no such file or folder{near_files(origin)}")
    if any((origin / saved).is_file() for saved in SAVED):
        return _saved_rows(origin, preset)
    if quixbugs_folder.is_folder(origin):
        rows = [(f"{origin}:{n} ({row['name']})", row) for n, row in quixbugs_folder.folder_rows(origin)]
        return {split: iter(rows) for split in preset.splits}
    files = _files(name, preset, origin)
    if preset.ranges and len(files) == 1:
        (path,) = files.values()
        return {split: _in_range(path, *preset.ranges[split]) for split in preset.splits}
    return {split: file_rows(path) for split, path in files.items()}


def saved_files(folder: Path) -> list[Path]:
    """The files of a copy that the hub's own client reads, which does not say what it reads; empty of any other."""
    if not any((folder / saved).is_file() for saved in SAVED):
        return []
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("cache-"))


def local_copy(name: str, preset: Preset) -> Path | None:
    """The user's copy under $RLVRLAB_DATA, which comes before the hub: NAME/, NAME.jsonl, NAME_test.jsonl and so on."""
    root = os.environ.get(DATA)
    if not root:
        return None
    own = [name, preset.file or name]
    stems = dict.fromkeys([*own, f"{name}_test", f"math_suites/{name}_test"])
    files = (f"{stem}{ending}" for stem in stems for ending in ENDINGS)
    places = [Path(root) / place for place in (*own, *files)]
    return next((found for place in places if (found := whatever_capitals(place))), None)


def file_rows(path: Path) -> Iterator[Place]:
    """The rows of one file."""
    for number, row in read_rows(path):
        yield f"{path}:{number}", row


def hub_rows(text: str) -> tuple[str, Iterator[Place]]:
    """A short name and the rows of any set of the hub: `hub:OWNER/NAME[:SUBSET][@SPLIT]`, of split train by itself."""
    place, _, split = text.removeprefix(HUB).partition("@")
    hub, _, subset = place.partition(":")
    if hub.count("/") != 1 or not all(hub.split("/")):
        raise UserError(f"{text}: write hub:OWNER/NAME, hub:OWNER/NAME:SUBSET or hub:OWNER/NAME@SPLIT")
    split = split or "train"
    return hub.rpartition("/")[2], _hub_rows(Preset("", {split: "train"}, hub=hub, subset=subset), split)


def _in_range(path: Path, first: int, last: int) -> Iterator[Place]:
    for where, row in file_rows(path):
        number = row.get("task_id")
        if not isinstance(number, int):
            raise UserError(f"{where}: column 'task_id': a number was expected, which says the split")
        if first <= number <= last:
            yield where, row


def _files(name: str, preset: Preset, origin: Path) -> dict[str, Path]:
    """Split -> file. A single file is the split its name ends in, or the only split there is."""
    if origin.is_file():
        return {_split_named(origin, name, preset): origin}
    there = sorted(path for path in origin.iterdir() if is_data_file(path))
    files = {split: path for split in preset.splits for path in there if _is_split(path, split, name, preset)}
    only = [path for path in there if bare_name(path).lower() == (preset.file or name).lower()] or there
    if not files and len(only) == 1:
        files = {_split_named(only[0], name, preset): only[0]}
    if not files:
        wanted = ", ".join(f"{split}.jsonl" for split in preset.splits)
        raise UserError(f"{origin}: no file of {name}; needed are {wanted} (or another of {', '.join(ENDINGS)})")
    return files


def _is_split(path: Path, split: str, name: str, preset: Preset) -> bool:
    bare, named = bare_name(path).lower(), (split, f"{name}_{split}", f"{preset.file or name}_{split}")
    return bare in [one.lower() for one in named] or bare.startswith(f"{split.lower()}-0")


def _split_named(path: Path, name: str, preset: Preset) -> str:
    ending_of(path)
    named = [split for split in preset.splits if _is_split(path, split, name, preset)]
    if named:
        return named[0]
    if len(preset.splits) == 1 or preset.ranges:
        return next(iter(preset.splits))
    raise UserError(f"{path}: which split of {name} is it? name it {' or '.join(f'{s}.jsonl' for s in preset.splits)}")


def _hub_rows(preset: Preset, split: str) -> Iterator[Place]:
    arguments = [preset.hub, preset.subset] if preset.subset else [preset.hub]
    alone = _alone()
    if alone and not is_stored(preset.hub):  # said before a slow import
        raise InfrastructureError(_unfetched(preset, split, NO_NETWORK))
    try:
        data = _datasets().load_dataset(*arguments, split=preset.hub_split or split)
    except (UserError, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever the network and the hub come up with
        raise InfrastructureError(_unfetched(preset, split, NO_NETWORK if alone else one_line(error))) from None
    yield from _numbered(data, f"{preset.hub}[{split}]")


def _alone() -> bool:
    try:
        return go_offline_without_network()
    except ImportError:  # its client comes with the same extra
        raise UserError(HUB_EXTRA) from None


def _unfetched(preset: Preset, split: str, why: str) -> str:
    return f"{preset.hub}: split {split!r} cannot be fetched ({why}); give your copy with --from PATH or in ${DATA}"


def _saved_rows(folder: Path, preset: Preset) -> dict[str, Iterator[Place]]:
    client = _datasets()
    try:
        data = client.load_from_disk(str(folder))
    except Exception as error:  # whatever the client makes of damaged files
        raise UserError(f"{folder}: cannot be read ({one_line(error)}); save or fetch it again") from None
    if not hasattr(data, "keys"):
        split = next(iter(preset.splits)) if len(preset.splits) == 1 else str(data.split)
        data = {split: data}
    missing = [split for split in data if split not in preset.splits]
    if len(missing) == len(data):
        raise UserError(f"{folder}: has splits {', '.join(data)}; needed: {', '.join(preset.splits)}")
    return {split: _numbered(data[split], f"{folder}[{split}]") for split in preset.splits if split in data}


def _numbered(data: Any, where: str) -> Iterator[Place]:
    """Rows of the hub's client, which may fail on any of them: a shard is damaged, a row is none."""
    rows, number = iter(data), 0
    while True:
        number += 1
        try:
            row = dict(next(rows))
        except StopIteration:
            return
        except Exception as error:
            why = f"row {number} of {where} cannot be read ({one_line(error)})"
            raise InfrastructureError(f"{why}; fetch it again, or give your copy with --from PATH") from None
        yield f"{where}:{number}", row


def _datasets() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise UserError(HUB_EXTRA) from None
