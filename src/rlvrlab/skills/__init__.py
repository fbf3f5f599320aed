"""Skills: who belongs to which group, what was forgotten, who disturbs whom, and what it costs to prevent it."""
