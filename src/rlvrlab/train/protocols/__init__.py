"""Which skills are trained when: single, mixed, sequential, curriculum."""
