"""Step credit: which step of an answer earned its reward, by replaying the answer with steps changed.

Array suffixes: B rows, T completion positions, S steps of one answer.
"""
