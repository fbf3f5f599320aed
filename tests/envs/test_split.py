"""The split by content never changes: what was held out yesterday must not be trained on tomorrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rlvrlab.envs.split import Asked, each_once, role_in_training_set, role_of, role_of_key
from rlvrlab.registry import find
from rlvrlab.types import Problem, Role

ROLES: tuple[Role, ...] = ("train", "dev", "test")
LETTERS = {"train": ".", "dev": "d", "test": "t"}
MADE: dict[str, dict[Role, list[str]]] = {
    "countdown": {
        "train": ["countdown:3:18,52,52=988", "countdown:4:2,34,35,45=22"],
        "dev": ["countdown:3:6,20,31=89", "countdown:4:6,13,36,65=49"],
        "test": ["countdown:3:77,87,93=83", "countdown:4:11,32,47,68=94"],
    },
    "gsm8k": {
        "train": ["gsm8k:0a10cbe31a7e753d", "gsm8k:84ed7f112fb9db68"],
        "dev": ["gsm8k:58b03f6e218ff129", "gsm8k:f1a148a186233358"],
        "test": ["gsm8k:39a1aee38280cc96", "gsm8k:83f320a5a5ac7b7f"],
    },
    "math": {
        "train": ["math:828c34cb44a5ac73", "math:f5b602439e8134e9"],
        "dev": ["math:4587421ae81d15ac", "math:d05d08eec821c3e3"],
        "test": ["math:90abac3184aae3b7", "math:cefbe973b7fe944a"],
    },
    "zebra": {
        "train": ["zebra:1:a80cb42f59d456b8", "zebra:1:e536a6b316bae00b"],
        "dev": ["zebra:1:ef536a8908ede255", "zebra:1:e208964e3ed7dc77"],
        "test": ["zebra:1:920f8b4d568b79e6", "zebra:1:66b089a2522890e2"],
    },
    "clrs": {
        "train": ["clrs:insertion_sort:4:987d8cfdc78c", "clrs:bubble_sort:4:57cc78ce28a1"],
        "dev": ["clrs:insertion_sort:4:85b341422223", "clrs:bubble_sort:4:b7773e997937"],
        "test": ["clrs:insertion_sort:4:c9e286d30133", "clrs:bubble_sort:4:75ac9b0cd794"],
    },
    "graph": {
        "train": ["TSP:1:e554989e5e9087e9", "GED:1:310c2cb1e72162a5"],
        "dev": ["TSP:1:7501cebb40023b0b", "GED:1:2a2d55c48cdeaf0e"],
        "test": ["TSP:1:c19ba02b9ed1f805", "GED:1:c05387f5897d598b"],
    },
    "minicode": {
        "train": ["minicode:gen:1:f1f577c8187b", "minicode:fix:1:28972d3a700c"],
        "dev": ["minicode:gen:1:e828b2502422", "minicode:fix:1:6e78de332fc8"],
        "test": ["minicode:gen:1:aa13ca8e68d5", "minicode:fix:1:3d419787b39b"],
    },
    "sql": {
        "train": ["sql:1:74b2587ce2904e05", "sql:2:e56d557f60183d3f"],
        "dev": ["sql:1:526f6d56c4b8bfbd", "sql:2:e377daedbd1e3fcd"],
        "test": ["sql:1:dd6631c9ccc04a32", "sql:2:645f7638946f70d5"],
    },
    "holdout": {
        "train": ["minicode:gen:1:f1f577c8187b", "minicode:gen:2:47fe686c6f37"],
        "dev": ["minicode:gen:1:e828b2502422", "minicode:gen:2:b6465e68c9eb"],
        "test": ["minicode:gen:1:aa13ca8e68d5", "minicode:gen:2:2f05ee94bf7e"],
    },
    "mixture": {
        "train": ["0/countdown:3:18,52,52=988", "0/countdown:4:2,34,35,45=22"],
        "dev": ["0/countdown:3:6,20,31=89", "0/countdown:4:6,13,36,65=49"],
        "test": ["0/countdown:3:77,87,93=83", "0/countdown:4:11,32,47,68=94"],
    },
}
"""The first problems of seed 0."""
ROWS: dict[str, Callable[[int], dict[str, Any]]] = {
    "gsm8k": lambda i: {"question": f"Ann has {i} apples. How many?", "answer": f"#### {i}"},
    "math": lambda i: {"problem": f"What is {i}+1?", "answer": str(i + 1)},
    "clrs": lambda i: {
        "question": f"minimum:\nkey: [0.2 0.{i}]\nmin:\n", "answer": "1", "algo_name": "minimum", "length": 4,
    },
    "zebra": lambda i: {
        "puzzle": f"There are {i} houses.", "solution": {"header": ["House", "Name"], "rows": [["1", "Ann"]]},
    },
    "countdown": lambda i: {"nums": [i + 1, 2, 3], "target": i + 6},
    "code": lambda i: {
        "task_id": i, "text": f"Add {i}.", "code": "def f(x):\n return x", "test_list": ["assert f(1) == 1"],
    },
}  # fmt: skip
READ = {
    "gsm8k": "...tt......t..d.dttd.t..t..t..",
    "math": "...t..t.......d..d....t.......",
    "clrs": "...........d....t...t.d.d.d...",
    "zebra": ".t.d..d.....d.....t..t....d...",
    "countdown": ".......dd............td.......",
    "code": "....t...........d..dd.dt..td..",
}
"""Roles of the rows 0 to 29."""


def made(name: str, keys: Mapping[str, Any]) -> dict[Role, list[str]]:
    env = find("env", name)(**keys)
    return {role: [problem.id for problem in env.problems(role, 2, 0)] for role in ROLES}


@pytest.mark.parametrize("name", MADE)
def test_problems_that_are_made_keep_their_roles(name: str) -> None:
    assert made(name, {"levels": (1,)} if name in ("zebra", "graph") else {}) == MADE[name]


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_read_keep_their_roles(name: str) -> None:
    env = find("env", name)()
    assert "".join(LETTERS[env.read_row(ROWS[name](i)).role] for i in range(30)) == READ[name]


def test_one_tenth_each_is_held_out_or_as_many_as_asked_for() -> None:
    assert [role_of_key(key) for key in range(10)] == ["test", "dev", *["train"] * 8]
    assert [role_of_key(key, held_out=2) for key in range(10, 20)] == ["test"] * 2 + ["dev"] * 2 + ["train"] * 6
    assert "".join(LETTERS[role_of("x", i)] for i in range(30)) == ".............dd..td....tt.t..."
    assert [role_in_training_set(role) for role in ROLES] == ["train", "dev", "train"]


def asked(question: str, answer: str, role: Role) -> Asked:
    return Asked(question, question, Problem(question, "own", "own", question, answer, role=role))


@pytest.mark.parametrize("other", ["what  IS 2+2?", "What is 2+2?\u200b", "What is ２+2?", "What is\u00a02+2?\n"])
@pytest.mark.parametrize("answer", ["4", "four"])
def test_a_question_that_another_role_asks_in_another_spelling_is_left_out(other: str, answer: str) -> None:
    rows = [asked(other, answer, "train"), asked("Of 3+3?", "6", "train"), asked("What is 2+2?", "4", "test")]
    assert [(p.prompt, p.role) for p in each_once(rows)] == [("Of 3+3?", "train"), ("What is 2+2?", "test")]


def test_in_one_role_a_spelling_may_change_the_answer() -> None:
    rows = [asked("Next after a?", "b", "dev"), asked("Next after A?", "B", "dev"), asked(" Next after a?", "b", "dev")]
    assert [p.prompt for p in each_once(rows)] == ["Next after a?", "Next after A?"]
