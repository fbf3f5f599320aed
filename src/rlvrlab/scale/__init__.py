"""Beyond one machine: the same recipe on other trainers, and data and rewards in their shapes."""
