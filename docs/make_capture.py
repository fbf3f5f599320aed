"""Take the README's two pictures from one run of what `make quick` runs: the terminal, and the top of the report page.

    python docs/make_capture.py        docs/images/train.svg and docs/images/gallery/run_overview.png

Needs Debian's chromium for the second one.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
RLVR = Path(sys.executable).parent / "rlvr"
COMMAND = "rlvr train recipes/toy_countdown.toml"
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1120,700")


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "recipes").symlink_to(ROOT / "recipes")  # so that the command is the one a reader types
        words = [str(RLVR), *COMMAND.split()[1:]]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
        draw_terminal(done.stdout.replace(f"{folder}/", ""), ROOT / "docs/images/train.svg")
        run = next((folder / "experiments").iterdir())
        page = folder / "page.html"
        subprocess.run([str(RLVR), "report", str(run), "-o", str(page)], check=True, capture_output=True)
        photograph(page, ROOT / "docs/images/gallery/run_overview.png")


def draw_terminal(shown: str, target: Path) -> None:
    console = Console(record=True, width=88, file=io.StringIO())
    console.print(Text(f"$ {COMMAND}", "bold"))
    console.print(Text(shown.rstrip()))
    # Without the web fonts rich asks for: the picture needs nothing but itself.
    drawing = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="rlvrlab"), flags=re.DOTALL)
    target.write_text(drawing, encoding="utf-8")


def photograph(page: Path, target: Path) -> None:
    words = [*CHROMIUM, "--virtual-time-budget=8000", f"--screenshot={target}", page.as_uri()]
    subprocess.run(words, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
