"""From own data and an own reward to a trained model: the commands of docs/your_own_task.md, and mistakes."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from command_line import errors, inside, rlvr, tiny

from rlvrlab.randomness import shuffled
from rlvrlab.record import headline

PAGE = Path(__file__).resolve().parents[2] / "docs/your_own_task.md"
REWARDS = """
import time

def nan(problem, completion, verdict): return float("nan")
def none(problem, completion, verdict): return None
def text(problem, completion, verdict): return "much"
def raises(problem, completion, verdict): return 1 / 0
def slow(problem, completion, verdict): time.sleep(60)
def short(problem, completion): return 1.0
def misnamed(problem, completion, verdict): return float(problem.answer == completion.text)
def good(problem, completion, verdict): return float(verdict.correct)
def upside_down(problem, completion, verdict): return -float(verdict.correct)
"""


def commands(first: str) -> list[list[str]]:
    """The lines of the page's block that begins with this one, without `rlvr`."""
    block = re.search(rf"```\n({re.escape(first)} .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    return [shlex.split(line)[1:] for line in block[1].splitlines()]


ASKED = {
    "billing": ("charged twice", "invoice missing", "refund not here", "price is wrong"),
    "account": ("cannot log in", "password lost", "email changed", "name misspelt"),
    "delivery": ("parcel late", "parcel broken", "wrong address", "nothing arrived"),
    "product": ("does not start", "screen is dark", "part missing", "too loud"),
}
THINGS = ("phone", "lamp", "radio", "clock", "fan", "heater", "camera", "scale")
WHEN = ("today", "since Monday", "again", "after the update", "for a week")


def write_tickets(folder: Path) -> None:
    """The page's 300 rows: what a customer writes, and who should answer."""
    rows = [
        {"question": f"{thing}: {trouble} {when}", "answer": desk}
        for desk, troubles in ASKED.items()
        for trouble in troubles
        for thing in THINGS
        for when in WHEN
    ]
    kept = shuffled(rows, 0, "tickets")[:300]
    (folder / "my_tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")


def test_the_page_needs_at_most_ten_commands_and_what_looks_before_training_works(
    tmp_path, monkeypatch, capsys
) -> None:
    wanted = commands("git clone") + commands("rlvr new task")
    assert len(wanted) <= 10
    write_tickets(tmp_path)
    for words in [commands("rlvr new task")[0], *commands("rlvr data preview")[:-1]]:
        done = inside(monkeypatch, capsys, *words, folder=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    written = (tmp_path / "my_tickets.toml").read_text(encoding="utf-8")
    assert "test_size = 50" in written and "references = 64" in written


@pytest.mark.parametrize("there", [True, False])
def test_a_new_task_says_what_training_it_needs(tmp_path, monkeypatch, capsys, there: bool) -> None:
    monkeypatch.setattr("rlvrlab.extras.find_spec", lambda name: object() if there else None)
    done = inside(monkeypatch, capsys, "new", "task", "days", folder=tmp_path)
    assert ("needs torch" in done.stdout and "make hf" in done.stdout) != there
    facts = json.loads(inside(monkeypatch, capsys, "new", "task", "nights", "--json", folder=tmp_path).stdout)
    assert ("missing" in facts) != there


def test_a_new_task_says_what_it_guessed(tmp_path, monkeypatch, capsys) -> None:
    rows = [{"prompt_text": f"{i}?", "day": day} for i, day in enumerate(["Monday", "Friday"] * 6)]
    (tmp_path / "days.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = inside(monkeypatch, capsys, "new", "task", "days", "--data", "days.jsonl", "matcher=text", folder=tmp_path)
    guessed = done.stdout.splitlines()[0]
    assert guessed == (
        'guessed from 12 rows with the columns prompt_text, day: prompt = "prompt_text", answer = "day"'
    ), done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_the_page_ends_in_a_trained_language_model(tmp_path) -> None:
    pytest.importorskip("torch")
    write_tickets(tmp_path)
    for words in commands("rlvr new task"):
        done = rlvr(*words, folder=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    (folder,) = (tmp_path / "experiments").iterdir()
    assert json.loads((folder / "run_info.json").read_text())["status"] == "finished"
    assert '"correct"' in (folder / "rollouts" / "step_62.jsonl").read_text()  # the reward's own parts
    test = headline.tested(folder)
    assert test is not None and test.accuracy > 0.5, "twice what guessing one of four desks gives, on rows it never saw"


@pytest.mark.long
@pytest.mark.slow
def test_the_made_questions_give_what_the_page_says_of_test_problems(tmp_path) -> None:
    pytest.importorskip("torch")
    assert rlvr("new", "task", "colours", folder=tmp_path).returncode == 0
    done = rlvr("train", "colours.toml", folder=tmp_path)
    found = re.search(r"grpo is not shown .*: test (\S+) → (\S+) %, \S+ points (\[.*?\]), (\d+) problems", done.stdout)
    result = re.search(r"^Result: test (\S+ % \[.*?\])", done.stdout, re.MULTILINE)
    assert found and result, done.stdout + done.stderr
    before, _, gained, problems = found.groups()
    told = " ".join(PAGE.read_text(encoding="utf-8").split("The made questions (", 1)[1].split("\n\n")[0].split())
    assert f"from 0 to {before} % of {problems} test problems by SFT and to {result[1]} after GRPO" in told
    assert gained in told


def test_a_raw_file_is_described_with_the_lines_that_use_it(tmp_path, monkeypatch, capsys) -> None:
    rows = [{"ask": f"{i} and {i}?", "options": ["x", str(2 * i)], "label": 1, "part": "train"} for i in range(9)]
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = inside(monkeypatch, capsys, "data", "preview", "raw.jsonl", "--json", folder=tmp_path)
    found = json.loads(done.stdout)
    assert found["rows"] == 9 and [column["kind"] for column in found["columns"]] == ["text", "list", "number", "text"]
    assert found["keys"] == {
        "prompt": "ask", "answer": "label", "matcher": "choice", "choices": "options", "split": "part"
    }  # fmt: skip
    assert found["problems"][0]["correct"] is True and 'path = "raw.jsonl"' in found["recipe"]
    (tmp_path / "odd.csv").write_text("a,b,c\n1,2,3\n")
    done = inside(monkeypatch, capsys, "data", "preview", "odd.csv", folder=tmp_path)
    assert done.returncode == 0 and "add prompt=COLUMN answer=COLUMN" in done.stdout


def test_choices_in_columns_of_their_own_are_recognised_and_shown(tmp_path, monkeypatch, capsys) -> None:
    rows = [f"Alive {i}?,hat,rat,map,{answer}" for i, answer in enumerate(["B", "rat"] * 10)]
    (tmp_path / "quiz.csv").write_text("\n".join(["prompt,Option_A,Option_B,Option_C,correct_option", *rows]))
    done = inside(monkeypatch, capsys, "data", "preview", "quiz.csv", "style=bare", "--json", folder=tmp_path)
    found = json.loads(done.stdout)
    assert found["keys"]["choices"] == "Option_A,Option_B,Option_C" and found["keys"]["matcher"] == "choice"
    assert {one["gold"] for one in found["problems"]} == {"B"}
    assert found["problems"][0]["prompt"].endswith("A) hat\nB) rat\nC) map\n")
    (tmp_path / "quiz.csv").write_text("\n".join(["prompt,a,b,c,correct_option", "Alive?,hat,,rat,C"]))
    done = inside(monkeypatch, capsys, "data", "preview", "quiz.csv", folder=tmp_path)
    assert "columns a,b,c: an empty choice before one that is not; letters would shift" in done.stderr
    (tmp_path / "odd.csv").write_text("x1,x2,x3\nu,v,w\n")
    done = inside(monkeypatch, capsys, "data", "preview", "odd.csv", "style=bare", folder=tmp_path)
    assert done.returncode == 0 and "add prompt=COLUMN answer=COLUMN" in done.stdout


def test_a_prepared_file_is_previewed_too(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "own.jsonl").write_text('{"question": "a?", "answer": "b"}\n')
    words = ("data", "prepare", "own.jsonl", "--env", "answers", "--role", "train", "-o", ".")
    assert inside(monkeypatch, capsys, *words, folder=tmp_path).returncode == 0
    done = inside(monkeypatch, capsys, "data", "preview", "own_train.jsonl", folder=tmp_path)
    assert "1 rows, prepared" in done.stdout and 'train_file = "own_train.jsonl"' in done.stdout


def test_a_data_file_is_no_recipe_and_a_raw_one_no_train_file(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "own.jsonl").write_text('{"question": "a?", "answer": "b"}\n')
    tiny(tmp_path)
    (line,) = errors(inside(monkeypatch, capsys, "train", "own.jsonl", folder=tmp_path))
    assert "is data, not a recipe; `rlvr new task NAME --data own.jsonl`" in line
    done = inside(monkeypatch, capsys, "train", "tiny.toml", "data.train_file=own.jsonl", folder=tmp_path)
    assert "a raw row, not a prepared one (columns question, answer); prepare it (" in done.stderr
    assert 'or use it by [env] type = "answers"' in done.stderr


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("nan", "'nan' (mine.py:4) gave nan for problem countdown:"),
        ("none", "'none' (mine.py:5) gave None for problem countdown:"),
        ("text", "'text' (mine.py:6) gave 'much' for problem countdown:"),
        ("raises", "'raises' raised ZeroDivisionError: division by zero at mine.py:7 (problem countdown:"),
        ("slow", "took more than 0.2 s; make it quicker"),
        ("short", "'short' (mine.py:9) takes (problem, completion); it is called with (problem, completion, verdict)"),
        ("misnamed", "no attribute 'answer'; allowed: id, source, skill, prompt, reference,"),
    ],
)
def test_a_bad_reward_is_found_by_check_and_before_training(
    tmp_path, monkeypatch, capsys, function: str, said: str
) -> None:
    monkeypatch.setattr("rlvrlab.rollout.trial.LIMIT_S", 0.2)
    tiny(tmp_path)
    (tmp_path / "mine.py").write_text(REWARDS)
    (line,) = errors(inside(monkeypatch, capsys, "check", "reward", f"mine.py:{function}", folder=tmp_path))
    assert said in line
    done = inside(
        monkeypatch, capsys, "check", "recipe", "tiny.toml", f"reward.type=mine.py:{function}", folder=tmp_path
    )
    assert done.returncode and said in done.stderr
    done = inside(monkeypatch, capsys, "train", "tiny.toml", f"reward.type=mine.py:{function}", folder=tmp_path)
    assert done.returncode == 2 and said in done.stderr.splitlines()[-1]
    assert not (tmp_path / "experiments").exists()


def test_a_matcher_with_other_arguments_is_refused_before_training(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "own.jsonl").write_text('{"question": "a?", "answer": "b"}\n')
    (tmp_path / "mine.py").write_text("def right(answer): return True\n")
    words = ("check", "env", "answers", "path=own.jsonl", "matcher=mine.py:right")
    (line,) = errors(inside(monkeypatch, capsys, *words, folder=tmp_path))
    assert "matcher 'mine.py:right' (mine.py:1) takes (answer); it is called with (problem, answer)" in line


def test_a_reward_is_shown_on_four_answers_and_one_that_pays_for_errors_is_noticed(
    tmp_path, monkeypatch, capsys
) -> None:
    (tmp_path / "mine.py").write_text(REWARDS)
    done = inside(monkeypatch, capsys, "check", "reward", "mine.py:good", "--json", folder=tmp_path)
    paid = {row["answer"]: row["reward"] for row in json.loads(done.stdout)["checks"]}
    wrong = dict.fromkeys(("wrong", "empty", "truncated", "neighbour's"), 0.0)
    assert paid == {"right": 1.0, **wrong} and done.stderr == ""
    done = inside(monkeypatch, capsys, "check", "reward", "mine.py:upside_down", folder=tmp_path)
    assert "a right answer earns less than a wrong one (-1 and 0)" in done.stderr
    assert done.returncode == 1 and "0 of 7 checks hold" in done.stdout
    tiny(tmp_path)
    done = inside(monkeypatch, capsys, "train", "tiny.toml", "reward.type=mine.py:upside_down", folder=tmp_path)
    before = done.stderr.partition("1/")[0]
    assert "warning: reward: a right answer earns less than a wrong one" in before, "before a step is spent"
    [folder] = (tmp_path / "experiments").iterdir()
    assert "a right answer earns less" in (folder / "EXPERIMENT.md").read_text(), "and on record"


def test_a_reward_that_is_upside_down_for_half_of_the_problems_is_noticed_and_they_are_named(
    tmp_path, monkeypatch, capsys
) -> None:
    rows = [{"question": f"{'odd' if i % 2 else 'even'} {i}?", "answer": f"a{i}"} for i in range(16)]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text(
        "def half(problem, completion, verdict):\n"
        "    return float(verdict.correct is not problem.prompt.startswith('odd'))\n"
    )
    words = ("check", "reward", "mine.py:half", "--env", "answers", "--set", "path=own.jsonl", "--set", "style=bare")
    done = inside(monkeypatch, capsys, *words, "--json", folder=tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 1 and not told["ok"], "on average right and wrong answers earn the same"
    assert {row["ok"] is row["problem"].startswith("even") for row in told["checks"]} == {True}
    counted = re.search(r"for (\d+) of (\d+) problems that were tried a right answer earns no more", done.stderr)
    assert counted and 0 < int(counted[1]) < int(counted[2])
    assert "odd " in done.stderr and "even " not in done.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("prompt=reprot", "no column 'reprot'; there are: report, department; did you mean 'report'?"),
        ("prompt={reprot} and more", "no column 'reprot'; there are: report, department"),
        ("skill=colour", "no column 'colour'; there are: report, department"),
        ("choices=a,b", "no column 'a'; there are: report, department"),
        ("promt=report", "unknown key; did you mean 'prompt'?"),
    ],
)
def test_a_task_from_columns_that_are_not_there_is_refused(word, said, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "tickets.csv").write_text("report,department\nno parcel,shipping\n")
    for verb in (("new", "task", "tickets", "--data"), ("data", "preview")):
        words = (*verb, "tickets.csv", "answer=department", word)
        (line,) = errors(inside(monkeypatch, capsys, *words, folder=tmp_path))
        assert said in line
    assert not (tmp_path / "tickets.toml").exists()


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_a_task_gets_its_sizes_from_the_file_whatever_separates_its_columns(
    separator, tmp_path, monkeypatch, capsys
) -> None:
    """A quarter of the rows is shown to SFT, and the longest answer fits."""
    rows = [("report", "department"), *((f"parcel {i}", "the department of shipping") for i in range(80))]
    (tmp_path / "tickets.csv").write_text("".join(separator.join(row) + "\n" for row in rows))
    words = ("new", "task", "tickets", "--data", "tickets.csv", "prompt=report", "answer=department")
    assert inside(monkeypatch, capsys, *words, folder=tmp_path).returncode == 0
    recipe = tomllib.loads((tmp_path / "tickets.toml").read_text())
    assert recipe["rollout"]["max_tokens"] == 32 and recipe["sft"]["references"] == 20


def test_right_answers_that_do_not_fit_are_said_before_training(tmp_path, monkeypatch, capsys) -> None:
    tiny(tmp_path)
    done = inside(monkeypatch, capsys, "train", "tiny.toml", "--plan", "rollout.max_tokens=2", folder=tmp_path)
    assert "rollout.max_tokens = 2: " in done.stdout and "right answers that are known need more" in done.stdout
    done = inside(monkeypatch, capsys, "train", "tiny.toml", "--plan", folder=tmp_path)
    assert "need more" not in done.stdout


def test_a_limit_without_room_for_the_end_token_alone_is_no_fault(tmp_path, monkeypatch, capsys) -> None:
    """Answers of one letter are judged as they stand when they are cut before their end."""
    done = inside(monkeypatch, capsys, "train", "paper_b_conflict_aware/toy", "--plan", folder=tmp_path)
    assert done.returncode == 0 and "rollout.max_tokens" in done.stdout and "need more" not in done.stdout


def test_a_reward_is_tried_before_a_policy_is_loaded(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("rlvrlab.train.checks.with_policy", lambda has: pytest.fail("the policy was loaded first"))
    tiny(tmp_path)
    (tmp_path / "mine.py").write_text(REWARDS)
    done = inside(monkeypatch, capsys, "train", "tiny.toml", "reward.type=mine.py:raises", folder=tmp_path)
    assert done.returncode == 2 and "mine.py:" in done.stderr


def test_a_file_on_the_command_line_is_the_one_here_before_the_one_beside_the_recipe(
    tmp_path, monkeypatch, capsys
) -> None:
    (tmp_path / "recipes").mkdir()
    tiny(tmp_path / "recipes")
    (tmp_path / "recipes" / "mine.py").write_text("")
    (tmp_path / "mine.py").write_text(REWARDS)
    words = ("check", "recipe", "recipes/tiny.toml", "reward.type=mine.py:good")
    assert inside(monkeypatch, capsys, *words, folder=tmp_path).returncode == 0
    (tmp_path / "mine.py").rename(tmp_path / "recipes" / "mine.py")
    assert inside(monkeypatch, capsys, *words, folder=tmp_path).returncode == 0


def test_the_toy_refuses_words_and_points_to_a_language_model(tmp_path, monkeypatch, capsys) -> None:
    assert inside(monkeypatch, capsys, "new", "task", "words", folder=tmp_path).returncode == 0
    done = inside(monkeypatch, capsys, "train", "words.toml", "engine.type=toy", folder=tmp_path)
    assert done.returncode == 2 and "engine.type=hf engine.model=nano" in done.stderr
    assert not (tmp_path / "experiments").exists()


@pytest.mark.slow
def test_a_new_reward_teaches_the_toy_beyond_chance(tmp_path) -> None:
    for words in (("new", "reward", "mine"), ("check", "reward", "mine.py:reward"), ("train", "mine.toml")):
        done = rlvr(*words, folder=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    assert re.search("^grpo raised ", done.stdout, re.MULTILINE), done.stdout


def test_columns_that_cannot_be_guessed_are_named(tmp_path, monkeypatch, capsys) -> None:
    rows = [{"question": f"colour of thing {n}?", "colour": "red", "group": "a"} for n in range(30)]
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("new", "task", "things", "--data", "things.jsonl")
    (line,) = errors(inside(monkeypatch, capsys, *words, folder=tmp_path))
    assert "add prompt=COLUMN answer=COLUMN; there are: question, colour, group" in line
    done = inside(monkeypatch, capsys, *words, "answer=colour", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'answer = "colour"' in (tmp_path / "things.toml").read_text()


def test_a_table_that_is_too_small_is_told_first_and_once(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "two.csv").write_text("question,answer\nred?,yes\nblue?,no\n")
    done = inside(monkeypatch, capsys, "new", "task", "two", "--data", "two.csv", folder=tmp_path)
    after = done.stdout.split("; next:\n")[1].splitlines()
    assert done.returncode == 0 and "no dev rows" in after[0] and "add rows" in after[0]
    assert after[1].strip() == "rlvr train two.toml" and done.stdout.count("no dev rows") == 1
