"""Bugs made of right programs: each is one change, a test notices it in the jail, and roles follow the origin."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rlvrlab.data.prepare import from_preset
from rlvrlab.data.presets import PRESETS
from rlvrlab.envs.code import CodeRepair
from rlvrlab.envs.code.bugs import MOST, bugs
from rlvrlab.envs.data_files import Row
from rlvrlab.errors import UserError
from rlvrlab.judge.isolation import probe
from rlvrlab.record.files import write_rows

PROGRAM = """def total(xs, k):
    seen = 0
    for i in range(len(xs)):
        if xs[i] > k and i < 10:
            seen = seen + xs[i]
        seen += 0
    return max(seen, 0)
"""
TESTS = ["assert total([1, 5, 9], 4) == 14", "assert total([], 3) == 0", "assert total([4, 5], 4) == 5"]


def row(number: int, code: str = PROGRAM) -> Row:
    return {"task_id": number, "text": f"Add what is above k, number {number}.", "code": code, "test_list": TESTS}


def test_a_bug_is_one_change_and_kinds_take_turns() -> None:
    made = bugs(PROGRAM, "a key")
    plain = ast.unparse(ast.parse(PROGRAM)).splitlines()
    assert 4 <= len(made) <= MOST and len(set(made)) == len(made)
    for text in made:
        lines = ast.unparse(ast.parse(text)).splitlines()
        changed = [(a, b) for a, b in zip(plain, lines, strict=False) if a != b]
        assert len(lines) < len(plain) or len(changed) == 1, text
    assert bugs(PROGRAM, "a key") == made and bugs(PROGRAM, "another key") != made
    assert bugs("not python (", "k") == [] and bugs("def f():\n    return None\n", "k") == []


@pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
def test_prepared_bugs_fail_a_test_and_no_test_problem_trains(tmp_path: Path) -> None:
    short = "def total(xs, k):\n    return sum(x for x in xs if x > k and k < 1000)\n"
    wrong = "def total(xs, k):\n    return 1\n"
    rows = [row(20), row(520), row(700), row(701, short), row(702, wrong)]
    write_rows(tmp_path / "mbpp.jsonl", rows)
    env = CodeRepair(shape="mbpp", bugs=2)
    prepared = from_preset("mbpp_code_repair", PRESETS["mbpp"], env, tmp_path / "mbpp.jsonl")
    offered = sum(map(len, prepared.problems.values()))
    prepared.leave_out_bad_tasks()
    kept = {role: [p.id.rpartition(":bug")[0] for p in problems] for role, problems in prepared.problems.items()}
    assert kept["test"] == ["MBPP/20"] * 2 and kept["dev"] == ["MBPP/520"] * 2
    assert kept["train"][:2] == ["MBPP/700"] * 2 and "MBPP/702" not in kept["train"], "a wrong solution makes no bugs"
    assert offered == sum(map(len, kept.values())) + len(prepared.bad_tasks)
    assert {p.role for p in prepared.problems["train"]} == {"train"}
    for problem in prepared.problems["train"]:
        given = problem.reference["given"]
        assert env.judge([(env.task(problem.reference, problem.reference["tests"]), given)], ["x"])[0].correct is False
        assert env.verify(problem, str(env.gold(problem))).correct, "and it can be repaired"
        assert "Add what is above k" in problem.prompt and given.strip() in problem.prompt
    assert {p.meta["dataset"] for p in prepared.problems["train"]} == {"mbpp_code_repair"}


def test_a_file_of_right_programs_has_to_be_prepared_first(tmp_path: Path) -> None:
    write_rows(tmp_path / "mbpp.jsonl", [row(700)])
    with pytest.raises(UserError, match="rlvr data prepare mbpp --env code_repair"):
        CodeRepair(path=str(tmp_path / "mbpp.jsonl"), role_of="train").problems("train", 1, 0)
