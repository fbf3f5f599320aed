"""What a folder holds becomes one document, whatever state the folder is in."""

from __future__ import annotations

import json
import random
import shutil
from copy import deepcopy
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from record_makers import ARMS

from rlvrlab.errors import RunError, UserError
from rlvrlab.evals.compare import compare_folders
from rlvrlab.evals.monitors import health_of, ranges_of
from rlvrlab.evals.statistics import compare, wilson
from rlvrlab.record.evaluation import evaluations_of, read_evaluation
from rlvrlab.record.files import to_json
from rlvrlab.record.headline import summarise
from rlvrlab.record.lock import Lock
from rlvrlab.report.gather import gather
from rlvrlab.report.gather.newcombe import change
from rlvrlab.report.gather.reading import Folder
from rlvrlab.report.gather.rollouts import LONGEST, MOST, Answers, spread, training_answers


def sections(document: dict[str, Any]) -> dict[str, Any]:
    assert json.loads(to_json(document)) is not None
    assert len({one["id"] for one in document["sections"]}) == len(document["sections"]), "addresses are unique"
    return {one["id"]: one["data"] for one in document["sections"]}


def line_of(folder: Path, source: dict[str, Any]) -> dict[str, Any]:
    return json.loads((folder / source["file"]).read_text().splitlines()[source["line"] - 1])


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
            assert light["state"] == "good", "an odd step or two put no light on"
        assert line_of(records / "run", light["from"])[watched.metric] == values[-1]


def test_answers_lead_back_to_their_lines(records) -> None:
    data = sections(gather(records / "run"))["rollouts"]
    columns, texts = data["columns"], data["texts"]
    assert len({len(column) for column in columns.values()}) == 1
    for i in range(0, len(columns["id"]), 7):
        row = line_of(records / "run", {"file": texts[columns["file"][i]], "line": columns["line"][i]})
        assert row["completion"] == (texts[columns["completion"][i]] if columns["completion"][i] >= 0 else "")
        assert columns["correct"][i] == {True: 1, False: 0, None: -1}[row["correct"]]
    sides = {texts[side] for side in columns["side"]}
    assert "training" in sides and len(sides) == 2, "the run's own evaluation is there too"


FILES = ("config.json", "run_info.json", "logs/metrics.jsonl", "logs/events.jsonl", "rollouts/step_5.jsonl",
         "analysis/cards/0_baseline.json")  # fmt: skip
DAMAGE = {
    "gone": None,
    "empty": b"",
    "torn": b'{"step": 3, "phase": "gr',
    "binary": bytes(range(256)) * 4,
    "a list": b"[1, 2, 3]\n",
    "deep": b"[" * 100_000,
    "strange values": b'{"step": 1, "phase": {"a": []}, "schema": "old", "recipe": [], "metrics": 7, "text": {}}\n',
}


@pytest.fixture(scope="module")
def whole_sections(records) -> set[str]:
    return set(sections(gather(records / "run")))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_costs_only_what_it_held(run_folder, whole_sections, file: str, damage: str) -> None:
    path = run_folder / file
    if DAMAGE[damage] is None:
        path.unlink()
    else:
        path.write_bytes(DAMAGE[damage])
    document = gather(run_folder)
    found = set(sections(document))
    assert "overview" in found and len(found) >= len(whole_sections) - 7
    if damage in ("torn", "binary", "deep"):
        assert any(one["what"].startswith(file) for one in document["missing"]), document["missing"]


def test_a_run_in_progress_shows_all_but_the_torn_line(run_folder) -> None:
    path = run_folder / "logs/metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 30])
    info = json.loads((run_folder / "run_info.json").read_text())
    (run_folder / "run_info.json").write_text(json.dumps({**info, "status": "running"}))
    document = gather(run_folder)
    lines = whole.count(b"\n")
    assert document["missing"] == [{"what": f"logs/metrics.jsonl:{lines}", "why": document["missing"][0]["why"]}]
    assert "torn" in document["missing"][0]["why"]
    progress = sections(document)["overview"]["progress"]
    assert progress["step"] == 7 and progress["total"] == 8
    assert document["status"] == "killed" and progress["left_s"] is None, "nobody holds its lock"
    lock = Lock(run_folder)
    document = gather(run_folder)
    lock.release()
    seconds = sorted(
        row["time/step_s"] for row in map(json.loads, path.read_text().splitlines()[:-1]) if "time/step_s" in row
    )
    left = sections(document)["overview"]["progress"]["left_s"]
    assert document["status"] == "running" and left == pytest.approx(seconds[len(seconds) // 2], rel=0.01)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.slow
@settings(suppress_health_check=FIXTURES)
@given(strange=JSON, place=st.randoms(use_true_random=False), many=st.integers(1, 12))
def test_no_strange_value_stops_it(records, tmp_path_factory, strange: Any, place: random.Random, many: int) -> None:
    folder = tmp_path_factory.mktemp("strange")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        rows = (
            [json.loads(line) for line in (records / "run" / name).read_text().splitlines()]
            if name.endswith("l")
            else [json.loads((records / "run" / name).read_text())]
        )
        for _ in range(many):
            row = place.choice(rows)
            while isinstance(row, dict) and row:
                if not (keys := sorted(row.keys() - {"schema"})):  # another schema is refused, see below
                    break
                key = place.choice(keys)
                if not isinstance(row[key], dict) or place.random() < 0.3:
                    row[key] = deepcopy(strange)
                    break
                row = row[key]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    sections(gather(folder))
    shutil.rmtree(folder)


def test_a_record_of_another_version_is_refused_by_name(run_folder) -> None:
    config = json.loads((run_folder / "config.json").read_text())
    (run_folder / "config.json").write_text(json.dumps({**config, "schema": 99, "news": {"a": 1}}))
    with pytest.raises(RunError, match=r"config\.json: schema 99, this version reads 1"):
        gather(run_folder)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path / "nowhere", "no such folder"),
        (lambda path: (path / "a/config.json", path)[1], "holds 1 runs"),
        (lambda path: (path / "notes.txt", path)[1], "neither of"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(tmp_path, make, words: str) -> None:
    (tmp_path / ("a" if "holds" in words else "b")).mkdir()
    (tmp_path / ("a/config.json" if "holds" in words else "notes.txt")).write_text("{}")
    with pytest.raises(UserError, match=words) as refused:
        gather(make(tmp_path))
    assert "\n" not in str(refused.value)


def test_an_empty_folder_is_a_page_that_says_so(tmp_path) -> None:
    document = gather(tmp_path)
    assert document["sections"] == [] and {"config.json", "logs/metrics.jsonl"} <= {
        m["what"] for m in document["missing"]
    }


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


def test_an_unfinished_evaluation_is_shown_from_its_answers(records, tmp_path) -> None:
    folder = Path(shutil.copytree(records / "best", tmp_path / "best"))
    for name in ("metrics.json", "summary.json"):
        (folder / name).unlink()
    samples = (folder / "samples.jsonl").read_bytes()
    (folder / "samples.jsonl").write_bytes(samples[: len(samples) // 2])
    document = gather(folder)
    found = sections(document)
    assert found["overview"]["samples"] < 48 and found["overview"]["source"] == "samples.jsonl"
    assert any("samples.jsonl:" in one["what"] for one in document["missing"])


def test_two_evaluations_are_compared_as_rlvr_compare_does(records) -> None:
    found = sections(gather([records / "base", records / "best"]))
    truth = compare_folders([read_evaluation(records / "base")], [read_evaluation(records / "best")])
    shown = {row["what"]: row for row in found["paired"]["tables"][0]["rows"]}
    for row in truth.measures:
        assert (
            shown[row.what]["difference"]["mean"] == row.difference.mean
            and shown[row.what]["difference"]["p"] == row.difference.p
        )
    texts, columns = found["rollouts"]["texts"], found["rollouts"]["columns"]
    prompts = {
        side: {p for p, s in zip(columns["prompt"], columns["side"], strict=True) if s == side}
        for side in set(columns["side"])
    }
    one, other = prompts.values()
    assert one == other and len(one) == 12 and len({texts[side] for side in prompts}) == 2


def test_runs_are_arms_and_seeds(records) -> None:
    document = gather([records / name for name in ("run", "seed", "changed")])
    found = sections(document)
    assert document["subtitle"] == "3 runs in 2 arms"
    assert [row[0] for row in found["recipe"]["rows"]] == ["grpo.learning_rate"]
    two, one = found["curves"]["main"]["series"]
    rows = [
        [json.loads(line) for line in (records / name / "logs/metrics.jsonl").read_text().splitlines()]
        for name in ("run", "seed")
    ]
    for step, mean, low, high in zip(two["x"], two["y"], two["low"], two["high"], strict=True):
        values = [
            row["val-core/countdown/acc"]
            for run in rows
            for row in run
            if row["step"] == step and "val-core/countdown/acc" in row
        ]
        assert mean == pytest.approx(sum(values) / len(values), rel=1e-4)
        assert (low, high) == (pytest.approx(min(values), rel=1e-4), pytest.approx(max(values), rel=1e-4))
    assert "seeds" not in one and two["seeds"] == 2
    sides = [
        [read_evaluation(evaluations_of(records / n)[-1]) for n in names] for names in (("run", "seed"), ("changed",))
    ]
    truth = compare_folders(*sides)
    assert found["paired"]["tables"][0]["rows"][0]["difference"]["mean"] == truth.measures[0].difference.mean


def test_runs_without_verdicts_on_the_same_problems_have_no_paired_test(records, tmp_path) -> None:
    folders = []
    for name in ("run", "changed"):
        folders.append(Path(shutil.copytree(records / name, tmp_path / name)))
        shutil.rmtree(folders[-1] / "evaluations")
    assert sections(gather(folders))["paired"]["notes"][0] == "12 test problems.", "the cards have them"
    for folder in folders:
        shutil.rmtree(folder / "analysis/cards")
    document = gather(folders)
    assert "paired" not in sections(document) and any(m["what"] == "paired test" for m in document["missing"])


def test_the_cards_that_are_compared_are_those_of_the_final_policies(records, tmp_path) -> None:
    """The eleventh card is after the second, a control's card is nobody's result, and evaluations apart are no help."""
    folders = [Path(shutil.copytree(records / name, tmp_path / name)) for name in ("run", "changed")]
    names = sorted(json.loads((folders[0] / "analysis/cards/1_sft.json").read_text())["outcomes"])
    truth = ({name: float(i < 3) for i, name in enumerate(names)}, {name: float(i < 9) for i, name in enumerate(names)})
    for folder, outcomes, index in zip(folders, truth, ("10", "3"), strict=True):
        card = {"phase": "late", "step": 99, "metrics": {}, "outcomes": outcomes, "control": False}
        (folder / f"analysis/cards/{index}_late.json").write_text(json.dumps(card))
        (folder / "analysis/cards/11_control.json").write_text(json.dumps(card | {"control": True, "phase": "control"}))
        for path in folder.glob("evaluations/*/samples.jsonl"):
            path.unlink()
    shown = sections(gather(folders))["paired"]
    [row] = shown["tables"][0]["rows"]
    assert (row["before"], row["after"], row["difference"]["mean"]) == (0.25, 0.75, 0.5)
    assert row["difference"]["p"] == compare([0.0] * 12, [1.0] * 6 + [0.0] * 6).p < 0.05, "six won, none lost"
    assert "run: late, step 99; changed: late, step 99" in shown["notes"][1]
    for folder in folders:
        [path] = folder.glob("analysis/cards/*_late.json")
        path.write_text(json.dumps({"outcomes": {f"{folder.name} {name}": 1.0 for name in names}}))
    document = gather(folders)
    assert "paired" not in sections(document)
    assert any("different problems" in one["why"] for one in document["missing"])


def test_compared_runs_share_the_room_for_answers_and_say_whose_steps_are_left_out(
    records, tmp_path, monkeypatch
) -> None:
    folders = [Path(shutil.copytree(records / name, tmp_path / name)) for name in ("run", "changed")]
    for folder in folders:
        shutil.rmtree(folder / "evaluations")
        line = next((folder / "rollouts").glob("step_*.jsonl")).read_text(encoding="utf-8").splitlines()[0]
        for step in range(1, 9):
            (folder / f"rollouts/step_{step}.jsonl").write_text(f"{line}\n" * 4, encoding="utf-8")
    monkeypatch.setattr("rlvrlab.report.gather.comparison.MOST", 24)
    shown = sections(gather(folders))["rollouts"]
    sides = [shown["texts"][index] for index in shown["columns"]["side"]]
    assert len(sides) == 24 and all(sides.count(side) == 12 for side in set(sides)) and len(set(sides)) == 2
    assert [note.partition(": ")[2][:6] for note in shown["notes"]] == ["3 of 8", "3 of 8"]
    assert {note.partition(": ")[0] for note in shown["notes"]} == set(sides)


def test_runs_and_evaluations_do_not_mix(records) -> None:
    with pytest.raises(UserError, match="side by side"):
        gather([records / "run", records / "base"])


def test_a_study_shows_chain_arms_and_decisions_and_stays_in_its_folder(records) -> None:
    document = gather(records / "study")
    found = sections(document)
    [stage] = found["chain"]["stages"]
    assert [arm["name"] for arm in stage["arms"] if arm["chosen"]] == [ARMS[0]] and stage["decision"].startswith(
        "small"
    )
    assert found["stage_0"]["cells"][0][0]["value"] == 0.5
    names = {line["name"]: line.get("seeds", 1) for line in found["curves_0"]["main"]["series"]}
    assert names == {ARMS[0]: 2, ARMS[1]: 1}, "the trial that points out of the folder is not read"
    assert found["decisions"][0]["comparisons"][0]["p"] == 0.2


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


def test_a_seed_that_is_there_twice_is_no_second_seed(records, tmp_path) -> None:
    again = Path(shutil.copytree(records / "run", tmp_path / "again"))
    document = gather([records / "run", again])
    assert "2 seeds" not in document["title"] and document["subtitle"] == "2 runs in 2 arms"
    assert [row[0] for row in sections(document)["arms"]["rows"]][1].endswith("(again)")
