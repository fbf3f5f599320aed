"""Keep the small part of examinations on EvalPlus' files: python studies/keep_plus.py RAW FILE.json

RAW has a folder of `rlvr eval` for each set, and beside RAW lies COMMIT, the code they ran with. Kept are, by set, what
was asked with which tests, and whether each answer was right, as 0 and 1 in the order of the problems' ids; an answer
without a verdict is a dash. Nothing of the data sets is kept, and no answer.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rlvrlab.record.evaluation import INFO, SAMPLES
from rlvrlab.record.files import read_lines

MARKS = {True: "1", False: "0", None: "-"}
KEYS = ("shape", "timeout_s", "most_tests")
"""Of the environment: what decides a verdict."""


def number_of(problem: str) -> int:
    """HumanEval/12 -> 12."""
    return int(re.sub(r"\D", "", problem))


def kept(folder: Path) -> dict[str, Any]:
    """One examination."""
    info = json.loads((folder / INFO).read_text(encoding="utf-8"))
    last = {row["problem"]: row for row in read_lines(folder / SAMPLES)}
    rows = [last[problem] for problem in sorted(last, key=number_of)]
    scorer, protocol = info["examined"]["scorer"], info["examined"]["protocol"]
    commit = folder.parent.parent / "COMMIT"
    return {
        "code": commit.read_text().strip() if commit.exists() else info.get("code"),
        "problems": len(rows),
        "first_and_last": [rows[0]["problem"], rows[-1]["problem"]],
        "greedy": "".join(MARKS[row["correct"]] for row in rows),
        "unjudged": {row["problem"]: row["detail"][:200] for row in rows if row["correct"] is None},
        "at_the_limit": sum(row["finish"] == "length" for row in rows),
        "tokens_at_most": protocol["sampling"]["max_tokens"],
        "judge": {"version": scorer["version"], **{key: scorer["keys"].get(key) for key in KEYS}},
        "machine": info["machine"],
        "packages": info["packages"],
    }


def main() -> None:
    """Write the file and say how many were right."""
    sets = {path.parent.name: kept(path.parent) for path in sorted(Path(sys.argv[1]).glob(f"*/{INFO}"))}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sets.items())
    Path(sys.argv[2]).write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    for name, one in sets.items():
        print(f"{name}: {one['greedy'].count('1')} of {one['problems']} right, {len(one['unjudged'])} unjudged")


if __name__ == "__main__":
    main()
