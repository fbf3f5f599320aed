"""`rlvr export verifiers`: a recipe's problems and reward as an environment package for verifiers (0.4).

An environment says what is asked and what an answer is worth; how a policy is trained on it is the trainer's business.
So env, reward and data are carried over; what would change the reward and cannot be is refused; and every other key
that was set is named as left to the trainer, in the output and in the README.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab import __version__
from rlvrlab.errors import RecipeError
from rlvrlab.recipe import Resolved
from rlvrlab.record.files import write_atomically
from rlvrlab.scale.exports.folder import filled, new_folder, write_common
from rlvrlab.scale.exports.verifiers_texts import INIT, PYPROJECT, README, TASKSET

VERSION = "0.4"
CARRIED = ("env", "reward", "data", "name", "question", "output_dir", "phases")
"""Tables and keys that the package holds, or that say nothing about it."""


class Exported(NamedTuple):
    """The package that was written, and what it could not carry over."""

    folder: Path
    package: str
    problems: dict[str, int]
    left_to_trainer: dict[str, Any]
    """Keys that were set and that an environment has no say in."""


def export(resolved: Resolved, folder: Path) -> Exported:
    """Write the whole package; nothing is written while something is refused."""
    if problems := refusals(resolved):
        raise RecipeError(problems)
    package, left = package_name(resolved.recipe.name), left_to_trainer(resolved)
    new_folder(folder)
    home = folder / package
    home.mkdir()
    counts = write_common(home, resolved, chat=True)
    listed = [f"- `{key} = {json.dumps(value, default=str)}`" for key, value in left.items()]
    words = {
        "@PACKAGE@": package,
        "@DASHED@": package.replace("_", "-"),
        "@VERSION@": VERSION,
        "@OURS@": __version__,
        "@NAME@": resolved.recipe.name,
        "@COUNTS@": f"{counts['train']} training and {counts['dev']} held-out problems",
        "@MAX_TOKENS@": str(resolved.recipe.rollout.max_tokens),
        "@LEFT@": "\n".join(listed) or "- nothing",
    }
    texts = {"pyproject.toml": PYPROJECT, "README.md": README}
    for path, text in {**texts, f"{package}/__init__.py": INIT, f"{package}/taskset.py": TASKSET}.items():
        write_atomically(folder / path, filled(text, words))
    return Exported(folder, package, counts, left)


def refusals(resolved: Resolved) -> list[str]:
    """What would change the reward and has no counterpart in a verifiers environment."""
    recipe, problems = resolved.recipe, []
    if recipe.kl.coef and recipe.kl.place == "reward":
        problems.append('kl.place = "reward": an environment knows no reference policy; export with kl.place="loss"')
    for name in [name for name in recipe.phases if resolved.phase(name).tries > 1]:
        problems.append(f"phases: {name} asks again after feedback, and this package asks once; leave {name} out")
    if "overlong" in json.dumps(recipe.reward, default=str):
        problems.append("reward: overlong counts tokens, which a served model does not tell; use another reward")
    if recipe.protocol is not None:
        problems.append("protocol: an environment gives all its problems alike; leave it out and export a skill each")
    return problems


def left_to_trainer(resolved: Resolved) -> dict[str, Any]:
    """Keys with a value of their own that belong to whoever trains."""
    changed = resolved.changed()
    return {key: facts["value"] for key, facts in changed.items() if key.partition(".")[0] not in CARRIED}


def package_name(name: str) -> str:
    """A name Python can import, and nobody else is likely to have."""
    return "rlvr_" + re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
