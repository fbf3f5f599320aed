"""Programs that only lack their first line: python studies/interference/opened_fences.py ANSWERS.jsonl mbpp_test.jsonl

Of the programs of a card (analysis/cards/N_PHASE.answers.jsonl) that were not in form, how many end with a fence that
was never opened, and how many of these are right once it is. They are judged again as the card's were, in the jail.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rlvrlab.data.loading import load
from rlvrlab.envs.code import Code
from rlvrlab.record.files import read_lines

UNOPENED = re.compile(r"\A(?!\s*```)(?:(?!```)[\s\S])*```\s*\Z")
"""One fence, at the end."""


def main() -> None:
    """Print the three numbers."""
    answers, env = read_lines(Path(sys.argv[1]), answers=True), Code()
    problems = {one.id: one for one in load(Path(sys.argv[2]), "evaluate", env, None, 0).problems}
    formless = [row for row in answers if row["turn"] == 0 and row["error"] == "format"]
    programs = [row for row in formless if row["problem"].partition("/")[2] in problems]
    unopened = [row for row in programs if UNOPENED.search(row["answer"])]
    opened = [(problems[row["problem"].partition("/")[2]], f"```python\n{row['answer']}") for row in unopened]
    right = sum(env.verify(problem, answer).correct is True for problem, answer in opened)
    print(f"{len(programs)} programs not in form, {len(unopened)} with a fence never opened, {right} right once it is")


if __name__ == "__main__":
    main()
