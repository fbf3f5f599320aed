"""What is stored comes back as it was, whatever is in it; through the very functions and files that store it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.data.manifest import manifest_of, read_manifest, write_manifest
from rlvrlab.evals.answering import Answer
from rlvrlab.evals.judged import Judged, as_row, from_row
from rlvrlab.judge.fusion.wire import verdict_from_wire, verdict_to_wire
from rlvrlab.plain_files import parsed
from rlvrlab.record.evaluation import SAMPLES, StoredAnswer
from rlvrlab.record.files import read_lines, to_json, write_json, write_rows
from rlvrlab.record.shapes import read_records
from rlvrlab.train.checkpoint import STATE, read_state
from rlvrlab.train.state import Best, Difficulty, Kept, Memory, State
from rlvrlab.types import Completion, ErrorKind, Finish, Problem, Verdict

COUNT = st.integers(0, 1 << 40)
SHARE = st.floats(0, 1)
NUMBER = st.floats(-1e300, 1e300)
TEXT = any_text(max_size=20)
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
TABLE = st.dictionaries(TEXT, PLAIN, max_size=3)
STATES = st.builds(
    State, COUNT, COUNT, COUNT, st.none() | st.builds(Best, COUNT, SHARE), COUNT, COUNT, COUNT,
    st.lists(COUNT, max_size=3).map(tuple), st.none() | COUNT,
)  # fmt: skip
VERDICTS = st.builds(
    Verdict, st.just(False), SHARE.map(lambda share: share / 2),
    st.sampled_from([ErrorKind.WRONG, ErrorKind.SYNTAX, ErrorKind.TIMEOUT]),
    st.dictionaries(TEXT, SHARE, max_size=2), st.just(0), COUNT, st.none() | TEXT, TEXT, TEXT,
    st.lists(TEXT, max_size=2).map(tuple),
)  # fmt: skip
COMPLETIONS = st.builds(
    Completion, TEXT, st.lists(COUNT, max_size=3).map(tuple), st.lists(NUMBER, max_size=3).map(tuple),
    st.sampled_from(list(Finish)),
)  # fmt: skip
ANSWERS = st.builds(Answer, COMPLETIONS, COUNT, st.none() | SHARE, st.integers(1, 9), TEXT, TEXT)
PROBLEM = Problem("p", "sums", "s", "1 + 1", "2", {}, "dev")


@settings(max_examples=25)
@given(state=STATES, last=st.none() | STATES)
def test_the_state_of_a_run(tmp_path_factory: pytest.TempPathFactory, state: State, last: State | None) -> None:
    folder = tmp_path_factory.getbasetemp()
    whole = State(**{**vars(state), "unended": last})
    write_json(folder / STATE, whole.to_json())
    assert read_state(folder) == whole


@settings(max_examples=25)
@given(stage=st.none() | st.tuples(TEXT, COUNT), surgery=TABLE, guard=TABLE, flight=st.none() | TABLE,
       rates=st.dictionaries(TEXT, SHARE, max_size=3), edges=st.lists(SHARE, max_size=3), seen=COUNT)  # fmt: skip
def test_the_memory_of_a_run(
    stage: Any, surgery: Any, guard: Any, flight: Any, rates: Any, edges: Any, seen: int
) -> None:
    memory = Memory(stage, surgery, Difficulty(rates, edges, seen), Kept(guard), flight)
    assert Memory.from_json(parsed(to_json(memory.to_json()))) == memory


@settings(max_examples=25)
@given(answer=ANSWERS, verdict=VERDICTS, sample=COUNT, turn=st.integers(-1, 3), credit=st.none() | SHARE)
def test_a_judged_answer(
    tmp_path_factory: pytest.TempPathFactory, answer: Answer, verdict: Verdict, sample: int, turn: int, credit: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / SAMPLES
    one = Judged(PROBLEM, sample, answer, verdict, 0.25, 1.5, turn, credit)
    write_rows(path, [as_row(one)])
    (row,) = read_records(path, StoredAnswer)
    assert from_row(row, PROBLEM) == one


@settings(max_examples=25)
@given(verdict=VERDICTS)
def test_a_verdict_on_the_wire(verdict: Verdict) -> None:
    again = verdict_from_wire(parsed(to_json(verdict_to_wire(verdict))))
    assert again == Verdict(**{**{f: getattr(verdict, f) for f in verdict.__slots__},
                               "isolation": f"remote {verdict.isolation}"})  # fmt: skip


@settings(max_examples=25)
@given(prompts=st.lists(st.tuples(TEXT, TEXT), max_size=3), facts=st.dictionaries(st.text("abc", min_size=1), TEXT))
def test_a_manifest(tmp_path_factory: pytest.TempPathFactory, prompts: list[tuple[str, str]], facts: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "manifest.jsonl"
    problems = [Problem(f"{i}{name}", "e", "s", text, None, {}, "train") for i, (name, text) in enumerate(prompts)]
    manifest = manifest_of(Path("rows.jsonl"), problems, facts)
    write_manifest(manifest, path)
    assert read_manifest(path) == manifest


@settings(max_examples=25)
@given(rows=st.lists(TABLE, max_size=3))
def test_lines_of_a_log(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    path = tmp_path_factory.getbasetemp() / "log.jsonl"
    write_rows(path, rows)
    assert read_lines(path) == rows
