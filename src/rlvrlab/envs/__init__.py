"""Environments: problems and the verifiers that judge answers to them; one file each."""
