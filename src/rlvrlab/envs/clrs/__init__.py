"""CLRS-Text: run a textbook algorithm by hand. See environment.py for an example row and the traps."""

from rlvrlab.envs.clrs.environment import Clrs as Clrs
