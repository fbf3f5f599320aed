"""Objectives: pure functions of log-probabilities that return a value and its coefficients.

gradient = Σ c_logp ∇log p + Σ c_entropy ∇H, so an engine needs one backward pass and no formula from here.
Array suffixes: B rows, T completion positions, P preference pairs, e.g. `advantage_BT`.
"""
