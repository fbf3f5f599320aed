"""Copies of the metrics for other trackers; the run folder stays the source of truth."""
