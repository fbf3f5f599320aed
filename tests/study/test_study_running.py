"""The scheduler with trials that take no time: reuse, change, failure, halving, people, and what the folder keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import study_lab
from study_lab import Pretend, decision, find_study, run_study, stage, write_study

from rlvrlab.errors import RunLocked, UserError
from rlvrlab.record.files import write_json
from rlvrlab.study import chain, decide, run
from rlvrlab.study.board import Board
from rlvrlab.study.folder import StudyFolder
from rlvrlab.study.launchers import Outcome
from rlvrlab.study.load import load_study
from rlvrlab.study.report import decisions_page, report_page

TWO = """
[[stages]]
name = "steps"
factors = { "grpo.steps" = [2, 4] }
[[stages]]
name = "n"
base = 'best("steps")'
factors = { "rollout.n" = [2, 4] }
"""


def better_with(key: str, good: object, high: float = 0.8, low: float = 0.3):
    return lambda job: high if job["settings"].get(key) == good else low


def test_a_chain_chooses_and_feeds_the_next_stage(tmp_path) -> None:
    ended, launcher, made = run_study(write_study(tmp_path, TWO), better_with("grpo.steps", 4))
    assert ended.status == made["status"] == "finished" and ended.exit_code == 0
    assert decision(made, "steps")["chosen"] == "steps=4" and decision(made, "steps")["significant"]
    assert all(job["settings"]["grpo.steps"] == 4 for job in launcher.jobs[2:])
    last = decision(made, "n")
    assert last["outcome"] == "undecided" and last["words"].startswith("undecided: n=2 has the highest mean")
    assert (
        len(launcher.jobs) == 3 and stage(made, "n")["reused"][0]["stage"] == "steps"
    )  # rollout.n = 2 is the recipe's


def test_every_number_leads_to_a_run_folder(tmp_path) -> None:
    _, _, made = run_study(write_study(tmp_path, TWO), better_with("grpo.steps", 4))
    for one in made["decisions"]:
        for candidate in one["candidates"]:
            assert candidate["trials"] and all(made["trials"][t]["run"] for t in candidate["trials"])
    page = decisions_page(made)
    assert all(
        made["trials"][t]["run"] in page for one in made["decisions"] for c in one["candidates"] for t in c["trials"]
    )
    report = report_page(made)
    assert "**steps=4**" in report and "2 of 4 combinations were not run" not in report
    assert any(c["kind"] == "interaction" and "1 of 4 combinations" in c["text"] for c in made["caveats"])


def test_a_finished_study_runs_nothing_again(tmp_path) -> None:
    path = write_study(tmp_path, TWO)
    run_study(path, better_with("grpo.steps", 4))
    _, again, made = run_study(path, lambda job: pytest.fail("ran again"))
    assert again.jobs == [] and len(made["decisions"]) == 2


def test_what_changed_is_run_again_with_its_dependants_and_nothing_else(tmp_path) -> None:
    path = write_study(tmp_path, TWO)
    run_study(path, better_with("grpo.steps", 4))
    path.write_text(path.read_text().replace('"grpo.steps" = [2, 4]', '"grpo.steps" = [2, 4, 8]'))
    _, launcher, made = run_study(path, better_with("grpo.steps", 8, high=0.9))
    assert sorted(job["settings"]["grpo.steps"] for job in launcher.jobs) == [8, 8]  # the new arm, and n=4 under it
    assert decision(made, "steps")["chosen"] == "steps=8" and len(made["decisions"]) == 4
    recipe = path.parent / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_tokens = 8", "max_tokens = 9"))
    _, launcher, _ = run_study(path, better_with("grpo.steps", 8))
    assert len(launcher.jobs) == 4


def test_another_suite_examines_again_without_training_again(tmp_path) -> None:
    path = write_study(tmp_path, TWO)
    _, first, made = run_study(path, better_with("grpo.steps", 4))
    path.write_text(path.read_text().replace("size = 8", "size = 9"))
    _, second, after = run_study(path, better_with("grpo.steps", 4))
    assert set(after["trials"]) == set(made["trials"]) and len(second.jobs) == len(first.jobs)
    assert second.jobs[0]["suites"]["here"]["hash"] != first.jobs[0]["suites"]["here"]["hash"]


def test_one_failed_trial_is_left_alone(tmp_path) -> None:
    def answer(job):
        return "failed" if job["settings"].get("grpo.steps") == 4 else 0.5

    path = write_study(tmp_path, TWO)
    ended, _, made = run_study(path, answer)
    assert ended.status == "finished" and decision(made, "steps")["chosen"] == "steps=2"
    assert made["failures"][0]["why"] == "planted failed"
    assert any(c["kind"] == "excluded" and "steps=4" in c["text"] for c in made["caveats"])
    _, launcher, _ = run_study(path, answer)
    assert launcher.jobs == []
    _, launcher, made = run_study(path, better_with("grpo.steps", 4), retry=True)
    assert len(launcher.jobs) == 2 and decision(made, "steps")["chosen"] == "steps=4"


def test_best_without_a_finished_trial_stops_what_needs_it(tmp_path) -> None:
    text = TWO + '[[stages]]\nname = "other"\nfactors = { "sft.steps" = [1, 2] }\n'
    ended, _, made = run_study(
        write_study(tmp_path, text), lambda job: 0.5 if "sft.steps" in job["settings"] else "timed_out"
    )
    assert ended.status == "failed" and ended.exit_code == 1
    assert (
        stage(made, "n")["note"] == 'best("steps") has no finished trial'
        and stage(made, "other")["status"] == "decided"
    )
    assert {one["status"] for one in made["failures"]} == {"timed_out"}


def test_the_ladder_is_climbed_when_memory_runs_out(tmp_path) -> None:
    text = '[[ladder]]\nengine.micro_batch = 4\n[[ladder]]\nengine.micro_batch = "/2"\n' + TWO
    ended, launcher, made = run_study(write_study(tmp_path, text), lambda job: 0.5 if job["rung"] == 2 else "oom")
    assert ended.status == "finished"
    assert [(job["rung"], job["more"]) for job in launcher.jobs if job["settings"] == {"grpo.steps": 2}] == [
        (0, {}), (1, {"engine.micro_batch": 4}), (2, {"engine.micro_batch": 2})
    ]  # fmt: skip
    one = next(iter(made["trials"].values()))
    assert [a["status"] for a in one["attempts"]][:3] == ["oom", "oom", "finished"] and one["attempts"][2]["rung"] == 2
    ended, _, made = run_study(write_study(tmp_path, text.replace("[2, 4]", "[3, 5]")), lambda job: "oom")
    assert ended.status == "failed" and "planted oom" in made["failures"][0]["why"]


def test_a_dead_process_gets_its_retries(tmp_path) -> None:
    deaths = {2: ["killed", 0.5, 0.5], 3: ["killed", "killed"]}
    path = write_study(tmp_path, '[[stages]]\nname = "a"\nfactors = { "grpo.steps" = [2, 3] }\n')
    _, launcher, made = run_study(path, lambda job: deaths[job["settings"]["grpo.steps"]].pop(0))
    assert len(launcher.jobs) == 4 and len(made["failures"]) == 1


def test_halving_drops_arms_on_the_small_size(tmp_path) -> None:
    text = """
[[stages]]
name = "rate"
factors = { "grpo.learning_rate" = [0.1, 0.2, 0.3, 0.4] }
[[stages.halving]]
set = { "grpo.steps" = 1 }
[[stages.halving]]
set = { "grpo.steps" = 2 }
keep = 0.4
"""
    ended, launcher, made = run_study(write_study(tmp_path, text), lambda job: job["settings"]["grpo.learning_rate"])
    sizes = [job["settings"].get("grpo.steps") for job in launcher.jobs]
    assert sizes == [1, 1, 1, 1, 2, 2, None] and ended.status == "finished"
    arms = stage(made, "rate")["arms"]
    assert [arm["dropped"] for arm in arms] == ["round 1 of 2", "round 1 of 2", "round 2 of 2", None]
    assert [one["kind"] for one in made["decisions"]] == ["halving", "halving", "choice"]


def test_a_person_decides_and_the_log_says_so(tmp_path) -> None:
    path = write_study(tmp_path, TWO.replace("[2, 4] }\n[[", "[2, 4] }\nselect = { human = true }\n[[", 1))
    answer = better_with("grpo.steps", 4)
    ended, launcher, made = run_study(path, answer)
    assert ended.status == "waiting" and ended.exit_code == 3 and len(launcher.jobs) == 2
    assert stage(made, "n")["status"] == "blocked"
    folder = tmp_path / "out" / "tried"
    board = Board.read(*find_study(folder))
    view = board.survey().stages[0]
    with pytest.raises(UserError, match="'steps=3' has no finished trial to choose; finished arms: steps=2, steps=4"):
        decide.override(board, view, "steps=3", "x", "me")
    opened = StudyFolder(folder, board.chain.file)
    opened.decide(decide.override(board, view, "steps=2", "memory is short", "Ada"))
    opened.close()
    ended, launcher, made = run_study(path, answer)
    assert ended.status == "finished" and all(job["settings"]["grpo.steps"] == 2 for job in launcher.jobs)
    log = decision(made, "steps")
    assert (log["by"], log["who"], log["reason"], log["recommended"]) == ("person", "Ada", "memory is short", "steps=4")
    assert any(c["kind"] == "override" for c in made["caveats"])


def test_the_runner_up_is_confirmed_at_the_end_of_the_chain(tmp_path) -> None:
    def answer(job):
        """Four steps are better, but not with four answers: the greedy chain is wrong."""
        steps, n = job["settings"].get("grpo.steps"), job["settings"].get("rollout.n", 2)
        return {(2, 2): 0.3, (4, 2): 0.5, (2, 4): 0.9, (4, 4): 0.7}[steps, n]

    path = write_study(tmp_path, TWO.replace("[2, 4] }\n[[", "[2, 4] }\nselect = { confirm = true }\n[[", 1))
    ended, launcher, made = run_study(path, answer)
    assert len(launcher.jobs) == 4 and ended.status == "finished"
    log = decision(made, "confirm_steps")
    assert (
        log["kind"] == "confirmation" and log["chosen"] == "steps=2" and "the greedy choice was wrong" in log["words"]
    )
    assert stage(made, "confirm_steps")["kind"] == "confirm" and stage(made, "confirm_steps")["status"] == "decided"


def test_two_studies_do_not_share_a_folder(tmp_path) -> None:
    run_study(write_study(tmp_path, TWO), lambda job: 0.5)
    other = tmp_path / "other.toml"
    other.write_text((tmp_path / "study.toml").read_text() + "# another\n")
    with pytest.raises(UserError, match="holds the study of"):
        run_study(other, lambda job: 0.5)
    file = load_study(tmp_path / "study.toml")
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="is there and is no study"):
        StudyFolder(strange, file)
    opened = StudyFolder(tmp_path / "out" / "tried", file)
    with pytest.raises(RunLocked):
        run_study(tmp_path / "study.toml", lambda job: 0.5)
    opened.close()
    with pytest.raises(UserError, match="neither a study file"):
        find_study(strange)


def test_a_torn_log_and_a_half_written_result_are_survived(tmp_path) -> None:
    path = write_study(tmp_path, TWO)
    _, _, made = run_study(path, better_with("grpo.steps", 4))
    folder = tmp_path / "out" / "tried"
    for name in ("events.jsonl", "decisions.jsonl"):
        with (folder / name).open("a") as file:
            file.write('{"torn')
    victim = next(iter(made["trials"]))
    (folder / "trials" / victim / "result.json").write_text("{")
    ended, launcher, _ = run_study(path, better_with("grpo.steps", 4))
    assert ended.status == "finished" and len(launcher.jobs) == 1


def test_the_document_keeps_its_promised_shape(tmp_path) -> None:
    """docs/studies.md names these keys; pages are built on them."""
    _, _, made = run_study(write_study(tmp_path, TWO), better_with("grpo.steps", 4))
    assert made["schema"] == 2 and made["kind"] == "study"
    assert {"name", "question", "base", "launcher", "status", "started", "updated", "seeds", "code", "metrics",
            "stages", "trials", "decisions", "test_looks", "caveats", "failures"} <= set(made)  # fmt: skip
    assert {"name", "question", "kind", "needs", "suites", "status", "base", "fixed", "inputs", "factors", "arms",
            "reused", "decision", "comparisons"} <= set(made["stages"][0])  # fmt: skip
    arm = made["stages"][0]["arms"][0]
    assert {"name", "settings", "own", "trials", "dropped", "budget", "metrics", "score", "chosen"} <= set(arm)
    assert set(arm["metrics"]["here.accepted"]) == {"value", "low", "high", "problems", "seeds", "spread", "over"}
    trial = made["trials"][arm["trials"][0]]
    assert {"id", "hash", "seed", "settings", "status", "stages", "run", "attempts", "identity", "data", "seconds",
            "evaluations", "metrics"} <= set(trial)  # fmt: skip
    log = made["decisions"][0]
    assert {"id", "time", "stage", "kind", "rule", "alpha", "margin", "look", "looks", "cost", "chosen", "recommended",
            "runner_up", "by", "reason", "who", "outcome", "significant", "words", "candidates", "comparisons", "front",
            "evidence", "undeclared", "level", "chance", "earlier", "planned"} <= set(log)  # fmt: skip
    assert {"metric", "arm", "versus", "outcome", "mean", "low", "high", "p", "detectable", "problems", "seeds",
            "share", "enough", "scatter", "enough_undeclared"} == set(log["comparisons"][0])  # fmt: skip
    json.dumps(made, allow_nan=False)


def test_while_nothing_happens_nothing_is_written_and_nothing_resolved_again(tmp_path, monkeypatch) -> None:
    """A survey comes twice a second: what it costs is taken from the trials, which use the same cores."""
    written, identified = list[int](), list[int]()
    write, identify = run.write_document, chain.identity_of
    monkeypatch.setattr(run, "DOCUMENT_EVERY_S", 0.0)
    monkeypatch.setattr(run, "write_document", lambda *a, **k: (written.append(1), write(*a, **k))[1])
    monkeypatch.setattr(chain, "identity_of", lambda *a: (identified.append(1), identify(*a))[1])
    wait, idle = Pretend.wait, list[int]()

    def slow(launcher: Pretend, timeout_s: float) -> list[Outcome]:
        idle.append(1)
        return wait(launcher, timeout_s) if len(idle) % 20 == 0 else []

    monkeypatch.setattr(Pretend, "wait", slow)
    _, launcher, made = run_study(write_study(tmp_path, TWO), better_with("grpo.steps", 4))
    settings = {json.dumps(trial["settings"], sort_keys=True) for trial in made["trials"].values()}
    assert len(idle) >= 40 and len(written) <= len(idle) // 20 + len(launcher.jobs) + 1
    assert len(identified) <= 2 * len(settings)


def test_a_trial_that_ends_well_without_what_was_asked_is_given_up_and_not_begun_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_scores(path: Path, value: dict[str, Any]) -> None:
        write_json(path, {**value, "evaluated": {}} if path.name == "result.json" else value)

    monkeypatch.setattr(study_lab, "write_json", without_scores)
    ended, launcher, made = run_study(write_study(tmp_path, TWO), lambda job: 0.5)
    assert ended.status == "failed" and len(launcher.jobs) == len(made["trials"])
    whys = {attempt["why"] for trial in made["trials"].values() for attempt in trial["attempts"]}
    assert whys == {"it ended well but left a result.json without here"}
