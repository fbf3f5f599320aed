"""minicode: tiny Python programs from our own grammar, four skills, nine levels, judged by the real jailed judge.

See environment.py for an example row and the traps.
"""

from rlvrlab.envs.minicode.environment import Minicode as Minicode
