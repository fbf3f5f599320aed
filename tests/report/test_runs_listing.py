"""The list of runs: what it says, what it survives, and what it leaves unread."""

from __future__ import annotations

import json
import os
import time

import pytest
from run_folders import lines, made_evaluation, made_run, metrics_row

from rlvrlab.errors import UserError
from rlvrlab.record.run import Run
from rlvrlab.report import runs as listing
from rlvrlab.report import status as status_room
from rlvrlab.report.follow import Follower
from rlvrlab.report.runs import Entry, choose, find_runs, list_runs, sort_runs, summarise_run
from rlvrlab.report.tags import change_tag, read_tags


def test_a_line_says_what_the_files_say(tmp_path) -> None:
    made_run(tmp_path, "one", steps=10, ago_s=120)
    (entry,) = list_runs(tmp_path)
    assert (entry.name, entry.status, entry.phase, entry.step, entry.steps) == ("one", "finished", "grpo", 10, 10)
    assert entry.metric == pytest.approx({"accuracy": 0.5, "low": 0.4, "high": 0.6})
    assert entry.tokens == 8 * 2 * 4 * 5 and entry.tokens_exact  # 8 steps × 2 groups × 4 answers × 5 tokens
    assert entry.curve == (0.0, 0.25, 0.5) and entry.seed == 3
    assert 119 < entry.age_s < 150


def test_long_runs_are_projected_and_say_so(tmp_path) -> None:
    made_run(tmp_path, "long", steps=4000)
    (entry,) = list_runs(tmp_path)
    assert not entry.tokens_exact and entry.tokens == pytest.approx(3998 * 40, rel=0.02)
    assert entry.step == 4000 and entry.metric["accuracy"] == pytest.approx(0.5)


def test_the_tokens_of_a_log_of_some_hundred_steps_are_counted(tmp_path) -> None:
    folder = made_run(tmp_path, "short", steps=2000)
    assert (folder / "logs/metrics.jsonl").stat().st_size > listing.WINDOWS * listing.WINDOW
    (entry,) = list_runs(tmp_path)
    assert entry.tokens_exact and entry.tokens == 1998 * 40


def test_evaluations_are_listed_and_those_inside_runs_are_not(tmp_path) -> None:
    run = made_run(tmp_path, "deep/er/one")
    made_evaluation(run / "evaluations/x")
    made_evaluation(tmp_path / "base")
    assert {e.name: e.kind for e in list_runs(tmp_path)} == {"deep/er/one": "run", "base": "evaluation"}
    found = summarise_run(tmp_path / "base")
    assert (found.metric["accuracy"], found.tokens, found.about) == (0.25, 48, "EVAL@k on countdown")


def test_the_lock_tells_running_from_killed(tmp_path) -> None:
    run = Run.create(tmp_path, "live", {"recipe": {}}, {"status": "running"})
    assert summarise_run(run.folder).status == "running"
    before = time.time() - 3600
    for path in (run.folder / "run_info.json", run.folder / "config.json", *(run.folder / "logs").iterdir()):
        os.utime(path, (before, before))
    assert summarise_run(run.folder).status == "stale"
    run.close()
    assert summarise_run(run.folder).status == "killed"  # this process lives: its number alone would say running
    lock = json.loads((run.folder / ".lock").read_text())
    (run.folder / ".lock").write_text(json.dumps({**lock, "host": "elsewhere"}))
    assert summarise_run(run.folder).status == "stale"
    os.utime(run.folder / "run_info.json")
    assert summarise_run(run.folder).status == "running"


def test_without_the_kernels_list_the_process_is_asked(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(status_room, "LOCKS", tmp_path / "none")
    run = Run.create(tmp_path, "live", {"recipe": {}}, {"status": "running"})
    assert summarise_run(run.folder).status == "running"
    lock = json.loads((run.folder / ".lock").read_text())
    (run.folder / ".lock").write_text(json.dumps({**lock, "pid": 2**22 - 7}))
    assert summarise_run(run.folder).status == "killed"
    run.close()


def test_looking_leaves_everything_as_it_was(tmp_path) -> None:
    made_run(tmp_path, "one")
    run = Run.create(tmp_path, "live", {"recipe": {}}, {"status": "running"})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    list_runs(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    run.close()


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("config.json", "{", "damaged"),
        ("config.json", "[]", "damaged"),
        ("run_info.json", '"x"', "damaged"),
        ("logs/metrics.jsonl", "garbage\n[]\n" + lines([metrics_row(4, 0.5)]) + '{"step": 5, "ph', "finished"),
        ("logs/metrics.jsonl", lines([{"step": "four", "val-core/x/acc": 0.1}]), "finished"),
        ("logs/metrics.jsonl", "", "finished"),
    ],
)
def test_one_damaged_folder_does_not_hide_the_others(tmp_path, file: str, content: str, says: str) -> None:
    made_run(tmp_path, "good")
    (made_run(tmp_path, "bad") / file).write_text(content)
    found = {e.name: e for e in list_runs(tmp_path)}
    assert found["good"].status == "finished" and found["bad"].status == says
    assert bool(found["bad"].note) == (says == "damaged")
    for by in ("age", "name", "status", "metric", "step", "tokens"):
        assert len(sort_runs(found.values(), by)) == 2


def test_links_out_of_the_folder_are_not_followed(tmp_path) -> None:
    made_run(tmp_path / "outside", "secret")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/link").symlink_to(tmp_path / "outside")
    (tmp_path / "inside/direct").symlink_to(tmp_path / "outside/secret")
    assert find_runs(tmp_path / "inside") == []


def test_the_best_come_first_and_what_is_unknown_last(tmp_path) -> None:
    shares = {"unknown": None, "low": {"accuracy": 0.2}, "none": {"accuracy": 0.0}, "high": {"accuracy": 0.9}}
    entries = [Entry(tmp_path, name, "run", "finished", metric=metric) for name, metric in shares.items()]
    assert [e.name for e in sort_runs(entries, "metric")] == ["high", "low", "none", "unknown"]


def test_search_tags_and_sort(tmp_path) -> None:
    for name, steps in (("alpha", 10), ("beta", 5), ("gamma", 2)):
        made_run(tmp_path, name, steps=steps)
    change_tag(tmp_path / "beta", "keep", True)
    change_tag(tmp_path / "beta", "paper-1", True)
    entries = list_runs(tmp_path)
    assert [e.name for e in choose(entries, "LEARN gam")] == ["gamma"]
    assert [e.name for e in choose(entries, tags=["keep", "paper-1"])] == ["beta"]
    assert choose(entries, "nothing") == []
    assert [e.name for e in sort_runs(entries, "step")] == ["alpha", "beta", "gamma"]
    assert change_tag(tmp_path / "beta", "keep", False) == ("paper-1",) == read_tags(tmp_path / "beta")
    with pytest.raises(UserError, match="letters, digits"):
        change_tag(tmp_path / "beta", "../x y", True)


def test_a_list_parses_the_last_line_and_the_examinations_of_a_long_run_and_no_others(monkeypatch, tmp_path) -> None:
    text = lines([metrics_row(step, 0.5 if step % 10 == 0 else None) for step in range(600)])
    (made_run(tmp_path, "long", steps=1) / "logs/metrics.jsonl").write_text(text)
    parsed: list[bytes] = []
    real = listing.parse
    monkeypatch.setattr(listing, "parse", lambda text: parsed.extend(text.splitlines()) or real(text))
    [entry] = list_runs(tmp_path)
    assert entry.step == 599 and len(entry.curve) == 60
    assert len(parsed) == 1 + 60, "parsing all 600 of every run takes most of a list's time"


def test_a_follower_gives_every_line_once_and_waits_for_torn_ones(tmp_path) -> None:
    path = tmp_path / "x.jsonl"
    follower = Follower(path)
    assert follower.read() == []
    path.write_text('{"a": 1}\n{"a": 2')
    assert follower.read() == [{"a": 1}] and follower.read() == []
    with path.open("a") as file:
        file.write("2}\nnot json\n[1]\n{}\n")
    assert follower.read() == [{"a": 22}, {}], "two damaged lines are passed over"
    path.write_text('{"a": 3}\n')  # shorter: a resume went back
    assert follower.read() == [{"a": 3}] and follower.rewound
    assert follower.read() == [] and not follower.rewound
    (tmp_path / "new").write_text('{"a": 4}\n{"a": 5}\n')
    (tmp_path / "new").rename(path)
    assert follower.read() == [{"a": 4}, {"a": 5}] and follower.rewound
    later = Follower(path)
    later.skip_to_last(1)
    assert later.read() == [{"a": 5}]
    assert Follower(path, later.position, later.inode).read() == []
    assert [r["a"] for r in Follower(path, 9, follower.inode + 1).read()] == [4, 5]  # another file than before


def test_a_line_longer_than_a_block_arrives_whole(tmp_path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"a": "x" * 3_000_000}) + "\n" + '{"b": 1}\n')
    follower = Follower(path)
    assert [list(row) for row in follower.read() + follower.read()] == [["a"], ["b"]]
