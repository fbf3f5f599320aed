"""Evaluation: what a policy can do, with its uncertainty."""
