"""Tags of a run: lines of a plain text file `tags` in its folder.

They can be given to a run that is still going, since nobody else writes that file, and a text editor can change them.
"""

from __future__ import annotations

import re
from pathlib import Path

from rlvrlab import plain_files
from rlvrlab.errors import UserError
from rlvrlab.record.files import write_atomically

TAG = re.compile(r"[\w.+-]{1,40}")


def read_tags(folder: Path) -> tuple[str, ...]:
    """The tags of a run; lines that are no tags are left out."""
    try:
        with plain_files.opened(folder / "tags") as file:
            lines = file.read(10_000).decode("utf-8", "replace").split()
    except OSError:
        return ()
    return tuple(dict.fromkeys(line for line in lines if TAG.fullmatch(line)))


def change_tag(folder: Path, tag: str, present: bool) -> tuple[str, ...]:
    """Give a run a tag or take it away; returns what it has then."""
    if not TAG.fullmatch(tag):
        raise UserError(f"tag {tag!r}: 1–40 letters, digits, . _ + -")
    before = read_tags(folder)
    after = (*before, tag) if present and tag not in before else tuple(t for t in before if present or t != tag)
    if after != before:
        write_atomically(folder / "tags", "".join(f"{t}\n" for t in after))
    return after
