"""Ways to be paid without doing the work, and the battery that tries them on any environment."""
