"""rlvr runs, show and tail as a person calls them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from run_folders import lines, made_evaluation, made_run, metrics_row

from rlvrlab.cli.runs import SORTS, tokens_of
from rlvrlab.cli.tail import follow, line_of
from rlvrlab.record.files import duration
from rlvrlab.record.run import Run
from rlvrlab.report.gather import gather
from rlvrlab.report.runs import Entry

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from command_line import RLVR, errors, inside


def test_runs_prints_a_table_and_json(tmp_path, monkeypatch, capsys) -> None:
    made_run(tmp_path / "experiments", "alpha")
    made_run(tmp_path / "experiments", "beta", status="failed")
    done = inside(monkeypatch, capsys, "runs", "--add-tag", "beta", "odd", folder=tmp_path)
    assert done.returncode == 0
    beta = next(line for line in done.stdout.splitlines() if line.startswith("beta"))
    assert beta.split()[:8] == ["beta", "failed", "grpo", "10/10", "50.0", "[40.0,", "60.0]", "320"]
    assert beta.split()[-1] == "odd" and beta.split()[-2] == "s"
    found = json.loads(inside(monkeypatch, capsys, "runs", "--json", "--tag", "odd", folder=tmp_path).stdout)
    assert [(e["name"], e["tags"], e["step"]) for e in found] == [("beta", ["odd"], 10)]
    done = inside(monkeypatch, capsys, "runs", "--search", "alpha", folder=tmp_path)
    assert "1 of 2 below experiments/; 1 others do not fit the search" in done.stdout and "beta" not in done.stdout


def test_runs_say_in_which_settings_they_differ(tmp_path, monkeypatch, capsys) -> None:
    for name, n in (("alpha", 4), ("beta", 16)):
        made_run(tmp_path / "experiments", name, rollout={"n": n})
    other = made_run(tmp_path / "experiments", "gamma", rollout={"n": 99}) / "config.json"
    other.write_text(other.read_text().replace('"name": "made"', '"name": "another"'))
    monkeypatch.setenv("COLUMNS", "80")
    told = inside(monkeypatch, capsys, "runs", "--diff", folder=tmp_path).stdout
    assert "settings that differ" in told and "rollout.n=16" in told and "rollout.n=99" not in told
    assert "seed=" not in told, "all of them have the same"
    last = tmp_path / "experiments" / "beta" / "config.json"
    last.write_text(last.read_text().replace('"seed": 3', '"seed": 4'))
    assert "seed=4 rollout.n=16" in inside(monkeypatch, capsys, "runs", "--diff", folder=tmp_path).stdout
    assert "settings" not in inside(monkeypatch, capsys, "runs", folder=tmp_path).stdout
    found = json.loads(inside(monkeypatch, capsys, "runs", "--diff", "--json", folder=tmp_path).stdout)
    assert {one["name"]: one["settings"].get("rollout.n") for one in found} == {"alpha": 4, "beta": 16, "gamma": None}


@pytest.mark.parametrize("by", SORTS)
def test_every_order_that_is_offered_exists(tmp_path, monkeypatch, capsys, by: str) -> None:
    made_run(tmp_path / "experiments", "one")
    assert inside(monkeypatch, capsys, "runs", "--sort", by, folder=tmp_path).returncode == 0


def test_runs_of_an_empty_folder_and_of_none(tmp_path, monkeypatch, capsys) -> None:
    done = inside(monkeypatch, capsys, "runs", ".", folder=tmp_path)
    assert done.returncode == 0 and "no runs yet" in done.stdout
    assert "no such folder" in errors(inside(monkeypatch, capsys, "runs", "gone", folder=tmp_path))[0]


def test_show_explains_health_and_names_what_is_missing(tmp_path, monkeypatch, capsys) -> None:
    folder = made_run(tmp_path / "experiments", "sick", status="interrupted")
    dead = {"groups/zero_variance": 1.0, "actor/entropy": 0.5}  # three steps in a row: a warning needs persistence
    rows = [metrics_row(step, value, **dead) for step, value in ((3, 0.5), (4, 0.4), (5, 0.4))]
    (folder / "logs/metrics.jsonl").write_text(lines(rows) + '{"torn": ')
    done = inside(monkeypatch, capsys, "show", "sick", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "sick  interrupted" in text and "does it learn?" in text
    assert "rlvr train --resume experiments/sick" in text
    assert "✗ groups/zero_variance 1 (normal: ≤ 0.95)" in text and "→ all wrong: more SFT" in text
    assert "✓ actor/entropy 0.5" in text
    assert "grpo   50.0 [40.0, 60.0]" in text and "40.0 [30.0, 50.0]" in text
    assert "█▁" in text and "logs/metrics.jsonl" in text
    found = json.loads(inside(monkeypatch, capsys, "show", "sick", "--json", folder=tmp_path).stdout)
    states = {light["metric"]: light["state"] for light in found["lights"]}
    assert states["groups/zero_variance"] == "alarm" and states["actor/entropy"] == "good"
    assert found["status"] == "interrupted" and found["curves"]["val-core/countdown/acc"] == [0.5, 0.4, 0.4]


def test_a_last_value_outside_its_range_has_no_tick(tmp_path, monkeypatch, capsys) -> None:
    """One step is no warning, and no tick either; page and screen ask the same monitors."""
    folder = made_run(tmp_path / "experiments", "odd")
    rows = [metrics_row(step, 0.5, **{"response_length/clip_ratio": 0.828 * (step == 5)}) for step in (3, 4, 5)]
    (folder / "logs/metrics.jsonl").write_text(lines(rows))
    text = inside(monkeypatch, capsys, "show", "odd", folder=tmp_path).stdout
    assert "! response_length/clip_ratio 0.828 (normal: ≤ 0.5)" in text and "warned" not in text


def test_an_alarm_that_has_not_recovered_says_when_it_was_outside(tmp_path, monkeypatch, capsys) -> None:
    """The last value is within its range, so the lamp needs another number to be understood."""
    folder = made_run(tmp_path / "experiments", "odd")
    rows = [
        metrics_row(step, 0.5, **{"response_length/clip_ratio": 0.828 if step < 6 else 0.1}) for step in range(3, 8)
    ]
    (folder / "logs/metrics.jsonl").write_text(lines(rows))
    text = inside(monkeypatch, capsys, "show", "odd", folder=tmp_path).stdout
    assert "✗ response_length/clip_ratio 0.1 (normal: ≤ 0.5), outside at step 5: 0.828, most answers are cut" in text
    (folder / "logs/metrics.jsonl").write_text(lines(rows[:3]))
    text = inside(monkeypatch, capsys, "show", "odd", folder=tmp_path).stdout
    assert "✗ response_length/clip_ratio 0.828" in text and "outside at step" not in text


def test_the_cells_of_cards_keep_their_lines(records, monkeypatch, capsys) -> None:
    """An accuracy stands above its interval, in `show` as at the end of training."""
    from rlvrlab.cli.progress import Progress
    from rlvrlab.record.headline import summarise
    from rlvrlab.train.session import Ended, resolved_of

    folder = records / "run"
    shown = inside(monkeypatch, capsys, "show", str(folder), folder=folder).stdout
    Progress(resolved_of(folder), as_json=False).end(Ended(folder, "finished", 0, summarise(folder)))
    for text, title in ((shown, "Phases' cards: 12 test problems"), (capsys.readouterr().out, "12 test problems, per")):
        rows = text.partition(title)[2].splitlines()
        first = next(i for i, row in enumerate(rows) if "accepted@1" in row)
        assert "–" in rows[first + 1] and "\\n" not in text


def test_show_of_little(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "experiments/bare").mkdir(parents=True)
    (tmp_path / "experiments/bare/config.json").write_text('{"schema": 1, "recipe": {}}')
    done = inside(monkeypatch, capsys, "show", "bare", folder=tmp_path)
    assert done.returncode == 0 and "missing: logs/metrics.jsonl" in done.stdout
    made_evaluation(tmp_path / "experiments/base")
    done = inside(monkeypatch, capsys, "show", "base", folder=tmp_path)
    assert done.returncode == 0 and "pass@4" in done.stdout and "29.0 % [19.0, 39.0]" in done.stdout
    assert "no run 'zzz'" in errors(inside(monkeypatch, capsys, "show", "zzz", folder=tmp_path))[0]


@pytest.mark.parametrize("name", ["0_sft.json", "first_sft.json"])
def test_a_damaged_card_costs_only_the_cards(tmp_path, monkeypatch, capsys, name: str) -> None:
    cards = made_run(tmp_path / "experiments", "one") / "analysis" / "cards"
    cards.mkdir(parents=True)
    (cards / name).write_text('{"phase": ')
    done = inside(monkeypatch, capsys, "show", "one", folder=tmp_path)
    assert done.returncode == 0 and "missing: analysis/cards: cannot be read (" in done.stdout, done.stderr
    assert "50.0 [40.0, 60.0]" in done.stdout


def test_hostile_words_stay_inert(tmp_path, monkeypatch, capsys) -> None:
    folder = made_run(tmp_path / "experiments", "evil", question="\x1b[2J[red]boo[/red]")
    (folder / "logs/events.jsonl").write_text(lines([{"kind": "warning", "text": "\x1b]0;x\x07 [bold]"}]))
    for verb in ("show", "tail", "runs"):
        done = inside(monkeypatch, capsys, verb, *(["evil"] if verb != "runs" else []), folder=tmp_path)
        assert done.returncode == 0 and "\x1b" not in done.stdout and "\x07" not in done.stdout
        assert verb != "show" or "[red]boo[/red]" in done.stdout


def test_tail_follows_to_the_end(tmp_path) -> None:
    run = Run.create(tmp_path, "live", {"recipe": {}}, {"status": "running"})
    run.metrics(metrics_row(3))

    def train() -> None:
        followed.wait(60)  # a run that ends before anyone looks was never seen running
        for step in (4, 5):
            time.sleep(0.2)
            run.metrics(metrics_row(step))
        run.event("end", "finished: all phases done")
        run.info(status="finished")

    followed, seen = threading.Event(), []
    writer = threading.Thread(target=train)
    writer.start()
    for told in follow(run.folder, 10, wait=True):
        seen.append(told)
        if told[0] == "status":
            followed.set()
    writer.join()
    run.close()
    assert [row["step"] for log, row in seen if log == "metrics"] == [3, 4, 5]
    assert [row["kind"] for log, row in seen if log == "events"] == ["end"]
    assert [row["status"] for log, row in seen if log == "status"] == ["running", "finished"]


def test_tail_prints_lines_people_and_machines_read(tmp_path, monkeypatch, capsys) -> None:
    made_run(tmp_path / "experiments", "one")
    done = inside(monkeypatch, capsys, "tail", "one", "-n", "2", folder=tmp_path)
    assert done.returncode == 0
    assert "grpo 8  step 10  dev 50.0 % [40.0, 60.0]  train 1  entropy 0.5  dead groups 0.5" in done.stdout
    assert done.stdout.rstrip().endswith("— this run is finished")
    done = inside(monkeypatch, capsys, "tail", "one", "--json", folder=tmp_path)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["step"] for row in rows if row["log"] == "metrics"] == list(range(1, 11))
    assert line_of("metrics", metrics_row(9), ("time/step_s",)) == "grpo 7  step 9  time/step_s 0.1"


def test_tail_and_page_say_what_is_waited_for_and_since_when(tmp_path, monkeypatch, capsys) -> None:
    words = "step 4 has waited since 2026-01-31T12:00:00Z, 400 s by now for judge (398 s)"
    run = Run.create(tmp_path / "experiments", "live", {"recipe": {}}, {"status": "running"})
    run.metrics(metrics_row(3))
    run.event("waiting", words)
    done = inside(monkeypatch, capsys, "tail", "live", "--no-follow", folder=tmp_path)
    run.close()
    assert f"waiting: {words}" in done.stdout
    told = next(section for section in gather([run.folder])["sections"] if section["view"] == "events")
    assert any(row["kind"] == "waiting" and row["text"] == words for row in told["data"])


@pytest.mark.slow
def test_ctrl_c_leaves_tail_without_a_word(tmp_path) -> None:
    run = Run.create(tmp_path / "experiments", "live", {"recipe": {}}, {"status": "running"})
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen([*RLVR, "tail"], cwd=tmp_path, env=env, stdout=-1, stderr=-1, text=True)
    line = ""
    try:
        while "is running" not in line:
            line = process.stdout.readline()
            assert line, "tail ended early"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()  # what is left running fails another test, later
        process.communicate()
        run.close()
    assert (process.returncode, err) == (0, "")


def test_numbers_are_short() -> None:
    shown = [tokens_of(Entry(Path(), "", "run", "", tokens=n)) for n in (7, 1234, 1_500_000, 250_000_000)]
    assert shown == ["7", "1.2k", "1.5M", "250M"]
    assert [duration(s) for s in (3, 600, 9000, 500_000)] == ["3 s", "10 min", "2.5 h", "6 d"]


def test_the_dashboard_says_why_it_cannot_start(tmp_path, monkeypatch, capsys) -> None:
    assert "gone: no such folder" in errors(inside(monkeypatch, capsys, "serve", "report", "gone", folder=tmp_path))[0]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ("serve", "report", ".", "--port", str(taken.getsockname()[1]))
        assert "choose another --port" in errors(inside(monkeypatch, capsys, *words, folder=tmp_path))[0]
