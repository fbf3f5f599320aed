"""In 80 columns no table cuts a number."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import inside, tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import rlvrlab.cli
from rlvrlab.cli.folding import FoldingText
from rlvrlab.cli.printing import shortened, table
from rlvrlab.cli.progress import Progress
from rlvrlab.cli.suite import _show
from rlvrlab.cli.tables import split_table
from rlvrlab.evals.suites.examine import Cell, Examined
from rlvrlab.recipe import load_recipe
from rlvrlab.train.loop import WARNED
from rlvrlab.train.session import Ended

WIDEST = "100.0 [96.9, 100.0]"
CLI = Path(rlvrlab.cli.__file__).parent


def narrow(made: object) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(made)
    return console.file.getvalue()


def test_words_give_way_to_numbers() -> None:
    told = narrow(table(("a long name of a phase", "before", "best", "last"), [("grpo_turns " * 6, *[WIDEST] * 3)]))
    assert told.count(WIDEST) == 3 and max(map(len, told.splitlines())) <= 80
    without = narrow(table(("name", "words"), [("a b " * 30, "c d " * 30)]))
    assert max(map(len, without.splitlines())) <= 80


def test_long_words_break_at_their_seams() -> None:
    names = ("toy_countdown_20261119_005120_afa868f5", "github.com/Arthur-Heng/NLGraph (folder NLGraph)")
    told = narrow(table(("name", "before", "best", "last"), [(name, *[WIDEST] * 3) for name in names]))
    pieces = [line.partition(" 100.0")[0].strip() for line in told.splitlines()[1:]]
    address = ["github.com/", "Arthur-Heng/", "NLGraph (folder", "NLGraph)"]
    assert pieces == ["toy_countdown_", "20261119_", "005120_afa868f5", *address]
    assert told.count(WIDEST) == 6 and max(map(len, told.splitlines())) <= 80


@settings(deadline=None)
@given(st.text("ab_/. é漢\u200b", max_size=60), st.integers(2, 30))
def test_folding_loses_nothing(text: str, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    lines = [line.plain for line in FoldingText(text).wrap(console, width, overflow="fold")]
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line.rstrip()) <= max(width, 2) for line in lines)


def test_headings_stand_in_several_lines_over_figures_and_are_never_cut() -> None:
    head = ("skill level", "problems", "accuracy", "variance", "mixed groups", "cut off", "in form")
    row = ("a_skill –", 100, "100 % [97, 100]", "0.00 [0.00, 0.49]", "100 % [97, 100]", "100 %", "100 %")
    told = narrow(table(head, [row]))
    words = {word for heading in head for word in heading.split()}
    assert words <= set(told.split()) and max(map(len, told.splitlines())) <= 80
    wide = io.StringIO()
    Console(file=wide, width=120).print(table(head, [row]))
    assert "skill level" in wide.getvalue() and "mixed groups" in wide.getvalue() and wide.getvalue().count("\n") == 2


SHORT = "of to in at by the new arm key and off on for per end all age ran cut set far so a an is it no"
"""Short words that everybody knows."""
ALONE = {"form", "ran", "cut", "per"}
"""Words that say nothing as a whole heading."""
EXPLAINED = {"p": "p: ", "MDE": "MDE: ", "ROUGE-L": "ROUGE-L: "}
"""Abbreviations in headings -> how the words begin that explain each below its table."""


def headings() -> dict[str, set[str]]:
    """The fixed headings of every table of the command line, by file."""
    found: dict[str, set[str]] = {}
    for path in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [getattr(one, "id", "") for one in node.targets] if isinstance(node, ast.Assign) else []
            called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("table", "printing.table")
            if {"head", "FACTS", "COST", "PHASES", "COLUMNS", "WITH_SETTINGS"} & set(names):
                parts = getattr(node.value, "elts", [])
            else:
                parts = getattr(node.args[0], "elts", []) if called and node.args else []
            texts = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
            found.setdefault(path.name, set()).update(texts)
    return {name: texts for name, texts in found.items() if texts}


def test_headings_are_words_or_are_explained() -> None:
    every = headings()
    assert len(every) >= 10 and "MDE" in every["tables.py"] and "problems" in every["suite.py"]
    sources = {path.name: path.read_text(encoding="utf-8") for path in CLI.glob("*.py")}
    for file, texts in every.items():
        for word in {word for text in texts for word in re.findall(r"(?<![.\w])[A-Za-z][A-Za-z-]*", text)}:
            if word in EXPLAINED:
                shown_by = [text for text in sources.values() if EXPLAINED[word] in text]
                assert shown_by, f"{file}: {word} is explained nowhere"
            else:
                odd = (len(word) <= 3 and word not in SHORT.split()) or word.isupper() or word in texts & ALONE
                assert not odd, f"{file}: the heading {word!r} is no word that says what it is"


def test_what_a_table_of_checks_cuts_ends_with_a_whole_word() -> None:
    assert shortened("I try combinations of the numbers", 20) == "I try combinations…"
    assert shortened("whole", 5) == "whole" and shortened("x" * 30, 10) == "xxxxxxxxx…"
    assert shortened("eleven characters here", 18) == "eleven characters…"


def test_skills_fit() -> None:
    shares = {"accepted_at_1": 1.0, "accepted_at_1_low": 0.969, "accepted_at_1_high": 1.0, "problems": 1319}
    one = {**shares, "mean_accuracy": 1.0, "mean_accuracy_low": 0.969, "mean_accuracy_high": 1.0}
    told = narrow(
        split_table("skill", {"a_skill_with_a_long_name": {**one, "format_rate": 1.0, "truncated_rate": 1.0}})
    )
    assert told.count("100.0 % [96.9, 100.0]") == 2 and "1319" in told and "…" not in told


def test_many_models_of_a_suite_stand_in_several_tables(monkeypatch, capsys) -> None:
    names = [f"model_of_a_long_name_{i}" for i in range(8)]
    cells = [
        Cell(name, member, "in task", "accepted@1", 0.969, 0.9, 1.0, 100, 0, (0.969, 0.969), "protocol")
        for member in ("tsp_small", "tsp_large")
        for name in names
    ]
    monkeypatch.setenv("COLUMNS", "80")
    _show(Examined(tuple(cells), (), ()), names, "graphs, fast tier")
    told = capsys.readouterr().out
    assert told.count("96.9 [90.0, 100.0]") == len(cells) and all(told.count(name) == 1 for name in names)
    rows = [line for line in told.splitlines() if "96.9" in line]
    assert all(line.startswith(("tsp_small  @1      100", "tsp_large  @1      100")) for line in rows) and len(rows) > 2
    assert told.count("graphs, fast tier") == 1 and max(map(len, told.splitlines())) <= 80


def test_the_last_table_of_a_run_fits(monkeypatch, capsys, tmp_path) -> None:
    point = {"accuracy": 1.0, "low": 0.969, "high": 1.0, "step": 1000}
    phases = {name: dict.fromkeys(("before", "best", "last"), point) for name in ("sft", "grpo_turns")}
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("headline_words", "read_cards", "read_events"):
        monkeypatch.setattr(f"rlvrlab.cli.progress.{name}", lambda *_: [])
    Progress(load_recipe(tiny(tmp_path)), as_json=False).end(Ended(tmp_path, "finished", 0, phases))
    told = capsys.readouterr().out
    assert told.count(WIDEST) == 4 and "100.0  " in told and "…" not in told


@pytest.mark.parametrize("width", ["80", "100"])
def test_the_course_of_a_metric_stays_on_its_line(monkeypatch, capsys, tmp_path, width: str) -> None:
    words = ("train", str(tiny(tmp_path)), "grpo.steps=60", "eval.every=1", "--json")
    assert inside(monkeypatch, capsys, *words, folder=tmp_path).returncode == 0
    monkeypatch.setenv("COLUMNS", width)
    shown = inside(monkeypatch, capsys, "show", folder=tmp_path).stdout.splitlines()
    courses = [line for line in shown if re.search("[▁▂▃▄▅▆▇█]{2}", line)]
    assert courses and all(re.match(r"\S", line) for line in courses)


@pytest.mark.slow
def test_every_table_of_a_run_fits(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    recipe = str(tiny(tmp_path, "[eval]\ntest_size = 4\n"))
    verbs = [
        ("train", recipe), ("train", recipe, "seed=1"), ("train", recipe, "--plan"), ("runs",), ("show", "latest"),
        ("eval", "--run", "latest"), ("eval", "--run", "latest@2"), ("check", "env", "countdown", "--hacks"),
        ("check", "engine", "toy"), ("probe", recipe, "--size", "4"), ("recipes",),
    ]  # fmt: skip
    for words in verbs:
        done = inside(monkeypatch, capsys, *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stdout.splitlines() if re.search(r"\d\s*…(\s|$)", line)]
        assert lines == [], (words, lines)


def test_the_line_that_names_a_run_is_not_folded(tmp_path, monkeypatch, capsys) -> None:
    name = "a_run_whose_name_is_wider_than_its_table"
    told = inside(monkeypatch, capsys, "train", str(tiny(tmp_path)), f"name={name}", folder=tmp_path).stdout
    assert re.search(rf"^{name}_\w+: finished\s*$", told, re.MULTILINE), told


def test_a_run_that_failed_by_its_reward_wants_it_mended_first(tmp_path, monkeypatch, capsys) -> None:
    late = "CALLS = []\ndef bad(problem, completion, verdict):\n    CALLS.append(1)\n"
    (tmp_path / "mine.py").write_text(f"{late}    return 1.0 if len(CALLS) < 60 else 'much'\n")
    words = ("train", str(tiny(tmp_path)), "reward.type=mine.py:bad", "phases=['grpo']", "grpo.steps=20")
    done = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert done.returncode == 2 and "gave 'much'" in done.stderr
    told = inside(monkeypatch, capsys, "show", "latest", folder=tmp_path).stdout
    assert "mend the function" in told and "--accept-code" in told and "goes on exactly" not in told


def test_what_goes_wrong_is_said_while_the_run_goes_on(capsys, tmp_path) -> None:
    phase, row = (
        SimpleNamespace(name="grpo", steps=10),
        {"step": 3, "phase_step": 3, WARNED: ["wrong answers earn more"]},
    )
    Progress(load_recipe(tiny(tmp_path)), as_json=False).observe(phase, None, row)
    assert "warning: wrong answers earn more" in capsys.readouterr().err
    Progress(load_recipe(tiny(tmp_path)), as_json=True).observe(phase, None, row)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_bar_keeps_its_length_and_no_word_is_cut(monkeypatch, capsys, tmp_path, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    key = "val-core/countdown/acc"
    first = {"step": 1200, "phase_step": 1000, key: 0.558, f"{key}_low": 0.469, f"{key}_high": 0.644}
    numbers = {"train/acc": 0.26, "actor/entropy": 1.32, "groups/zero_variance": 0.69}
    phase = SimpleNamespace(name="grpo", steps=2000)
    with Progress(load_recipe(tiny(tmp_path), ["grpo.steps=2000"]), as_json=False) as progress:
        progress.observe(phase, None, first | numbers)
        progress.observe(phase, None, {"step": 1201, "phase_step": 1001, **numbers})
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    last = [line for line in re.split(r"[\r\n]+", shown) if "1001/2000" in line][-1].rstrip()
    assert last.count("━") + last.count("╸") + last.count("╺") >= 12 and "…" not in last and len(last) <= width
    assert "step 1201" in last and "dev 55.8 %" in last and last.endswith("at step 1200") == (width < 120)
    assert ("[46.9, 64.4]" in last) == (width >= 100) and ("dead groups 0.69" in last) == (width == 200)
