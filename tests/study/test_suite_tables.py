"""A suite before and after a training: what is kept of real evaluation folders, and that its table is the product's."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "studies"), str(ROOT / "studies" / "npg_muse"), str(ROOT / "tests" / "evals")]
import keep_suite  # noqa: E402
import suite_tables  # noqa: E402
from exam_tables import Exams  # noqa: E402
from scripted import Scripted, answer  # noqa: E402

from rlvrlab.evals.answering import Answer, Ask  # noqa: E402
from rlvrlab.evals.suites import members_of  # noqa: E402
from rlvrlab.evals.suites.base import Member, Ready, Skipped, prepare  # noqa: E402
from rlvrlab.evals.suites.examine import Examined, Model, examine  # noqa: E402
from rlvrlab.types import Finish  # noqa: E402

KEPT = ROOT / "studies" / "npg_muse" / "results" / "qwen_suite.json"
ROUND = (ROOT / "studies" / "npg_muse" / "rounds" / "14_suite.md").read_text(encoding="utf-8")
TOLD = " ".join(ROUND.split())
NP = ("np_tsp", "np_ged", "np_mcp", "np_mis", "np_mvc", "np_mcs")
SHARES = {"base": 10, "sft": 60, "grpo": 90}
"""Policy -> the targets modulo 100 that it solves."""


def policy(solved: int, step: int) -> Scripted:
    """Right where the target is small, else a sum that was cut off."""

    def says(ask: Ask) -> Answer:
        if ask.problem.reference["target"] % 100 < solved:
            return answer(ask.problem.meta["solution"])
        return answer("1", finish=Finish.LENGTH)

    return Scripted(says, step=step)


def members(seed: int = 0) -> list[Ready | Skipped]:
    keys = {"numbers": [2], "style": "bare"}
    return [prepare(Member(name, "countdown", n, n, keys, seed=seed), "full", Path("none")) for name, n in SETS.items()]


SETS = {"np_tsp": 10, "p_tasks": 40}


def examined_apart(raw: Path) -> None:
    """One command per policy, as its checkpoint was there."""
    for step, (arm, solved) in enumerate(SHARES.items()):
        model = Model("run_of_the_study", lambda solved=solved, step=step: policy(solved, step))
        examine([model], members(), output=raw / arm / "suite")
        (raw / arm / "COMMIT").write_text("abc\n")


def examined_together() -> Examined:
    return examine([Model(arm, lambda one=one: policy(one, 0)) for arm, one in SHARES.items()], members())


def trained(folder: Path) -> None:
    """What a run of SFT and GRPO leaves, beside its answers."""
    cards = folder / "cards"
    cards.mkdir(parents=True)
    asked = {"protocol": {"sampling": {"max_tokens": 512}}}
    for index, phase in enumerate(("baseline", "sft", "grpo")):
        right = {f"{task}:1:{place}": float(place < index) for task in ("TSP", "MIS") for place in range(3)}
        metrics = {"truncated_rate": 0.5, "samples": 6, "avg_gen_tokens": 20.0}
        card = {"phase": phase, "step": 5 * index, "outcomes": right, "metrics": metrics, "asked": asked}
        (cards / f"{index}_{phase}.json").write_text(json.dumps(card))
        rows = [{"problem": one, "turn": 0, "answer": "secret", "error": "rule"} for one in right]
        (cards / f"{index}_{phase}.answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sft = [{"step": i, "phase": "sft", "time/step_s": 9.0} for i in range(1, 6)]
    grpo = [{"step": i, "time/step_s": 2.0, "groups/collected": 3.0, "train/acc": 0.5} for i in range(6, 11)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*sft, {"step": 5}, *grpo]))
    info = {"command": ["rlvr", "train", "a.toml", "seed=6"], "started": "now", "packages": {}, "status": "finished"}
    (folder / "run_info.json").write_text(json.dumps(info))
    (folder / "config.json").write_text(json.dumps({"recipe": {"rollout": {"n": 4}}}))


def kept(raw: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["keep_suite.py", str(raw), str(raw / "suite.json")])
    keep_suite.main()
    found: dict[str, Any] = json.loads((raw / "suite.json").read_text())
    return found


def test_policies_examined_apart_have_the_table_of_the_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examined_apart(tmp_path)
    trained(tmp_path / "train")
    kept(tmp_path, monkeypatch)
    ours, product = suite_tables.suite_of(Exams(tmp_path / "suite.json")), examined_together()
    for mine, its in ((ours.cells, product.cells), (ours.averages, product.averages)):
        assert [(one.model, one.member) for one in mine] == [(one.model, one.member) for one in its]
        assert [(one.value, one.low, one.high, one.versus) for one in mine] == [
            (pytest.approx(one.value), pytest.approx(one.low), pytest.approx(one.high), one.versus) for one in its
        ]
    assert ours.cells[-1].versus is not None and ours.cells[-1].versus.tests == 4, "own problems are none of the suite"
    assert ours.cells[-1].significant
    told = dict(suite_tables.tables(tmp_path / "suite.json"))
    last = next(line for line in told["The suite, in %"].splitlines() if line.startswith("| p_tasks"))
    assert last.endswith("]* |") and "adjusted for 4 comparisons" in told["The suite, in %"]


def test_marks_and_kinds_of_errors_are_kept_and_no_answer_or_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined_apart(tmp_path)
    trained(tmp_path / "train")
    made = kept(tmp_path, monkeypatch)
    assert [len(made["skills"][data]) for data in (*SETS, keep_suite.OWN)] == [10, 40, 6] and made["left_out"] == []
    assert made["outcomes"][keep_suite.OWN]["greedy"] == {"base": "000000", "sft": "100100", "grpo": "110110"}
    assert made["skills"][keep_suite.OWN] == ["TSP"] * 3 + ["MIS"] * 3
    facts = made["arms"]["base"]["examined"]["p_tasks"]
    wrong = 40 - made["outcomes"]["p_tasks"]["greedy"]["base"].count("1")
    assert facts["truncated"] == wrong and sum(facts["errors"].values()) == 40 and facts["errors"]["none"] == 40 - wrong
    assert "style=bare" in facts["env"] and [made["arms"][arm]["examined"]["np_tsp"]["step"] for arm in SHARES] == [
        0, 1, 2,
    ]  # fmt: skip
    grpo = made["arms"]["grpo"]
    assert (grpo["steps"], grpo["answers"], grpo["train_s"], grpo["code"]) == (5, 60, 10.0, "abc")
    assert "secret" not in json.dumps(made) and str(tmp_path) not in json.dumps(made)
    told = dict(suite_tables.tables(tmp_path / "suite.json"))
    assert "| after GRPO | 6 | 66.7 " in told["The training's own test problems"]
    assert "| own test problems | after SFT | 0 |" in told["How answers were judged"]


def test_what_was_not_asked_of_all_is_in_no_comparison_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined_apart(tmp_path)
    (tmp_path / "grpo" / "suite" / "run_of_the_study" / "p_tasks" / "metrics.json").unlink()  # not finished
    shutil.rmtree(tmp_path / "sft")
    trained(tmp_path / "train")
    info = tmp_path / "train" / "run_info.json"
    info.write_text(info.read_text().replace("finished", "preempted"))
    made = kept(tmp_path, monkeypatch)
    assert list(made["arms"]) == ["base", "grpo"]
    told = dict(suite_tables.tables(tmp_path / "suite.json"))["The suite, in %"]
    assert "| np_tsp |" in told and "| p_tasks |" not in told and "left out: p_tasks" in told
    assert "after GRPO: cut by time." in told


def test_policies_that_were_asked_other_problems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examined_apart(tmp_path)
    shutil.rmtree(tmp_path / "grpo" / "suite")
    examine([Model("m", lambda: policy(9, 2))], members(seed=1), output=tmp_path / "grpo" / "suite")
    with pytest.raises(SystemExit, match="np_tsp: the policies were not asked alike"):
        kept(tmp_path, monkeypatch)


def test_a_set_that_a_policy_answered_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examined_apart(tmp_path)
    shutil.copytree(tmp_path / "sft" / "suite", tmp_path / "sft" / "again")
    with pytest.raises(SystemExit, match="examined twice"):
        kept(tmp_path, monkeypatch)


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_the_round_has_the_rows_of_its_script_and_no_others() -> None:
    printed = [row for _, table in suite_tables.tables(KEPT) for row in rows_of(table)]
    assert rows_of(ROUND) == printed and len(printed) > 60


def test_no_difference_of_the_suite_that_ran_is_beyond_chance_and_the_page_says_what_was_too_small_to_see() -> None:
    found = [one.versus for one in suite_tables.suite_of(Exams(KEPT)).cells if one.versus]
    assert {one.verdict for one in found} == {"not shown"} and {one.tests for one in found} == {len(found)} == {22}
    least, most = (round(100 * bound(one.detectable or 0.0 for one in found)) for bound in (min, max))
    assert f"had to be {least} (`wiz_tasks`) to {most} points (independent sets)" in TOLD


def test_some_graphs_that_were_solved_are_larger_than_those_of_the_training() -> None:
    """Which ones is not kept; of ten only two are as small, so further ones are larger."""
    outcomes = json.loads(KEPT.read_text(encoding="utf-8"))["outcomes"]
    by_name = {one.name: one for one in members_of("graphs") if one.name in NP}
    beyond = {}
    for name in ("np_mis", "np_mcp"):
        ready = prepare(by_name[name], "fast", Path("none"))
        assert isinstance(ready, Ready)
        small = sum(one.meta["level"] == 1 for one in ready.problems)
        assert (small, len(ready.problems)) == (2, 10)
        beyond[name] = outcomes[name]["greedy"]["grpo"].count("1") - small
    assert beyond == {"np_mis": 2, "np_mcp": 1}
    assert "right after GRPO at least two have more nodes" in TOLD and "of its three cliques at least one." in TOLD


def test_what_the_round_says_of_forms_are_sums_of_its_last_table_but_one() -> None:
    arms = json.loads(KEPT.read_text(encoding="utf-8"))["arms"]
    errors = {arm: {data: one["errors"] for data, one in facts["examined"].items()} for arm, facts in arms.items()}
    first, second = [
        [sum(found[name].get(kind, 0) for name in NP for kind in kinds) for found in errors.values()]
        for kinds in (("format", "syntax"), ("rule", "wrong_answer"))
    ]
    assert f"60 answers {first[0]} cannot be read (*format* and *syntax*), {first[1]} after SFT and {first[2]}" in TOLD
    assert f"{second[1]} and {second[2]} of 60 break a rule or are not the best" in TOLD
    cut = sum(arms["base"]["examined"][name]["truncated"] for name in NP)
    assert f"{cut} of its 60 answers were cut off" in TOLD
    assert [errors[arm]["node_classification"] for arm in ("sft", "grpo")] == [{"syntax": 20}] * 2
    right = json.loads(KEPT.read_text(encoding="utf-8"))["outcomes"]["p_tasks"]["greedy"].values()
    assert len(set(right)) == 3 and {one.count("1") for one in right} == {1}, "each time it is another problem"


@pytest.mark.parametrize("name", ["node_classification", "link_prediction"])
def test_a_right_word_in_brackets_behind_the_mark_is_no_answer_of_the_asked_form(name: str) -> None:
    ready = prepare(next(one for one in members_of("graphs") if one.name == name), "fast", Path("none"))
    assert isinstance(ready, Ready)
    problem = ready.problems[0]
    word = problem.reference["answer"].removeprefix("### ")
    said = {f"### {word}": "none", f"### [{word}]": "syntax", f"[{word}]": "format", word: "format"}
    assert {text: ready.env.verify(problem, text).error.value for text in said} == said


def test_a_mark_behind_the_answer_is_counted_and_read_as_if_it_stood_before() -> None:
    said = {
        one: keep_suite.MARK_BEHIND.search(one)
        for one in ("so\nGeology ###", "Yes###\n", "### Geology", "a ### b", "###")
    }
    assert [found and found[1] for found in said.values()] == ["Geology", "Yes", None, None, None]
    told = dict(suite_tables.tables(KEPT))["Answers with ### behind what they say"]
    assert ["node_classification", "after GRPO", "20", "20", "5"] in [
        [one.strip() for one in row.strip("|").split("|")] for row in told.splitlines()
    ]
