"""A folder that is damaged, torn, empty or strange still becomes a document, or is refused in one line."""

from __future__ import annotations

import json
import random
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from gathered import sections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.errors import RunError, UserError
from rlvrlab.record.files import Lock
from rlvrlab.report.gather import gather

FILES = ("config.json", "run_info.json", "logs/metrics.jsonl", "logs/events.jsonl", "rollouts/step_5.jsonl",
         "analysis/cards/0_baseline.json")  # fmt: skip


DAMAGE = {
    "gone": None,
    "empty": b"",
    "torn": b'{"step": 3, "phase": "gr',
    "binary": bytes(range(256)) * 4,
    "a list": b"[1, 2, 3]\n",
    "deep": b"[" * 100_000,
    "strange values": b'{"step": 1, "phase": {"a": []}, "schema": "old", "recipe": [], "metrics": 7, "text": {}}\n',
}


@pytest.fixture(scope="module")
def whole_sections(records) -> set[str]:
    return set(sections(gather(records / "run")))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_costs_only_what_it_held(run_folder, whole_sections, file: str, damage: str) -> None:
    path = run_folder / file
    if DAMAGE[damage] is None:
        path.unlink()
    else:
        path.write_bytes(DAMAGE[damage])
    document = gather(run_folder)
    found = set(sections(document))
    assert "overview" in found and len(found) >= len(whole_sections) - 7
    if damage in ("torn", "binary", "deep"):
        assert any(one["what"].startswith(file) for one in document["missing"]), document["missing"]


def test_a_run_in_progress_shows_all_but_the_torn_line(run_folder) -> None:
    path = run_folder / "logs/metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 30])
    info = json.loads((run_folder / "run_info.json").read_text())
    (run_folder / "run_info.json").write_text(json.dumps({**info, "status": "running"}))
    document = gather(run_folder)
    lines = whole.count(b"\n")
    assert document["missing"] == [{"what": f"logs/metrics.jsonl:{lines}", "why": document["missing"][0]["why"]}]
    assert "torn" in document["missing"][0]["why"]
    progress = sections(document)["overview"]["progress"]
    assert progress["step"] == 7 and progress["total"] == 8
    assert document["status"] == "killed" and progress["left_s"] is None, "nobody holds its lock"
    lock = Lock(run_folder)
    document = gather(run_folder)
    lock.release()
    seconds = sorted(
        row["time/step_s"] for row in map(json.loads, path.read_text().splitlines()[:-1]) if "time/step_s" in row
    )
    left = sections(document)["overview"]["progress"]["left_s"]
    assert document["status"] == "running" and left == pytest.approx(seconds[len(seconds) // 2], rel=0.01)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.slow
@settings(suppress_health_check=FIXTURES)
@given(strange=JSON, place=st.randoms(use_true_random=False), many=st.integers(1, 12))
def test_no_strange_value_stops_it(records, tmp_path_factory, strange: Any, place: random.Random, many: int) -> None:
    folder = tmp_path_factory.mktemp("strange")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        rows = (
            [json.loads(line) for line in (records / "run" / name).read_text().splitlines()]
            if name.endswith("l")
            else [json.loads((records / "run" / name).read_text())]
        )
        for _ in range(many):
            row = place.choice(rows)
            while isinstance(row, dict) and row:
                if not (keys := sorted(row.keys() - {"schema"})):  # another schema is refused, see below
                    break
                key = place.choice(keys)
                if not isinstance(row[key], dict) or place.random() < 0.3:
                    row[key] = deepcopy(strange)
                    break
                row = row[key]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    sections(gather(folder))
    shutil.rmtree(folder)


def test_a_record_of_another_version_is_refused_by_name(run_folder) -> None:
    config = json.loads((run_folder / "config.json").read_text())
    (run_folder / "config.json").write_text(json.dumps({**config, "schema": 99, "news": {"a": 1}}))
    with pytest.raises(RunError, match=r"config\.json: schema 99, this version reads 1"):
        gather(run_folder)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path / "nowhere", "no such folder"),
        (lambda path: (path / "a/config.json", path)[1], "holds 1 runs"),
        (lambda path: (path / "notes.txt", path)[1], "neither of"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(tmp_path, make, words: str) -> None:
    (tmp_path / ("a" if "holds" in words else "b")).mkdir()
    (tmp_path / ("a/config.json" if "holds" in words else "notes.txt")).write_text("{}")
    with pytest.raises(UserError, match=words) as refused:
        gather(make(tmp_path))
    assert "\n" not in str(refused.value)


def test_an_empty_folder_is_a_page_that_says_so(tmp_path) -> None:
    document = gather(tmp_path)
    assert document["sections"] == [] and {"config.json", "logs/metrics.jsonl"} <= {
        m["what"] for m in document["missing"]
    }


def test_an_unfinished_evaluation_is_shown_from_its_answers(records, tmp_path) -> None:
    folder = Path(shutil.copytree(records / "best", tmp_path / "best"))
    for name in ("metrics.json", "summary.json"):
        (folder / name).unlink()
    samples = (folder / "samples.jsonl").read_bytes()
    middle_of_a_line = samples.index(b"\n", len(samples) // 2) + 10
    (folder / "samples.jsonl").write_bytes(samples[:middle_of_a_line])
    document = gather(folder)
    found = sections(document)
    assert found["overview"]["samples"] < 48 and found["overview"]["source"] == "samples.jsonl"
    assert any("samples.jsonl:" in one["what"] for one in document["missing"])
