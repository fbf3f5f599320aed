"""Rows of published and own data with anything in their place: read, left out or refused with their place; no null
ever becomes a text. The same for what other programs hand over: tool calls, tasks and submissions to a judge."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored import changed
from test_prepare import APPS, CLRS, CONTEST, GSM, HUMANEVAL, MATHS, ZEBRA
from texts import any_text

from rlvrlab.data import sources
from rlvrlab.data.documents import read_documents
from rlvrlab.data.presets import PRESETS, Preset
from rlvrlab.envs.data_files import read_row
from rlvrlab.envs.tool_calls import call_in, final_answer
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.judge.fusion.submissions import published
from rlvrlab.registry import find

sys.path.insert(0, str(Path(__file__).parents[1] / "envs" / "code"))
from evalplus_rows import HUMANEVAL_RELEASE, MBPP_RELEASE

GRAPHS = Path(__file__).parents[1] / "envs" / "graphs" / "published_rows.jsonl"
COUNTDOWN = {"nums": [1, 2, 3], "target": 6}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (PRESETS[name].env, row) for name, row in MATHS.items()},
    "gsm8k": ("gsm8k", GSM[3]),
    "humaneval": ("code", HUMANEVAL),
    "evalplus humaneval": ("code", HUMANEVAL_RELEASE),
    "evalplus mbpp": ("code", MBPP_RELEASE),
    "codecontests": ("code", CONTEST | {"name": "a"}),
    "apps": ("code", APPS),
    "zebralogic": ("zebra", ZEBRA),
    "clrs": ("clrs", CLRS),
    "countdown": ("countdown", COUNTDOWN),
    "own answers": ("answers", {"question": "1 + 1?", "answer": "2", "split": "train", "skill": "sums"}),
    **{
        f"graph {number}": ("graph_rows", json.loads(line))
        for number, line in enumerate(GRAPHS.read_text().splitlines()[:4])
    },
}
SUBMITTED = {"id": 1, "content": "Add.", "test_list": '["assert add(1, 2) == 3"]', "labels": '{"entry_point": "add"}',
             "canonical_solution": "def add(a, b):\n    return a + b\n"}  # fmt: skip
CALL = {"name": "sql", "arguments": {"query": "SELECT 1"}}


def problems_of(name: str, row: dict[str, Any]) -> list[Any]:
    kind, _ = ROWS[name]
    env = find("env", kind)()
    read = read_row(row, "rows.jsonl:1", env.read_row)
    return [] if read is None else list(read.problems("train"))


def said_none(problems: list[Any]) -> int:
    """How often `None` stands in what is asked and what is right; Python's tests may say so."""
    return json.dumps([[one.prompt, one.skill, one.reference] for one in problems], default=str).count("None")


@pytest.mark.parametrize("name", ROWS)
def test_good_rows_are_read(name: str) -> None:
    assert problems_of(name, ROWS[name][1])


@pytest.mark.parametrize("name", ROWS)
@given(seed=st.integers(0, 1 << 32))
def test_a_strange_row_is_read_or_refused_with_its_place(name: str, seed: int) -> None:
    row = changed(ROWS[name][1], random.Random(seed))
    if not isinstance(row, dict):
        return
    try:
        problems_of(name, row)
    except UserError as error:
        assert "rows.jsonl:1" in str(error) and "\n" not in str(error)


@pytest.mark.parametrize("name", ROWS)
def test_no_null_becomes_a_text(name: str) -> None:
    row = ROWS[name][1]
    for column in row:
        try:
            problems = problems_of(name, {**row, column: None})
        except UserError:
            continue
        assert said_none(problems) <= said_none(problems_of(name, row)), column


@given(seed=st.integers(0, 1 << 32))
def test_a_submitted_row_is_read_or_refused(seed: int) -> None:
    row = changed(SUBMITTED, random.Random(seed))
    try:
        assert isinstance(row, dict) and published(row)
    except UserError as error:
        assert "\n" not in str(error)


@given(seed=st.integers(0, 1 << 32), text=any_text(), style=st.sampled_from(["chat", "bare"]))
def test_any_call_of_a_tool_is_one_or_says_its_mistake(seed: int, text: str, style: Any) -> None:
    rng = random.Random(seed)
    for said in (text, f"<tool_call>{text}</tool_call>", f"<tool_call>{json.dumps(changed(CALL, rng))}</tool_call>"):
        call = call_in(said, style, ("sql", "python"))
        assert call is None or call.mistake or (call.tool in ("sql", "python") and isinstance(call.argument, str))
        final_answer(said, style, ("sql", "python"), 4)


@given(seed=st.integers(0, 1 << 32))
def test_an_audit_reads_any_row(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    _, row = ROWS[rng.choice(list(ROWS))]
    path = tmp_path_factory.getbasetemp() / "audited.jsonl"
    path.write_text(json.dumps(changed(row, rng)) + "\n")
    try:
        read_documents(path)
    except UserError as error:
        assert "\n" not in str(error)


class Broken:
    """A data set of the hub's client that fails when it is read."""

    def __iter__(self) -> Any:
        yield {"question": "1 + 1?", "answer": "#### 2"}
        raise OSError("corrupted shard")


@pytest.mark.parametrize("data", [Broken(), [{"question": "1"}, None], [3]], ids=["broken", "null", "number"])
def test_rows_of_the_hub_that_are_none_are_the_hubs_failure(monkeypatch: pytest.MonkeyPatch, data: Any) -> None:
    class Client:
        load_dataset = staticmethod(lambda *words, **named: data)

    monkeypatch.setattr(sources, "_alone", lambda: False)
    monkeypatch.setattr(sources, "_datasets", lambda: Client)
    with pytest.raises(InfrastructureError, match=r"owner/set\[train\]") as told:
        list(sources.hub_rows("hub:owner/set")[1])
    assert "\n" not in str(told.value)


def test_a_damaged_copy_of_a_saved_set_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Client:
        @staticmethod
        def load_from_disk(path: str) -> Any:
            raise ValueError("not arrow\nat all")

    (tmp_path / "state.json").write_text("{}")
    monkeypatch.setattr(sources, "_datasets", lambda: Client)
    with pytest.raises(UserError, match="cannot be read") as told:
        sources.rows_of("own", Preset("answers", {"train": "train"}), tmp_path)
    assert "\n" not in str(told.value)
