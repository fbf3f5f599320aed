"""The run folder: names nobody else has, whatever the clock does; secrets stay out; EXPERIMENT.md tells the story."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import pytest
import runs

from rlvrlab.errors import UserError
from rlvrlab.record.experiment import sparkline, write_experiment
from rlvrlab.record.facts import machine
from rlvrlab.record.redact import HIDDEN, redact
from rlvrlab.record.run import FOLDERS, Run, read_config, read_metrics
from rlvrlab.train import session

HF = "hf_" + "aB3" * 8


def test_runs_of_the_same_second_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.gmtime()
    monkeypatch.setattr(time, "gmtime", lambda *_: now)
    made = [Run.create(tmp_path, "twin", {}) for _ in range(50)]
    assert len({run.folder for run in made}) == 50
    for run in made:
        assert all((run.folder / name).is_dir() for name in FOLDERS)
        run.close()
    assert len(list(tmp_path.iterdir())) == 50, "no drafts are left"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be made \(Not a directory\)"):
        Run.create(tmp_path / "file", "x", {})


@pytest.mark.parametrize("jump_s", [-3600, 86400])
def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float) -> None:
    """The wall clock moves at every look; durations come from another clock, ids do not depend on it."""
    real, looks = time.time, [0]
    gmtime = time.gmtime

    def jumping() -> float:
        looks[0] += 1
        return real() + looks[0] * jump_s

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(time, "gmtime", lambda seconds=None: gmtime(jumping() if seconds is None else seconds))
    folders = [runs.run(tmp_path / str(i), "phases=['sft']", text=runs.ONLINE).folder for i in range(2)]
    assert looks[0] > 5 and folders[0].name != folders[1].name
    rows = read_metrics(folders[0])
    assert all(row["time/step_s"] >= 0 for row in rows if row["phase_step"])
    assert runs.without_times(folders[0]) == runs.without_times(folders[1])
    assert session.resume(folders[0], runs.quiet).status == "finished"


def test_what_is_redacted() -> None:
    given = {
        "api_key": "abc",
        "hf_token": "abc",
        "openai.api_key": {"value": "abc", "default": ""},
        "nested": [{"aws_secret_access_key": "abc"}, f"pull with {HF} please"],
        "url": "https://me:abc@host/x?api_key=abc&n=2",
        "header": "Authorization: Bearer abc.def-ghi",
    }
    text = json.dumps(redact(given))
    assert "abc" not in text and HF not in text
    assert "host/x" in text and "n=2" in text


@pytest.mark.parametrize(
    "word", [["--engine.api_key", "abc"], ["engine.api_key=abc"], ["'engine.api_key=abc def'"], ["--hf_token=abc"]]
)
def test_secrets_on_a_command_line(word: list[str]) -> None:
    command = redact(["rlvr", "train", *word, "rollout.max_tokens=3"])
    assert "abc" not in str(command) and "def" not in str(command)
    assert command[-1] == "rollout.max_tokens=3" and command[:2] == ["rlvr", "train"]


@pytest.mark.parametrize("before", ["", " ", "?", "&", "_", "-", ".", "my_", "--engine.", "a.a.", "é.", "--a-b_"])
def test_a_secret_is_hidden_whatever_its_name_begins_with(before: str) -> None:
    assert redact(f"x {before}api_key=0123 y") == f"x {before}api_key={HIDDEN} y"
    assert redact(f"x {before}myapi_key=0123 y") == f"x {before}myapi_key=0123 y"


@pytest.mark.parametrize("unit", ["a.", "a", "a-", "_", "token", "token.", "://", "-----BEGIN "])
def test_redacting_takes_time_in_proportion_to_the_text(unit: str, quickly: Any) -> None:
    """A server's greeting of 8,000 characters took half a minute."""
    quickly(3, lambda: redact({"greeting": unit * (300_000 // len(unit))}))


def test_what_is_not_redacted() -> None:
    plain = {
        "max_tokens": 12, "tokens": [1, 2], "eos_token": "</s>", "author": "me", "token_mean": "x", "api_key": None,
        "text": "a token, a key and a password", "url": "https://host/a@b", "per_token": 0.1, "auth": True, "token": 7,
    }  # fmt: skip
    assert redact(plain) == plain


def test_values_the_environment_holds_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    monkeypatch.setenv("SHORT_TOKEN", "word")
    assert redact({"text": "login 0123456789abcdef failed, word"}) == {"text": f"login {HIDDEN} failed, word"}


SECRET_ENGINE = """
from dataclasses import dataclass
from rlvrlab.engines.toy.engine import Toy
from rlvrlab.registry import register

@register("engine", "remote")
@dataclass(frozen=True)
class Remote(Toy):
    api_key: str = ""
    base_url: str = ""
"""


def test_no_secret_reaches_the_folder(tmp_path: Path) -> None:
    text = runs.ONLINE.replace("Does an", f"Does {HF} an")
    resolved = runs.recipe(tmp_path, "phases=['sft']", text=text)
    command = ["rlvr", "train", "tiny.toml", "engine.api_key=hunter2hunter2"]
    folder = session.start(resolved, runs.quiet, command).folder
    run = Run.open(folder)
    run.event("note", f"failed with {HF}")
    run.close()
    write_experiment(folder)
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"hunter" not in data and HF.encode() not in data, path
    assert read_config(folder)["recipe"]["rollout"]["max_tokens"] == 8


def test_a_secret_that_would_make_a_run_unreadable_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "remote.py").write_text(SECRET_ENGINE)
    text = runs.ONLINE.replace('"toy"', '"remote.py:Remote"')
    keys = ("engine.api_key=hunter2hunter2", "engine.base_url=https://u:hunter3@h/v1", "phases=['sft']")
    resolved = runs.recipe(tmp_path, *keys, text=text)
    with pytest.raises(UserError, match=r"^engine\.api_key, engine\.base_url: looks like a secret.*environment"):
        session.start(resolved, runs.quiet)
    assert not (tmp_path / "experiments").exists() and not list(tmp_path.glob("**/config.json"))


PER_TOKEN_REWARD = """
from dataclasses import dataclass
from rlvrlab.registry import register
from rlvrlab.types import Reward

@register("reward", "dear")
@dataclass(frozen=True)
class Dear:
    per_token: float = 0.0

    def __call__(self, problem, completion, verdict):
        return Reward(float(verdict.correct) - self.per_token * len(completion.tokens), {})
"""


def test_a_number_under_the_name_of_a_secret_survives_and_the_run_resumes(tmp_path: Path) -> None:
    (tmp_path / "dear.py").write_text(PER_TOKEN_REWARD)
    text = runs.ONLINE + '\n[reward]\ntype = "dear.py:Dear"\nper_token = 0.1\n'
    folder = runs.run(tmp_path, "phases=['sft']", text=text).folder
    assert read_config(folder)["recipe"]["reward"]["per_token"] == 0.1
    assert session.resume(folder, runs.quiet).status == "finished"


def test_experiment_md_tells_the_story(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, "name=tiny", "question=Why | how?", "seed=3", text=runs.ONLINE).folder
    text = (folder / "EXPERIMENT.md").read_text()
    info = runs.read_info(folder)
    for section in ("Question", "Result", "Progress", "Health", "Recipe", "Data", "Reproduce"):
        assert f"\n## {section}\n" in text
    assert "**finished**" in text and "Why | how?" in text and "sft → grpo" in text
    assert "| `seed` | `3` | `0` | override |" in text and "| `grpo.batch_size` | `4` | `16` | tiny.toml |" in text
    assert '| `question` | `"Why \\| how?"` |' in text, "a bar does not break the table"
    assert info["data"]["train"]["sha256"] in text and info["data"]["dev"]["sha256"] in text
    assert "rlvr train tiny.toml" in text and f"--resume {folder}" in text
    assert "95 % intervals" in text and "Ranges watched" in text and "numpy" in text


def test_experiment_md_is_there_from_the_start(tmp_path: Path) -> None:
    seen = []

    def observe(*_: object) -> None:
        text = (runs.only_run(tmp_path) / "EXPERIMENT.md").read_text()
        seen.append(("**running**" in text, "## Result" in text))

    runs.run(tmp_path, "phases=['sft']", text=runs.ONLINE, observe=observe)
    assert seen and all(running and result for running, result in seen)


def test_sparkline() -> None:
    assert sparkline([]) == "" and sparkline([1.0, 1.0]) == "▁▁" and sparkline([0.0, 1.0]) == "▁█"
    assert len(sparkline(list(map(float, range(1000))))) == 40


def test_kept_aside_lines_stay(tmp_path: Path) -> None:
    run = Run.create(tmp_path, "x", {})
    for step in range(4):
        run.metrics({"step": step, "phase": "sft", "phase_step": step})
        run.rollouts(step, [{"a": step}])
    assert run.rewind(lambda _, row: row["step"] < 2, 1) == 2
    run.metrics({"step": 2, "phase": "sft", "again": True})
    run.close()
    assert [row["step"] for row in read_metrics(run.folder)] == [0, 1, 2]
    assert (run.folder / "logs" / "superseded.jsonl").read_text().count("\n") == 2
    assert sorted(os.listdir(run.folder / "rollouts")) == ["step_0.jsonl", "step_1.jsonl"]


def test_every_text_below_the_name_of_a_secret_is_hidden() -> None:
    assert redact({"api_key": ["first", {"b": "second"}, 3]}) == {"api_key": [HIDDEN, {"b": HIDDEN}, 3]}


def test_the_machine_is_on_record_with_its_python() -> None:
    facts = machine()
    assert (facts["python"], facts["system"].split()[0]) == (platform.python_version(), platform.system())
    assert facts["cores"] >= 1 and facts["memory_gb"] > 0
