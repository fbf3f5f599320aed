"""`rlvr train --profile` as a user meets it: on the terminal, in JSON, and on the run's page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import rlvr, tiny

from rlvrlab.recipe import load_recipe
from rlvrlab.record.faster import advice
from rlvrlab.record.profile import Spent, profile_of
from rlvrlab.record.run import read_metrics
from rlvrlab.report.gather import gather
from rlvrlab.shares import about

HEAD = ["phase", "what a step does", "seconds per step", "share"]
SLOW = "\n[reward]\ntype = 'slow.py:Slow'\n"
REWARD = """import time
from dataclasses import dataclass
from rlvrlab.registry import register
from rlvrlab.types import Reward
@register("reward", "slow")
@dataclass(frozen=True)
class Slow:
    def __call__(self, problem, completion, verdict):
        time.sleep(0.05)
        return Reward(verdict.score, {"score": verdict.score})
"""


def only_run(folder: Path) -> Path:
    [run] = (folder / "experiments").iterdir()
    return run


def recorded(folder: Path) -> list[Spent]:
    """What the lines of the run's metrics add up to."""
    return profile_of(read_metrics(only_run(folder)))


def cells(text: str) -> list[list[str]]:
    """Rows of the table that the command ends with; its columns are apart by two blanks or more."""
    lines = [line.strip() for line in text.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.split() == " ".join(HEAD).split())
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[start + 1 :]]


def test_the_table_at_the_end_is_what_the_steps_recorded(tmp_path: Path) -> None:
    recipe = tiny(tmp_path)
    done = rlvr("train", recipe.name, "--profile", folder=tmp_path, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    spent = recorded(tmp_path)
    assert {("sft", "update"), ("grpo", "drawing answers")} <= {(one.phase, one.words) for one in spent}
    wanted = [[one.phase, one.words, f"{one.per_step:.3f}", about(one.share)] for one in spent]
    told = cells(done.stdout)
    assert [row for row in told if len(row) == len(HEAD)] == wanted
    lines = [line for line in done.stdout.splitlines() if line.startswith("advice: ")]
    assert lines == [f"advice: {line}" for line in advice(spent, load_recipe(recipe).plain())]


def test_without_the_option_nobody_is_shown_a_profile(tmp_path: Path) -> None:
    done = rlvr("train", tiny(tmp_path).name, folder=tmp_path, COLUMNS="200")
    assert done.returncode == 0 and "seconds per step" not in done.stdout


@pytest.mark.parametrize("option", [(), ("--profile",)])
def test_json_has_the_same_parts_and_nothing_else_is_printed(tmp_path: Path, option: tuple[str, ...]) -> None:
    done = rlvr("train", tiny(tmp_path).name, *option, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout)["profile"]
    assert [Spent(**one) for one in told] == recorded(tmp_path) != []


def test_a_slow_part_is_found_in_the_table_and_on_the_page(tmp_path: Path) -> None:
    """Each of the four answers of a step sleeps in its reward, so that part is known."""
    (tmp_path / "slow.py").write_text(REWARD)
    done = rlvr("train", tiny(tmp_path, SLOW).name, "--profile", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    [reward] = [one for one in recorded(tmp_path) if one.part == "reward"]
    assert reward.phase == "grpo" and reward.per_step >= 4 * 0.05
    rows = cost_rows(only_run(tmp_path))
    assert rows["grpo: rewards"]["value"] == pytest.approx(reward.seconds)


def test_the_page_shows_every_part_under_cost_and_waiting_by_its_name(tmp_path: Path) -> None:
    assert rlvr("train", tiny(tmp_path).name, folder=tmp_path).returncode == 0
    rows, spent = cost_rows(only_run(tmp_path)), recorded(tmp_path)
    parts = {name: row["value"] for name, row in rows.items() if name.startswith(("sft: ", "grpo: "))}
    assert parts == {f"{one.phase}: {one.words}": pytest.approx(one.seconds) for one in spent}
    assert sum(parts.values()) == pytest.approx(rows["wall time of all steps"]["value"])
    waited = sum(row.get("time/judge_s", 0.0) for row in read_metrics(only_run(tmp_path)))
    assert rows["waiting for verdicts in training"]["value"] == pytest.approx(waited)
    assert not [name for name in rows if "judge seconds" in name], "waiting is not what the judge worked"


def cost_rows(run: Path) -> dict[str, dict[str, Any]]:
    """What stands under Cost on the run's page, by name."""
    [cost] = [one for one in gather(run)["sections"] if one["title"] == "Cost"]
    return {row["name"]: row for row in cost["data"]["rows"]}
