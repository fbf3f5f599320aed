"""Rewards: what a verdict is worth; one file each."""
