"""What docs/evaluation.md shows under a command is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import rlvr

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"
BLOCK = re.compile(r"^```\n(\$ rlvr .*?)^```", re.MULTILINE | re.DOTALL)


def samples(page: str) -> list[tuple[str, list[str]]]:
    """(command, lines shown under it) of every block that begins with a prompt; `…` leaves lines out."""
    found = []
    for block in BLOCK.findall(page):
        for part in block.split("$ ")[1:]:
            command, *shown = part.splitlines()
            found.append((command, [" ".join(line.split()) for line in shown if line.strip() != "…"]))
    return found


def test_a_sample_is_read_as_command_and_lines() -> None:
    page = "```\n$ rlvr a -o b\n x   1 %\n …\n$ rlvr c\n```\ntext\n```\nrlvr d\n```\n"
    assert samples(page) == [("rlvr a -o b", ["x 1 %"]), ("rlvr c", [])]


@pytest.mark.long
@pytest.mark.slow
def test_the_page_on_evaluation_shows_what_is_printed(tmp_path: Path) -> None:
    assert rlvr("train", "toy_countdown", folder=tmp_path).returncode == 0
    [run] = (tmp_path / "experiments").iterdir()
    assert rlvr("eval", "--run", f"{run}@30", "-o", "sft", folder=tmp_path).returncode == 0
    tried = [(command, shown) for command, shown in samples(PAGE.read_text(encoding="utf-8")) if "…/" not in command]
    ready = [one for one in tried if " -o mine" not in one[0]]
    assert len(ready) >= 5
    for command, shown in ready:
        words = shlex.split(command.replace("toy_countdown_…", run.name))[1:]
        done = rlvr(*words, folder=tmp_path, COLUMNS="80")
        printed = {" ".join(line.split()) for line in done.stdout.splitlines()}
        assert done.returncode == 0 and not [line for line in shown if line not in printed], (command, done.stdout)
