"""What the top of a page says: did a run learn, what did a study find; never green where nothing was learnt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_folders import lines, made_run, metrics_row

from rlvrlab.envs.countdown import Countdown
from rlvrlab.evals.answering import Answer
from rlvrlab.evals.compare import compare_folders
from rlvrlab.evals.evaluate import Evaluation
from rlvrlab.evals.judged import Judged, as_row
from rlvrlab.evals.kept import examined_facts
from rlvrlab.evals.matching import matching
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.record.evaluation import EvaluationFolder
from rlvrlab.record.headline import headlines
from rlvrlab.report.csv_tables import write_tables
from rlvrlab.report.figures.drawing import figures_of
from rlvrlab.report.gather import gather
from rlvrlab.report.gather.verdict import verdict
from rlvrlab.types import Completion, Problem, Verdict


def told(folder: Path) -> dict[str, Any]:
    return gather(folder)["sections"][0]["data"]["answer"]


def card(folder: Path, index: int, phase: str, right: int, of: int = 60, control: bool = False) -> None:
    outcomes = {f"p{i}": float(i < right) for i in range(of)}
    metrics = {"accepted_at_1": right / of, "accepted_at_1_low": 0.0, "accepted_at_1_high": 1.0, "problems": of}
    (folder / "analysis/cards").mkdir(parents=True, exist_ok=True)
    facts = {"phase": phase, "step": index * 5, "metrics": metrics, "outcomes": outcomes, "control": control}
    (folder / f"analysis/cards/{index}_{phase}.json").write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("before", "after", "tone", "word"),
    [(10, 40, "good", "Yes"), (40, 10, "bad", "No, it got worse"), (30, 31, "unclear", "No improvement is shown"),
     (0, 0, "bad", "No"), (20, 0, "bad", "No")],
)  # fmt: skip
def test_the_sentence_follows_the_paired_difference_on_test_problems(
    tmp_path, before: int, after: int, tone: str, word: str
) -> None:
    folder = made_run(tmp_path, "run")
    card(folder, 0, "baseline", before)
    card(folder, 1, "grpo", after)
    card(folder, 2, "more_sft", 60, control=True)
    found, document = told(folder), gather(folder)
    assert (found["tone"], found["word"], found["role"]) == (tone, word, "test")
    assert document["tone"] == tone, "a run that learnt nothing is not green because it finished"
    assert found["difference"]["mean"] == pytest.approx((after - before) / 60, abs=1e-4)
    assert found["about"] == "60 problems, 1 seed" and bool(found["why"]) == (tone != "good")
    assert all(one["why"] and one["try"] for one in found["why"])


@pytest.mark.parametrize(
    ("after", "tone", "word"),
    [
        (55, "good", "Yes, over all phases"),
        (20, "unclear", "Yes over all phases, but grpo lowered it"),
        (41, "unclear", "Yes over all phases, but grpo is not shown to add anything"),
    ],
)
def test_a_sum_of_phases_is_no_answer_about_one_of_them(tmp_path, after: int, tone: str, word: str) -> None:
    """A page said a green yes to a question about GRPO that had lowered what SFT had reached."""
    folder = made_run(tmp_path, "run")
    for index, (phase, right) in enumerate((("baseline", 0), ("sft", 40), ("grpo", after))):
        card(folder, index, phase, right)
    found = told(folder)
    assert (found["tone"], found["word"]) == (tone, word)
    assert any(line.startswith("grpo") for line in found["phases"])


def test_advice_follows_from_an_alarm_and_not_from_the_number_of_problems(tmp_path) -> None:
    """More problems would measure a flipped reward more exactly, and mend nothing; the hack monitor says the same."""
    folder = made_run(tmp_path, "run")
    card(folder, 0, "baseline", 30)
    card(folder, 1, "grpo", 31)
    assert [one["try"] for one in told(folder)["why"]] == ["raise eval.test_size, or train several seeds"]
    flipped = {"hack/reward_explains": -1.0}
    (folder / "logs/metrics.jsonl").write_text(lines([metrics_row(step, 0.5, **flipped) for step in range(5)]))
    event = {"time": "t", "kind": "warning", "text": "hack/reward_explains is -1: …", "subject": "hack/reward_explains"}
    (folder / "logs/events.jsonl").write_text(lines([event]))
    [why] = told(folder)["why"]
    assert why["why"].startswith("of answers to one problem the wrong ones earn more") and "check reward" in why["try"]
    [hacks] = [one["data"] for one in gather(folder)["sections"] if one["id"] == "hacks"]
    assert hacks["findings"] == [event["text"]]


def test_without_test_problems_the_sentence_is_about_dev_and_says_so(tmp_path) -> None:
    folder = made_run(tmp_path, "run")
    found = told(folder)
    assert (found["tone"], found["role"], found["before"]["value"], found["after"]["value"]) == ("good", "dev", 0, 0.5)
    assert "On dev problems" in found["caution"]
    (folder / "logs/metrics.jsonl").write_text(lines([metrics_row(step, 0.0) for step in range(5)]))
    assert told(folder)["tone"] == "bad", "nothing right at the end"
    (folder / "logs/metrics.jsonl").write_text(lines([metrics_row(step) for step in range(5)]))
    assert told(folder)["word"] == "Not known"


def test_a_test_result_that_is_there_is_not_asked_for(tmp_path) -> None:
    folder = made_run(tmp_path, "run")
    assert "eval.test_size adds a test result" in told(folder)["caution"]
    card(folder, 1, "grpo", 30)  # no card from before training, so the sentence stays on dev
    found = told(folder)
    assert found["role"] == "dev" and "eval.test_size" not in found["caution"] and "below" in found["caution"]


def examined(folder: Path, name: str, step: int, right: int, of: int = 60, part_of: int | None = None) -> None:
    """An evaluation of a run at a step, on its first problems, as `rlvr eval --run RUN@STEP` leaves it."""
    protocol = eval_at_1(8)
    problems = [Problem(f"q{i}", "countdown", "", f"prompt {i}", None, {}, "test") for i in range(of)]
    answer = Answer(Completion("x", (), ()), 1)
    judged = [Judged(one, 0, answer, Verdict(i < right), 0.0, 0.0) for i, one in enumerate(problems)]
    found = Evaluation("countdown", protocol, tuple(judged), 1.0)
    facts = examined_facts({"step": step, "run": str(folder)}, Countdown(), problems, protocol, 0, "countdown")
    store = EvaluationFolder.begin(folder / "evaluations" / name, problems, facts, {"part_of": part_of})
    store.append([as_row(one) for one in judged])
    store.finish({"countdown": found.metrics()}, {}, {}, {})
    store.close()


def test_the_sentence_is_about_the_evaluation_that_stands_for_the_run_as_on_the_terminal(tmp_path) -> None:
    folder = made_run(tmp_path, "run")
    card(folder, 0, "baseline", 10, of=20)
    card(folder, 1, "grpo", 18, of=20)
    examined(folder, "after", 5, right=45)
    found = told(folder)
    assert (found["before"]["value"], found["after"]["value"]) == (0.5, 0.9), "nothing to pair the evaluation with"
    assert f"The result of the run: {headlines(folder)[0].words}." in found["caution"]
    examined(folder, "before", 0, right=15)
    found, [row, *_] = told(folder), compare_folders(*matching([Path(f"{folder}@base")], [folder])).measures
    assert (found["before"]["value"], found["after"]["value"], found["about"]) == (0.25, 0.75, "60 problems, 1 seed")
    assert found["difference"]["low"] == pytest.approx(row.difference.low, abs=1e-4), "as `rlvr compare` has it"
    assert "The result of the run" not in found["caution"] and found["after"]["from"]["file"].endswith(
        "after/metrics.json"
    )


def test_an_earlier_step_and_a_part_of_the_problems_are_told_on_the_page_too(tmp_path) -> None:
    folder = made_run(tmp_path, "run")
    (folder / "checkpoints/global_step_9").mkdir(parents=True)
    (folder / "checkpoints/global_step_9/manifest.json").write_text("{}")
    examined(folder, "before", 0, right=5, of=20, part_of=60)
    examined(folder, "early", 5, right=15, of=20, part_of=60)
    data = gather(folder)["sections"][0]["data"]
    [test] = [one for one in data["result"] if one["role"] == "test"]
    assert test["asked"] == "20 of 60 problems" and "step 9, was not tested" in test["lacks"]
    assert data["answer"]["phases"][-1].startswith("grpo raised accepted@1: dev 25.0 (step 5) → 50.0 %")
    assert data["answer"]["about"] == "20 of 60 problems, 1 seed" and "was not tested" in data["answer"]["caution"]


@pytest.mark.parametrize(("status", "tone"), [("failed", "unclear"), ("finished", "good")])
def test_a_failed_run_is_not_green_either(tmp_path, status: str, tone: str) -> None:
    found = told(made_run(tmp_path, "run", status=status))
    assert found["tone"] == tone and ("did not finish" in found["caution"]) == (status == "failed")


def test_phases_are_paired_with_what_they_started_from_and_controls_branch_off(tmp_path) -> None:
    folder = made_run(tmp_path, "run")
    for index, (phase, right) in enumerate([("baseline", 0), ("sft", 20), ("more_sft", 30), ("grpo", 40)]):
        card(folder, index, phase, right, control=phase == "more_sft")
    document = gather(folder)
    steps = next(one["data"]["steps"] for one in document["sections"] if one["id"] == "phases")
    said = document["sections"][0]["data"]["answer"]["phases"]
    assert said[-1].startswith("grpo raised accepted@1: test 33.3 → 66.7 %, +33.3 points [")
    assert [(one["name"], one["origin"], one["control"]) for one in steps] == [
        ("sft", "baseline", False), ("more_sft", "sft", True), ("grpo", "sft", False)]  # fmt: skip
    assert steps[2]["difference"]["mean"] == pytest.approx(20 / 60, abs=1e-4)
    tables = {path.stem for path in write_tables(document, folder, tmp_path / "tables")}
    assert "phases" in tables and "phases" in figures_of(document)
    assert steps[2]["difference"]["verdict"] == "higher" and steps[2]["difference"]["problems"] == 60


def test_a_control_arm_is_a_branch_of_the_curve(tmp_path) -> None:
    folder = made_run(tmp_path, "run", steps=4)
    rows = [metrics_row(0, 0.1), metrics_row(1, 0.2), metrics_row(2, 0.9, phase="more_sft"), metrics_row(3, 0.3)]
    (folder / "logs/metrics.jsonl").write_text(lines(rows))
    said = {"kind": "control", "text": "more_sft was a control arm: the policy is again that of step 1", "step": 2}
    (folder / "logs/events.jsonl").write_text(lines([said]))
    document = gather(folder)
    [curves] = [one["data"] for one in document["sections"] if one["id"] == "curves"]
    main = {one["name"]: one["y"] for one in curves["main"]["series"] if one.get("points")}
    assert main == {"dev: countdown": [0.1, 0.2, 0.3], "control: more_sft": [0.2, 0.9]}
    assert document["sections"][0]["data"]["answer"]["after"]["value"] == 0.3


def test_the_clock_counts_answers_tokens_and_seconds(tmp_path) -> None:
    folder = made_run(tmp_path, "run", steps=3)
    spent = {"groups/collected": 2, "response_length/mean": 10.0, "time/step_s": 0.5}
    (folder / "logs/metrics.jsonl").write_text(lines([metrics_row(s, 0.5, **spent) for s in range(1, 4)]))
    [curves] = [one["data"] for one in gather(folder)["sections"] if one["id"] == "curves"]
    assert curves["clock"] == {"n": 4, "step": [1, 2, 3], "answers": [8, 16, 24], "tokens": [80, 160, 240],
                               "seconds": [0.5, 1.0, 1.5]}  # fmt: skip


def test_pairs_of_gradients_are_shown_where_the_metrics_have_them(tmp_path) -> None:
    folder = made_run(tmp_path, "run", steps=4)
    rows = [metrics_row(s, 0.5, **{"surgery/cosine/mean": 0.1, "surgery/cosine/min": -0.2,
                                   "surgery/cosine/a/b": -0.1 * s}) for s in range(1, 6)]  # fmt: skip
    (folder / "logs/metrics.jsonl").write_text(lines(rows))
    [found] = [one["data"] for one in gather(folder)["sections"] if one["id"] == "conflict"]
    assert found["matrix"]["rows"] == ["a", "b"] and found["absent"] == []
    assert found["matrix"]["cells"][0][1]["value"] == found["matrix"]["cells"][1][0]["value"] == -0.5, "the last fifth"
    assert [len(panel["series"]) for panel in found["panels"]] == [2, 1]


def test_a_seed_that_was_run_again_is_one_dot() -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    trials = {
        f"t{i}": {"seed": seed, "metrics": {"dev.accepted": {"value": 0.1 * i}}} for i, seed in enumerate((0, 1, 1))
    }
    arm = {"name": "small", "chosen": True, "trials": list(trials), "metrics": {"dev.accepted": share}}
    stage = {"name": "rate", "arms": [arm], "decision": 1}
    study = {"stages": [stage], "trials": trials, "caveats": [{"text": "few"}],
             "decisions": [{"id": 1, "outcome": "better", "words": "small wins"}]}  # fmt: skip
    found = verdict(study)["data"]
    assert [one["seed"] for one in found["forests"][0]["rows"][0]["seeds"]] == ["0", "1"]
    assert (found["tone"], found["word"], found["caveats"]) == ("good", "small wins rate", ["few"])
    study["decisions"][0]["outcome"] = "undecided"
    assert verdict(study)["data"]["tone"] == "unclear", "undecided is not green"
    assert verdict(study)["data"]["word"] == "small goes on from rate, undecided"
    study["decisions"][0]["outcome"] = "equivalent"
    assert verdict(study)["data"]["word"] == "small goes on from rate, no better than another within the margin"
    study["decisions"][0]["by"] = "person"
    assert verdict(study)["data"]["word"] == "small goes on from rate, chosen by a person"


def test_stages_are_drawn_in_the_order_in_which_they_ran() -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    arms = [{"name": name, "chosen": name == "a", "trials": [], "metrics": {"dev.accepted": share}} for name in "ab"]
    stages = [{"name": "n", "arms": arms, "decision": 1}, {"name": "final_n", "kind": "final", "arms": arms[:1]}]
    found = verdict({"stages": stages, "decisions": [{"id": 1, "outcome": "better", "words": "a wins"}]})["data"]
    assert [forest["name"] for forest in found["forests"]] == ["n", "final_n"]


def test_a_last_stage_of_one_arm_decides_nothing() -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    arms = [{"name": name, "chosen": name == "a", "trials": [], "metrics": {"dev.accepted": share}} for name in "ab"]
    stages = [{"name": "race", "arms": arms, "decision": 1}, {"name": "final", "arms": arms[:1]}]
    found = verdict({"stages": stages, "decisions": [{"id": 1, "outcome": "better", "words": "a wins"}]})["data"]
    assert (found["word"], found["tone"]) == ("a wins race", "good")
    assert found["sentence"] == "a wins. Then measured in final: a 50.0 % [40.0, 60.0]."


@pytest.mark.parametrize("subject", ["reward:", "harm/grpo"])
def test_a_warning_about_the_reward_or_a_phase_that_did_harm_stands_in_the_first_box(tmp_path, subject: str) -> None:
    folder = made_run(tmp_path, "run")
    text = "reward: a right answer earns less than a wrong one (0 and 1)"
    event = {"time": "2026-01-01T00:00:00Z", "kind": "warning", "subject": subject, "text": text}
    with (folder / "logs" / "events.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n")
    assert told(folder)["why"][0]["why"] == text


def test_the_page_of_a_run_that_was_made_longer_says_what_it_could_do_before(tmp_path) -> None:
    folder = made_run(tmp_path, "run")
    for index, (phase, right) in enumerate([("baseline", 0), ("grpo", 40)]):
        card(folder, index, phase, right)
    last = json.loads((folder / "analysis/cards/1_grpo.json").read_text())
    (folder / "analysis/cards/before_extension").mkdir()
    kept = folder / "analysis/cards/before_extension/1_grpo_step_1.json"
    kept.write_text(json.dumps(last | {"step": last["step"] - 1}))
    [words] = next(one["data"]["earlier"] for one in gather(folder)["sections"] if one["id"] == "phases")
    assert words.startswith("Before it was made longer (grpo, step ")
