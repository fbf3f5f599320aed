"""The command line, servers with faults and scripted answers serve here too."""

import sys
from pathlib import Path

for room in ("cli", "engines", "evals"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))
