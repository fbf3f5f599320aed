"""The judge: what a policy wrote is run in a jail and compared outside it.

Start at `judge.py` (one interface for all); `modes/` has a file per kind of task, `workers/` the processes that run
them, `jail/` everything that runs inside those, `fusion/` the judge as a server. Nothing is imported here, because the
jail imports this package without any third-party dependency.
"""
