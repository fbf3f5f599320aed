"""Engines: policies that sample, score and learn. They know nothing of environments, credit or surgery."""
