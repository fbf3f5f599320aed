"""Training: the loop, its phases and what makes it resumable."""
