"""Whatever was done to the files of a run, evaluation, study or export: they are read, or refused on one line."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import damaged

from rlvrlab.data.manifest import manifest_of, path_of, read_manifest, write_manifest
from rlvrlab.data.preferences import read_preferences
from rlvrlab.data.rows import read_problems, write_problems
from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import LabError, RecipeError
from rlvrlab.evals.cards import read_cards
from rlvrlab.evals.judged import from_row
from rlvrlab.record import run as record
from rlvrlab.record.evaluation import read_evaluation
from rlvrlab.record.final import note_look, read_looks
from rlvrlab.record.seal import Sealed, changed_config, changed_log, read_seal
from rlvrlab.scale.exports.folder import Scorer, write_common
from rlvrlab.scale.verl.job import Job
from rlvrlab.study.board import Board
from rlvrlab.study.folder import find_study
from rlvrlab.train.card import card_table
from rlvrlab.train.checkpoint import defect, read_state
from rlvrlab.types import Problem

sys.path.insert(0, str(Path(__file__).parents[1] / "study"))
from study_lab import run_study, write_study

STAGE = '[[stages]]\nname = "a"\nfactors = { "grpo.learning_rate" = [0.1, 0.2] }\n'
WORDS = ["eval.test_size=4", "pipeline.lag=1", "sft.steps=2", "grpo.steps=2"]
TEST_PROBLEM = Problem("t", "", "", "", role="test")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of everything, each below its own name."""
    home = tmp_path_factory.mktemp("whole")
    run = runs.run(home / "made", *WORDS, text=runs.ONLINE).folder
    shutil.move(run, home / "run")
    note_look(home / "run", "here", [TEST_PROBLEM], "there")
    runs_recipe = runs.recipe(home / "made", *WORDS, text=runs.ONLINE)
    examine(home / "evaluation")
    (home / "study").mkdir()
    run_study(write_study(home / "study", STAGE), lambda job: 0.5)
    (home / "export").mkdir()
    write_common(home / "export", runs_recipe, chat=False)
    (home / "verl").mkdir()
    Job(home / "verl", runs_recipe, memory={"plus": [("1 2 3", "1+2")]}).write()
    problems = Countdown(numbers=(2,)).problems("train", 4, 0)
    (home / "data").mkdir()
    write_problems(home / "data" / "rows.jsonl", problems)
    write_manifest(manifest_of(home / "data" / "rows.jsonl", problems), path_of(home / "data" / "rows.jsonl"))
    pair = {"prompt": [{"role": "user", "content": "1 2"}], "chosen": "a", "rejected": "b", "extra_info": {}}
    (home / "data" / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    return home


def examine(folder: Path) -> None:
    from rlvrlab.evals.answering import EngineAnswerer
    from rlvrlab.evals.kept import evaluate_into
    from rlvrlab.evals.protocol import eval_at_k
    from rlvrlab.train.lab import build_lab

    lab = build_lab(runs.recipe(folder.parent / "made", text=runs.ONLINE))
    evaluate_into(folder, EngineAnswerer(lab.engine), lab.env, list(lab.dev), eval_at_k(2, (1, 2), max_tokens=4))


def read_logs(home: Path) -> None:
    folder = home / "run"
    for read in (record.read_config, record.read_info, record.read_metrics, record.read_events):
        read(folder)


def read_checkpoint(home: Path) -> None:
    place = runs.last_checkpoint(home / "run")
    defect(place)
    read_state(place)
    seals = [Sealed(1, facts)] if (facts := read_seal(place)) is not None else []
    changed_config(home / "run", seals)
    for log in ("metrics", "events"):
        changed_log(home / "run", log, seals)


def read_test_looks(home: Path) -> None:
    read_looks(home / "run")
    note_look(home / "run", "here", [TEST_PROBLEM], "there")


def read_answers(home: Path) -> None:
    found = read_evaluation(home / "evaluation")
    known = {problem.id: problem for problem in found.problems}
    for row in found.rows:
        from_row(row, known[row["problem"]])


def read_study(home: Path) -> None:
    file, folder = find_study(home / "study" / "study.toml")
    folder = home / "study" / "out" / file.study.name
    Board.read(file, folder).survey()


def read_export(home: Path) -> None:
    scorer = Scorer(home / "export")
    assert scorer.resolved
    for row in map(json.loads, (home / "export" / "train.jsonl").read_text().splitlines()[:1]):
        scorer.problem_of(row["rlvr_problem"])


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "config": ("run/config.json", read_logs),
    "run_info": ("run/run_info.json", read_logs),
    "metrics": ("run/logs/metrics.jsonl", read_logs),
    "events": ("run/logs/events.jsonl", read_logs),
    "state": ("run/checkpoints/*/trainer.json", read_checkpoint),
    "manifest of a checkpoint": ("run/checkpoints/*/manifest.json", read_checkpoint),
    "seal": ("run/checkpoints/*/seal.json", read_checkpoint),
    "cards": ("run/analysis/cards/*.json", lambda home: card_table(read_cards(home / "run"))),
    "looks": ("run/looks.jsonl", read_test_looks),
    "facts of an evaluation": ("evaluation/run_info.json", read_answers),
    "problems of an evaluation": ("evaluation/problems.jsonl", read_answers),
    "answers": ("evaluation/samples.jsonl", read_answers),
    "events of a study": ("study/out/*/events.jsonl", read_study),
    "decisions": ("study/out/*/decisions.jsonl", read_study),
    "results": ("study/out/*/trials/*/result.json", read_study),
    "scores": ("study/out/*/trials/*/scores/*.json", read_study),
    "exported recipe": ("export/recipe.json", read_export),
    "verl's plan": ("verl/plan.json", lambda home: Job.read(home / "verl")),
    "rows": ("data/rows.jsonl", lambda home: list(read_problems(home / "data" / "rows.jsonl"))),
    "manifest": ("data/*/rows.jsonl", lambda home: read_manifest(path_of(home / "data" / "rows.jsonl"))),
    "preferences": ("data/pairs.jsonl", lambda home: read_preferences(home / "data" / "pairs.jsonl", {})),
}


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 32))
def test_a_damaged_record_is_read_or_refused(whole: Path, name: str, seed: int) -> None:
    pattern, read = READERS[name]
    rng = random.Random(seed)
    path = max(whole.glob(pattern))
    before = path.read_bytes()
    path.write_bytes(damaged(before, rng))
    try:
        read(whole)
    except LabError as error:
        assert "\n" not in str(error) or isinstance(error, RecipeError)  # which has a line for every mistake
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("name", READERS)
def test_an_undamaged_record_is_read(whole: Path, name: str) -> None:
    pattern, read = READERS[name]
    assert list(whole.glob(pattern)), pattern
    read(whole)
