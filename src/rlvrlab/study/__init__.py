"""Chains of experiments: plan, run, compare, choose, feed the next stage."""
