"""Exported scripts: what a study holds must reach `rlvr` through a shell as it stands, or be refused."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from study_lab import HEAD, write_study

from rlvrlab.errors import RecipeError
from rlvrlab.study.export import export_study
from rlvrlab.study.load import load_study

HOSTILE = "a\\nb\n$(touch owned) `touch owned` 'x' \"y\" %s"


def exported(folder: Path, text: str, name: str = "study.toml") -> Path:
    path = write_study(folder, text).rename(folder / name)
    export_study(load_study(path), folder / "scripts")
    return folder / "scripts"


def test_settings_pass_through_a_shell_as_they_stand(tmp_path: Path) -> None:
    stage = f'[[stages]]\nname = "a"\narms = {{ x = {{ "data.train_file" = {json.dumps(HOSTILE)} }} }}\n'
    scripts = exported(tmp_path, stage, "study\ntouch owned\n.toml")
    words = f". '{scripts}/settings.sh'; settings_a x | layered"
    done = subprocess.run(["sh", "-c", words], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"data.train_file={json.dumps(HOSTILE)}\n"
    assert not (tmp_path / "owned").exists()
    assert "\ntouch" not in (scripts / "1_a.sh").read_text()


def test_a_stage_begins_with_the_settings_of_the_winner_it_builds_on(tmp_path: Path) -> None:
    stages = '[[stages]]\nname = "a"\narms = { few = { "rollout.n" = 2 }, many = { "rollout.n" = 8 } }\n'
    stages += '[[stages]]\nname = "b"\nbase = \'best("a")\'\narms = { long = { "grpo.steps" = 9 } }\n'
    words = f". '{exported(tmp_path, stages)}/settings.sh'; BEST_a=many; settings_b long"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["rollout.n=8", "grpo.steps=9"]


def test_suites_and_environments_are_single_words(tmp_path: Path) -> None:
    more = '[suites.named]\nsuite = "graphs, math"\ndata = "my data"\n'
    more += '[suites.own]\nenv = { type = "countdown", style = "bare" }\nn = 4\n'
    scripts = exported(tmp_path, f'{HEAD}{more}[[stages]]\nname = "a"\n')
    lines = [shlex.split(line) for line in (scripts / "1_a.sh").read_text().splitlines() if " -o " in line]
    named, own = lines[1], lines[2]
    assert named[:3] == ["rlvr", "suite", "graphs, math"] and str(tmp_path.resolve() / "my data") in named
    assert own[:4] == ["rlvr", "eval", "countdown", 'style="bare"'] and "${run%/}@last" in own
    assert own[own.index("--k") + 1] == "1,4"


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ('name = "a.b"\n[[stages]]\nname = "a-b"\n', "'a.b' and 'a-b' are both a_b"),
        ('name = "a"\narms = { "x y" = { "rollout.n" = 2 }, "x_y" = { "rollout.n" = 4 } }\n', "both x_y in a shell"),
    ],
)
def test_names_that_a_shell_cannot_tell_apart_are_refused(tmp_path: Path, stages: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        exported(tmp_path, f"[[stages]]\n{stages}")
    assert not (tmp_path / "scripts").exists()


def test_the_choice_takes_a_member_by_name(tmp_path: Path) -> None:
    stage = '[[stages]]\nname = "a"\nselect.metrics = { "named/second.accepted" = 1.0 }\n'
    stage += 'arms = { x = { "rollout.n" = 2 }, y = { "rollout.n" = 4 } }\n'
    scripts = exported(tmp_path, f'{HEAD}[suites.named]\nsuite = "graphs"\n{stage}')
    for arm, values in {"x": (0.9, 0.1), "y": (0.1, 0.2)}.items():
        for member, value in zip(("first", "second"), values, strict=True):
            folder = scripts / f"out/a/{arm}/seed_0/eval_named/run/{member}"
            folder.mkdir(parents=True)
            (folder / "metrics.json").write_text(json.dumps({member: {"accepted_at_1": value, "truncated_rate": None}}))
    done = subprocess.run([sys.executable, scripts / "choose.py", "a"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "y"


def test_a_plug_in_beside_the_study_is_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from rlvrlab.envs.countdown import Countdown as Mine\n")
    own = '[suites.own]\nenv = { type = "mine.py:Mine" }\n'
    scripts = exported(tmp_path, f'{HEAD}{own}[[stages]]\nname = "a"\n')
    assert f"rlvr eval {tmp_path.resolve() / 'mine.py:Mine'} " in (scripts / "1_a.sh").read_text()
