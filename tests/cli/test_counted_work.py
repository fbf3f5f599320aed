"""Problems are made before the first step, which may take long: everybody who waits hears how many there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import inside, tiny

from rlvrlab.cli import printing
from rlvrlab.cli.progress import Progress
from rlvrlab.notes import ANSWERS, counted, counting, made
from rlvrlab.recipe import load_recipe
from rlvrlab.registry import find
from rlvrlab.train.lab import build_supplies


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every count is worth a line, however fast it comes."""
    monkeypatch.setattr(printing, "MOMENT_S", 0.0)
    monkeypatch.setattr(printing, "REMINDER_S", 0.0)


def graphs(folder: Path, workers: int = 1) -> Path:
    path = folder / "graphs.toml"
    env = f'type = "graph"\ntasks = ["MIS", "MCP", "MVC"]\nlevels = [1, 2]\nstyle = "bare"\nworkers = {workers}\n'
    text = tiny(folder).read_text().replace('type = "countdown"\nnumbers = [2]\nhigh = 9\nstyle = "bare"\n', env)
    path.write_text(text)
    return path


def heard(path: Path) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    with counting(lambda *count: found.append(count)):
        build_supplies(load_recipe(path, ["eval.test_size=6"]))
    return found


def test_every_problem_that_is_made_is_counted(tmp_path: Path) -> None:
    sizes = {"train": 40, "dev": 4, "test": 6}
    wanted = [(f"{role} problems", i + 1, size) for role, size in sizes.items() for i in range(size)]
    assert heard(graphs(tmp_path)) == wanted


@pytest.mark.slow
def test_what_workers_make_is_counted_when_they_hand_it_over(tmp_path: Path) -> None:
    found = heard(graphs(tmp_path, workers=2))
    assert [count[1] for count in found if count[0] == "train problems"][-1] == 40
    assert len([count for count in found if count[0] == "train problems"]) == 6, "a batch of each task and level"


@pytest.mark.parametrize("name", ["countdown", "graph", "minicode", "sql", "zebra", "clrs", "math", "gsm8k", "agent"])
def test_environments_that_draw_their_problems_count_them(name: str) -> None:
    found: list[tuple[str, int, int]] = []
    with counting(lambda *count: found.append(count)), counted("problems", 12):
        find("env", name)().problems("train", 12, 0)
    assert found[-1] == ("problems", 12, 12) and len(found) >= 12


def test_what_is_drawn_and_not_kept_never_counts_beyond_the_total() -> None:
    found: list[int] = []
    with counting(lambda _, done, total: found.append(done)), counted("problems", 2):
        for _ in range(3):
            made()
    made()  # nobody counts here
    assert found == [1, 2, 2]


@pytest.mark.parametrize("words", [("train",), ("train", "--plan"), ("check", "recipe")])
def test_commands_tell_it_line_by_line(monkeypatch, capsys, tmp_path: Path, at_once: None, words) -> None:
    graphs(tmp_path)
    done = inside(monkeypatch, capsys, words[0], *words[1:2] if words[0] == "check" else (), "graphs.toml",
                  *words[1:] if words[0] == "train" else (), folder=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = re.findall(r"^making train problems: (\d+) of 40$", done.stderr, re.MULTILINE)
    assert [int(count) for count in told] == list(range(1, 41))
    assert "making" not in done.stdout


def test_problems_that_are_soon_made_are_not_told(monkeypatch, capsys, tmp_path: Path) -> None:
    tiny(tmp_path)
    assert "making" not in inside(monkeypatch, capsys, "train", "tiny.toml", folder=tmp_path).stderr


def test_making_a_file_of_problems_tells_it(monkeypatch, capsys, tmp_path: Path, at_once: None) -> None:
    done = inside(monkeypatch, capsys, "data", "make", "countdown", "--size", "7", "-o", "out.jsonl", folder=tmp_path)
    assert re.findall(r"^making train problems: (\d+) of 7$", done.stderr, re.MULTILINE) == list("1234567")


def test_on_a_terminal_it_is_a_bar_that_goes_away(monkeypatch, capsys, tmp_path: Path) -> None:
    for key, value in {"COLUMNS": "100", "TTY_COMPATIBLE": "1", "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(key, value)
    with Progress(load_recipe(tiny(tmp_path)), as_json=False) as progress:
        progress.count("train problems", 3, 40)
        progress._bars.refresh()
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
        assert re.search(r"problems .* 3/40 .* train problems", shown)
        progress.count("train problems", 40, 40)
        assert not any(task.visible for task in progress._bars.tasks)


def test_answers_of_an_examination_are_drawn_and_not_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, at_once: None
) -> None:
    printing.CountLines().show(ANSWERS, 2, 30)
    assert capsys.readouterr().err == "drawing answers: 2 of 30\n"
    for key, value in {"COLUMNS": "100", "TTY_COMPATIBLE": "1", "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(key, value)
    with Progress(load_recipe(tiny(tmp_path)), as_json=False) as progress:
        for done, total in ((30, 30), (3, 12)):  # the second examination asks fewer
            progress.count(ANSWERS, done, total)
        progress._bars.refresh()
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
        assert re.search(r"answers .* 3/12 ", shown)
