"""The judge: what a policy wrote is run in a jail and compared outside it.

Start at `judge.py` (one interface for all), then `code.py` (programs and functions), `sql.py`, `expressions.py` and
`mathematics.py`; `pool.py` holds the workers and `jail/` everything that runs inside them. Nothing is imported here,
because the jail imports this package without any third-party dependency.
"""
