"""Training from Python: functions as rewards and environments, runs that stop and go on."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from largest import COUNTDOWN, RECIPE, ROWS, forget, larger, steps, stops_once

import rlvrlab
from rlvrlab import LabError, UserError, registry
from rlvrlab.record.run import read_config
from rlvrlab.train import CallablePackage


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train(recipe: Any = RECIPE, **options: Any) -> rlvrlab.Run:
    assert isinstance(rlvrlab.train, CallablePackage)
    return rlvrlab.train(recipe, **{"progress": False, **options})


def interrupted(**options: Any) -> rlvrlab.Run:
    """The run that Ctrl-C has ended."""
    with pytest.raises(KeyboardInterrupt):
        train(**options)
    return rlvrlab.Run("latest")


def refused(call: Any, *words: str) -> None:
    """One line, of our own kind, with these words."""
    with pytest.raises(LabError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and all(word in text for word in words), text


def test_an_environment_and_a_reward_of_plain_functions_are_learnt() -> None:
    def bonus(problem: Any, completion: Any, verdict: Any) -> Any:
        assert verdict.correct is (completion.text.strip() == problem.reference)
        return {"correct": verdict.correct, "short": np.float32(0.1) * (len(completion.tokens) < 3)}

    run = train(env=larger(), reward=bonus, overrides=["grpo.steps=20"])
    assert run.status == "finished" and repr(run).endswith("finished)")
    assert run.result["sft"]["before"]["accuracy"] == 0 and run.result["grpo"]["last"]["accuracy"] > 0.5
    row = next(row for row in run.rollouts(step=20) if row["correct"])
    assert row["parts"]["correct"] == 1 and row["reward"] == pytest.approx(1 + row["parts"]["short"])
    assert {row["skill"] for row in run.rollouts()} == {"far", "near"}
    config = read_config(run.folder)["recipe"]
    assert config["reward"]["type"].startswith("python:bonus:") and config["env"]["type"].startswith("python:largest:")
    assert "resume(reward=…, env=…)" in (run.folder / "EXPERIMENT.md").read_text()


def test_a_number_is_a_reward_too() -> None:
    run = train(COUNTDOWN, reward=lambda problem, completion, verdict: 2 * verdict.correct, overrides="grpo.steps=1")
    assert {row["reward"] for row in run.rollouts()} <= {0, 2}
    assert run.rollouts()[0]["parts"].keys() == {"lambda"}


def test_a_reward_that_pays_wrong_answers_is_said_before_the_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    def upside_down(problem: Any, completion: Any, verdict: Any) -> float:
        return float(not verdict.correct)

    words = "warning: reward: a right answer earns less than a wrong one"
    run = train(COUNTDOWN, reward=upside_down, overrides="grpo.steps=1", progress=True)
    before, _, after = capsys.readouterr().err.partition(" 0/")
    assert words in before and words in after, "before a step is spent, and again with the result"
    run.resume(reward=upside_down, overrides="grpo.steps=+1")
    assert words in capsys.readouterr().err.partition(" 2/")[0]


@pytest.mark.parametrize("value", [None, "1", float("nan"), float("inf"), {}, {"a": None}, {"a": "x"}, {3: 1.0}, [1]])
def test_a_bad_reward_is_one_line_with_problem_value_and_remedy(value: Any) -> None:
    def bad(problem: Any, completion: Any, verdict: Any) -> Any:
        return value

    refused(lambda: train(COUNTDOWN, reward=bad), "'bad'", repr(value), "problem countdown:", "a finite number")


def test_a_reward_that_raises_is_one_line() -> None:
    def broken(problem: Any, completion: Any, verdict: Any) -> float:
        raise ZeroDivisionError("two\nlines")

    refused(lambda: train(COUNTDOWN, reward=broken), "'broken' raised ZeroDivisionError: two lines", "countdown:")
    assert not Path("experiments").exists()  # found by a trial call, before any run begins


def test_an_interrupted_run_goes_on_exactly_with_its_functions_and_not_without() -> None:
    flag = Path("flag").resolve()
    whole = train(env=larger(), reward=stops_once(flag))
    flag.touch()
    run = interrupted(env=larger(), reward=stops_once(flag))
    assert run.status == "interrupted" and not flag.exists()
    forget()
    again = rlvrlab.Run(run.folder)
    assert len(again.metrics()) < len(whole.metrics()) and again.recipe.recipe.name == "largest"
    refused(lambda: again.resume(progress=False), "environment 'python:largest:", "is in no file", "env=…")
    refused(lambda: again.resume(env=larger(), progress=False), "reward 'python:bonus:", "resume(reward=…)")
    forget()
    given = {"env": larger(), "reward": stops_once(flag), "progress": False}
    other = lambda problem, completion, verdict: 1.0  # noqa: E731
    refused(
        lambda: again.resume(**given | {"reward": other}),
        "its reward 'python:bonus:", "is not what it was: 'lambda' (", "resume(reward=…, accept_code=True)",
    )  # fmt: skip
    refused(lambda: again.resume(**given | {"env": larger(rows=ROWS[:90])}), "problems are not what they were")
    refused(lambda: again.resume(**given | {"env": "countdown"}), "on record", "leave env= out")
    assert again.resume(**given).status == "finished"
    assert steps(again) == steps(whole)


def test_within_one_process_nothing_has_to_be_given_again() -> None:
    flag = Path("flag").resolve()
    flag.touch()
    run = interrupted(env=larger(), reward=stops_once(flag))
    assert run.status == "interrupted" and run.resume(progress=False).status == "finished"


MODULE = """
import os, signal
from pathlib import Path
WORTH = 0.1

def bonus(problem, completion, verdict):  # a comment
    flag = Path(os.environ.get("FLAG", "none"))
    if completion.policy_version >= 3 and flag.exists():
        flag.unlink()
        os.kill(os.getpid(), signal.SIGINT)
    return {"correct": float(verdict.correct), "short": WORTH * (len(completion.tokens) < 3)}
"""
TASK = """
import rlvrlab
ROWS = [{"prompt": f"{a} {b}\\n", "answer": str(a)} for a in range(1, 9) for b in range(1, 9)]
def verify(problem, text):
    return text == problem.reference
env = rlvrlab.environment(ROWS, verify=verify, gold=lambda problem: problem.reference, name="first")
"""


def resumed(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlvrlab", "train", "--resume", str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_functions_of_a_file_are_found_again_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "api_bonus.py").write_text(MODULE)
    (tmp_path / "api_task.py").write_text(TASK)
    monkeypatch.syspath_prepend(tmp_path)
    bonus, env = importlib.import_module("api_bonus").bonus, importlib.import_module("api_task").env
    whole = train(reward=bonus, env=env)
    assert read_config(whole.folder)["recipe"]["reward"]["type"] == "api_bonus.py:bonus"
    assert read_config(whole.folder)["recipe"]["env"]["type"] == "api_task.py:env"
    assert "rlvr train --resume" in (whole.folder / "EXPERIMENT.md").read_text()
    monkeypatch.setenv("FLAG", str(tmp_path / "flag"))
    (tmp_path / "flag").touch()
    run = interrupted(reward=bonus, env=env)
    assert run.status == "interrupted"
    (tmp_path / "api_bonus.py").write_text(MODULE.replace("0.1", "0.2"))
    changed = resumed(run.folder)
    assert changed.returncode == 2 and changed.stderr.count("\n") == 1
    assert "api_bonus.py: is not what it was" in changed.stderr
    (tmp_path / "api_bonus.py").write_text(MODULE.replace("a comment", "another"))
    assert resumed(run.folder).returncode == 0
    assert run.status == "finished" and steps(run) == steps(whole)


@pytest.mark.slow
def test_what_is_in_no_file_is_refused_by_the_command_line_in_one_line() -> None:
    flag = Path("flag").resolve()
    flag.touch()
    run = train(COUNTDOWN, reward=stops_once(flag))
    done = resumed(run.folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "resume(reward=…)" in done.stderr


def test_a_recipe_names_a_function_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    loaded = rlvrlab.load_recipe({**COUNTDOWN, "reward.type": "mine.py:bonus"})
    assert loaded.recipe.reward["code"] and loaded.changed()["reward.type"]["value"] == "mine.py:bonus"
    assert train(loaded, overrides={"grpo.steps": 1}).rollouts()[0]["parts"].keys() == {"correct", "short"}
    refused(lambda: rlvrlab.load_recipe({"reward.type": "mine.py:WORTH"}), "is float, which is no reward")


def test_a_function_of_an_imported_file_is_used_as_it_stands_and_the_file_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = "import os\nos.mkdir(f'ran_{len(os.listdir())}')\n"
    (tmp_path / "api_once.py").write_text(counts + MODULE.replace("< 3", "< 9"))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("api_once")
    module.WORTH = 0.25
    run = train(COUNTDOWN, reward=module.bonus, overrides="grpo.steps=1")
    assert read_config(run.folder)["recipe"]["reward"]["type"] == "api_once.py:bonus"
    assert len(list(Path().glob("ran_*"))) == 1
    assert all(row["parts"]["short"] == 0.25 * (len(row["tokens"]) < 9) for row in run.rollouts())


def test_overrides_complete_a_recipe_before_it_is_checked() -> None:
    unfinished = {**COUNTDOWN, "grpo.steps": 0}
    refused(lambda: train(unfinished, reward=lambda *given: 1.0), "grpo.steps")
    train(unfinished, reward=lambda *given: 1.0, overrides="grpo.steps=1")
    rows = [{"question": f"What is {n} and 1?", "answer": f"{n}+1={n + 1}\n#### {n + 1}"} for n in range(60)]
    words = {"env.type": "gsm8k", "grpo.steps": 1, "data": {"train_size": 8}}
    run = train({**COUNTDOWN, "env": {"type": "gsm8k"}}, data=rows, overrides=words)
    assert Path(read_config(run.folder)["recipe"]["env"]["path"]).is_file()


def test_training_in_a_thread_leaves_signals_alone() -> None:
    ended: list[str] = []
    thread = threading.Thread(target=lambda: ended.append(train(COUNTDOWN).status))
    thread.start()
    thread.join()
    assert ended == ["finished"]


def test_progress_lines_and_warnings_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    train(COUNTDOWN, overrides={"record": {"log_interval": 2}}, progress=True)
    shown = capsys.readouterr()
    assert "grpo 2/6" in shown.err and "warning: " in shown.err and shown.out == ""


def test_a_notebook_gets_one_line_per_phase_that_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[int, list[str]] = {}

    class Handle:
        def __init__(self) -> None:
            shown[id(self)] = []

        def update(self, data: dict[str, str], raw: bool) -> None:
            shown[id(self)].append(data["text/plain"])

    handles = [Handle(), Handle()]
    waiting = iter(handles)
    fake = types.ModuleType("IPython.display")
    fake.display = lambda data, raw, display_id: next(waiting)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    train(env=larger(), progress=True)
    last = [shown[id(handle)][-1] for handle in handles]
    assert last[0].startswith("      sft ████████████████████ 8/8  dev ") and "grpo" in last[1] and "6/6" in last[1]


def test_functions_of_this_process_are_not_offered_as_names() -> None:
    train(COUNTDOWN, reward=lambda problem, completion, verdict: 1.0, overrides="grpo.steps=1")
    assert not any(name.startswith("python:") for name in registry.names("reward"))
    refused(lambda: rlvrlab.load_recipe({"reward.type": "bynary"}), "did you mean 'binary'")


def test_data_replaces_the_problems(tmp_path: Path) -> None:
    asks = rlvrlab.environment(verify=lambda problem, text: text == problem.reference, name="asks")
    refused(lambda: train(env=asks), "'asks': it has no problems", "role='train'")
    rows = [{**row, "role": "dev" if index % 9 == 0 else "train"} for index, row in enumerate(ROWS)]
    run = train(env=asks, data=rows, overrides={"phases": ["grpo"], "grpo.steps": 1})
    assert {row["role"] for row in run.rollouts()} == {"train"}
    forget()
    refused(lambda: run.resume(env=asks, progress=False), "problems are not what they were")
    assert run.resume(env=asks, data=rows, progress=False).status == "finished"
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows))
    run = train(env=asks, data=str(file), overrides={"phases": ["grpo"], "grpo.steps": 1})
    assert read_config(run.folder)["recipe"]["env"]["data"] != asks.data
    rows = [{"question": f"What is {n} and 1?", "answer": f"{n}+1={n + 1}\n#### {n + 1}"} for n in range(60)]
    run = train(COUNTDOWN, env="gsm8k", data=rows, overrides={"grpo.steps": 1, "data": {"train_size": 8}})
    assert Path(read_config(run.folder)["recipe"]["env"]["path"]).is_file()
    refused(lambda: train(COUNTDOWN, data=rows), "'countdown' makes its own problems")


def test_plug_in_objects_and_names_are_environments_and_rewards() -> None:
    from rlvrlab.envs.countdown import Countdown
    from rlvrlab.rewards.partial import Partial

    run = train(COUNTDOWN, env=Countdown(numbers=(2,), high=9, style="bare"), reward=Partial(format=0.2),
                overrides="grpo.steps=1")  # fmt: skip
    assert run.recipe.recipe.env["high"] == 9 and run.recipe.recipe.reward["format"] == 0.2
    assert train(COUNTDOWN, reward="partial", overrides="grpo.steps=1").recipe.recipe.reward["type"] == "partial"
    refused(lambda: train(COUNTDOWN, reward=3), "reward: a function")
    refused(lambda: train(COUNTDOWN, env=3), "env: 3 is no environment")
    refused(lambda: train(COUNTDOWN, overrides="grpo.stepz=1"), "did you mean 'grpo.steps'")


def test_verl_is_refused_functions_of_this_process() -> None:
    def mine(problem: Any, completion: Any, verdict: Any) -> float:
        return 1.0

    with pytest.raises(UserError, match="put it into a file"):
        train({"name": "far", "engine.type": "verl", "engine.model": "x"}, env="countdown", reward=mine)


def test_a_file_whose_path_has_an_equals_sign_is_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "lr=0.1"
    folder.mkdir()
    (folder / "recipe").write_text('phases = ["grpo"]\n')
    assert rlvrlab.load_recipe(str(folder / "recipe")).recipe.phases == ["grpo"]


def test_nobody_trains_or_examines_the_default_environment_unaware() -> None:
    unnamed = {key: value for key, value in COUNTDOWN.items() if key != "env"}
    words = ("neither the recipe nor the call names an environment", "env=rlvrlab.environment(…)")
    refused(lambda: train(unnamed, reward=lambda problem, completion, verdict: 1.0), *words)
    refused(lambda: train(rlvrlab.load_recipe(unnamed)), *words)
    refused(lambda: rlvrlab.evaluate(unnamed), *words)
    assert not Path("experiments").exists()
    assert train(COUNTDOWN | {"env": {"type": "countdown", "numbers": [2], "style": "bare"}}, overrides="grpo.steps=1")


def test_unjudged_held_out_answers_are_told_at_the_first_evaluation_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fussy(problem: Any, text: str) -> bool:
        return {"2": True}[problem.reference] and text.strip() == "2"

    env = rlvrlab.environment(ROWS, verify=fussy, gold=lambda problem: problem.reference, name="fussy")
    run = train(env=env, overrides={"phases": ["sft"], "sft.steps": 1}, progress=True)
    told = re.compile(r"\d+ of \d+ unjudged: verify raised KeyError: '\d+' at .*test_training.py:\d+")
    first = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("sft 0/1"))
    assert told.search(first)
    assert any(told.search(words) for words in run.warnings)


def test_a_phase_without_reference_answers_is_refused_with_the_remedy_before_a_folder_is_made() -> None:
    silent = rlvrlab.environment(ROWS, verify=lambda problem, text: True, name="silent")
    refused(lambda: train(env=silent), "sft: environment 'silent' has no reference answers", "gold=", "answer")
    assert not Path("experiments").exists()


def test_right_answers_that_are_rejected_end_it_before_a_folder_is_made() -> None:
    def verify(problem: Any, text: str) -> bool:
        return text.strip() == problem.reference + "!"

    deaf = rlvrlab.environment(ROWS, verify=verify, gold=lambda problem: problem.reference, name="deaf")
    refused(lambda: train(env=deaf), "'deaf' rejects its own right answer to problem deaf:", " max'): gold gave '")
    numbers = [{**row, "answer": int(row["answer"])} for row in ROWS]
    refused(lambda: train(env=larger(rows=numbers)), "is int, and", "compare with str(problem.reference)")
    assert not Path("experiments").exists()


def test_steps_without_rollouts_are_told_by_those_that_have_some() -> None:
    run = train(env=larger())
    refused(lambda: run.rollouts(step=3), "no rollouts of step 3; there are 9 to 14 (")


def test_a_run_is_made_longer_and_found_by_the_names_of_the_command_line() -> None:
    run = train(COUNTDOWN, overrides="grpo.steps=2")
    assert rlvrlab.Run("latest").folder.samefile(run.folder) and rlvrlab.Run("tiny").folder.samefile(run.folder)
    rlvrlab.Run("latest").resume(overrides={"grpo.steps": "+1"}, progress=False)
    assert run.recipe.recipe.phase_tables["grpo"]["steps"] == 3 and run.metrics()[-1]["step"] == 3
    run.resume(overrides="grpo.steps=4", progress=False)
    assert run.metrics()[-1]["step"] == 4
    refused(lambda: run.resume(overrides={"rollout.n": 8}), "rollout.n", "start a new run")
    refused(lambda: rlvrlab.Run("nothing"), "no run 'nothing' below experiments/")


def test_arguments_that_are_not_there_are_answered_with_the_nearest() -> None:
    refused(lambda: train(COUNTDOWN, rewards=max), "train: unknown argument 'rewards'; did you mean 'reward'?")
    setting = 'settings of the recipe are given as overrides={"grpo.learning_rate": 0.001}'
    refused(lambda: train("toy_countdown", learning_rate=1e-3), f'{setting} or overrides={{"sft.learning_rate"')
    refused(lambda: train({"phases": ["grpo"]}, lr=1e-3), setting)
    refused(lambda: train(rlvrlab.load_recipe("toy_countdown"), lr=1e-3), setting)
    refused(lambda: rlvrlab.evaluate(COUNTDOWN, siez=3), "unknown argument 'siez'; did you mean 'size'?")
    refused(lambda: rlvrlab.compare(0.5, "a"), "compare: an evaluation, a run, a folder or a list of them, not 0.5")
    refused(lambda: rlvrlab.compare("a", [0.5]), "not 0.5")
