"""Data sets: where problems come from, what they may be used for, and whether splits share what they must not.

sources -> an environment's read_row -> prepare -> rows (verl's shape) + manifest
envs/split and loading guard their use, audit checks what splits share
"""
