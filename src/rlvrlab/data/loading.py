"""A data file on its way into a run: manifest, roles, environment, and nothing that a test set nearby also holds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.data.manifest import FOLDER, Manifest, manifest_of, path_of, prompt_sha256, read_manifest, verified
from rlvrlab.data.roles import Use, refuse_roles, require
from rlvrlab.data.rows import named, read_problems
from rlvrlab.envs.base import style_of
from rlvrlab.errors import UserError
from rlvrlab.randomness import shuffled
from rlvrlab.types import Environment, Problem


@dataclass(frozen=True)
class Loaded:
    """Problems that may be used, and what a record says of them."""

    problems: tuple[Problem, ...]
    facts: dict[str, Any]


def load(path: Path, use: Use, env: Environment, size: int | None = None, seed: int = 0) -> Loaded:
    """All problems of a file, or `size` of them in keyed order; a UserError names the rows that forbid this use."""
    problems = tuple(read_problems(path))
    manifest = verified(path, problems)
    require(problems, use, str(path))
    if use != "evaluate" and (protected := protected_prompts(path.parent)):
        # A row relabelled in its own file is still test if a manifest beside it says so.
        held = [(problem.id, protected.get(prompt_sha256(problem.prompt))) for problem in problems]
        refuse_roles([(name, f"test in {manifest}") for name, manifest in held if manifest], use, str(path))
    _refuse_strangers(path, problems, env, manifest)
    if size is not None and size > len(problems):
        raise UserError(f"{path}: {size} problems asked for, the file has {len(problems)}")
    home = path_of(path)
    facts = {
        "file": path.name,
        "rows": len(problems),
        "sha256": (manifest or manifest_of(path, problems)).sha256,
        "manifest": hashlib.sha256(home.read_bytes()).hexdigest() if manifest else None,
    }
    chosen = problems if size is None else tuple(shuffled(problems, seed, "file", path.name)[:size])
    return Loaded(chosen, facts)


def protected_prompts(folder: Path) -> dict[str, str]:
    """Hashes of all test prompts that the manifests of a folder know -> the manifest that says so."""
    protected: dict[str, str] = {}
    for path in sorted((folder / FOLDER).glob("*.jsonl")):
        entries = read_manifest(path).entries
        protected |= {entry.prompt: f"{FOLDER}/{path.name}" for entry in entries if entry.role == "test"}
    return protected


def _refuse_strangers(path: Path, problems: Sequence[Problem], env: Environment, manifest: Manifest | None) -> None:
    """Refuse rows that the recipe's environment cannot judge, and prompts written in another style than env.style."""
    judged = {vars(cls)["name"] for cls in type(env).__mro__ if "name" in vars(cls)}
    strangers = [f"{p.id} ({p.source})" for p in problems if p.source not in judged]
    if strangers:
        remedy = f"set env.type to {problems[0].source!r} or give another file"
        raise UserError(
            f"{path}: environment {env.name!r} cannot judge rows of another data_source: {named(strangers)}; {remedy}"
        )
    asked = manifest.facts.get("style") if manifest else None
    style = style_of(env) or None
    if asked is not None and asked != style:
        raise UserError(
            f"{path}: its prompts ask for style {asked!r}, but env.style is {style!r}; set env.style = {asked!r}"
        )
