"""Draw docs/images/train.svg from a real run of the shipped recipe.

python docs/make_capture.py
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
COMMAND = "rlvr train recipes/toy_countdown.toml"


def main() -> None:
    rlvr = Path(sys.executable).parent / "rlvr"
    with tempfile.TemporaryDirectory() as folder:
        words = [str(rlvr), *COMMAND.split()[1:], f"output_dir={folder}"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        shown = done.stdout.replace(folder, "experiments")
    console = Console(record=True, width=88, file=io.StringIO())
    console.print(Text(f"$ {COMMAND}", "bold"))
    console.print(Text(shown.rstrip()))
    target = ROOT / "docs/images/train.svg"
    target.parent.mkdir(exist_ok=True)
    # Without the web fonts rich asks for: the picture needs nothing but itself.
    drawing = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="rlvrlab"), flags=re.DOTALL)
    target.write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
