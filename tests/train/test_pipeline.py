"""A pipeline of depth one: which policy draws, what corrects for it, and that a kill in between changes nothing."""

from __future__ import annotations

import itertools
import json
import signal
from pathlib import Path

import faults
import pytest
import runs
from hypothesis import given
from hypothesis import strategies as st
from slow_cases import some_slow
from texts import any_text

from rlvrlab.errors import RecipeError
from rlvrlab.record.files import read_lines
from rlvrlab.rollout.collect import Asked
from rlvrlab.train import session
from rlvrlab.train.pipeline import AGE, in_flight, landed
from rlvrlab.types import Completion, Finish, Problem, Turn

TEXT = runs.ONLINE + "[pipeline]\nlag = 1\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run(tmp_path_factory.mktemp("whole"), text=TEXT).folder


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How often the whole run changes a file."""
    folder = tmp_path_factory.mktemp("count")
    resolved = runs.recipe(folder, text=TEXT)

    def count() -> session.Ended:
        faults.count_changes(folder / "changes")
        return session.start(resolved, runs.quiet)

    assert runs.in_child(count) == 0
    return (folder / "changes").stat().st_size


def versions(folder: Path, step: int) -> set[int]:
    return {row["policy_version"] for row in read_lines(folder / "rollouts" / f"step_{step}.jsonl")}


def test_answers_are_one_update_older_than_the_policy_they_train(whole: Path) -> None:
    rows = [row for row in runs.read_metrics(whole) if row["phase"] == "grpo" and row["phase_step"]]
    first = rows[0]["step"]
    drawn = [versions(whole, first + i) for i in range(len(rows))]
    assert all(len(one) == 1 for one in drawn)
    numbers = [one.pop() for one in drawn]
    assert numbers[0] == numbers[1], "the first two steps are drawn before the first update"
    updates = [b - a for a, b in itertools.pairwise(numbers[1:])]
    assert set(updates) <= {0, 1} and 1 in updates
    ages = [row[AGE] for row in rows]
    assert ages[0] == 0 and set(ages[1:]) <= {0.0, 1.0} and 1.0 in ages
    aged = [row for row in rows if row[AGE] and "rollout_is/mean" in row]
    assert aged and any(row["rollout_is/max"] != 1 for row in aged), "an older policy's answers are weighted"


def test_without_lag_answers_are_the_current_policys(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, "pipeline.lag=0", text=TEXT).folder
    rows = [row for row in runs.read_metrics(folder) if row["phase"] == "grpo"]
    assert not any(AGE in row for row in rows) and not list((folder / "checkpoints").glob("*/rules.json"))


def test_checkpoints_hold_the_answers_in_flight(whole: Path) -> None:
    held = [json.loads(path.read_text())["in_flight"] for path in (whole / "checkpoints").glob("*/rules.json")
            if "in_flight" in path.read_text()]  # fmt: skip
    assert held and all(row["groups"][0]["answers"] for row in held)


@pytest.mark.parametrize("share", some_slow([0.55, 0.7, 0.85, 0.95], {0.7}))
def test_killed_with_a_step_in_flight_goes_on_to_the_byte(
    whole: Path, changes: int, tmp_path: Path, share: float
) -> None:
    resolved = runs.recipe(tmp_path, text=TEXT)

    def killed() -> session.Ended:
        faults.kill_at_change(int(share * changes))
        return session.start(resolved, runs.quiet)

    assert runs.in_child(killed) == -signal.SIGKILL
    folder = runs.only_run(tmp_path)
    assert folder is not None
    assert session.resume(folder, runs.quiet).status == "finished"
    runs.assert_same(folder, whole)


texts, numbers = any_text(max_size=9), st.lists(st.integers(0, 99), max_size=5)
turns = st.builds(Turn, st.sampled_from(["policy", "tool"]), texts, st.tuples(st.integers(0, 9), st.integers(0, 9)),
                  texts, st.booleans())  # fmt: skip
answers = st.builds(Completion, texts, numbers.map(tuple), st.lists(st.floats(-50, 0), max_size=5).map(tuple),
                    st.sampled_from(Finish), st.integers(0, 9), st.lists(turns, max_size=3).map(tuple))  # fmt: skip


@given(st.lists(st.lists(answers, min_size=1, max_size=3), min_size=1, max_size=3), numbers)
def test_answers_in_flight_survive_a_checkpoint(drawn: list[list[Completion]], prompt: list[int]) -> None:
    problems = [Problem(f"p{i}", "env", "env", "?") for i in range(len(drawn))]
    asked = Asked([(f"g/{p.id}", p) for p in problems], [tuple(prompt)] * len(drawn), drawn)
    stored = json.loads(json.dumps(in_flight(asked, "grpo", 3)))
    assert landed(stored, "grpo", 3, list, problems) == asked
    assert landed(stored, "grpo", 4, list, problems) is None and landed(None, "grpo", 3, list, problems) is None


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ('filter.dead_groups="refill"', "refills are drawn after the verdicts"),
        ('correction.level="none"', "an older policy drew the answers"),
        ('phases=["grpo_turns"]', "asks again after the verdicts"),
        ("pipeline.lag=2", "pipeline.lag"),
    ],
)
def test_what_a_pipeline_cannot_do_is_refused(tmp_path: Path, override: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        runs.recipe(tmp_path, override, text=TEXT)


MIXED = """type = "mixture"
members = [
  { type = "countdown", label = "small", numbers = [2], high = 9, style = "bare" },
  { type = "countdown", label = "large", numbers = [2], high = 12, style = "bare" },
]
"""


def test_protocols_and_guards_run_in_a_pipeline(tmp_path: Path) -> None:
    before, _, rest = TEXT.partition("[env]\n")
    text = f"{before}[env]\n{MIXED}{rest[rest.index('[engine]') :]}"
    text += '[protocol]\ntype = "sequential"\n[guard]\ntype = "l2"\n'
    ended = runs.run(tmp_path, text=text)
    stages = [row["stage/index"] for row in runs.read_metrics(ended.folder) if "stage/index" in row]
    assert stages == [0, 0, 0, 1, 1, 1]
    asked = [{row["skill"] for row in read_lines(path)} for path in sorted((ended.folder / "rollouts").iterdir())]
    assert {"small"} in asked and {"large"} in asked and {"small", "large"} not in asked, "drawn for their own stage"
