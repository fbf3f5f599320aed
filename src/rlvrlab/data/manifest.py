"""Manifests: what a data file holds, row by row, so that a changed row or a changed role is noticed.

manifests/gsm8k_train.jsonl   {"manifest": 1, "file": "gsm8k_train.jsonl", "rows": 6725, "roles": {"train": 6725},
                               "sha256": "9c1f…", "environment": "gsm8k", "style": "plain", …}
                              {"row": 1, "id": "gsm8k:5e0c…", "role": "train", "prompt": "1f0a…", "sha256": "77aa…"}

A row's hash covers everything in it, role included, and not the file's format: the manifest of a .jsonl file holds for
the same problems in Parquet. `prompt` is the hash of the normalised prompt alone: equal in whatever file it appears.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from rlvrlab.data.files import write_lines
from rlvrlab.data.hashes import problem_sha256, prompt_sha256
from rlvrlab.envs.data_files import bare_name, read_rows
from rlvrlab.errors import UserError, first_few
from rlvrlab.types import Problem, Role

FOLDER = "manifests"
VERSION = 1
COLUMNS = {"row": int, "id": str, "prompt": str, "sha256": str}
"""Of every row but the first, besides its role."""


@dataclass(frozen=True)
class Entry:
    """What a manifest keeps of one row."""

    row: int
    id: str
    role: Role | None
    """None in a file that says nothing about roles."""
    prompt: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a file must hold."""

    file: str
    entries: Sequence[Entry]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Where it came from, which environment judges it, in which style its prompts are written."""

    @property
    def sha256(self) -> str:
        """One hash over those of all rows, in order."""
        return hashlib.sha256("\n".join(entry.sha256 for entry in self.entries).encode()).hexdigest()

    def header(self) -> dict[str, Any]:
        """The manifest's first line: how many rows of each role, their hash and where they come from."""
        roles = Counter(entry.role or "none" for entry in self.entries)
        fixed = {"manifest": VERSION, "file": self.file, "rows": len(self.entries), "roles": dict(roles)}
        return fixed | {"sha256": self.sha256} | dict(self.facts)


def manifest_of(path: Path, problems: Sequence[Problem], facts: Mapping[str, Any] | None = None) -> Manifest:
    """The manifest of these problems as they stand."""
    entries = [
        Entry(row, p.id, p.role, prompt_sha256(p.prompt), problem_sha256(p)) for row, p in enumerate(problems, 1)
    ]
    return Manifest(path.name, entries, facts or {})


def path_of(path: Path) -> Path:
    """Where the manifest of a file lies."""
    return path.parent / FOLDER / f"{bare_name(path)}.jsonl"


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Header first, then a line per row."""
    rows = [manifest.header(), *(vars(entry) for entry in manifest.entries)]
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


def read_manifest(path: Path) -> Manifest:
    """Back from the file; one that does not fit its own hash is refused."""
    (_, header), *rows = read_rows(path)
    if header.get("manifest") != VERSION:
        raise UserError(f"{path}:1: no manifest of version {VERSION}; make it again with `rlvr data manifest`")
    entries = []
    for number, row in rows:
        try:
            entries.append(Entry(**row))
        except TypeError:
            columns = set(Entry.__dataclass_fields__) ^ set(row)
            raise UserError(f"{path}:{number}: column {min(columns)!r} is missing or unknown") from None
        odd = [name for name, kind in COLUMNS.items() if not isinstance(row[name], kind)]
        if odd:
            raise UserError(f"{path}:{number}: column {odd[0]!r}: {row[odd[0]]!r:.40} is not what a manifest holds")
        if entries[-1].role not in (None, *get_args(Role)):
            raise UserError(f"{path}:{number}: column 'role': {entries[-1].role!r} is no role")
    facts = {k: v for k, v in header.items() if k not in ("manifest", "file", "rows", "roles", "sha256")}
    manifest = Manifest(str(header.get("file")), entries, facts)
    if header != manifest.header():
        raise UserError(f"{path}: the rows are not those its first line speaks of; restore it or make it again")
    return manifest


def verified(path: Path, problems: Sequence[Problem]) -> Manifest | None:
    """The manifest beside a file, which must agree with it row by row; None where there is none."""
    home = path_of(path)
    if not home.is_file():
        return None
    manifest = read_manifest(home)
    wrong = differences(manifest, problems)
    if wrong:
        remedy = "restore the file, or `rlvr data manifest --renew` if the change is meant"
        raise UserError(f"{path}: not what {FOLDER}/{home.name} says: {first_few(wrong)}; {remedy}")
    return manifest


def renewed(before: Manifest, path: Path, problems: Sequence[Problem]) -> Manifest:
    """The manifest of a file that was changed on purpose; no change makes training data of what was test."""
    held = {entry.prompt for entry in before.entries if entry.role == "test"}
    freed = [f"{p.id} ({p.role})" for p in problems if p.role != "test" and prompt_sha256(p.prompt) in held]
    if freed:
        raise UserError(f"{path}: rows that were test are to get another role: {first_few(freed)}; test rows stay test")
    return manifest_of(path, problems, before.facts)


def differences(manifest: Manifest, problems: Sequence[Problem]) -> list[str]:
    """What differs between a manifest and the problems, one sentence for each row."""
    sentences = []
    for entry, problem in zip(manifest.entries, problems, strict=False):
        where = f"row {entry.row} ({entry.id})"
        if entry.id != problem.id:
            sentences.append(f"{where} is now {problem.id}")
        elif entry.role != problem.role:
            sentences.append(f"{where} has role {problem.role}, was {entry.role}")
        elif entry.sha256 != problem_sha256(problem):
            same = entry.prompt == prompt_sha256(problem.prompt)
            sentences.append(f"{where} has another {'reference, meta, skill or source' if same else 'prompt'}")
    rows, kept = len(problems), len(manifest.entries)
    return sentences + ([f"{rows} rows, were {kept}"] if rows != kept else [])
