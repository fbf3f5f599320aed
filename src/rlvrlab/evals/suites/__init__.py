"""Named collections of data sets with fixed settings; one file per family, each a plain table."""

from rlvrlab.evals.suites.catalogue import SUITES, members_of

__all__ = ["SUITES", "members_of"]
