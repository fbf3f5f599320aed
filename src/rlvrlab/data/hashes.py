"""What problems are called by their content: in manifests, runs and evaluations, and where two sets are compared."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rlvrlab.envs.answers import normalised
from rlvrlab.types import Problem


def problem_sha256(problem: Problem) -> str:
    """Hash of everything a row says."""
    return content_sha256(
        [problem.id, problem.source, problem.skill, problem.prompt, problem.reference, dict(problem.meta), problem.role]
    )


def prompt_sha256(prompt: str) -> str:
    """Hash of a prompt, blind to case and spaces."""
    return hashlib.sha256(normalised(prompt).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def content_sha256(value: Any) -> str:
    """Hash of plain data."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
