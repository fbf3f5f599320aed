"""Rewards: what a verdict is worth; one file for each family."""
