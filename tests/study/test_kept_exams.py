"""What is kept of arms that were trained and examined apart, and the tables made of it."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "studies" / name) for name in ("", "interference", "countdown_gsm8k", "qwen_coder_mbpp")]
import fixed_sums  # noqa: E402
import floor_tables  # noqa: E402
import keep_exams  # noqa: E402
import opened_fences  # noqa: E402
import qwen_rates_tables  # noqa: E402
import shuffled_tables  # noqa: E402
from exam_tables import Exams, training_table  # noqa: E402


def exam(problems: list[str], right: list[int], judged: list[int] | None = None, n: int = 1) -> dict[str, Any]:
    facts = {"errors": {}, "truncated": 0, "tokens": 1.0, "seconds": 1.0, "env": ["path=/x/y/z.jsonl"], "version": "1"}
    return {**facts, "n": n, "problems": problems, "right": right, "judged": judged or [n] * len(problems)}


def arm(folder: Path, exams: dict[str, Any], steps: int = 0) -> None:
    folder.mkdir()
    (folder / "COMMIT").write_text("abc\n")
    (folder / "exam.json").write_text(json.dumps({"device": "cpu", "torch": "2", "exams": exams}))
    if steps:
        rows = [{"step": i, "time/step_s": 2.0, "groups/collected": 3.0, "train/acc": 0.5} for i in range(1, steps + 1)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [{"step": 0}, *rows]))
        command = ["rlvr", "train", "a.toml", "engine.model=/w/m", "output_dir=/w/r", "seed=1"]
        (folder / "run_info.json").write_text(json.dumps({"command": command, "started": "now", "packages": {}}))
        (folder / "config.json").write_text(json.dumps({"recipe": {"rollout": {"n": 4}}}))


def code_exams(*, unjudged: bool = False) -> dict[str, Any]:
    plus = exam(["Mbpp/10", "Mbpp/11", "Mbpp/510", "Mbpp/511"], [1, 0, 1, 1])
    he = exam(["HumanEval/0", "HumanEval/1"], [1, 0], [1, 0 if unjudged else 1])
    sixteen = {"right": [4, 16], "n": 16}
    return {
        "mbpp": exam(["MBPP/2", "MBPP/1"], [0, 1]), "mbpp16": exam(["MBPP/2", "MBPP/1"], **sixteen),
        "he": he, "he16": exam(["HumanEval/0", "HumanEval/1"], **sixteen), "heplus": he, "mbppplus": plus,
    }  # fmt: skip


def kept(raw: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["keep_exams.py", str(raw), str(raw / "kept.json"), form])
    keep_exams.main()
    found: dict[str, Any] = json.loads((raw / "kept.json").read_text())
    return found


def test_arms_are_kept_with_their_problems_in_one_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm(tmp_path / "base", code_exams(unjudged=True))
    arm(tmp_path / "floor_s0", code_exams(), steps=5)
    arm(tmp_path / "other", {})
    found = kept(tmp_path, "floor", monkeypatch)
    assert list(found["arms"]) == ["base", "floor_s0"]
    assert found["outcomes"]["mbpp"] == {
        "greedy": {"base": "10", "floor_s0": "10"}, "sampled": {"base": [16, 4], "floor_s0": [16, 4]},
    }  # fmt: skip
    assert found["outcomes"]["mbpp+ of the test split"]["greedy"]["base"] == "01"
    assert found["outcomes"]["mbpp+, others"]["greedy"]["base"] == "11"
    # one arm has no verdict on a problem: it is left out for all, and named
    assert found["outcomes"]["humaneval"]["greedy"] == {"base": "1", "floor_s0": "1"}
    assert found["left_out"] == ["HumanEval/1"]
    trained = found["arms"]["floor_s0"]
    assert (trained["steps"], trained["answers"], trained["train_s"]) == (5, 60, 10.0)
    assert trained["overrides"] == ["seed=1"]
    assert "/x/y" not in json.dumps(found) and "/w/" not in json.dumps(found)
    assert training_table(Exams(tmp_path / "kept.json")).splitlines()[-1].endswith("| – |")


def test_forms_of_sums_are_counted(tmp_path: Path) -> None:
    rows = [
        ("cd", "1 + 22 - 3", "wrong_answer"),
        ("cd", "4+5-6", "none"),
        ("cd", "words", "format"),
        ("cd64", "1", "none"),
    ]
    with gzip.open(tmp_path / "answers.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"exam": e, "answer": a, "error": x}) + "\n" for e, a, x in rows)
    assert keep_exams.sums_of(tmp_path) == {"n+n-n": 2, "not in form": 1}


@pytest.mark.slow
def test_a_fixed_sum_is_scored_problem_by_problem() -> None:
    env, trained, tested = fixed_sums.SETTINGS["1.5B model"]
    each = fixed_sums.sums_by_problem(env, trained, tested)
    share = fixed_sums.best_sums(env, trained, tested)["all"][1]
    assert len(each) == tested and 100 * sum(each.values()) / tested == pytest.approx(share)


def mean(marks: str) -> float:
    return sum(map(int, marks)) / len(marks)


def test_the_committed_floor_says_what_its_page_says() -> None:
    made = json.loads((floor_tables.ROUND / "floor.json").read_text())
    drawn = made["outcomes"]["mbpp"]["sampled"]
    reach = {name: sum(count > 0 for count in one) / len(one) for name, one in drawn.items()}
    once = {name: sum(one) / len(one) / 16 for name, one in drawn.items()}
    found = [
        f"{100 * (table[f'floor_s{seed}'] - table[f'grpo_s{seed}']):+.1f}" for table in (reach, once) for seed in (0, 1)
    ]
    assert found == ["+3.0", "+2.4", "-3.4", "-0.1"]
    plus = made["outcomes"]["humaneval+"]["greedy"]
    assert [f"{100 * (mean(plus[f'grpo_s{s}']) - mean(plus['base'])):+.1f}" for s in (0, 1)] == ["+5.5", "+6.1"]
    assert len(plus["base"]) == 164
    split = (
        made["outcomes"]["mbpp+ of the test split"]["greedy"]["base"],
        made["outcomes"]["mbpp+, others"]["greedy"]["base"],
    )
    assert [len(one) for one in split] == [110, 90]


def evaluated(folder: Path, right: dict[str, list[bool | None]]) -> None:
    """A folder as `rlvr eval` leaves it, as far as it is read here."""
    folder.mkdir(parents=True)
    n = len(next(iter(right.values())))
    told = {"protocol": {"n": n}, "scorer": {"keys": {"order": "shuffled", "path": "/x/y.jsonl"}, "version": "2"}}
    (folder / "run_info.json").write_text(json.dumps({"examined": told}))
    rows = [
        {"problem": name, "sample": i, "correct": mark, "error": "none" if mark else "format", "finish": "length",
         "gen_tokens": 4, "at_s": 2.5, "answer": "7 + 12 * 3"}
        for name, marks in right.items() for i, mark in enumerate(marks)
    ]  # fmt: skip
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_an_arms_evaluations_are_read_where_nobody_summed_them_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm(tmp_path / "cd_random_s1", {}, steps=2)
    (tmp_path / "cd_random_s1/exam.json").unlink()
    info = json.loads((tmp_path / "cd_random_s1/run_info.json").read_text())
    info |= {"machine": {"gpus": ["one card"]}, "packages": {"torch": "2"}}
    (tmp_path / "cd_random_s1/run_info.json").write_text(json.dumps(info))
    evaluated(tmp_path / "cd_random_s1/cd", {"countdown:3:b": [True], "countdown:4:a": [False]})
    evaluated(tmp_path / "cd_random_s1/cd64", {"countdown:3:b": [True, False, True]})
    made = kept(tmp_path, "countdown", monkeypatch)
    assert made["outcomes"]["countdown"]["greedy"] == {"random_s1": "10"}
    assert made["outcomes"]["countdown (100 problems)"]["sampled"] == {"random_s1": [2]}
    facts = made["arms"]["random_s1"]
    assert facts["forms"] == {"n+n*n": 1, "not in form": 1} and facts["device"] == "one card" and facts["steps"] == 2
    told = facts["examined"]["cd64"]
    assert told["errors"] == {"none": 2, "format": 1} and (told["tokens"], told["truncated"]) == (4, 3)
    assert "/" not in "".join(told["env"])


def test_the_committed_policies_on_shuffled_numbers_alternate_signs() -> None:
    made = json.loads(shuffled_tables.RESULTS.read_text())
    forms = {name: one["forms"] for name, one in made["arms"].items()}
    assert sum(forms["grpo_s0"][form] for form in ("n-n+n", "n-n+n-n")) == 294
    assert len([count for count in forms["grpo_s1"].values() if count > 10]) == 6
    drawn = made["outcomes"]["countdown (100 problems)"]["sampled"]
    assert {name: sum(count > 0 for count in one) for name, one in drawn.items()} == {
        "base": 23,
        "grpo_s0": 14,
        "grpo_s1": 23,
        "grpo_s2": 27,
        "random_s0": 22,
        "random_s1": 18,
        "random_s2": 0,
    }
    formless = {name: one.get("not in form", 0) for name, one in forms.items()}
    assert [formless[name] for name in ("base", "random_s0", "random_s1", "random_s2")] == [284, 1, 298, 300]
    greedy = made["outcomes"]["countdown"]["greedy"]
    by_kind = {kind: sum(mean(greedy[f"{kind}_s{seed}"]) for seed in range(3)) / 3 for kind in ("grpo", "random")}
    assert f"{100 * (by_kind['grpo'] - by_kind['random']):+.1f}" == "+17.3"


def test_the_committed_rates_say_where_sql_was_lost() -> None:
    exams = Exams(qwen_rates_tables.ROUND)
    sql = {name: mean(exams.outcomes["sql"]["greedy"][name]) for name in exams.arms}
    assert f"{100 * (sql['rate4e-4_s0'] - sql['code_s0']):+.1f}" == "-34.2"
    own = exams.arms["rate4e-4_s0"]["curves"]["right"][:12]
    assert round(sum(own[:3]) / 3, 2) == 0.69 and round(sum(own[-3:]) / 3, 2) == 0.39
    assert "| 6e-4 | 0.0 [0.0, 3.1] | 0.0 [0.0, 3.1] | 0.0 [0.0, 3.1] | 358 |" in qwen_rates_tables.scores(exams)


def test_the_committed_fifth_round_says_that_sql_was_lost_in_its_own_stage() -> None:
    exams, before = Exams(qwen_rates_tables.FIFTH), Exams(qwen_rates_tables.ROUND)
    for arm in ("base", "code_s0", "rate4e-4_s0", "rate6e-4_s0"):  # the same policies, so the middle of these is known
        assert [exams.scores(data, "greedy", arm).tolist() for data in exams.outcomes] == [
            before.scores(data, "greedy", arm).tolist() for data in exams.outcomes
        ]
    sql = {name: mean(exams.outcomes["sql"]["greedy"][name]) for name in exams.arms}
    own = {seed: sql[f"rate4e-4_after_sql_s{seed}"] - sql[f"code_s{seed}"] for seed in (0, 1)}
    assert {seed: round(100 * change, 1) for seed, change in own.items()} == {0: -36.7, 1: -40.8}
    later = {seed: sql[f"rate4e-4_s{seed}"] - sql[f"rate4e-4_after_sql_s{seed}"] for seed in (0, 1)}
    assert {seed: round(100 * change, 1) for seed, change in later.items()} == {0: 2.5, 1: -10.8}
    assert "| rate4e-4 s1 | 57 | 50 | 1 | 108 |" in qwen_rates_tables.formless(exams)


def test_cards_of_three_stages_are_kept_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def staged(name: str, *cards: str, steps: int) -> None:
        arm(tmp_path / name, {}, steps)
        info = {"started": "2026-11-19T08:00:00Z", "machine": {"gpus": ["one"]}, "packages": {"torch": "2"}}
        told = json.loads((tmp_path / name / "run_info.json").read_text()) | info
        (tmp_path / name / "run_info.json").write_text(json.dumps(told))
        place = tmp_path / name / "analysis/cards"
        place.mkdir(parents=True)
        for index, card in enumerate(cards):
            ids = {"0/MBPP/1": 1.0, "1/sql:2": float(index > 0), "2/countdown:3:4": 0.0}
            (place / f"{card}.json").write_text(json.dumps({"outcomes": ids, "metrics": {}, "step": index}))
            rows = [{"problem": one, "turn": 0, "answer": "x", "error": "none", "correct": True} for one in ids]
            (place / f"{card}.answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    staged("code_s1", "0_baseline", "1_grpo", steps=2)
    staged("code_s0", "0_baseline", "1_grpo", steps=2)
    staged("long_s0", "0_baseline", "1_after_sql", "1_grpo", steps=3)
    found = kept(tmp_path, "rates", monkeypatch)
    assert list(found["arms"]) == ["base", "code_s0", "code_s1", "long_after_sql_s0", "long_s0"]
    assert [found["arms"][name]["steps"] for name in found["arms"]] == [0, 2, 2, 0, 3]
    assert found["outcomes"]["sql"]["greedy"] == {
        "base": "0", "code_s0": "1", "code_s1": "1", "long_after_sql_s0": "1", "long_s0": "1",
    }  # fmt: skip
    assert found["arms"]["long_s0"]["code"] == "abc"


def test_a_fence_that_was_never_opened_is_told_from_other_answers() -> None:
    is_unopened = opened_fences.UNOPENED.search
    assert is_unopened("def f():\n    return 1\n```") and is_unopened("def f(): ...\n```\n")
    assert not any(map(is_unopened, ("```python\ndef f(): ...\n```", "def f(): ...", "Here:\n```\nx\n```")))


def test_arms_join_those_that_were_kept_before_where_they_were_asked_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def countdown(name: str, right: list[int], ids: tuple[str, ...] = ("countdown:3:b", "countdown:4:a")) -> Path:
        raw = tmp_path / name
        raw.mkdir()
        asked = exam(list(ids), right)
        arm(raw / name, {"cd": asked, "cd64": {**asked, "n": 64, "judged": [64, 64]}}, steps=1)
        with gzip.open(raw / name / "answers.jsonl.gz", "wt") as file:
            file.write("")
        return raw

    def keep(raw: Path) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["keep_exams.py", str(raw), str(tmp_path / "kept.json"), "countdown"])
        keep_exams.main()
        found: dict[str, Any] = json.loads((tmp_path / "kept.json").read_text())
        return found

    keep(countdown("cd_grpo_s2", [1, 0]))
    both = keep(countdown("cd_grpo_s0", [0, 1]))
    assert list(both["arms"]) == ["grpo_s0", "grpo_s2"]
    assert both["outcomes"]["countdown"]["greedy"] == {"grpo_s0": "01", "grpo_s2": "10"}
    with pytest.raises(SystemExit, match="asked other problems"):
        keep(countdown("cd_grpo_s1", [0, 1], ("countdown:3:b", "countdown:3:a")))
