"""Which file is data is decided in one place: every entrance takes every ending, and capitals do not count."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from sources import SOURCE, files, nodes

from rlvrlab.cli.train import _refuse_data
from rlvrlab.data.presets import PRESETS
from rlvrlab.data.sources import local_copy, rows_of
from rlvrlab.envs.data_files import DATA, ENDINGS, is_data_file, near_files, parquet, read_rows
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.envs.own_data import Answers
from rlvrlab.errors import UserError
from rlvrlab.evals.suites import base
from rlvrlab.train.phases.dpo import DpoPhase

ROWS = [{"question": f"What is {n} + {n}?", "answer": f"{n} and {n} are {2 * n}.\n#### {2 * n}"} for n in range(30)]
WRITTEN = [*ENDINGS, *(ending.upper() for ending in ENDINGS)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    ending = path.name.partition(".")[2].lower()
    if ending == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet().write_table(pyarrow.Table.from_pylist(rows), path)
        return path
    text = json.dumps(rows) if ending.startswith("json") and "jsonl" not in ending else ""
    if ending.startswith("jsonl"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
    if ending.startswith("csv"):
        table = io.StringIO()
        writer = csv.DictWriter(table, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        text = table.getvalue()
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    return path


@pytest.fixture(params=WRITTEN)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with train and test files of one ending, whose names begin with a capital."""
    home = tmp_path / "gsm8k"
    home.mkdir()
    write(home / f"Train{request.param}", ROWS[:20])
    write(home / f"Test{request.param}", ROWS[20:])
    return home


def test_every_entrance_takes_the_same_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test, train = sorted(folder.iterdir())
    assert is_data_file(train) and len(list(read_rows(train))) == 20
    assert "did you mean" in near_files(train.with_name("Trains.jsonl"))
    answers = Answers(path=str(folder), prompt="question", answer="answer")
    assert len(answers.problems("test", 10, seed=0)) == 10, "a folder of one's own"
    assert len(Gsm8k(path=str(folder)).problems("test", 10, seed=0)) == 10, "a published set's folder"
    assert len(Gsm8k(path=str(test)).problems("test", 10, seed=0)) == 10, "its test file alone is test"
    assert len(list(rows_of("gsm8k", PRESETS["gsm8k"], folder)["train"])) == 20, "rlvr data prepare --from"
    assert base.Member("gsm8k", "gsm8k", 1, 1, files=base.test_file("gsm8k")).file_in(folder.parent) == test, "a suite"
    assert DpoPhase(pairs=str(train)).file, "preference rows"
    with pytest.raises(UserError, match="is data, not a recipe"):
        _refuse_data(train)
    alone = train.rename(folder.parent / f"GSM8K_TEST{train.name[5:]}")
    for file in (test, folder):
        file.rmdir() if file.is_dir() else file.unlink()
    monkeypatch.setenv(DATA, str(folder.parent))
    assert local_copy("gsm8k", PRESETS["gsm8k"]) == alone, "beneath $RLVRLAB_DATA"


def test_what_is_no_data_file_is_none_anywhere(tmp_path: Path) -> None:
    for name in ("train.txt", "train.jsonl.bz2", "jsonl", "train.parquet.gz"):
        (tmp_path / name).write_text("{}\n")
        assert not is_data_file(name)
        with pytest.raises(ValueError, match=r"right, score, or a file \(.jsonl, .jsonl.gz, .json, .json.gz, .csv"):
            DpoPhase(pairs=name)
        _refuse_data(tmp_path / name)
    with pytest.raises(UserError, match="a folder needs train"):
        Answers(path=str(tmp_path), prompt="a", answer="b").problems("train", 1, seed=0)


def test_a_suite_looks_for_every_ending() -> None:
    assert {f"svamp/test{ending}" for ending in ENDINGS} <= set(base.published("svamp", 1, 1).files)


def test_the_list_of_endings_stands_once() -> None:
    lists = [
        file
        for file, tree in files(SOURCE)
        for node in nodes(tree, ast.Tuple)
        if {".jsonl", ".json", ".jsonl.gz"} <= {one.value for one in node.elts if isinstance(one, ast.Constant)}
    ]
    assert lists == ["envs/data_files.py"]
