"""Exact algorithms on small graphs; every optimum they give is proved."""
