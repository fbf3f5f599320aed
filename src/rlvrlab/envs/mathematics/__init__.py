"""Mathematics with a known final answer in a box. See environment.py for an example row and the traps."""

from rlvrlab.envs.mathematics.environment import Mathematics as Mathematics
