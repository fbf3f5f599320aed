"""Step credit in training: by replays, on trees and by execution; methods.py chooses."""
