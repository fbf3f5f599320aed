"""DPO from files of preference rows and by share of tests: what a run wrote another can learn from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import runs

from rlvrlab.data.hashes import prompt_sha256
from rlvrlab.data.own_runs import rows_from_run
from rlvrlab.data.preferences import read_preferences
from rlvrlab.errors import UserError
from rlvrlab.record.files import read_lines, write_rows
from rlvrlab.rollout.pairs import score_pairs
from rlvrlab.train.lookups import lookups
from rlvrlab.train.phases.dpo import DpoPhase
from rlvrlab.types import Completion, ErrorKind, Finish, Problem, Rollout, Verdict

SHORT = ("sft.steps=3", "grpo.steps=3", "dpo.steps=2", "grpo.batch_size=8")


def answered(text: str, score: float) -> Rollout:
    problem = Problem("p", "code", "code", "ask", None, {}, "train")
    error = ErrorKind.NONE if score == 1 else ErrorKind.WRONG
    verdict = Verdict(score == 1, score, error, passed=round(4 * score), total=4)
    return Rollout(text, "g", problem, (1, 2), Completion(text, (3,), (0.0,), Finish.STOP), verdict, None)


def texts(phase: DpoPhase, *rollouts: Rollout) -> list[tuple[str, str]]:
    return [(row["chosen_text"], row["rejected_text"]) for row in phase.own_pairs(rollouts)]


def test_pairs_by_share_of_tests_need_no_right_answer() -> None:
    some = [answered("none", 0.0), answered("most", 0.75), answered("half", 0.5)]
    assert texts(DpoPhase(), *some) == [], "nothing is right"
    assert texts(DpoPhase(pairs="score", pairs_per_problem=4), *some) == [
        ("most", "none"), ("half", "none"), ("most", "half"),
    ]  # fmt: skip
    assert texts(DpoPhase(pairs="score", margin=0.5), *some) == [("most", "none"), ("half", "none")]
    assert list(score_pairs([(0.5, "a"), (0.5, "b")], 0.0)) == [], "equal answers are no pair"
    with pytest.raises(ValueError, match="right, score, or a file"):
        DpoPhase(pairs="scores")


def test_a_runs_preference_file_feeds_the_dpo_phase_of_another(tmp_path: Path) -> None:
    first = runs.run(tmp_path, *SHORT, 'phases=["sft", "grpo"]').folder
    rows = rows_from_run(first, "preference", 4, {})
    assert {"chosen_score", "rejected_score"} <= rows[0]["extra_info"].keys()
    write_rows(tmp_path / "pairs.jsonl", rows)
    second = runs.run(tmp_path, *SHORT, 'phases=["sft", "dpo"]', f"dpo.pairs={tmp_path / 'pairs.jsonl'}").folder
    used = read_lines(second / "artifacts" / "dpo_pairs.jsonl")
    assert len(used) == len(rows)
    assert [row["chosen_text"] for row in used] == [row["chosen"][0]["content"] for row in rows]
    assert runs.read_metrics(second)[-1]["dpo/pairs"] == len(rows)


def test_held_out_prompts_are_refused_in_a_preference_file(tmp_path: Path) -> None:
    row: dict[str, Any] = {"prompt": "ask me", "chosen": "yes", "rejected": "no"}
    (tmp_path / "p.jsonl").write_text(json.dumps(row) + "\n")
    assert read_preferences(tmp_path / "p.jsonl", {})[0].chosen == "yes"
    with pytest.raises(UserError, match="a dev problem of this run"):
        read_preferences(tmp_path / "p.jsonl", {prompt_sha256("ask me"): "a dev problem of this run"})
    (tmp_path / "p.jsonl").write_text(json.dumps({**row, "chosen": 3}) + "\n")
    with pytest.raises(UserError, match="column 'chosen'"):
        read_preferences(tmp_path / "p.jsonl", {})


def test_a_preference_file_is_looked_up_before_anything_is_trained(tmp_path: Path) -> None:
    words = (*SHORT, 'phases=["sft", "dpo"]')
    with pytest.raises(UserError, match=r"dpo.pairs: .*nowhere.jsonl: no such file"):
        runs.run(tmp_path, *words, f"dpo.pairs={tmp_path / 'nowhere.jsonl'}")
    (tmp_path / "bad.jsonl").write_text('{"prompt": "p", "chosen": 3, "rejected": "no"}\n')
    with pytest.raises(UserError, match="column 'chosen'"):
        runs.run(tmp_path, *words, f"dpo.pairs={tmp_path / 'bad.jsonl'}")
    assert not list(tmp_path.rglob("metrics.jsonl")), "no step was made"


def test_what_is_looked_up_before_a_run_names_a_missing_preference_file(tmp_path: Path) -> None:
    recipe = runs.recipe(tmp_path, 'phases=["sft", "dpo"]', f"dpo.pairs={tmp_path / 'nowhere.jsonl'}")
    assert ["nowhere.jsonl" in one.words for one in lookups(recipe).found if one.state == "wrong"] == [True]
