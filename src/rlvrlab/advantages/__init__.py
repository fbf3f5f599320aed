"""Advantages: how much better an answer was than expected. Pure functions of rewards, groups and values.

Array suffixes: B rows, T completion positions, G groups of answers to one problem, e.g. `advantage_BT`.
"""
