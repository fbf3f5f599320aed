"""The `rlvr` command: one file per verb, imported only when it is used, so that `rlvr --help` answers at once."""

from rlvrlab.cli.entry import main

__all__ = ["main"]
