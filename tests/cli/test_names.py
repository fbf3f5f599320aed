"""Runs and recipes are named alike in every verb, and a shell completes their names."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from command_line import TINY, errors, every_parameter, inside, rlvr, tiny

from rlvrlab.cli.names import RUN_AT, RUN_OR_OTHER, RunWord, run_folder
from rlvrlab.cli.verbs import rlvr as program
from rlvrlab.errors import UserError
from rlvrlab.recipe.purposes import FOLDERS, folders, groups
from rlvrlab.recipe.shipped import files, home, recipe_file, shipped


def made_run(folder: Path, name: str, news: float = 0) -> Path:
    run = folder / name
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"schema": 1}))
    (run / "run_info.json").write_text("{}")
    os.utime(run / "run_info.json", (time.time() + news, time.time() + news))
    return run


def test_a_run_is_found_by_a_part_of_its_name(tmp_path) -> None:
    for name in ("toy_1", "toy_2", "toy_22", "my_toy"):
        made_run(tmp_path, name, news=5 if name == "toy_2" else 0)
    assert run_folder("toy_1", tmp_path).name == "toy_1"
    assert run_folder("toy_2", tmp_path).name == "toy_2"  # the whole name wins
    assert run_folder("my_", tmp_path).name == "my_toy"
    assert run_folder("", tmp_path).name == run_folder("latest", tmp_path).name == "toy_2"
    assert run_folder(str(tmp_path / "toy_22"), Path("elsewhere")).name == "toy_22"
    assert run_folder(str(tmp_path / "my"), Path("elsewhere")).name == "my_toy"  # the beginning of a path
    for word, why in (("toy", "fits 3 runs"), ("zzz", "no run 'zzz'")):
        with pytest.raises(UserError, match=why):
            run_folder(word, tmp_path)
    with pytest.raises(UserError, match="makes one"):
        run_folder("", tmp_path / "none")


def test_what_the_list_of_runs_shows_is_found_though_a_folder_here_is_called_like_its_beginning(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = made_run(Path("experiments/studies"), "smoke")
    made_run(study / "trials", "smoke_trial")
    (tmp_path / "studies").mkdir()
    assert run_folder("studies/smoke") == run_folder("smoke") == study


def test_steps_behind_a_name_stay_there(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_run(Path("experiments"), "toy_1")
    assert RUN_AT.convert("toy@best", None, None) == "experiments/toy_1@best"
    assert RUN_AT.convert("latest", None, None) == "experiments/toy_1"
    assert RUN_OR_OTHER.convert("gone.py", None, None) == "gone.py"
    monkeypatch.chdir(tmp_path / "experiments/toy_1")
    for kind in (RUN_AT, RUN_OR_OTHER):
        with pytest.raises(UserError, match=r"no run 'latest' and no folder experiments/ here; .*makes one"):
            kind.convert("latest", None, None)
    with pytest.raises(UserError, match="no run 'gone'"):
        RUN_AT.convert("gone@3", None, None)


NAMED = {
    ("train", "--resume", "tin"): "was finished already",
    ("show", "tin"): "tiny_",
    ("tail", "tin", "--no-follow"): "tiny_",
    ("report", "tin"): "report: experiments/tiny_",
    ("rescore", "tin"): "0 differences",
    ("eval", "--run", "tin@2", "--size", "4"): "4 test problems",
    ("probe", "--run", "tin@last", "--size", "2", "--n", "2"): "2 problems",
    ("compare", "tin", "latest"): "its last checkpoint (step 4)",
    ("runs", "--add-tag", "tin", "mine"): "mine",
    ("data", "prepare", "tin", "--as", "sft"): "",
    ("model", "export", "tin@last", "-o", "m"): "holds no model",
    ("credit", "tin"): "",
}
"""Verb with a run by a part of its name -> what shows that it was found."""


@pytest.mark.slow
def test_every_verb_finds_a_run_by_a_part_of_its_name(tmp_path, monkeypatch, capsys) -> None:
    assert rlvr("train", str(tiny(tmp_path)), folder=tmp_path).returncode == 0
    for words, found in NAMED.items():
        done = inside(monkeypatch, capsys, *words, folder=tmp_path)
        told = done.stdout + done.stderr
        assert found in told and "no run" not in told and "No such" not in told and "no such" not in told, (words, told)
        gone = ["nowhere_7" if word.startswith(("tin", "latest")) else word for word in words]
        assert inside(monkeypatch, capsys, *gone, folder=tmp_path).returncode != 0, gone


def test_whatever_is_called_run_is_read_by_the_one_resolver() -> None:
    runs = [(words, p) for words, p in every_parameter() if p.name == "run" or "RUN" in (p.metavar or "")]
    assert len(runs) >= 7
    other = [words for words, p in runs if not isinstance(p.type, RunWord) and "TAG" not in p.metavar]
    assert other == []


def completions(*words: str, incomplete: str = "") -> list[str]:
    return [item.value for item in ShellComplete(program, {}, "rlvr", "_X").get_completions(list(words), incomplete)]


def test_a_shell_completes_recipes_keys_values_and_runs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_run(Path("experiments"), "toy_1")
    assert "toy_countdown" in completions("train", incomplete="toy_c")
    assert "rollout.n=" in completions("train", "toy_countdown", incomplete="rollout.")
    assert "env.numbers=" in completions("train", "toy_countdown", incomplete="env.n")
    assert "grpo.steps=" in completions("train", "toy_countdown", "seed=3", incomplete="grpo.s")
    assert "optimizer.decay=cosine" in completions("train", "toy_countdown", incomplete="optimizer.decay=c")
    assert "env.type=sql" in completions("train", "toy_countdown", incomplete="env.type=s")
    assert {"latest", "toy_1"} <= {*completions("show"), *completions("train", "--resume")}
    assert "toy_1" in completions("eval", "--run", incomplete="toy")
    assert "numbers=" in completions("eval", "countdown", incomplete="num")
    assert "--plan" in completions("train", incomplete="--p")


def test_recipes_are_found_by_name_from_any_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        recipe_file(Path("toy_countdown"))
        == recipe_file(Path("recipes/toy_countdown.toml"))
        == (home() / "recipes/toy_countdown.toml")
    )
    assert recipe_file(Path("npg_muse/smoke")).name == "smoke.toml"
    Path("toy_countdown").mkdir()
    assert recipe_file(Path("toy_countdown")) == Path("toy_countdown")  # the user's own come first
    with pytest.raises(UserError, match="did you mean 'toy_countdown'"):
        recipe_file(Path("toy_countdwn"))


def test_own_recipes_are_found_without_their_ending_and_misspelt_ones_suggested(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    tiny(tmp_path)
    (tmp_path / "toy_countdown.toml").write_text(TINY)
    assert recipe_file(Path("tiny")) == Path("tiny.toml")
    assert recipe_file(Path("toy_countdown")) == Path("toy_countdown.toml"), "the user's own come first"
    for wrong in ("tinny", "tiny.tml", "tinny.toml"):
        with pytest.raises(UserError, match="did you mean 'tiny'"):
            recipe_file(Path(wrong))
    done = inside(monkeypatch, capsys, "check", "recipe", "tiny", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_file_is_no_run_and_a_run_no_environment(tmp_path, monkeypatch, capsys) -> None:
    tiny(tmp_path)
    made_run(tmp_path / "experiments", "toy_1")
    for words in (["show", "tiny.toml"], ["tail", "tiny.toml"], ["eval", "--run", "tiny.toml"],
                  ["train", "--resume", "tiny.toml"], ["interference", "tiny.toml"]):  # fmt: skip
        (line,) = errors(inside(monkeypatch, capsys, *words, folder=tmp_path))
        assert "tiny.toml: a file, not a run" in line, words
    for word in ("latest", "toy_1"):
        (line,) = errors(inside(monkeypatch, capsys, "eval", word, folder=tmp_path))
        assert line.endswith(f"{word}: a run, not an environment; say `--run {word}`")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["probe", "toy_countdwn"], "unknown recipe or env 'toy_countdwn'; did you mean 'toy_countdown'?"),
        (["eval", "countdwn"], "unknown recipe or env 'countdwn'; did you mean 'countdown'?"),
        (["eval", "tiny.tml"], "tiny.tml: no such file in HERE; did you mean 'tiny.toml'?"),
        (["probe", "gone/quiz"], "gone/quiz: no such file and no folder HERE/gone"),
        (["eval", "rows.jsonl"], "`answers path=rows.jsonl` is the one"),
        (["data", "preview", "row.jsonl"], "row.jsonl: no such file in HERE; did you mean 'rows.jsonl'?"),
        (["data", "prepare", "row.jsonl"], "row.jsonl: no such file in HERE; did you mean 'rows.jsonl'?"),
        (["data", "make", "row.jsonl", "-o", "x.jsonl"], "row.jsonl: no such file in HERE"),
    ],
)
def test_a_misspelt_recipe_or_file_is_no_unknown_environment(tmp_path, monkeypatch, capsys, words, says: str) -> None:
    tiny(tmp_path)
    (tmp_path / "rows.jsonl").write_text("{}\n")
    (line,) = errors(inside(monkeypatch, capsys, *words, folder=tmp_path))
    assert says.replace("HERE", str(tmp_path)) in line


def test_what_comes_along_is_listed_with_question_engine_and_needs(tmp_path, monkeypatch, capsys) -> None:
    rows = {
        row["name"]: row for row in json.loads(inside(monkeypatch, capsys, "recipes", "--json", folder=tmp_path).stdout)
    }
    assert set(rows) == set(files()) and rows["npg_muse/smoke"]["kind"] == "study"
    assert (rows["toy_countdown"]["engine"], rows["toy_countdown"]["needs"]) == ("toy", "")
    assert rows["verl_conflict_14b"]["engine"] == "verl" and "GPU" in rows["verl_conflict_14b"]["needs"]
    assert "hf extra" in rows["interference/nano_ewc"]["needs"] and rows["interference/nano_ewc"]["question"]
    told = inside(monkeypatch, capsys, "recipes", "--all", folder=tmp_path).stdout
    assert len(told.splitlines()) == len(rows) and all(name in told for name in rows)
    assert [one.name for one in shipped() if not one.question] == ["npg_muse/toy"]
    assert [one.name for one in shipped() if one.about and one.about[-1] not in ".?!"] == []  # whole sentences


def test_the_list_of_recipes_is_a_page_by_purpose_and_words_show_more(tmp_path, monkeypatch, capsys) -> None:
    """All 112 of them with their descriptions were 476 lines."""

    def told(*words: str) -> list[str]:
        return inside(monkeypatch, capsys, "recipes", *words, folder=tmp_path).stdout.splitlines()

    page, every = told(), list(shipped())
    assert len(page) <= 40 and page[0].startswith("Seconds on any laptop")
    listed = [name for group in groups(every) if not group.word for name in (one.name for one in group.rows)]
    assert {line.split()[0] for line in page if line.startswith("  ")} == {*listed, "verl", *FOLDERS}
    assert sum(len(group.rows) for group in groups(every)) + sum(map(len, folders(every).values())) == len(every)
    assert set(folders(every)) == set(FOLDERS), "a folder of studies without a line about it, or a line without one"
    assert told("npg_muse/smoke")[0] == "npg_muse/smoke  (toy)"
    assert "rlvr study run npg_muse/smoke" in " ".join(told("npg_muse/smoke"))
    found = told("coding_five_phase")
    assert found[0].startswith("coding_five_phase  (hf") and any("coding_five_phase/nano" in line for line in found)
    assert len(told("verl", "conflict")) == 4
    named = json.loads("\n".join(told("toy_ppo", "--json")))
    assert named == json.loads("\n".join(told("--json", "toy_ppo"))) and named[0]["engine"] == "toy"
    (line,) = errors(inside(monkeypatch, capsys, "recipes", "toy_cuontdown", folder=tmp_path))
    assert "did you mean 'toy_countdown'" in line
    (line,) = errors(inside(monkeypatch, capsys, "recipes", "zzz", folder=tmp_path))
    assert len(line) < 160 and line.endswith("`rlvr recipes` shows what comes along")


def test_a_copy_has_what_it_builds_on_and_overwrites_nothing(tmp_path, monkeypatch, capsys) -> None:
    done = inside(monkeypatch, capsys, "recipes", "copy", "interference/nano_ewc", folder=tmp_path)
    assert sorted(done.stdout.split()) == ["nano.toml", "nano_ewc.toml"]
    assert inside(monkeypatch, capsys, "check", "recipe", "nano_ewc.toml", folder=tmp_path).returncode == 0
    assert (
        "already there"
        in errors(inside(monkeypatch, capsys, "recipes", "copy", "interference/nano", folder=tmp_path))[0]
    )
    assert "did you mean" in errors(inside(monkeypatch, capsys, "recipes", "copy", "toy_countdow", folder=tmp_path))[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "toy_countdown", "--foo"], "no option '--foo'"),
        (["train", "toy_countdown", "--pln"], "did you mean '--plan'?"),
        (["train", "toy_countdown", "--foo", "3"], "no option '--foo'"),
        (["eval", "countdown", "--numbers", "[2]"], "no option '--numbers'"),
        (["probe", "toy_countdown", "--sise=3"], "did you mean '--size'?"),
        (["export", "trl", "toy_countdown", "-x"], "no option '-x'"),
        (["check", "recipe", "toy_countdown", "--jsn"], "did you mean '--json'?"),
        (["train", "toy_countdown", "--lr", "1e-3"], "write grpo.learning_rate=1e-3 or sft.learning_rate=1e-3"),
        (["train", "toy_countdown", "--lr=1e-3"], "write grpo.learning_rate=1e-3 or sft.learning_rate=1e-3"),
        (["train", "toy_countdown", "--batch-size"], "write grpo.batch_size=VALUE or sft.batch_size=VALUE"),
        (["eval", "countdown", "--numbers", "[2]"], "write numbers=[2]"),
        (["train", "toy_countdown", "learning_rate=1"], "did you mean 'grpo.learning_rate' or 'sft.learning_rate'?"),
        (["train", "toy_countdown", "lr=1e-3"], "did you mean 'grpo.learning_rate' or 'sft.learning_rate'?"),
        (["train", "toy_countdown", "sft.lr=1e-3"], "did you mean 'sft.learning_rate'?"),
        (["train", "toy_countdown", "phases=['dpo']", "lr=1e-3"], "did you mean 'dpo.learning_rate'?"),
    ],
)
def test_an_unknown_option_is_no_key(tmp_path, monkeypatch, capsys, words: list[str], says: str) -> None:
    assert says in errors(inside(monkeypatch, capsys, *words, folder=tmp_path))[0]


def test_keys_may_still_be_spelled_as_options(tmp_path, monkeypatch, capsys) -> None:
    words = ("check", "recipe", "toy_countdown", "--seed", "3", "--rollout.n", "4", "--kl.coef=0.1", "--json")
    config = json.loads(inside(monkeypatch, capsys, *words, folder=tmp_path).stdout)["recipe"]
    assert (config["seed"], config["rollout"]["n"], config["kl"]["coef"]) == (3, 4, 0.1)
