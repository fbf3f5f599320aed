"""From problems to judged answers."""
