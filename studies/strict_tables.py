"""Differences with their stricter interval, as READMEs tell them: python studies/strict_tables.py FILE.json …

Files are those of exam_tables.py, whose tables have Student's t over seeds beside the mean. That interval knows of new
seeds on the same problems only; here the mean stands with the one for new seeds and new problems.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from exam_tables import Exams, markdown, over_seeds, points


def strict_table(exams: Exams) -> str:
    """Every difference of greedy answers for which there are several seeds."""
    rows = []
    for data in exams.outcomes:
        for before, after in exams.against:
            found = over_seeds(exams, data, "greedy", before, after)
            if found is not None and len(found.per_seed) > 1:
                rows.append(
                    [f"{data}: greedy", f"{after} − {before}", f"{points(np.mean(found.per_seed))} {found.both}"]
                )
    return markdown(["measure", "difference", "mean [95 %, new seeds and problems]"], rows)


def main() -> None:
    """Print the tables of the files named."""
    for path in map(Path, sys.argv[1:]):
        print(f"{strict_table(Exams(path))}\n")


if __name__ == "__main__":
    main()
