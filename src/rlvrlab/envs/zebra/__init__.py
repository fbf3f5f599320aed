"""Zebra puzzles: who lives where, from clues. See environment.py for an example row and the traps."""

from rlvrlab.envs.zebra.environment import Zebra as Zebra
