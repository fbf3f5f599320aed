"""The record: a run folder that explains itself and survives a crash."""
