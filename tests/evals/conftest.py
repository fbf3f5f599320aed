"""Servers with faults, small runs and the command line serve here too."""

import sys
from pathlib import Path

for room in ("engines", "train", "cli"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))
