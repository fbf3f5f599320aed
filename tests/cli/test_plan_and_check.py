"""What `--plan`, `check` and `new` say, and that hostile text stays text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import errors, inside, rlvr, tiny

from rlvrlab.cli import plan
from rlvrlab.extras import Lookup, packages
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.train.lookups import in_short

HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]x[/bold] [/red] \u202e \x9b1m \x00 \r over"
ENV = f"""
from dataclasses import dataclass
from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.registry import register
from rlvrlab.types import Problem, Verdict

@register("env", "mine")
@dataclass(frozen=True)
class Mine(BaseEnvironment):
    version = "1"
    def problems(self, role, size, seed):
        return [Problem("p", "mine", "mine", "q")]
    def verify(self, problem, text):
        return Verdict(correct=CORRECT, answer=text, detail={HOSTILE!r})
    def gold(self, problem):
        return GOLD
    def cheats(self, problem):
        return CHEATS
"""


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    return lambda *words: inside(monkeypatch, capsys, *words, folder=tmp_path)


def write_env(folder: Path, correct: str, gold: str = "'g'", cheats: str = "{}") -> None:
    text = ENV.replace("CORRECT", correct).replace("GOLD", gold).replace("CHEATS", cheats)
    (folder / "mine.py").write_text(text)


def no_control_characters(text: str) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


def test_plan_shows_origins_batches_updates_and_cost(run, tmp_path) -> None:
    tiny(tmp_path, "epochs = 3\nminibatches = 2")
    shown = json.loads(run("train", "tiny.toml", "seed=7", "--plan", "--json").stdout)
    settings = {row["key"]: (row["value"], row["origin"]) for row in shown["settings"]}
    assert settings["seed"] == (7, "override")
    assert settings["rollout.n"] == (2, "tiny.toml")
    assert settings["kl.coef"] == (0.0, "default") and settings["grpo.learning_rate"] == (0.01, "preset toy")
    assert settings["env.high"] == (9, "tiny.toml")
    sft, grpo = shown["phases"]
    assert (sft["steps"], sft["answers_per_step"], sft["updates_per_step"], sft["answers"]) == (2, 4, 1, 0)
    assert (grpo["problems_per_step"], grpo["answers_per_step"], grpo["updates_per_step"]) == (2, 4, 6)
    assert (grpo["answers"], grpo["max_tokens"]) == (8, 48)
    for one in shown["estimate"]:
        assert one["total_s"] == pytest.approx(2 * one["step_s"] + 2 * one["eval_s"]) and one["total_s"] > 0
    text = run("train", "tiny.toml", "--plan").stdout
    for word in ("rollout.n", "tiny.toml", "default", "grpo", "updates", "seconds in all"):
        assert word in text


def test_what_is_known_at_once_is_shown_before_a_step_is_measured(tmp_path, monkeypatch, capsys) -> None:
    """A step of a real model on a CPU takes minutes; until then nothing of the plan was on the screen."""
    tiny(tmp_path)
    seen: list[str] = []

    def measured(_: Resolved) -> tuple[list, str]:
        seen.append(capsys.readouterr().out)
        return [], "slow"

    monkeypatch.setattr(plan, "estimate_or_why", measured)
    plan.show_plan(load_recipe(tmp_path / "tiny.toml"), as_json=False)
    assert all(words in seen[0] for words in ("rollout.n", "updates", "grpo")) and "slow" not in seen[0]
    assert "Cost is left out" in capsys.readouterr().out


def test_plan_counts_two_answers_to_a_pair(run, tmp_path) -> None:
    tiny(tmp_path)
    words = ("phases=['dpo']", "dpo.steps=3", "dpo.batch_size=5", "dpo.problems=7", "--plan", "--json")
    (dpo,) = json.loads(run("train", "tiny.toml", *words).stdout)["phases"]
    assert (dpo["answers_per_step"], dpo["updates_per_step"], dpo["answers"], dpo["max_tokens"]) == (10, 1, 14, 84)


def test_plan_and_check_write_nothing(run, tmp_path) -> None:
    tiny(tmp_path)
    for words in (["train", "tiny.toml", "--plan"], ["check", "recipe", "tiny.toml"], ["check", "env", "countdown"]):
        assert run(*words).returncode == 0
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.toml"]


def test_check_recipe_takes_overrides_in_every_spelling(run, tmp_path) -> None:
    tiny(tmp_path)
    assert (
        "fine (18 keys set" in run("check", "recipe", "tiny.toml", "seed=1", "--rollout.n", "4", "--kl.coef=0.1").stdout
    )
    assert len(errors(run("check", "recipe", "tiny.toml", "seed=-1", "--rollout.n", "0"))) == 2


def test_check_recipe_looks_up_model_packages_and_files(run, tmp_path, monkeypatch) -> None:
    tiny(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("rlvrlab.models.lookup.is_stored", lambda name, kind: name == "org/stored")

    def looked_up(*words: str) -> tuple[int, dict[str, tuple[str, str]]]:
        shown = run("check", "recipe", "tiny.toml", *words, "--json")
        found = json.loads(shown.stdout)["lookups"]
        return shown.returncode, {one["what"]: (one["state"], one["words"]) for one in found}

    code, found = looked_up()
    assert code == 0 and {state for state, _ in found.values()} == {"found"}
    path = tmp_path / "tiny.toml"
    toy = path.read_text()
    path.write_text(toy.replace('type = "toy"\nbuckets = 8', 'type = "hf"'))
    for model, state, words in (
        ("nano", "found", "built here"),
        ("smollm2-135m-instruct", "wrong", "did you mean 'smollm2-135m'"),
        ("org/stored", "found", "stored by the hub"),
        ("org/elsewhere", "not checked", "no network"),
        ("./nowhere/model", "wrong", "no such folder"),
    ):
        code, found = looked_up(f"engine.model={model}")
        assert found["engine.model"][0] == state and words in found["engine.model"][1], model
        assert code == (1 if state == "wrong" else 0)
    path.write_text(toy)
    code, found = looked_up("data.train_file=absent.jsonl")
    assert code == 1 and found["data.train_file"][0] == "wrong" and "absent.jsonl" in found["data.train_file"][1]
    code, found = looked_up("data.train_file=absent.jsonl", "data.test_file=not_there.jsonl")
    assert code == 1 and "not_there.jsonl; no such file" in found["data.test_file"][1]
    code, found = looked_up('data.train_file=["absent.jsonl", "tiny.toml"]')
    assert code == 1 and "absent.jsonl; no such file" in found["data.train_file"][1]
    path.write_text(toy.replace('"countdown"\nnumbers = [2]\nhigh = 9\nstyle = "bare"', '"sql"\npath = "absent"'))
    code, found = looked_up()
    assert code == 1 and found["env, train problems"][0] == "wrong"


def test_check_recipe_calls_fine_only_what_it_has_looked_up(run, tmp_path, monkeypatch) -> None:
    tiny(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    path = tmp_path / "tiny.toml"
    path.write_text(path.read_text().replace('type = "toy"\nbuckets = 8', 'type = "hf"'))
    shown = run("check", "recipe", "tiny.toml", "engine.model=Qwen/Qwen9-99B")
    told = "nothing wrong found; 1 thing not checked: engine.model (no network to ask the hub)"
    assert shown.returncode == 0 and told in shown.stdout.splitlines()[0] and "fine" not in shown.stdout
    assert in_short([Lookup("engine hf", "missing here", "torch not installed")]).endswith(
        "nothing wrong found; 1 thing missing on this machine: engine hf"
    )
    assert in_short([Lookup("engine.model", "found", "nano")]) == "fine"


def test_a_package_that_is_not_installed_is_missing_here(monkeypatch) -> None:
    monkeypatch.setattr("rlvrlab.extras.find_spec", lambda name: None if name == "verl" else object())
    found = packages("engine verl", ("verl", "vllm"), "see docs/cluster.md")
    assert found[:3] == ("engine verl", "missing here", "verl not installed; see docs/cluster.md")


@pytest.mark.parametrize(
    ("correct", "gold", "cheats", "code", "held"),
    [
        ("text == 'g'", "'g'", "{'c': 'c'}", 0, "2 of 2"),
        ("True", "'g'", "{'c': 'c', 'd': 'd'}", 1, "1 of 3"),
        ("False", "'g'", "{'c': 'c'}", 1, "1 of 2"),
        ("None", "'g'", "{'c': 'c'}", 1, "0 of 2"),
        ("1 / 0", "'g'", "{'c': 'c'}", 1, "0 of 2"),
    ],
)
def test_check_env_fails_where_gold_is_wrong_or_a_cheat_is_right(
    run, tmp_path, correct: str, gold: str, cheats: str, code: int, held: str
) -> None:
    write_env(tmp_path, correct, gold, cheats)
    shown = run("check", "env", "mine.py:Mine")
    assert shown.returncode == code and f"{held} checks hold" in shown.stdout
    found = json.loads(run("check", "env", "mine.py:Mine", "--json").stdout)
    assert found["ok"] is (code == 0) and len(found["checks"]) == int(held[-1])


def test_an_environment_that_checks_nothing_is_not_sound(run, tmp_path) -> None:
    write_env(tmp_path, "True", gold="None")
    assert "checks nothing" in errors(run("check", "env", "mine.py:Mine"))[0]


@pytest.mark.slow
def test_check_engine_fails_on_a_broken_engine(run, tmp_path) -> None:
    (tmp_path / "bent.py").write_text("""
from dataclasses import dataclass
from rlvrlab.engines.toy.engine import Toy, ToyEngine
from rlvrlab.registry import register

class Engine(ToyEngine):
    def step(self, vectors, weights, learning_rate):
        return 2 * super().step(vectors, weights, learning_rate)

@register("engine", "bent")
@dataclass(frozen=True)
class Bent(Toy):
    buckets: int = 4
    max_number: int = 40
    def build(self, optimizer):
        return Engine(self, optimizer)

@register("engine", "stiff")
@dataclass(frozen=True)
class Stiff:
    rows: int = 4
""")
    shown = run("check", "engine", "bent.py:Bent", "--json")
    failed = [one["check"] for one in json.loads(shown.stdout)["checks"] if not one["ok"]]
    assert shown.returncode == 1 and failed == ["step_returns_displacement"]
    assert "micro_batch" in errors(run("check", "engine", "bent.py:Stiff"))[0]


def test_hostile_answers_are_inert_in_a_table(run, tmp_path) -> None:
    write_env(tmp_path, "True", gold=repr(HOSTILE), cheats=f"{{{HOSTILE!r}: {HOSTILE!r}}}")
    shown = run("check", "env", "mine.py:Mine")
    assert shown.returncode == 1 and "[bold]x[/bold]" in shown.stdout and "\\x1b[31mred" in shown.stdout
    no_control_characters(shown.stdout)


@pytest.mark.parametrize("words", [("--plan",), ()])
def test_hostile_recipe_text_is_inert_on_the_terminal(run, tmp_path, words: tuple[str, ...]) -> None:
    tiny(tmp_path)
    escaped = json.dumps(HOSTILE)
    shown = run("train", "tiny.toml", f"question={escaped}", "output_dir='[red]out[/red]'", *words)
    assert shown.returncode == 0 and "[red]out[/red]" in shown.stdout
    no_control_characters(shown.stdout)


def test_hostile_keys_are_inert_in_errors(run, tmp_path) -> None:
    (tmp_path / "tiny.toml").write_text(f"{json.dumps(HOSTILE.replace(chr(0), ''))} = 1")
    lines = errors(run("train", "tiny.toml"))
    assert len(lines) == 1
    no_control_characters(lines[0])


@pytest.mark.slow
def test_a_new_environment_checks_and_learns(tmp_path) -> None:
    """new env → check env → train: both phases raise accepted@1 on test problems beyond chance."""
    assert "rlvr check env larger.py:Larger" in rlvr("new", "env", "larger", folder=tmp_path).stdout
    assert rlvr("check", "env", "larger.py:Larger", folder=tmp_path).returncode == 0
    done = rlvr("train", "larger.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\nsft raised accepted@1: test 0.0 → " in done.stdout and "\ngrpo raised accepted@1: test " in done.stdout
    assert len(list((tmp_path / "experiments").iterdir())) == 1


def test_new_env_does_not_overwrite(run, tmp_path) -> None:
    assert run("new", "env", "shiny").returncode == 0
    (tmp_path / "shiny.py").write_text("changed")
    assert "already here" in errors(run("new", "env", "shiny"))[0]
    assert (tmp_path / "shiny.py").read_text() == "changed"


def test_sizes_beyond_what_there_is_are_told_once_and_usual_ones_not(tmp_path, monkeypatch, capsys) -> None:
    tiny(tmp_path)
    plan = ("train", "tiny.toml", 'phases=["sft", "grpo"]', "--plan", "--json")
    sizes = ("grpo.minibatches=1000", "sft.references=100000", "data.train_size=30")
    for extra, count in ((sizes, 1), (("data.train_size=30",), 0)):
        told = json.loads(inside(monkeypatch, capsys, *plan, *extra, folder=tmp_path).stdout)["warnings"]
        assert sum("grpo.minibatches = 1000: a step has " in words for words in told) == count
        assert sum("sft.references = 100000: there are 30 training problems" in words for words in told) == count
