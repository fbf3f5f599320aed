"""A data file on its way into a run: manifest, roles, environment, and nothing that a test set nearby also holds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.data.hashes import prompt_sha256
from rlvrlab.data.manifest import FOLDER, Manifest, manifest_of, path_of, read_manifest, verified
from rlvrlab.data.presets import how_to_make
from rlvrlab.data.rows import read_problems
from rlvrlab.envs.base import BaseEnvironment, style_of
from rlvrlab.envs.split import Use, refuse_roles, require
from rlvrlab.errors import UserError, first_few
from rlvrlab.randomness import shuffled
from rlvrlab.types import Environment, Problem


@dataclass(frozen=True)
class Loaded:
    """Problems that may be used, and what a record says of them."""

    problems: tuple[Problem, ...]
    facts: dict[str, Any]


def load(
    path: Path, use: Use, env: Environment, size: int | None = None, seed: int = 0, *, fewer: bool = False
) -> Loaded:
    """All problems of a file, or `size` of them in keyed order; a UserError names the rows that forbid this use.

    A file with `fewer` problems than `size` is refused, unless the caller allows it and says so.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file; make it with {how_to_make([path])}, or name another")
    problems = tuple(read_problems(path))
    manifest = verified(path, problems)
    require(problems, use, str(path))
    if use != "evaluate" and (protected := protected_prompts(path.parent)):
        # A row relabelled in its own file is still test if a manifest beside it says so.
        held = [(problem.id, protected.get(prompt_sha256(problem.prompt))) for problem in problems]
        refuse_roles([(name, f"test in {manifest}") for name, manifest in held if manifest], use, str(path))
    _refuse_strangers(path, problems, env, manifest)
    if size is not None and size > len(problems) and not fewer:
        raise UserError(f"{path}: {size} problems asked for, the file has {len(problems)}")
    home = path_of(path)
    facts = {
        "file": path.name,
        "rows": len(problems),
        "sha256": (manifest or manifest_of(path, problems)).sha256,
        "manifest": hashlib.sha256(home.read_bytes()).hexdigest() if manifest else None,
    }
    chosen = problems if size is None else tuple(shuffled(problems, seed, "file", path.name)[:size])
    adopted = tuple(env.adopted(problem) for problem in chosen) if isinstance(env, BaseEnvironment) else chosen
    return Loaded(adopted, facts)


def load_all(paths: Sequence[Path], use: Use, env: Environment, size: int | None = None, seed: int = 0) -> Loaded:
    """The problems of several files as one set, in the environment's proportions; one file as `load` gives it."""
    if len(paths) == 1:
        return load(paths[0], use, env, size, seed)
    loaded = [load(path, use, env, None, seed) for path in paths]
    problems = [problem for one in loaded for problem in one.problems]
    files = ", ".join(path.name for path in paths)
    if twins := [name for name, count in Counter(problem.id for problem in problems).items() if count > 1]:
        raise UserError(f"{files}: problems are in two of these files: {first_few(sorted(twins))}")
    mixed = shuffled(problems, seed, "files", *(path.name for path in paths))
    chosen = env.in_proportion(mixed, size) if isinstance(env, BaseEnvironment) else mixed[:size]
    if size is not None and len(chosen) < size:
        there = f"{len(chosen)} of the {len(problems)} problems in these files"
        raise UserError(f"{files}: {size} asked for, env.ratios leave {there}; ask for fewer")
    return Loaded(tuple(chosen), {"used": len(chosen), "files": [one.facts for one in loaded]})


def protected_prompts(folder: Path) -> dict[str, str]:
    """Hashes of all test prompts that the manifests of a folder know -> the manifest that says so."""
    protected: dict[str, str] = {}
    for path in sorted((folder / FOLDER).glob("*.jsonl")):
        entries = read_manifest(path).entries
        protected |= {entry.prompt: f"{FOLDER}/{path.name}" for entry in entries if entry.role == "test"}
    return protected


def _refuse_strangers(path: Path, problems: Sequence[Problem], env: Environment, manifest: Manifest | None) -> None:
    """Refuse rows that the recipe's environment cannot judge, and prompts written in another style than env.style."""
    if isinstance(env, BaseEnvironment):
        judges = {problem.id: env.judge_of(problem) for problem in problems}
    else:  # one that derives from nothing judges problems of its own name
        judges = {problem.id: env if problem.source == env.name else None for problem in problems}
    strangers = [f"{p.id} ({p.source})" for p in problems if judges[p.id] is None]
    if strangers:
        remedy = f"set env.type to {problems[0].source!r} or give another file"
        what = f"{path}: environment {env.name!r} cannot judge rows of another data_source: {first_few(strangers)}"
        raise UserError(f"{what}; {remedy}")
    asked = manifest.facts.get("style") if manifest else None
    for judge in judges.values():
        style = (style_of(judge) if judge else "") or None
        if asked is None or asked == style:
            continue
        raise UserError(
            f"{path}: its prompts ask for style {asked!r}, but env.style is {style!r}; set env.style = {asked!r}"
        )
