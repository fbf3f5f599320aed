"""The `rlvr` command: one file per verb, imported only when it is used, so that `rlvr --help` answers at once.

Ctrl-C is one line and exit code 130 from here on, also while the rest is being loaded.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from rlvrlab.cli.ctrl_c import CtrlC


def main() -> NoReturn:
    """Run the command."""
    with CtrlC() as ctrl_c:
        try:
            from rlvrlab.cli.verbs import run  # not before: loading it takes time, too
        except KeyboardInterrupt:
            print("error: interrupted", file=sys.stderr)
            sys.exit(130)
        run(ctrl_c)
