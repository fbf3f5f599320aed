"""The command as a user meets it: help, mistakes, JSON, pipes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from command_line import RLVR, errors, inside, rlvr, tiny

from rlvrlab.cli.printing import printable
from rlvrlab.cli.verbs import VERBS
from rlvrlab.cli.verbs import rlvr as program

ANSI = re.compile(r"\x1b|\x9b")


def commands(group: click.Command, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [words]
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found += commands(group.get_command(context, name), (*words, name))
    return found


@pytest.mark.parametrize("words", commands(program), ids=" ".join)
def test_every_verb_has_help(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(program, [*words, "--help"])
    assert done.exit_code == 0 and done.output.startswith("Usage:")
    assert len(done.output.splitlines()) > 4


@pytest.mark.parametrize("verb", VERBS)
def test_the_table_of_verbs_says_what_the_verbs_say(verb: str) -> None:
    command = program.get_command(click.Context(program), verb)
    assert command.name == verb and command.get_short_help_str(200) == VERBS[verb]
    assert command.help.splitlines()[0] == VERBS[verb]


@pytest.mark.parametrize("words", [w for w in commands(program) if w], ids=" ".join)
def test_every_verb_that_does_something_has_json(words: tuple[str, ...]) -> None:
    command: click.Command = program
    for word in words:
        command = command.get_command(click.Context(command), word)
    if not isinstance(command, click.Group):
        assert "--json" in [name for option in command.params for name in option.opts]


def test_help_imports_nothing_heavy(tmp_path) -> None:
    code = (
        "import sys; sys.argv = ['rlvr', '--help']\nfrom rlvrlab.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'pydantic', 'rich', 'torch'} & set(sys.modules)), file=sys.stderr)"
    )
    done = rlvr(folder=tmp_path, program=[sys.executable, "-c", code])
    assert done.stderr.strip() == "[]" and all(verb in done.stdout for verb in VERBS)


def test_the_installed_command_is_this_one(tmp_path) -> None:
    found = shutil.which("rlvr", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("the package is not installed")
    done = rlvr("--version", folder=tmp_path, program=[found])
    assert done.returncode == 0 and done.stdout.startswith("rlvr, version ")
    assert errors(rlvr("nonsense", folder=tmp_path, program=[found]))


def test_the_package_itself_runs_as_the_command(tmp_path) -> None:
    done = rlvr("--version", folder=tmp_path, program=[sys.executable, "-m", "rlvrlab"])
    assert done.returncode == 0 and done.stdout.startswith("rlvr, version ")
    assert errors(rlvr("nonsense", folder=tmp_path, program=[sys.executable, "-m", "rlvrlab"]))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trian"], "no verb 'trian'; did you mean 'train'?"),
        (["xyzzy"], "allowed: recipes, train, "),
        (["train"], "name a recipe"),
        (["train", "gone.toml"], "gone.toml: no such recipe"),
        (["train", "tiny.toml", "rolout.n=3"], "did you mean 'rollout.n'"),
        (["train", "tiny.toml", "--rollout.n"], "no value"),
        (["train", "tiny.toml", "rollout.n"], "write key=value"),
        (["train", "tiny.toml", "--plan=3"], "--plan"),
        (["train", "tiny.toml", "name=../x"], "cannot name a run folder"),
        (["train", "tiny.toml", "output_dir=tiny.toml/x"], "choose another output_dir"),
        (["train", "--resume", "."], "not a run folder"),
        (["train", "tiny.toml", "--resume", "."], "--resume takes no other argument"),
        (["train", "--plan", "--resume", "."], "--resume takes no other argument"),
        (["train", "a\nb\x1b[31m.toml"], r"a\nb\x1b[31m.toml: no such recipe"),
        (["check", "recipe"], "Missing argument"),
        (["check", "recipe", "tiny.toml", "--seed", "-1"], "override seed: "),
        (["check", "env", "cuontdown"], "did you mean 'countdown'"),
        (["check", "env", "gone.py:X"], "no file"),
        (["check", "env", "needy.py:Needy"], "path has no default"),
        (["check", "env", "broken.py:X"], "broken.py:2: ZeroDivisionError"),
        (["check", "engine", "toi"], "did you mean 'toy'"),
        (["new", "env", "Upper"], "cannot name an environment"),
        (["new", "env", "../x"], "cannot name an environment"),
        (["new", "env", "_"], "cannot name an environment"),
        (["new", "env", "x" * 300], "cannot name an environment"),
        (["new", "env", "countdown"], "is taken"),
        (["new", "env", "problem"], "is taken"),
        (["new", "env", "here"], "already here"),
        (["completion", "powershell"], "powershell"),
        (["doctor", "--nothing"], "--nothing"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)  # fmt: skip
def test_a_users_mistake_is_one_line_and_exit_code_2(
    tmp_path, monkeypatch, capsys, words: list[str], expected: str
) -> None:
    tiny(tmp_path)
    (tmp_path / "here.py").write_text("")
    (tmp_path / "broken.py").write_text("\n1 / 0")
    (tmp_path / "needy.py").write_text(
        "from dataclasses import dataclass\nfrom rlvrlab.registry import register\n"
        "@register('env', 'needy')\n@dataclass(frozen=True)\nclass Needy:\n    path: str\n"
    )
    before = sorted(p.name for p in tmp_path.iterdir())
    lines = errors(inside(monkeypatch, capsys, *words, folder=tmp_path))
    assert len(lines) == 1 and expected in lines[0]
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == before


@pytest.mark.slow
def test_all_mistakes_of_a_recipe_are_printed_at_once(tmp_path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("kl_coef = 1\nseed = -1\nphases = ['gpro']\n[rollout]\nn = 0\n[env]\ntype = 'x'\n[sft]\nstep = 1")
    lines = errors(rlvr("train", str(path), folder=tmp_path))
    assert len(lines) == 6 and all("bad.toml:" in line for line in lines)


@pytest.mark.parametrize("words", [[], ["check"], ["new"]])
def test_a_verb_alone_shows_its_help(tmp_path, words: list[str]) -> None:
    done = rlvr(*words, folder=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("Usage: ") and "error" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [["check", "recipe", "tiny.toml", "--rollout.n", "16"], ["check", "env", "countdown"],
     ["doctor"], ["new", "env", "fresh"], ["train", "tiny.toml"], ["train", "tiny.toml", "--plan"],
     ["completion", "bash"]],
    ids=" ".join,
)  # fmt: skip
def test_json_is_json_and_nothing_else(tmp_path, monkeypatch, capsys, words: list[str]) -> None:
    tiny(tmp_path)
    done = inside(monkeypatch, capsys, *words, "--json", folder=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert isinstance(json.loads(done.stdout), dict)


def test_a_recipe_without_an_environment_is_told_which_one_it_gets(tmp_path, monkeypatch, capsys) -> None:
    text = 'phases = ["grpo"]\ndata = {train_size = 20, dev_size = 4}\ngrpo = {steps = 1, batch_size = 2}\n'
    (tmp_path / "bare.toml").write_text(text)
    told = "env: the recipe names no environment; this is the default, countdown"
    done = inside(monkeypatch, capsys, "train", "bare.toml", "rollout.n=2", folder=tmp_path)
    plan, named = (
        inside(monkeypatch, capsys, "train", "bare.toml", "--plan", *more, folder=tmp_path)
        for more in ((), ("env.type=countdown",))
    )
    assert told in done.stderr and told in plan.stdout and told not in named.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["doctor"], ["check", "env", "countdown"], ["train", "tiny.toml"], ["train", "tiny.toml", "--plan"]]
)
def test_no_colours_where_there_is_no_terminal(tmp_path, words: list[str]) -> None:
    tiny(tmp_path)
    done = rlvr(*words, folder=tmp_path, TERM="xterm-256color")
    assert done.returncode == 0 and not ANSI.search(done.stdout + done.stderr)
    assert all(re.match(r"(sft|grpo) \d/\d ", line) for line in done.stderr.splitlines())  # a line per evaluation


@pytest.mark.slow
def test_evaluations_have_a_line_each_and_no_old_number(tmp_path, monkeypatch, capsys) -> None:
    done = inside(monkeypatch, capsys, "train", str(tiny(tmp_path)), "grpo.steps=3", "eval.every=2", folder=tmp_path)
    lines = [line for line in done.stderr.splitlines() if re.match(r"\w+ \d/\d ", line)]
    assert [line[:8] for line in lines] == ["sft 0/2 ", "sft 2/2 ", "grpo 0/3", "grpo 2/3", "grpo 3/3"]
    assert all("dev " in line for line in lines)
    words = ("train", str(tiny(tmp_path)), "eval.every=0", "record.log_interval=1")
    done = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert "dev " not in next(line for line in done.stderr.splitlines() if line.startswith("grpo 1/2"))


def test_progress_lines_are_asked_for(tmp_path, monkeypatch, capsys) -> None:
    done = inside(monkeypatch, capsys, "train", str(tiny(tmp_path)), "record.log_interval=1", folder=tmp_path)
    assert re.findall(r"^(\w+ \d/\d) ", done.stderr, re.M) == [
        "sft 0/2",
        "sft 1/2",
        "sft 2/2",
        "grpo 0/2",
        "grpo 1/2",
        "grpo 2/2",
    ]
    assert "grpo 1/2 (step 3)  " in done.stderr, "and readable as the step that tables, files and RUN@STEP mean"
    assert "grpo, step 4/4" in inside(monkeypatch, capsys, "show", folder=tmp_path).stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", [["doctor"], ["recipes"], ["--help"]])
def test_a_reader_that_leaves_is_no_error(tmp_path, words: list[str]) -> None:
    """`rlvr … | true`: the pipe is closed before anything is written."""
    with subprocess.Popen([*RLVR, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        complaint = process.stderr.read()
    assert complaint == b"" and process.returncode == 0


def test_a_terminal_without_unicode_gets_escapes(tmp_path) -> None:
    done = rlvr("check", "env", "countdown", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "\\u2713" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(tmp_path, shell: str) -> None:
    done = rlvr("completion", shell, folder=tmp_path)
    assert done.returncode == 0 and "_RLVR_COMPLETE" in done.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, text=True, timeout=120)
        assert checked.returncode == 0, checked.stderr


def test_completion_completes_verbs(tmp_path) -> None:
    words = {"_RLVR_COMPLETE": "bash_complete", "COMP_WORDS": "rlvr do", "COMP_CWORD": "1"}
    done = rlvr(
        folder=tmp_path, program=[sys.executable, "-c", "import sys; sys.argv[0] = 'rlvr'\n" + RLVR[2]], **words
    )
    assert done.stdout == "plain,doctor\n"


@pytest.mark.slow
def test_doctor_finds_this_machine_sound(tmp_path) -> None:
    found = json.loads(rlvr("doctor", "--json", folder=tmp_path).stdout)
    states = {one["subject"]: one["state"] for one in found["findings"]}
    assert found["ok"] and states["python"] == states["file locks"] == states["folder"] == "ok"
    assert all(one["remedy"] for one in found["findings"] if one["state"] != "ok")
    assert list(tmp_path.iterdir()) == []


def test_doctor_says_which_packages_an_engine_lacks(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("rlvrlab.extras.find_spec", lambda name: None if name == "torch" else object())
    found = json.loads(inside(monkeypatch, capsys, "doctor", "--json", folder=tmp_path).stdout)["findings"]
    [hf] = [one for one in found if one["subject"] == "engine hf"]
    assert hf["state"] == "missing" and hf["fact"] == "torch not installed" and "docs/engines.md" in hf["remedy"]
    assert [one["state"] for one in found if one["subject"] == "engine verl"] == ["ok"]


def test_control_characters_are_spelled_out() -> None:
    assert printable("a\x1b[31m\nb\u202e\x9b ✓") == "a\\x1b[31m\\nb\\u202e\\x9b ✓"
