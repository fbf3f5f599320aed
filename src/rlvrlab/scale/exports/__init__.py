"""Recipes as folders for other trainers: TRL and verifiers. verl has a room of its own."""
