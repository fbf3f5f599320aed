"""Runs, studies, servers and the command line of other rooms' tests are killed here."""

import sys
from pathlib import Path

for room in ("train", "study", "cli", "scale"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))
