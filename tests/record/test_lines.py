"""JSONL that a crash cannot tear."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.errors import InfrastructureError
from rlvrlab.record import files
from rlvrlab.record.files import Lines, mend_tail, read_lines, split_lines, to_json, write_rows

ROWS = [{"step": i, "value": i / 3} for i in range(5)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    write_rows(path, ROWS)
    return path


TAILS = [b'{"step": 5, "val', b"\x00" * 300, b'{"step"\x00\x00\x00', b"\xff\xfe{", b'{"a": 1}']


@pytest.mark.parametrize("tail", TAILS)
def test_a_torn_tail_is_left_out_kept_aside_and_written_over(path: Path, tail: bytes) -> None:
    path.write_bytes(path.read_bytes() + tail)
    assert read_lines(path)[:5] == ROWS
    with Lines(path) as lines:
        lines.append({"step": 5})
    assert read_lines(path) == [*ROWS, {"step": 5}]
    assert path.with_name("log.jsonl.torn").read_bytes() == tail + b"\n"


@pytest.mark.parametrize("cut", range(1, 30))
def test_cut_anywhere_the_whole_lines_survive(path: Path, cut: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    mend_tail(path)
    assert read_lines(path) == ROWS[: data[:-cut].count(b"\n")]


def test_damage_in_the_middle_is_named_with_its_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'{"step": 2', b'{"st\xffep'))
    with pytest.raises(InfrastructureError, match=r"log\.jsonl:3: not JSON"):
        read_lines(path)


def test_a_whole_file_needs_no_mending(path: Path) -> None:
    before = path.read_bytes()
    assert not mend_tail(path) and not mend_tail(path.with_name("none"))
    assert path.read_bytes() == before and not path.with_name("log.jsonl.torn").exists()


@given(any_text(), st.floats(), st.sampled_from(["\u2028", "\ud800", "\x00", "\r\n", "\ufeff", "\x1b]0;x\x07"]))
def test_any_text_is_one_line_and_comes_back(text: str, number: float, odd: str) -> None:
    line = to_json({"text": text + odd, "number": number, f"key {text}": [odd]})
    assert "\n" not in line
    back = json.loads(line.encode())
    assert back["number"] is None or back["number"] == number
    assert back["text"] == (text + odd).encode("utf-8", "backslashreplace").decode()


def test_numpy_numbers_are_numbers() -> None:
    row = {"a": np.float32(0.5), "b": np.int64(3), "c": np.float32("nan"), "d": np.bool_(True)}
    assert json.loads(to_json(row)) == {"a": 0.5, "b": 3, "c": None, "d": True}


def test_a_reader_never_sees_a_torn_row(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"step": i, "text": "x" * (17 * i % 9000)} for i in range(400)]
    seen: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            found = read_lines(path)
            assert found == rows[: len(found)]
            seen.append(len(found))

    reader = threading.Thread(target=watch)
    reader.start()
    with Lines(path) as lines:
        for row in rows:
            lines.append(row)
        lines.sync()
    done.set()
    reader.join()
    assert read_lines(path) == rows and seen == sorted(seen)


def test_split_keeps_bytes_and_moves_the_rest(path: Path) -> None:
    before = path.read_bytes().splitlines(keepends=True)
    aside = path.with_name("aside.jsonl")
    assert split_lines(path, lambda _, row: row["step"] < 3, aside) == 2
    assert path.read_bytes() == b"".join(before[:3]) and aside.read_bytes() == b"".join(before[3:])
    assert split_lines(path, lambda _, row: row["step"] < 3, aside) == 0
    assert aside.read_bytes() == b"".join(before[3:])


def test_a_crash_between_moving_and_rewriting_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = path.with_name("aside.jsonl")
    with monkeypatch.context() as broken:
        broken.setattr(files, "write_atomically", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            split_lines(path, lambda _, row: row["step"] < 3, aside)
    assert read_lines(path) == ROWS
    split_lines(path, lambda _, row: row["step"] < 3, aside)
    assert read_lines(path) == ROWS[:3] and read_lines(aside) == [*ROWS[3:], *ROWS[3:]]
