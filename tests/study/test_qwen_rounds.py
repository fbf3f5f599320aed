"""What is kept of a round with a 1.5B code model, and the tables made of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [
    str(ROOT / "studies" / name) for name in ("", "coding_five_phase", "paper_a_credit_assignment", "interference")
]
sys.path.append(str(ROOT / "benchmarks"))
import by_seed_tables  # noqa: E402
import keep_plus  # noqa: E402
import keep_qwen  # noqa: E402
import published  # noqa: E402
import qwen_matrix_tables  # noqa: E402
import qwen_skills_tables  # noqa: E402
import qwen_updates  # noqa: E402
import qwen_where  # noqa: E402
from exam_tables import Exams, points  # noqa: E402

from rlvrlab.evals.statistics import compare, holm  # noqa: E402


def part(name: str, solved: int, answers: list[str], **steps: float) -> keep_qwen.Part:
    outcomes = {f"MBPP/{i}": float(i < solved) for i in range(20)}
    rows = [{"problem": f"MBPP/{i}", "turn": 0, "answer": text, "correct": True, "error": "none"}
            for i, text in enumerate(answers)]  # fmt: skip
    facts = {"steps": 1, "answers": 8, "cut": "", "seconds": 9.0, "card_s": 1.0, "memory_gb": 2.0, "started": 0.0,
             "code": "a", "device": "b", "torch": "2"}  # fmt: skip
    row = {"phase_step": 1, "time/step_s": 2.0, "groups/zero_variance": 0.5, **steps}
    card = {"outcomes": outcomes, "metrics": {}}
    return keep_qwen.Part(name, facts, card, rows, [row])


@pytest.fixture
def exams(tmp_path) -> Exams:
    """Base after others, as where several trainings begin at once; two arms against one control."""
    parts = [part("trace_s0", 14, ["x = 1", 'def f():\n    """Tell."""', "    assert f() == 1"],
                  **{"credit/traced": 5.0, "credit/located": 0.5, "time/credit_s": 0.1}),
             part("base", 4, ["an assertion"]), part("grpo_s0", 10, []), part("other_s0", 9, [])]  # fmt: skip
    against = [("base", "grpo"), ("grpo", "trace"), ("grpo", "other"), ("grpo", "absent")]
    keep_qwen.save(tmp_path / "kept.json", keep_qwen.kept(parts, {}, against))
    return Exams(tmp_path / "kept.json")


def test_base_comes_first_and_forms_and_blame_are_kept(exams: Exams) -> None:
    assert [*exams.arms] == ["base", "trace_s0", "grpo_s0", "other_s0"]
    assert exams.arms["trace_s0"]["forms"] == {"assertion": 1, "docstring": 1}
    assert exams.arms["base"]["forms"] == {"assertion": 0, "docstring": 0}, "a word in prose is no assertion"
    assert exams.arms["trace_s0"]["credit"] == {"traced": [5.0], "located": [0.5], "seconds": [0.1]}
    assert "credit" not in exams.arms["grpo_s0"]


def test_the_gap_between_sampler_and_trainer_is_kept_of_trainings_that_weigh_by_it() -> None:
    columns = {"rollout_is/ess": 0.999, "rollout_is/changed": 0.0, "rollout_is/min": 0.5, "rollout_is/max": 1.5}
    assert keep_qwen.arm_facts(part("grpo_s0", 1, [], **columns))["apart"] == {
        "ess": [0.999], "changed": [0.0], "least": [0.5], "most": [1.5]
    }  # fmt: skip
    assert "apart" not in keep_qwen.arm_facts(part("grpo_s0", 1, []))


def test_differences_by_seed_are_paired_and_only_those_with_the_control_adjusted(exams: Exams) -> None:
    found = by_seed_tables.paired(exams)
    marks = {arm: list(exams.scores("mbpp", "greedy", arm)) for arm in exams.arms}
    assert found["mbpp", "0", "grpo", "trace"] == compare(marks["grpo_s0"], marks["trace_s0"])
    among = by_seed_tables.adjusted(found, "grpo")
    family = [("mbpp", "0", "grpo", one) for one in ("trace", "other")]
    assert among == dict(zip(family, holm([found[one].p for one in family]), strict=True))
    lines = by_seed_tables.by_seed(exams, "grpo").splitlines()
    assert lines[2].endswith("| – |") and "grpo − base | 0 | +30.0" in lines[2] and len(lines) == 5


def test_rounds_on_other_problems_are_not_compared(exams: Exams) -> None:
    other = Exams(ROOT / "studies/interference/results/qwen_skills_2.json")
    with pytest.raises(SystemExit, match="other problems"):
        qwen_skills_tables.beside_turns(exams, other)


def staged(tmp_path: Path, right: dict[str, str]) -> Exams:
    """Arms examined on four problems of each skill; `right` has three strings of marks, one after the other."""
    skills = {data: [data] * 4 for data in qwen_skills_tables.SKILLS}
    outcomes = {
        data: {"greedy": {name: marks.split()[i] for name, marks in right.items()}} for i, data in enumerate(skills)
    }
    made = {"samples": 16, "against": [], "skills": skills, "arms": {name: {} for name in right}, "outcomes": outcomes}
    (tmp_path / "kept.json").write_text(json.dumps(made))
    return Exams(tmp_path / "kept.json")


def test_a_cell_of_the_matrix_is_what_its_stage_alone_changed(tmp_path: Path) -> None:
    exams = staged(tmp_path, {
        "base": "0000 0000 0000", "code_s0": "1110 1000 0000", "code_s1": "1111 0000 0000",
        "plain_after_sql_s0": "1100 1111 0000", "plain_s0": "1000 1110 1100", "plain_s1": "1111 1111 1111",
    })  # fmt: skip
    found = qwen_matrix_tables.cells(qwen_matrix_tables.Round("", exams, {"plain": "plain"}))
    means = {place: one.mean for place, one in found.items()}
    assert means == {
        ("all", "mbpp", "mbpp", 0): 0.75, ("all", "mbpp", "sql", 0): 0.25, ("all", "mbpp", "countdown", 0): 0.0,
        ("all", "mbpp", "mbpp", 1): 1.0, ("all", "mbpp", "sql", 1): 0.0, ("all", "mbpp", "countdown", 1): 0.0,
        ("plain", "sql", "mbpp", 0): -0.25, ("plain", "sql", "sql", 0): 0.75, ("plain", "sql", "countdown", 0): 0.0,
        ("plain", "countdown", "mbpp", 0): -0.25, ("plain", "countdown", "sql", 0): -0.25,
        ("plain", "countdown", "countdown", 0): 0.5,
    }, "seed 1 has no examination between its stages"  # fmt: skip
    lines = qwen_matrix_tables.matrix(qwen_matrix_tables.Round("", exams, {"plain": "plain"})).splitlines()
    assert lines[0].startswith("| arm | trained | code, seed 0 | code, seed 1 | sql, seed 0 |") and len(lines) == 5
    assert lines[3].split(" | ")[3] == "–"


def test_what_a_guard_learnt_and_what_was_lost_since_are_told_apart(tmp_path: Path) -> None:
    turns = staged(tmp_path, {
        "base": "1000 0000 0000", "code_s0": "1110 1111 0000",
        "plain_after_sql_s0": "1100 1110 0000", "plain_s0": "1000 1000 1100",
    })  # fmt: skip
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir(), second.mkdir()
    at_once = staged(first, {"mixed_s0": "1000 1100 1111"})
    plain, mixed = qwen_matrix_tables.learnt_and_kept(turns, at_once).splitlines()[2:]

    def means(row: str) -> list[str]:
        return [cell.split(" ")[0] for cell in row.strip("| ").split(" | ")]

    assert means(plain) == ["plain", "1", "0", "+50.0", "+75.0", "+50.0", "+58.3", "−50.0", "−50.0", "−50.0"]
    assert means(mixed) == ["mixed", "1", "0", "+0.0", "+50.0", "+100.0", "+50.0", "–", "–", "–"]
    with pytest.raises(SystemExit, match="other problems"):
        qwen_matrix_tables.learnt_and_kept(qwen_matrix_tables.rounds()[1].exams, at_once)


def test_the_matrix_of_the_code_model_stands_on_its_page(capsys) -> None:
    qwen_matrix_tables.main()
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (ROOT / "studies/interference/rounds/09_code_model.md").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 50 and set(rows) <= set(page)
    lifted = [one for place in qwen_matrix_tables.rounds() for key, one in qwen_matrix_tables.cells(place).items()
              if key[1:3] == ("mbpp", "sql")]  # fmt: skip
    assert len(lifted) == 5 and all(one.low > 0 for one in lifted), "programs lift SQL in five of five first stages"


def test_updates_left_out_are_counted_by_their_norm(tmp_path, monkeypatch) -> None:
    rows = [{"step": 0}, *({"step": i, "actor/grad_norm": norm, "time/update_s": 1.0 + i, "x": 0}
                           for i, norm in enumerate([0.5, None, 0.0], start=1))]  # fmt: skip
    folder = tmp_path / "credit_s0"
    folder.mkdir()
    (folder / "grpo.metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "grpo.json").write_text(json.dumps({"memory_gb": 32.04, "limit_gb": 32.0}))
    told = [
        {"kind": "memory", "text": "out of memory: the sampler gave its buffers back"},
        {"kind": "end", "text": "."},
    ]
    monkeypatch.setattr(qwen_updates, "RESULTS", tmp_path / "kept.json")
    qwen_updates.keep([f"first={tmp_path}"])
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept["first"]["credit_s0/grpo"]["left_out"] == [2] and kept["first"]["credit_s0/grpo"]["memory"] is None
    assert "| first | 1 | 3 | 1 | 32 to 32 | – | – | – |" in qwen_updates.left_out(kept)
    (folder / "grpo.events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    assert qwen_updates.part_of(folder / "grpo.metrics.jsonl")["memory"] == {"the sampler's buffers taken back": 1}
    assert "| credit_s0/grpo | first | 2.0 | 3.0 | 3.00 | 9 | 32 |" in qwen_updates.seconds(kept)


def test_blame_is_told_by_kind_and_place() -> None:
    made = {"blamed": [["return", 2, ["functiondef", "assign", "return"]], ["assign", 0, ["assign"]]]}
    assert "| return | 1 | 50.0 [9.5, 90.5] | 25.0 |" in qwen_where.by_kind(made)
    assert qwen_where.by_place(made).endswith("| 4 | 50.0 | 50.0 | 0.0 |")


def test_examples_of_blame_show_nothing_of_the_data_set() -> None:
    kept = json.loads(qwen_where.RESULTS.read_text(encoding="utf-8"))
    assert len(kept["examples"]) == qwen_where.EXAMPLES
    for facts in kept["examples"]:
        program = "\n".join(facts["lines"])
        assert '"""' not in program and "assert" not in program.replace("assert …", "")
        assert 0 <= facts["blamed"] < len(facts["lines"]) and facts["lines"][facts["blamed"]].strip()


def test_every_record_of_the_untrained_model_is_on_the_page_of_published_numbers() -> None:
    seen = {one.record.partition(",")[0] for one in published.examinations()}
    whole = set()
    for path in ROOT.glob("studies/*/results/*.json"):
        made = json.loads(path.read_text(encoding="utf-8"))
        data = made.get("outcomes", made) if isinstance(made, dict) else {}
        if isinstance(data, dict) and "base" in ((data.get("humaneval") or {}).get("greedy") or {}):
            whole.add(str(path.relative_to(ROOT)))
    assert whole <= seen and len(whole) >= 5


def test_examinations_on_evalplus_files_keep_verdicts_and_stand_on_the_page(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "raw/mbppplus"
    folder.mkdir(parents=True)
    verdicts = {"Mbpp/10": True, "Mbpp/2": False, "Mbpp/9": None}
    row = {"finish": "stop", "detail": "lost"}
    lines = [{"problem": name, "correct": right, **row} for name, right in verdicts.items()]
    (folder / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    scorer = {"version": "1", "keys": {"shape": "evalplus"}}
    examined = {"scorer": scorer, "protocol": {"sampling": {"max_tokens": 768}}}
    (folder / "run_info.json").write_text(json.dumps({"examined": examined, "machine": {}, "packages": {}}))
    kept = keep_plus.kept(folder)
    assert (kept["greedy"], kept["unjudged"]) == ("0-1", {"Mbpp/9": "lost"}), "in the order of the numbers"
    (tmp_path / "plus.json").write_text(json.dumps({"mbppplus": kept}))
    monkeypatch.setattr(published, "PLUS", str(tmp_path / "plus.json"))
    assert published.Seen("MBPP+", str(tmp_path / "plus.json"), 768, 1, 2) in list(published.examinations())


def test_a_bound_just_below_zero_keeps_its_sign() -> None:
    assert [points(share) for share in (-0.0002, -0.0, 0.0, 0.0002)] == ["−0.0", "+0.0", "+0.0", "+0.0"]
