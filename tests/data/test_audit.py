"""An audit from files to verdict: what was planted is reported with both texts, and nothing foreign comes alive."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlvrlab.cli import main
from rlvrlab.data.audit import Audit, audit
from rlvrlab.data.audit_report import write_audit
from rlvrlab.data.rows import write_problems
from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import UserError
from rlvrlab.types import Problem, Role

PEOPLE = ("Ann", "Bob", "Cem", "Dora", "Eli", "Fay")
FORM = "\nSolve it step by step. End with a line that holds #### and the final number alone, please."


def question(i: int) -> str:
    return " ".join(f"{PEOPLE[i % 6]}{i} word{i * 31 + k} thing{i * 17 + k * k}" for k in range(9)) + "?"


def problem(i: int, role: Role, prompt: str = "", solution: str = "") -> Problem:
    return Problem(f"p{role}{i}", "gsm8k", "gsm8k", prompt or question(i), str(i), {"solution": solution}, role)


def files(folder: Path, train: list[Problem], test: list[Problem]) -> list[Path]:
    for name, problems in {"train": train, "test": test}.items():
        write_problems(folder / f"{name}.jsonl", problems)
    return [folder / "train.jsonl", folder / "test.jsonl"]


@pytest.fixture
def planted(tmp_path: Path) -> Audit:
    """One exact, one near and one passage across; one exact inside; one solution in common."""
    near = question(1).replace("word33", "other")
    passage = "Now " + " ".join(question(2).split()[:14]) + " " + " ".join(question(90).split()[14:])
    solution = " ".join(f"step {k} gives {k * k} and so on" for k in range(4))
    train = [problem(i, "train", solution=solution if i == 5 else "") for i in range(30)]
    train.append(problem(77, "train", question(7).upper()))
    test = [problem(i + 100, "test") for i in range(25)]
    test += [problem(0, "test", question(0).replace(" ", "  ")), problem(1, "test", near), problem(2, "test", passage)]
    test.append(problem(3, "test", question(300), solution))
    wrapped = [[replace(one, prompt=one.prompt + FORM) for one in split] for split in (train, test)]
    return audit(files(tmp_path, *wrapped))


def test_what_was_planted_is_found(planted: Audit) -> None:
    found = {(hit.kind, hit.part, hit.left.id, hit.right.id) for hit in planted.hits}
    assert found == {
        ("exact", "prompt", "ptrain0", "ptest0"),
        ("near", "prompt", "ptrain1", "ptest1"),
        ("passage", "prompt", "ptrain2", "ptest2"),
        ("exact", "prompt", "ptrain7", "ptrain77"),
        ("exact", "solution", "ptrain5", "ptest3"),
    }
    assert planted.leaked_rows == 2 and len(planted.leaks) == 2
    assert planted.verdict() == (
        "LEAK: 2 protected rows have their prompt in another split (1 exact, 1 near); "
        "duplicate prompts inside splits: 1, weaker matches across splits: 2"
    )


def test_the_files_of_an_audit(planted: Audit, tmp_path: Path) -> None:
    report = write_audit(planted, tmp_path / "out").read_text()
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")}
    assert written == {
        "manifests/train.jsonl", "manifests/test.jsonl", "train_duplicates_intrasplit.jsonl",
        "test_duplicates_intrasplit.jsonl", "duplicates_crosssplit.jsonl", "reports/data_audit_report.md",
    }  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "out" / "duplicates_crosssplit.jsonl").read_text().splitlines()]
    near = next(row for row in rows if row["kind"] == "near")
    assert near["left"] == {"split": "train", "row": 2, "id": "ptrain1", "role": "train"} and 0.5 <= near["jaccard"] < 1
    assert "word33" in near["left_text"] and "word33" not in near["right_text"]
    numbers = ["| train | test | prompt | 1 | 1 | 1 | 3 |", "| train | train | prompt | 1 | 0 | 0 | 1 |"]
    assert {*numbers, "| train | test | solution | 1 | 0 | 0 | 1 |"} <= set(report.splitlines())
    side_by_side = next(line for line in report.splitlines() if "word31" in line and "other" in line)
    assert side_by_side.count(" | ") == 1
    passage = next(row for row in rows if row["kind"] == "passage")["passage"]
    assert passage == " ".join(question(2).split()[:13]).lower()


def test_an_audit_is_the_same_twice_and_without_rensa(planted: Audit, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("rlvrlab.data.near.importlib.util.find_spec", lambda name: None)
    again = audit([tmp_path / "train.jsonl", tmp_path / "test.jsonl"])
    assert again.hashing == "numpy" and [hit.row() for hit in again.hits] == [hit.row() for hit in planted.hits]


def test_equal_roles_are_no_leak_and_an_unknown_role_is_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_problems(tmp_path / f"{name}.jsonl", [problem(i, "test") for i in range(3)])
        (tmp_path / f"raw_{name}.jsonl").write_text(json.dumps({"question": question(1), "answer": "1"}) + "\n")
    same = audit([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert len(same.hits) == 3 and same.leaks == []
    assert len(audit([tmp_path / "raw_a.jsonl", tmp_path / "raw_b.jsonl"]).leaks) == 1


def test_a_file_of_mixed_roles_is_several_splits(tmp_path: Path) -> None:
    write_problems(tmp_path / "all.jsonl", [problem(1, "train"), problem(1, "test"), problem(2, "dev")])
    found = audit([tmp_path / "all.jsonl"])
    assert found.splits == {"all:train": 1, "all:test": 1, "all:dev": 1} and found.leaked_rows == 1


def test_the_protected_side_is_the_higher_role_whatever_the_order(tmp_path: Path) -> None:
    paths = files(tmp_path, [problem(1, "train")], [problem(1, "test"), problem(2, "test")])
    (hit,) = audit(paths[::-1]).hits
    assert (hit.left.role, hit.right.role) == ("train", "test")


def test_raw_columns_of_usual_sets_are_found(tmp_path: Path) -> None:
    rows = {
        "humaneval": {
            "task_id": "HumanEval/0",
            "prompt": "P",
            "canonical_solution": "S",
            "test": "T",
            "entry_point": "f",
        },
        "mbpp": {"task_id": 2, "text": "P", "code": "S", "test_list": ["T"]},
        "svamp": {"ID": "c1", "Body": "P", "Question": "Q", "Answer": 3.0},
        "trl": {"prompt": [{"role": "user", "content": "P"}], "completion": [{"role": "assistant", "content": "S"}]},
        "codecontests": {"name": "n", "description": "P", "private_tests": {"input": ["1"], "output": ["2"]}},
    }
    for name, row in rows.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    texts = {f.name: f.documents[0].texts for f in audit([tmp_path / f"{name}.jsonl" for name in rows]).files}
    assert texts["humaneval"] == {"prompt": "P", "solution": "S", "tests": "T"} == texts["mbpp"]
    assert texts["svamp"]["prompt"] == "P\nQ" and texts["trl"] == {"prompt": "P", "solution": "S", "tests": ""}
    assert texts["codecontests"]["tests"] == "1\n2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.jsonl", "a.jsonl"], "the same file twice: a.jsonl"),
        (["a.jsonl", "--threshold", "0.2"], "threshold = 0.2: need 0.4 to 1"),
        (["a.jsonl", "--prompt", "quest"], "a.jsonl:1: column 'quest' is missing; there are: question"),
        (["b.jsonl"], "b.jsonl:1: no prompt column; name it with --prompt, there are: x"),
        (["gone.jsonl"], "gone.jsonl: no such file in {here}"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, monkeypatch, capsys, words: list[str], message: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"question": "q"}\n')
    (tmp_path / "b.jsonl").write_text('{"x": "q"}\n')
    code, out, err = run(monkeypatch, capsys, tmp_path, "data", "audit", *words)
    assert (code, out) == (2, "") and err.strip() == f"error: {message.replace('{here}', str(tmp_path))}"


def run(monkeypatch, capsys, folder: Path, *words: str) -> tuple[int, str, str]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["rlvr", *words])
    with pytest.raises(SystemExit) as left:
        main()
    out = capsys.readouterr()
    return int(left.value.code or 0), out.out, out.err


def test_the_command_fails_on_a_leak_and_says_so_in_json(tmp_path: Path, monkeypatch, capsys) -> None:
    files(tmp_path, [problem(i, "train") for i in range(3)], [problem(2, "test"), problem(9, "test")])
    code, out, _ = run(monkeypatch, capsys, tmp_path, "data", "audit", "train.jsonl", "test.jsonl", "--json")
    facts = json.loads(out)
    assert code == 1 and facts["ok"] is False and facts["leaked_rows"] == 1
    assert facts["pairs"] == [
        {"left": "train", "right": "test", "part": "prompt", "exact": 1, "near": 0, "passage": 0, "rows": 1}
    ]
    write_problems(tmp_path / "clean.jsonl", [problem(i, "test") for i in range(20, 23)])
    code, out, _ = run(monkeypatch, capsys, tmp_path, "data", "audit", "train.jsonl", "clean.jsonl")
    assert code == 0 and "clean: 6 rows" in out


def test_a_changed_file_is_not_audited(tmp_path: Path, monkeypatch, capsys) -> None:
    (path, _) = files(tmp_path, [problem(1, "train")], [problem(2, "test")])
    assert run(monkeypatch, capsys, tmp_path, "data", "manifest", "train.jsonl")[0] == 0
    write_problems(path, [problem(1, "dev")])
    with pytest.raises(UserError, match=r"row 1 \(ptrain1\) is now pdev1"):
        audit([path])
    code, out, _ = run(monkeypatch, capsys, tmp_path, "data", "manifest", "train.jsonl")
    assert code == 1 and "row 1 (ptrain1) is now pdev1" in out
    code, out, _ = run(monkeypatch, capsys, tmp_path, "data", "manifest", "train.jsonl", "--renew", "--json")
    assert code == 0 and json.loads(out)[0]["state"] == "written" and json.loads(out)[0]["roles"] == {"dev": 1}
    assert run(monkeypatch, capsys, tmp_path, "data", "manifest", "train.jsonl")[1].startswith("train.jsonl: agrees")


def test_hostile_texts_are_inert_in_the_report(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | a | \x1b[2J ![x](http://evil) `code` [l](javascript:1)\n# title\n" + question(1)
    paths = files(tmp_path, [problem(1, "train", evil)], [problem(1, "test", evil)])
    report = write_audit(audit(paths), tmp_path / "out").read_text()
    assert "alert(1)" in report
    body = report.partition("## Across splits")[2]
    assert not any(sign in body for sign in ("<script", "\x1b", "![", "](", "`", "\n# "))
    row = next(line for line in body.splitlines() if "alert(1)" in line)
    assert row.count("|") == 3


def test_countdown_is_clean_although_all_prompts_look_alike(tmp_path: Path) -> None:
    env = Countdown(numbers=(3,))
    paths = []
    for role in ("train", "test"):
        write_problems(tmp_path / f"{role}.jsonl", env.problems(role, 60, seed=0))
        paths.append(tmp_path / f"{role}.jsonl")
    assert audit(paths).hits == []
