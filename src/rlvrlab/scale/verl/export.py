"""`rlvr export verl`: a folder that trains a recipe on verl, checked before it is written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import ModelUnavailable, UserError
from rlvrlab.own_code import name_file
from rlvrlab.recipe import Resolved
from rlvrlab.record.files import write_atomically
from rlvrlab.scale.exports.folder import filled, with_model
from rlvrlab.scale.verl import VERSION
from rlvrlab.scale.verl.data import memory, write_data
from rlvrlab.scale.verl.job import Job
from rlvrlab.scale.verl.keys import Settings, settings
from rlvrlab.scale.verl.lengths import check_lengths
from rlvrlab.scale.verl.refusals import online_phase
from rlvrlab.scale.verl.scripts import CLUSTER, NODE, README, REWARD, array
from rlvrlab.scale.verl.spelling import is_known, override, suggested
from rlvrlab.scale.verl.validate import composed, installed
from rlvrlab.train.checks import ready_lab
from rlvrlab.train.lab import Lab

HERE = "${HERE}"
"""The folder, as the launch scripts find it."""
OVERRIDES = "overrides.txt"


class Exported(NamedTuple):
    """What was written, and how it was checked."""

    folder: Path
    overrides: list[str]
    checked: str
    """verl 0.9.1's own configuration, or the names of its keys."""
    prompts: str
    """How long they are, or why that could not be measured here; the launch scripts measure in any case."""


def export(resolved: Resolved, folder: Path, judges: Sequence[str] = ()) -> Exported:
    """Write the whole folder; nothing is written before the configuration was found to be one of verl's."""
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: not empty; name another folder")
    resolved = with_model(resolved)
    wanted = settings(resolved, str(folder.resolve()))
    checked = check(wanted)
    lab = ready_lab(resolved)
    try:
        prompts = f"prompts of at most {check_lengths(resolved, [*lab.train, *lab.dev]).longest:,} tokens"
    except ModelUnavailable as error:
        prompts = f"{error}; launch.sh measures them"
    job = Job(folder, resolved, tuple(judges), memory(lab, online_phase(resolved)))
    made = not folder.exists()
    try:
        prepare(job, lab, wanted)
        lines = [override(key, value) for key, value in settings(resolved, HERE).items()]
        _scripts(job, lines)
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return Exported(folder, lines, checked, prompts)


def prepare(job: Job, lab: Lab, wanted: Settings) -> None:
    """Data, job, reward module and the list of settings."""
    job.folder.mkdir(parents=True, exist_ok=True)
    write_data(lab, online_phase(job.resolved), job.folder)
    job.write()
    write_atomically(job.folder / "reward.py", REWARD)
    lines = [override(key, value) for key, value in wanted.items()]
    write_atomically(job.folder / OVERRIDES, "\n".join(lines) + "\n")
    name_file(job.folder / OVERRIDES)  # verl imports files that it names


def check(wanted: Settings) -> str:
    """Every key must be one of verl's; with verl at hand its own configuration is composed and validated."""
    strange = [key for key in wanted if not is_known(key)]
    if strange:
        raise UserError(f"verl {VERSION} has no key {strange[0]!r}{suggested(strange[0])}")
    if installed() is None:
        return f"names of verl {VERSION}'s keys"
    composed([override(key, value) for key, value in wanted.items()])
    return f"verl {VERSION}'s own configuration"


def _scripts(job: Job, lines: Sequence[str]) -> None:
    recipe = job.resolved.recipe
    for name, text in (("launch.sh", NODE), ("launch_cluster.sh", CLUSTER)):
        path = job.folder / name
        write_atomically(path, text.replace("@OVERRIDES@", array(lines)))
        path.chmod(0o755)
    facts = {"@NAME@": recipe.name, "@VERSION@": VERSION, "@GPUS@": str(recipe.engine["gpus"])}
    write_atomically(job.folder / "README.md", filled(README, facts))
