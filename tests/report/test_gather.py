"""What a folder holds becomes one document."""

from __future__ import annotations

import json
import random
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from gathered import line_of, sections
from hypothesis import given
from hypothesis import strategies as st
from record_makers import ARMS

from rlvrlab.evals.monitors import health_of, ranges_of
from rlvrlab.evals.statistics import wilson
from rlvrlab.record.headline import summarise
from rlvrlab.report.gather import gather
from rlvrlab.report.gather.curves import clock, curves
from rlvrlab.report.gather.figures import cost, errors, signal
from rlvrlab.report.gather.intervals import change
from rlvrlab.report.gather.overview import overview
from rlvrlab.report.gather.rollouts import LONGEST, MOST, Answers, spread, training_answers
from rlvrlab.report.reading import Folder
from rlvrlab.report.run_record import RunRecord


def test_a_run_tells_what_the_record_says_and_where(records) -> None:
    document = gather(records / "run")
    found = sections(document)
    assert document["missing"] == [] and document["status"] == "finished" and document["kind"] == "run"
    wanted = {
        "overview",
        "health",
        "phases",
        "curves",
        "signal",
        "errors",
        "cost",
        "hacks",
        "rollouts",
        "recipe",
        "events",
        "facts",
    }
    assert wanted <= set(found)
    head, truth = {one["phase"]: one for one in found["overview"]["headline"]}, summarise(records / "run")
    for phase, entry in truth.items():
        for when in ("before", "best", "last"):
            shown = head[phase][when]
            assert shown["value"] == pytest.approx(entry[when]["accuracy"], rel=1e-4)
            assert shown["from"]["step"] == entry[when]["step"]
            assert line_of(records / "run", shown["from"])[shown["from"]["key"]] == pytest.approx(
                shown["value"], rel=1e-4
            )
    assert found["overview"]["progress"]["total"] == found["overview"]["progress"]["step"] == 8


def test_every_light_is_held_against_its_range(records) -> None:
    lights = {one["metric"]: one for one in sections(gather(records / "run"))["health"]["lights"]}
    rows = [json.loads(line) for line in (records / "run/logs/metrics.jsonl").read_text().splitlines()]
    for watched in ranges_of("toy"):
        values = [
            row[watched.metric] for row in rows if watched.metric in row and watched.metric in health_of(row["phase"])
        ]
        light = lights[watched.metric]
        if not values:
            assert light["state"] == "absent"
            continue
        low, high = watched.low or float("-inf"), watched.high if watched.high is not None else float("inf")
        outside = sum(not low <= value <= high for value in values)
        assert light["outside"] == [outside, len(values)]
        last, longest = values[-watched.after :], 0
        for bad, stretch in groupby(not low <= value <= high for value in values):
            longest = max(longest, len(list(stretch)) if bad else 0)
        if len(last) == watched.after and not any(low <= value <= high for value in last):
            assert light["state"] == ("alarm" if watched.alarm else "notice")
        elif longest < watched.after:
            holds = low <= values[-1] <= high
            assert light["state"] == ("good" if holds else "notice"), "an odd step or two before put no light on"
        assert line_of(records / "run", light["from"])[watched.metric] == values[-1]


def test_answers_lead_back_to_their_lines(records) -> None:
    data = sections(gather(records / "run"))["rollouts"]
    columns, texts = data["columns"], data["texts"]
    assert len({len(column) for column in columns.values()}) == 1
    for i in range(0, len(columns["id"]), 7):
        row = line_of(records / "run", {"file": texts[columns["file"][i]], "line": columns["line"][i]})
        said = row["answer" if texts[columns["file"][i]].endswith(".answers.jsonl") else "completion"]
        assert said == (texts[columns["completion"][i]] if columns["completion"][i] >= 0 else "")
        assert columns["correct"][i] == {True: 1, False: 0, None: -1}[row["correct"]]
    sides = {texts[side] for side in columns["side"]}
    cards = {"test, before training", "test, after sft", "test, after grpo"}
    assert {"training", *cards} < sides and len(sides) == 5, "the run's own evaluation is there too"


def test_pass_at_k_is_that_of_the_evaluation(records) -> None:
    [curve] = sections(gather(records / "best"))["passk"]["curves"]
    kept = json.loads((records / "best/metrics.json").read_text())["countdown"]
    assert curve["x"] == [1, 2, 4]
    for k, value, low in zip(curve["x"], curve["y"], curve["low"], strict=True):
        if f"pass@{k}" in kept:
            assert (value, low) == (
                pytest.approx(kept[f"pass@{k}"], rel=1e-4),
                pytest.approx(kept[f"pass@{k}_low"], rel=1e-4),
            )


def test_a_study_shows_chain_arms_and_decisions_and_stays_in_its_folder(records) -> None:
    document = gather(records / "study")
    found = sections(document)
    [stage] = found["chain"]["stages"]
    assert [arm["name"] for arm in stage["arms"] if arm["chosen"]] == [ARMS[0]] and stage["decision"].startswith(
        "small"
    )
    assert stage["status"] == "undecided", "the study went on, but its numbers decided nothing"
    assert found["stage_0"]["cells"][0][0]["value"] == 0.5
    names = {line["name"]: line.get("seeds", 1) for line in found["curves_0"]["main"]["series"]}
    assert names == {ARMS[0]: 2, ARMS[1]: 1}, "the trial that points out of the folder is not read"
    compared = found["decisions"][0]["comparisons"][0]
    assert compared["p"] == 0.2 and compared["share"] is True, "told in points"


def test_probe_audit_and_credit(records) -> None:
    probe = json.loads((records / "probe/probe.json").read_text())
    points = sections(gather(records / "probe"))["signal"]["points"]
    assert [(p["name"], p["x"]) for p in points] == [
        (p["id"], pytest.approx(p["accuracy"], rel=1e-3)) for p in probe["problems"]
    ]
    audit = gather(records / "audit")
    hits = sections(audit)["pairs"]["hits"]
    assert len(hits) == 3 and all(hit["leak"] for hit in hits) and audit["tone"] == "failed"
    assert all(hit["left"]["text"] == hit["right"]["text"] for hit in hits)
    [answer] = sections(gather(records / "credit.json"))["credit"]["answers"]
    assert [step["credit"] for step in answer["steps"]] == [0.31, None, -0.5, 0.0, 1.0]


def staged(folder: Path, counted: bool) -> Path:
    """One run that trained b after a: 56 of 80 to 48 of 80 on a, and the reverse on b."""
    (folder / "logs").mkdir(parents=True)
    table = [(0, 0.7, 0.6), (2, 0.7, 0.6), (4, 0.6, 0.7)]
    rows = [
        {"step": step, "phase": "grpo", "val-core/x/acc": 0.65, "val-core/x/acc_low": 0.5, "val-core/x/acc_high": 0.8}
        | {"val-core/x/a/acc": a, "val-core/x/b/acc": b, "val-core/x/worst_skill/acc": min(a, b)}
        | ({"val-core/x/a/n": 80.0, "val-core/x/b/n": 80.0} if counted else {})
        for step, a, b in table
    ]
    events = [{"kind": "stage", "text": f"stage {i} begins: {skill}", "step": x} for i, x, skill in STAGES]
    for name, lines in (("metrics", rows), ("events", events)):
        (folder / f"logs/{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


STAGES = ((1, 1, "a"), (2, 3, "b"))


def test_one_run_has_intervals_where_it_counted(tmp_path) -> None:
    document = gather(staged(tmp_path / "counted", True))
    found = sections(document)
    matrix = found["interference"]
    assert matrix["certain"] and matrix["rows"] == ["a", "b"] and matrix["cells"][1][0]["value"] == -0.1
    assert all(cell["low"] <= cell["value"] <= cell["high"] for row in matrix["cells"] for cell in row)
    for curve in found["forgetting"]["curves"]:
        assert curve["low"] == [pytest.approx(wilson(round(80 * y), 80)[0], rel=1e-4) for y in curve["y"]]
    assert not [one for one in found["curves"]["others"] if one["name"].endswith("/n")], "a count is no curve"
    old = sections(gather(staged(tmp_path / "old", False)))
    assert not old["interference"]["certain"] and old["interference"]["cells"][1][0]["low"] is None
    assert "low" not in old["forgetting"]["curves"][0]


def test_the_interval_of_a_change_is_newcombes() -> None:
    """56 of 70 against 48 of 80: 0.0524 to 0.3339 (Newcombe 1998, table II, method 10)."""
    found = change((48 / 80, wilson(48, 80)), (56 / 70, wilson(56, 70)))
    assert (found["value"], found["low"], found["high"]) == (
        0.2,
        pytest.approx(0.0524, abs=5e-5),
        pytest.approx(0.3339, abs=5e-5),
    )


def test_training_keeps_credit_for_the_page(train, tmp_path) -> None:
    """A real run with [credit]: the heat map needs no other command."""
    words = ("credit.type=counterfactual", "credit.segmentation=words", "credit.invalid=count", "grpo.steps=2")
    run = train(tmp_path, *words, "credit.intervention_types=['delete']")
    document = gather(run)
    shown = sections(document)["credit_training"]
    assert shown["estimator"] == "leave_one_out" and shown["label"] == "shaping" and not document["missing"]
    for answer in shown["answers"]:
        row = line_of(run, answer["from"])
        assert row["id"] == answer["id"] and answer["text"] == row["completion"]
        kept = [(s["start"], s["end"], s["credit"], s["advantage"]) for s in row["steps"]]
        assert [(s["start"], s["end"]) for s in answer["steps"]] == [one[:2] for one in kept]
        assert [s["credit"] for s in answer["steps"]] == [pytest.approx(one[2], rel=1e-3) for one in kept]
    for path in run.glob("rollouts/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({k: v for k, v in row.items() if k != "steps"}) + "\n" for row in rows))
    document = gather(run)
    assert "credit_training" not in sections(document) and "rlvr credit" in document["missing"][0]["why"]


def test_skills_of_result_lines_are_named_where_the_file_names_them(tmp_path) -> None:
    square = {"measured_SS": [[1.0, 0.0], [0.0, 1.0]], "predicted_SS": [[1.0, 0.0], [0.0, 1.0]]}
    small = {"measured_SS": [[1.0]], "predicted_SS": [[1.0]], "skills": ["s0"]}
    rows = [square | {"skills": ["s0", "s2"]}, small, square | {"skills": ["s0", "s2"]}]
    (tmp_path / "matrix.jsonl").write_text("".join(json.dumps({"after_stage": 0, **row}) + "\n" for row in rows))
    document = gather(tmp_path)
    assert sections(document)["matrix_0_measured_SS"]["rows"] == ["s0", "s2"] and not document["missing"]
    assert "over 2 seeds (1 with other skills left out)" in document["sections"][0]["note"]


def test_the_interference_results_have_intervals(tmp_path) -> None:
    rng = random.Random(0)
    rows = [{"seed": i, "after_stage": 0, "measured_SS": [[1.0, rng.gauss(0, 1)], [-1 + 0.01 * i, 1.0]],
             "predicted_SS": [[1, 0], [0, 1]]} for i in range(6)]  # fmt: skip
    (tmp_path / "matrix.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = sections(gather(tmp_path))["matrix_0_measured_SS"]["cells"]
    assert cells[1][0]["high"] < 0 and cells[0][1]["low"] < 0 < cells[0][1]["high"]
    values = [row["measured_SS"][0][1] for row in rows]
    mean = sum(values) / 6
    error = (sum((v - mean) ** 2 for v in values) / 5 / 6) ** 0.5
    assert cells[0][1]["high"] == pytest.approx(mean + 2.570582 * error, rel=1e-3)


def test_no_figure_counts_a_step_that_does_not_fit_on_the_page(tmp_path) -> None:
    for step in range(1, 40):
        write_answers(tmp_path, step, [(f"p{i // 8}", i % 8 < step % 9) for i in range(280)])
    run, answers = RunRecord(tmp_path), Answers()
    training_answers(run.folder, answers)
    assert len(answers) == MOST // 280 * 280 < MOST, "a part of one more step would fit"
    bars = errors(run, answers)["data"]["groups"][0]["bars"]
    assert len(bars) == MOST // 280 and {sum(bar["counts"].values()) for bar in bars} == {280}
    assert len(signal(run, answers)["data"]["points"]) == len(answers) // 8


def test_of_a_step_larger_than_the_page_whole_groups_are_shown_and_nothing_is_counted(tmp_path) -> None:
    for step in (1, 2):
        write_answers(tmp_path, step, [(f"p{i // 16}", i % 16 < 4) for i in range(6000)])
    run, answers = RunRecord(tmp_path), Answers()
    training_answers(run.folder, answers)
    assert len(answers) == MOST // 16 * 16 and "1 of 2 recorded steps are shown (the first groups" in answers.notes[0]
    assert errors(run, answers) is None
    assert {point["x"] for point in signal(run, answers)["data"]["points"]} == {0.25}


def write_answers(run: Path, step: int, told: list[tuple[str, bool]]) -> None:
    """Write the answers of a step: of which problem, and whether it is right."""
    (run / "rollouts").mkdir(exist_ok=True)
    rows = [{"id": f"{step}/{i}", "problem": name, "correct": right, "reward": float(right)}
            for i, (name, right) in enumerate(told)]  # fmt: skip
    (run / f"rollouts/step_{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_what_a_run_cost_adds_up(tmp_path) -> None:
    took = {"time/sample_s": 1.0, "time/update_s": 2.0, "time/step_s": 3.5, "time/record_s": 0.5}
    counts = {"groups/collected": 2.0, "response_length/mean": 15460.5, "train/acc": 0.5}
    rows = [{"step": 0, "phase": "grpo"}, *({"step": n, "phase": "grpo", **took, **counts} for n in (1, 2, 3))]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "config.json").write_text(json.dumps({"schema": 1, "recipe": {"rollout": {"n": 4}}}))
    info = {"status": "finished", "started": "2026-11-19T05:26:41Z", "ended": "2026-11-19T05:26:58Z"}
    (tmp_path / "run_info.json").write_text(json.dumps(info))
    told = {row["name"]: row["value"] for row in cost(RunRecord(tmp_path))["data"]["rows"]}
    parts = [value for name, value in told.items() if name.startswith("grpo: ")]
    assert told["wall time of all steps"] == sum(parts) == 12 and told["grpo: everything else"] == 1.5
    assert told["before, between and after the steps"] == 17 - 12
    assert told["tokens sampled in training"] == 371_052, "in full, not in five digits"
    assert told["tokens per right answer"] == 371_052 / (24 * 0.5)
    run = RunRecord(tmp_path)
    assert clock(run)["seconds"][-1] == overview(run)["data"]["progress"]["spent_s"] == 12
    (tmp_path / "logs/events.jsonl").write_text('{"kind": "resume", "text": "", "time": "", "step": 1}\n')
    assert not any(row["name"].startswith("before,") for row in cost(RunRecord(tmp_path))["data"]["rows"])


def test_a_metric_is_not_drawn_through_from_one_phase_to_the_next(tmp_path) -> None:
    (tmp_path / "logs").mkdir()
    rows = [{"step": n, "phase": "sft" if n <= 500 else "grpo", "actor/loss": 9.0 if n <= 500 else 0.0,
             **({"actor/kl": 0.1} if n > 500 else {})} for n in range(1, 520)]  # fmt: skip
    (tmp_path / "logs/metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    panels = {one["name"]: one["series"][0] for one in curves(RunRecord(tmp_path))["data"]["others"]}
    loss, kl = panels["actor/loss"], panels["actor/kl"]
    [start] = loss["breaks"]
    assert set(loss["y"][:start]) == {9.0} and set(loss["y"][start:]) == {0.0}, "no bin holds both"
    assert loss["x"][start - 1] == 500 and loss["x"][start] == 501 and loss["phase"] == "grpo"
    assert len({len(loss[key]) for key in ("x", "y", "line", "low", "high")}) == 1
    assert "breaks" not in kl and kl["phase"] == "grpo"


@given(st.integers(0, 300))
def test_steps_are_read_spread_out(count: int) -> None:
    order = list(spread(count))
    assert sorted(order) == list(range(count))
    if count > 8:
        first = sorted(order[:5])
        assert first[0] == 0 and first[-1] == count - 1
        assert max(b - a for a, b in pairwise(first)) <= count // 4 + 2


def test_a_page_holds_so_many_answers_and_so_much_text(tmp_path) -> None:
    (tmp_path / "rollouts").mkdir()
    for step in range(1, 80):
        texts = ["x" * 2_000_000 if step == i == 1 else f"{step} {i}" for i in range(100)]
        rows = [
            {"id": f"{step}/{i}", "prompt": "q", "completion": text, "correct": True} for i, text in enumerate(texts)
        ]
        (tmp_path / f"rollouts/step_{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = Answers()
    training_answers(Folder(tmp_path), answers)
    assert len(answers) == MOST and max(map(len, answers.texts)) == LONGEST
    [(place, whole)] = answers.cut.items()
    assert whole == 2_000_000 and answers.texts[place] == "x" * LONGEST
    steps = sorted(set(answers.columns["step"]))
    assert steps[0] == 1 and steps[-1] == 79 and "50 of 79" in answers.notes[0]
