"""Whatever is wrong with a data file is one line that names file, row and column."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.data.rows import from_row, read_problems, to_row, write_problems
from rlvrlab.envs.countdown import Countdown
from rlvrlab.envs.data_files import read_rows
from rlvrlab.errors import UserError
from rlvrlab.types import Problem

GOOD = b'{"question": "a", "answer": 1}\n'
PROBLEM = Countdown(numbers=(2,)).problems("train", 1, seed=0)[0]


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"", "a.jsonl: no rows"),
        ("a.jsonl", b"\n \n", "a.jsonl: no rows"),
        ("a.csv", b"question,answer\n", "a.csv: no rows"),
        ("a.json", b"[]", "a.json: no rows"),
        ("a.jsonl", GOOD + b'{"question": "b", "ans', "a.jsonl:2: the last line is cut off"),
        ("a.jsonl", GOOD + b"{]\n" + GOOD, "a.jsonl:2: not JSON"),
        ("a.jsonl", GOOD + '{"question": "é"}\n'.encode("latin-1"), "a.jsonl:2: byte 0xe9 at position 15 is not UTF-8"),
        ("a.jsonl", '{"question": "é"}\n'.encode("utf-16"), "a.jsonl: is UTF-16; save it as UTF-8"),
        ("a.jsonl", GOOD + b"[1]\n", "a.jsonl:2: an object was expected, not list"),
        ("a.jsonl", GOOD + b'{"question": "b", "answer": NaN}\n', "a.jsonl:2: column 'answer': NaN or infinity"),
        ("a.jsonl", b'{"x": {"y": [1, -Infinity]}}\n', "a.jsonl:1: column 'x': NaN or infinity"),
        ("a.jsonl", b'{"x": 1, "big": ' + b"9" * 5000 + b"}\n", "a.jsonl:1: column 'big': an integer of more"),
        ("a.json", b'[{"big": ' + b"9" * 5000 + b"}]", "a.json:1: column 'big': an integer of more than 4300"),
        ("a.jsonl", b"[" * 200_000 + b"\n", "a.jsonl:1: nested too deeply"),
        ("a.json", b'{"a": 1}', "a.json: a list of rows was expected, not dict"),
        ("a.json", b'[{"a": 1}, {"a": NaN}]', "a.json:2: column 'a': NaN or infinity"),
        ("a.csv", b"question,answer\nb\n", "a.csv:1: column 'answer' is missing"),
        ("a.csv", b"question,answer\nb,1,2\n", "a.csv:1: more fields than the header has columns"),
        ("a.csv", b'question,answer\n"b,1\n', "a.csv:1: not CSV"),
        ("a.jsonl.gz", packed(GOOD * 5000)[:60], "a.jsonl.gz: broken gzip after row "),
        ("a.jsonl.gz", GOOD, "a.jsonl.gz: broken gzip after row 0"),
        ("a.jsonl.gz", packed(GOOD)[:-6] + b"\x01\x02\x03\x04\x00\x00", "a.jsonl.gz: broken gzip after row "),
        ("a.txt", GOOD, "a.txt: no data file by its name; allowed: .jsonl"),
        ("a.parquet", b"PAR1 not really", "a.parquet: not a Parquet file"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(read_rows(tmp_path / name))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_one_huge_prompt_and_very_many_rows_are_read(tmp_path: Path) -> None:
    huge = "x" * 5_000_000
    (tmp_path / "huge.jsonl").write_text(json.dumps({"question": huge}) + "\n")
    assert [row for _, row in read_rows(tmp_path / "huge.jsonl")] == [{"question": huge}]
    (tmp_path / "many.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(20_000)) + "{]\n")
    rows = read_rows(tmp_path / "many.jsonl")
    assert sum(row["n"] for _, row in itertools.islice(rows, 20_000)) == 199_990_000
    with pytest.raises(UserError, match=r"many\.jsonl:20001: not JSON"):
        next(rows)


def test_a_parquet_file_of_headers_alone_has_no_rows(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"question": arrow.array([], arrow.string())}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet: no rows"):
        list(read_rows(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({"reward_model": {"style": "rule", "ground_truth": None}}, "ground_truth"),
        ({"reward_model": None}, "reward_model"),
        ({"extra_info": None}, "extra_info"),
        ({"prompt": "a text"}, "prompt"),
        ({"prompt": [{"role": "user", "content": 3}]}, "prompt"),
        ({"prompt": []}, "prompt"),
    ],
)
def test_a_column_that_is_empty_or_of_another_kind_is_named_with_its_row(
    changed: dict[str, object], column: str
) -> None:
    row = {**to_row(PROBLEM, 0), **changed}
    with pytest.raises(UserError, match=column) as caught:
        from_row(row, "file.jsonl:7")
    assert str(caught.value).startswith("file.jsonl:7") and "\n" not in str(caught.value)


def test_the_same_rows_in_every_format(tmp_path: Path) -> None:
    rows = [{"question": 'what, "é"?\nnext line', "answer": "1"}, {"question": "汉字\u2028", "answer": "2"}]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (tmp_path / "a.jsonl.gz").write_bytes(packed(text.rstrip().encode()))
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.csv").write_text('question,answer\n"what, ""é""?\nnext line",1\n汉字\u2028,2\n', newline="")
    read = {path.name: [row for _, row in read_rows(path)] for path in tmp_path.iterdir()}
    assert read == dict.fromkeys(read, rows) and len(read) == 4


def test_parquet_rows_and_their_nan(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"nested": {"x": [1.0]}}, {"nested": {"x": [float("nan")]}}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet:2: column 'nested': NaN"):
        list(read_rows(tmp_path / "a.parquet"))


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.jsonl.gz"])
@settings(max_examples=25, deadline=None)
@given(
    text=any_text(max_size=40),
    number=st.integers(-(10**80), 10**80),
    level=st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_text_and_number_survives(tmp_path_factory, name: str, text: str, number: int, level: float) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("any") / name
    problem = Problem(f"x:{text}", "countdown", "s", text, {"big": number, text: [text]}, {"level": level}, "dev")
    write_problems(path, [problem])
    assert list(read_problems(path)) == [problem]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": float("nan")}, "problem 1 (p): reference: cannot be written as JSON"),
        ({"reference": 10**5000}, "problem 1 (p): reference: cannot be written as JSON"),
        ({"meta": {"x": {1, 2}}}, "problem 1 (p): meta: cannot be written as JSON"),
        ({"prompt": "\ud800"}, "lone surrogate"),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_what_no_reader_could_take_is_not_written(tmp_path: Path, name: str, change: dict, message: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    problem = Problem(**{"id": "p", "source": "countdown", "skill": "s", "prompt": "q", **change})
    with pytest.raises(UserError, match=message.replace("(", r"\(").replace(")", r"\)")):
        write_problems(tmp_path / name, [problem])
    assert list(tmp_path.iterdir()) == []


def test_ids_are_unique_when_written_and_when_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.jsonl: ids are not unique, see rows 2 \(countdown:"):
        write_problems(tmp_path / "a.jsonl", [PROBLEM, PROBLEM])
    rows = [to_row(PROBLEM, index) for index in range(8)]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match=r"see rows 2 \(.*6 \(.* … and 2 more"):
        list(read_problems(tmp_path / "b.jsonl"))


def test_a_few_packed_bytes_do_not_become_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.envs.data_files.SMALLEST_BOUND", 1 << 20)
    bomb = tmp_path / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress(b'{"a": "' + b"x" * (4 << 20) + b'"}\n'))
    with pytest.raises(UserError, match="unpacks to more than 100 times its size"):
        list(read_rows(bomb))
    honest = tmp_path / "honest.jsonl.gz"
    honest.write_bytes(gzip.compress(b'{"a": 1}\n' * 1000))
    assert len(list(read_rows(honest))) == 1000


def test_a_parquet_file_of_one_text_in_every_row_does_not_fill_the_memory(tmp_path: Path) -> None:
    """740 bytes had become four gigabytes; a repeated text of usual size is read."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, length in (("usual", 200), ("bomb", 100_000)):
        text = arrow.DictionaryArray.from_arrays(arrow.array([0] * 5000, arrow.int32()), arrow.array(["x" * length]))
        parquet.write_table(arrow.table({"question": text}), tmp_path / f"{name}.parquet", compression="zstd")
    assert (tmp_path / "bomb.parquet").stat().st_size < 10_000
    assert sum(1 for _ in read_rows(tmp_path / "usual.parquet")) == 5000
    with pytest.raises(UserError, match=r"bomb.parquet: its rows take more than 256 MiB; write it as .jsonl"):
        sum(1 for _ in read_rows(tmp_path / "bomb.parquet"))
