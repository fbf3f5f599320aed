"""Numbers in a folder of somebody else: of thousands of digits, of another type, or too deep; one line says so."""

from __future__ import annotations

import json
import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from run_folders import made_evaluation, made_run, metrics_row

from rlvrlab import plain_files
from rlvrlab.errors import LabError
from rlvrlab.evals.monitors import health_of
from rlvrlab.record import headline
from rlvrlab.record.files import read_facts, read_lines, to_json
from rlvrlab.report.gather import gather, overview
from rlvrlab.report.runs import Entry, list_runs, sort_runs

DIGITS = "9" * 4300


def listed(root: Path) -> dict[str, Entry]:
    """Every entry by name, and that all of them can be sorted and told as JSON."""
    entries = list_runs(root)
    for order in ("age", "name", "status", "metric", "step", "tokens"):
        sort_runs(entries, order)
    json.loads(to_json([entry.facts() for entry in entries]))
    return {entry.name: entry for entry in entries}


def with_metrics(folder: Path, **numbers: Any) -> None:
    made_evaluation(folder)
    by_data = json.loads((folder / "metrics.json").read_text())
    (folder / "metrics.json").write_text(json.dumps({name: {**one, **numbers} for name, one in by_data.items()}))


def test_a_list_times_a_number_fills_no_memory(tmp_path: Path) -> None:
    with_metrics(tmp_path / "bomb", samples=[0], avg_gen_tokens=30_000_000)
    tracemalloc.start()
    entry = listed(tmp_path)["bomb"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert entry.tokens is None and peak < 10 << 20


@pytest.mark.parametrize("value", ["<b>", [0.5], {"a": 1}, True, 2.0, -1, 1e308, float("nan")])
def test_a_share_of_another_kind_does_not_hide_the_other_runs(tmp_path: Path, value: Any) -> None:
    with_metrics(tmp_path / "odd", accepted_at_1=value)
    made_run(tmp_path, "good")
    entries = listed(tmp_path)
    assert entries["good"].status == "finished"
    assert entries["odd"].metric is None and "accepted_at_1 is no share" in entries["odd"].note


def test_numbers_of_thousands_of_digits_make_one_damaged_folder(tmp_path: Path) -> None:
    for name in ("steps", "log"):
        made_run(tmp_path, name)
    config = tmp_path / "steps" / "config.json"
    config.write_text(config.read_text().replace('"steps": 8', f'"steps": {DIGITS}'))
    log = tmp_path / "log" / "logs" / "metrics.jsonl"
    log.write_text(log.read_text() + f'{{"step": {DIGITS}, "phase": "grpo", "time/step_s": {DIGITS}}}\n')
    entries = listed(tmp_path)
    assert (entries["steps"].status, entries["steps"].note) == ("damaged", "ValueError: a number of 4300 digits")
    assert (entries["log"].status, entries["log"].step) == ("finished", 10)


def test_a_long_line_is_searched_once(tmp_path: Path, quickly) -> None:
    folder = made_run(tmp_path, "long")
    (folder / "logs" / "metrics.jsonl").write_text('{"a": 1, ' + '"response_length/mean": 1' * 7500 + "}\n")
    assert quickly(0.2, lambda: listed(tmp_path))["long"].tokens is None


def test_a_page_leaves_such_lines_out(tmp_path: Path) -> None:
    folder = made_run(tmp_path, "run")
    log = folder / "logs" / "metrics.jsonl"
    odd = {key: 10**400 if isinstance(value, int | float) else value for key, value in metrics_row(11, 0.5).items()}
    log.write_text(log.read_text() + json.dumps(odd) + "\n" + json.dumps(metrics_row(12, 1e308)) + "\n")
    document = gather(folder)
    assert any(one["what"] == "logs/metrics.jsonl:12" for one in document["missing"])
    to_json(document)


def test_facts_beyond_bounds_are_one_line_and_answers_keep_theirs(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    for text in (f'{{"a": {DIGITS}}}', '{"a":' * 900 + "1" + "}" * 900, "[" * 101 + "]" * 101):
        path.write_text(text)
        with pytest.raises(LabError, match=r"digits|nested too deeply"):
            read_facts(path, "restore it")
    path.write_text(json.dumps({"a": 10**300, "b": "9" * 5000, "c": [[1]] * 500}))
    assert read_facts(path, "restore it")["a"] == 10**300
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"reference": 10**1000}) + "\n{}\n")
    assert read_lines(lines, answers=True)[0] == {"reference": 10**1000}
    with pytest.raises(LabError, match=r"lines\.jsonl:1"):
        read_lines(lines)


def test_too_many_digits_are_those_of_one_number_whatever_stands_around_them() -> None:
    most = plain_files.DIGITS
    for before, after in product(("", "1,", "é\ud800", "٣"), ("", ",1", "٣", "é")):
        for digits, many in (("7" * most, False), ("0123456789" * 31, True), ("9" * (most + 1), True)):
            text = f"{before}{digits}{after}"
            both = [plain_files.has_long_digits(one) for one in (text, text.encode("utf-8", "surrogatepass"))]
            assert both == [many, many], text


def test_what_a_phase_is_watched_by_is_looked_up_once_not_for_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(overview, "health_of", lambda phase: asked.append(phase) or health_of(phase))
    folder = made_run(tmp_path, "run", steps=40)
    log = folder / "logs" / "metrics.jsonl"
    log.write_text(log.read_text() + json.dumps({"step": 41}) + "\n")
    document = gather(folder)
    assert sorted(map(str, asked)) == ["", "grpo", "sft"]
    lights = next(one["data"]["lights"] for one in document["sections"] if one["id"] == "health")
    assert next(one for one in lights if one["metric"] == "actor/entropy")["outside"] == [0, 38]


@pytest.mark.parametrize("value", [1e308, 10**300, "x", [1]])
def test_a_card_without_a_share_is_no_result(tmp_path: Path, value: Any) -> None:
    folder = made_run(tmp_path, "run")
    (folder / "analysis" / "cards").mkdir(parents=True)
    numbers = {"accepted_at_1": value, "accepted_at_1_low": value, "accepted_at_1_high": value, "problems": value}
    (folder / "analysis" / "cards" / "2_grpo.json").write_text(json.dumps({"step": value, "metrics": numbers}))
    assert headline.tested(folder) is None and listed(tmp_path)["run"].test is None
