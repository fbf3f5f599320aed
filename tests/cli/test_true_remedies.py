"""What is refused is refused for its true reason, with a remedy that works."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from command_line import errors, inside, tiny

from rlvrlab.data.presets import how_to_make
from rlvrlab.recipe import load_recipe
from rlvrlab.train.lookups import seconds_to_draw


@pytest.fixture
def run(monkeypatch, capsys, tmp_path: Path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return lambda *words: inside(monkeypatch, capsys, *words, folder=tmp_path)


@pytest.mark.parametrize("guard", ["skill_safe", "l2"])
def test_a_guard_of_one_skill_is_told_that_there_is_one(run, tmp_path: Path, guard: str) -> None:
    tiny(tmp_path)
    [told] = errors(run("train", "tiny.toml", "protocol.type=mixed", f"guard.type={guard}"))
    assert "all training problems have one skill, countdown" in told and "leave the guard out" in told
    assert "skill_safe" not in told


@pytest.mark.parametrize("name", ["verl_coding_grpo", "verl_credit_7b"])
def test_a_recipe_without_its_data_is_told_the_key_that_names_them(run, name: str) -> None:
    done = run("check", "recipe", name)
    assert done.returncode == 1
    asked = json.loads(run("check", "recipe", name, "--json").stdout)["recipe"]["data"]["train_size"]
    told = done.stderr
    assert f"{asked} train problems" in told and "name your rows by data.train_file (`rlvr data prepare`" in told


def test_missing_files_are_told_with_the_commands_that_write_them_there(run) -> None:
    done = run("check", "recipe", "code_skills")
    [told] = [line for line in done.stderr.splitlines() if "data.train_file" in line]
    folder = told.partition("/mbpp_train.jsonl")[0].split()[-1]
    for command in ("mbpp", "mbpp --env code_repair", "mbpp --env code_reasoning", "sql"):
        assert f"`rlvr data prepare {command} -o {folder}`" in told
    assert how_to_make([Path("a b/rows_of_nobody.parquet")]) == "`rlvr data prepare WHAT --to parquet -o 'a b'`"


def test_a_run_whose_file_is_missing_says_the_same(run, tmp_path: Path) -> None:
    tiny(tmp_path)
    [told] = errors(run("train", "tiny.toml", "data.train_file=there/countdown_train.jsonl"))
    assert "`rlvr data prepare countdown -o there`" in told


def test_prepared_rows_given_as_published_ones_are_known(run, tmp_path: Path) -> None:
    assert run("data", "prepare", "countdown", "--size", "20", "-o", "data").returncode == 0
    words = ("eval", "code", "path=data/countdown_test.jsonl", "--server", "http://127.0.0.1:9")
    [told] = errors(run(*words))
    assert "these are prepared rows" in told and f"use `--data {tmp_path / 'data' / 'countdown_test.jsonl'}`" in told
    assert "shapes" not in told


@pytest.mark.parametrize("verb", [["check", "recipe"], ["train"]])
def test_a_plan_of_a_baseline_is_no_recipe(run, tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "plan.toml").write_text('[model]\nserve = "m"\n[[data]]\nname = "humaneval"\n')
    [told] = errors(run(*verb, "plan.toml"))
    assert "is the plan of a baseline, not a recipe; run it with `rlvr phase0" in told and "unknown key" not in told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "--resume"], "; write --resume latest"),
        (["eval", "--run"], "; write --run latest"),
        (["runs", "--sort"], "; write --sort age"),
        (["data", "preview", "--role"], "; write --role train"),
        (["completion"], "Choose from: bash, zsh, fish (see"),
    ],
)
def test_an_option_without_its_value_is_told_one(run, words: list[str], says: str) -> None:
    [told] = errors(run(*words))
    assert says in told and "\\n" not in told


def test_a_missing_file_is_told_with_the_line_that_names_it(run, tmp_path: Path) -> None:
    tiny(tmp_path)
    path = tmp_path / "tiny.toml"
    path.write_text(path.read_text().replace("[data]", '[data]\ntrain_file = "nix.jsonl"'))
    [told] = errors(run("train", "tiny.toml"))
    assert "tiny.toml:11: data.train_file: nix.jsonl: no such file; make it with `rlvr data prepare" in told
    [told] = errors(run("train", "tiny.toml", "data.train_file=nux.jsonl"))
    assert "error: override data.train_file: nux.jsonl: no such file" in told


def test_who_examines_nobody_is_told_whom_he_could(run, tmp_path: Path) -> None:
    [told] = errors(run("eval"))
    assert "whose policy? give --run latest" in told and "`rlvr eval toy_countdown`" in told
    [told] = errors(run("eval", "countdown"))
    assert "who answers? give --run latest" in told and "--engine toy" in told
    tiny(tmp_path)
    done = run("eval", "tiny.toml")
    [note] = done.stderr.splitlines()
    assert done.returncode == 0 and "untrained; the one of a run: rlvr eval --run latest" in note


def test_rows_that_cannot_be_used_are_refused_once_before_a_task_is_written(run, tmp_path: Path) -> None:
    rows = [{"question": f"q {i}?", "answer": f"a{i}"} for i in range(30)]
    for more, says in (
        ({"question": "q 1?", "answer": "b"}, ":31: asks the same as "),
        ({"question": "q?", "answer": ""}, ":31: column 'answer' is empty; fill it in or leave out the row"),
        ({"question": "q?", "answer": None}, ":31: column 'answer' is empty; fill it in or leave out the row"),
        ({"question": None, "answer": "b"}, ":31: column 'question' is empty; fill it in or leave out the row"),
    ):
        path = tmp_path / "own.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, more]))
        # Other columns would make a guess of the question harder, which is another matter.
        told = errors(run("new", "task", "du", "--data", "own.jsonl", "prompt=question", "answer=answer"))[-1]
        assert says in told and not (tmp_path / "du.toml").exists()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.jsonl", '{"question": ["a"], "answer": "b", "x": 1}\n' * 3, "column 'question' has cells of type list"),
        ("a.csv", "question\na\nb\n", "one column alone, 'question'; a question and its answer are two"),
    ],
)
def test_the_defect_of_a_table_is_named_and_not_the_guess_that_failed(run, tmp_path: Path, name, text, says) -> None:
    (tmp_path / name).write_text(text)
    [told] = errors(run("new", "task", "du", "--data", name))
    assert says in told
    assert says in run("data", "preview", name).stdout


def test_a_folder_that_is_no_run_is_not_shown_as_one(run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for words in (["show"], ["report"], ["eval", "--run"]):
        [told] = errors(run(*words, "notes"))
        assert told == "error: notes: not a run folder (no config.json); `rlvr runs` lists yours"
    assert list((tmp_path / "notes").iterdir()) == []


def test_a_recipe_is_copied_into_the_file_that_is_named(run, tmp_path: Path) -> None:
    assert run("recipes", "copy", "toy_countdown", "-o", "mystudy/base.toml").stdout.strip() == "mystudy/base.toml"
    assert (tmp_path / "mystudy" / "base.toml").is_file()
    [told] = errors(run("recipes", "copy", "toy_countdown", "-o", "mystudy/base.toml"))
    assert "is already there" in told
    assert run("recipes", "copy", "toy_countdown", "-o", "mine").returncode == 0
    [told] = errors(run("train", "mine"))
    assert "mine: is a folder, not a recipe; name a file of it: mine/toy_countdown.toml" in told


def test_a_damaged_record_is_told_with_what_can_be_done(run, tmp_path: Path) -> None:
    tiny(tmp_path)
    assert run("train", "tiny.toml").returncode == 0
    [folder] = (tmp_path / "experiments").iterdir()
    info = (folder / "run_info.json").read_bytes()
    (folder / "run_info.json").unlink()
    shown = run("show").stdout
    assert "damaged" in shown.splitlines()[0] and "killed" not in shown
    assert "missing: run_info.json: neither status nor machine is recorded" in shown
    assert "run_info.json is missing" in run("runs").stdout
    (folder / "run_info.json").write_bytes(info)
    log = folder / "logs" / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(["no line\n", *lines[1:]]))
    done = run("train", "--resume", "latest")
    remedy = f"`rlvr train --resume {folder.relative_to(tmp_path)} --fork`"
    assert done.returncode and remedy in done.stderr and "restore the file from a copy" in done.stderr
    assert run(*remedy.strip("`").split()[1:]).returncode == 0
    (folder / "config.json").write_text("{")
    [told] = errors(run("train", "--resume", str(folder)))
    assert "restore it from a copy, or begin a new run with `rlvr train RECIPE`" in told


def test_a_plan_does_not_wait_for_problems_without_end(run, tmp_path: Path, monkeypatch) -> None:
    tiny(tmp_path)
    monkeypatch.setattr("rlvrlab.train.plan.MOST_DRAWN_S", 0.0)
    done = run("train", "tiny.toml", "--plan")
    assert done.returncode == 0 and "a plan does not wait for them; lower data.train_size" in done.stdout


def test_what_only_the_first_call_costs_does_not_hide_what_each_problem_costs(tmp_path: Path) -> None:
    class Slow:
        """The first call takes long, as where tables are made; each problem a millisecond."""

        called = 0

        def problems(self, role: str, size: int, seed: int) -> list[None]:
            self.called += 1
            time.sleep(0.001 * size + (0.3 if self.called == 1 else 0.0))
            return [None] * size

    resolved = load_recipe(tiny(tmp_path), ["data.train_size=100000"])
    assert seconds_to_draw(resolved, Slow()) > 60
