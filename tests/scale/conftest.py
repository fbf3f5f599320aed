"""The command line, servers with faults and scripted answers serve here too."""

import os
import sys
from pathlib import Path

# Ray starts its workers at niceness 15: beside anything else on the machine they hardly run, and tests wait for them.
os.environ.setdefault("RAY_worker_niceness", "0")

for room in ("cli", "engines", "evals"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))
