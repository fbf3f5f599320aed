"""Where published data lies is said beside the tests of the code environments."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "envs" / "code"))
