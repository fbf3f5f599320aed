"""File names from words that come out of a record."""

from __future__ import annotations

LONGEST = 60
"""Longest stem, in characters."""


def file_stem(text: str, otherwise: str) -> str:
    """Letters, digits, _ and - only: no record decides where a file goes; `otherwise` when nothing is left."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in text).strip("_-")
    return kept[:LONGEST] or otherwise
