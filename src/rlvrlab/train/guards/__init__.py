"""What protects the skills that are not being trained."""
