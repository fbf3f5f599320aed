"""A file that the user names is examined whole; an environment that makes problems makes a usual number of them."""

from __future__ import annotations

import json
from pathlib import Path

from rlvrlab.cli.examined import problems_of, subject_of
from rlvrlab.evals.protocol import USUAL_SIZE
from rlvrlab.evals.suites.plan_file import plan_from_text

ROWS = USUAL_SIZE + 7


def written(folder: Path) -> str:
    rows = [{"question": f"What is {i} + 1?", "answer": str(i + 1), "split": "test"} for i in range(ROWS)]
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return f"path={path}"


def coded(folder: Path) -> str:
    rows = [
        {"task_id": f"own/{i}", "prompt": f"def add_{i}(a):\n    ", "canonical_solution": f"return a + {i}\n",
         "test": f"def check(candidate):\n    assert candidate(1) == {i + 1}\n", "entry_point": f"add_{i}"}
        for i in range(ROWS)
    ]  # fmt: skip
    path = folder / "code.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return f"path={path}"


def test_every_row_of_a_file_is_examined(tmp_path: Path) -> None:
    for words in (("answers", written(tmp_path)), ("code", coded(tmp_path), "role_of=test")):
        subject = subject_of(words[0], words[1:], None)
        problems, _, facts = problems_of(subject, "test", None, None)
        assert len(problems) == ROWS and facts == {}
        some, _, told = problems_of(subject, "test", 5, None)
        assert len(some) == 5 and told == {"part_of": ROWS}


def test_made_problems_have_a_usual_number() -> None:
    problems, _, facts = problems_of(subject_of("countdown", (), None), "test", None, None)
    assert len(problems) == USUAL_SIZE and facts == {}


def test_a_plan_of_a_baseline_takes_the_whole_file_too(tmp_path: Path) -> None:
    name, path = "own", coded(tmp_path).removeprefix("path=")
    table = f'name = "{name}"\nenv = "code"\nkeys = {{ path = "{path}", role_of = "test" }}\n'
    text = f'[model]\nservers = ["http://127.0.0.1:1"]\n\n[[data]]\n{table}'
    [ready] = plan_from_text(text, tmp_path / "plan.toml", tmp_path).ready()
    assert len(ready.problems) == ROWS
