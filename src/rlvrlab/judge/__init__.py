"""The judge: what a policy wrote is run in a jail and compared outside it.

Start at `judge.py` (one interface for all), then `code.py` (programs and functions) and `modes/`; `workers/` holds the
processes and `jail/` everything that runs inside them. Nothing is imported here, because the jail imports this package
without any third-party dependency.
"""
