"""Problems survive the way to disk and back, and a damaged file is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.data.rows import is_problem_row, read_problems, to_row, write_problems
from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import UserError

PROBLEMS = Countdown(numbers=(2, 3)).problems("dev", 12, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["problems.jsonl", "problems.parquet"])
def test_there_and_back(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    assert write_problems(tmp_path / name, PROBLEMS) == 12
    assert list(read_problems(tmp_path / name)) == PROBLEMS


def test_rows_have_verls_columns() -> None:
    row = to_row(PROBLEMS[0], 0)
    assert set(row) == {"data_source", "prompt", "ability", "reward_model", "extra_info"}
    assert row["prompt"][0]["role"] == "user" and row["reward_model"]["style"] == "rule"
    assert row["extra_info"]["split"] == "dev"


def test_a_row_is_known_by_the_four_columns_that_every_reader_needs() -> None:
    row = {name: value for name, value in to_row(PROBLEMS[0], 0).items() if name != "ability"}
    assert is_problem_row(row) and is_problem_row(row | {"more": 1})
    assert not any(is_problem_row({name: row[name] for name in row if name != left}) for left in row)
    assert not is_problem_row(row | {"extra_info": {"graph": "", "problem_text": ""}}), "somebody else's"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.pop("ability"), "column 'ability' is missing"),
        (lambda row: row["extra_info"].update(split="training"), "allowed: train, dev, test"),
        (lambda row: row["prompt"][0].update(content="1 1 = 2\n"), "not what its key says"),
        (lambda row: row.update(prompt=[]), "column 'prompt': a list of messages was expected"),
        (lambda row: row["reward_model"].update(ground_truth="{"), r"column 'reward_model.ground_truth': not JSON"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, change, message: str) -> None:
    rows = [to_row(problem, i) for i, problem in enumerate(PROBLEMS[:3])]
    change(rows[1])
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match=message) as caught:
        list(read_problems(path))
    assert "problems.jsonl:2" in str(caught.value)


def test_not_json_and_other_endings(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"data_source": \n')
    with pytest.raises(UserError, match=r"a\.jsonl:1: not JSON"):
        list(read_problems(tmp_path / "a.jsonl"))
    with pytest.raises(UserError, match=r"allowed: .jsonl, .parquet"):
        write_problems(tmp_path / "a.csv", PROBLEMS)


def test_the_parquet_file_has_the_types_verl_reads(tmp_path: Path) -> None:
    """RLHFDataset hands `prompt` to a chat template and reads data_source, reward_model and extra_info.index."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    write_problems(tmp_path / "a.parquet", PROBLEMS)
    schema = parquet.read_schema(tmp_path / "a.parquet")
    assert schema.names == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    message = pyarrow.struct({"role": pyarrow.string(), "content": pyarrow.string()})
    assert schema.field("prompt").type == pyarrow.list_(message)
    assert schema.field("reward_model").type == pyarrow.struct(
        {"style": pyarrow.string(), "ground_truth": pyarrow.string()}
    )
    extra = {field.name: field.type for field in schema.field("extra_info").type}
    assert extra.pop("index") == pyarrow.int64() and set(extra.values()) == {pyarrow.string()}
    first = parquet.read_table(tmp_path / "a.parquet").to_pylist()[0]
    assert first["prompt"] == [{"role": "user", "content": PROBLEMS[0].prompt}]
