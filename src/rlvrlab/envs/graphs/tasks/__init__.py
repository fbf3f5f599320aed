"""The graph tasks, one file per family, each with its instances, questions and measures."""
