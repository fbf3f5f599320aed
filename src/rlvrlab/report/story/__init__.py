"""What a run found out, told when it ends: figures, their tables, and sentences with numbers and intervals."""
