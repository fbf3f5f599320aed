"""Verdicts on minicode answers by the real judge: the golden table, gold, cheats, second turns."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.envs.code import judged
from rlvrlab.envs.minicode import Minicode
from rlvrlab.envs.minicode.levels import LEVELS
from rlvrlab.envs.minicode.prompts import arguments_text
from rlvrlab.envs.python_trees import size
from rlvrlab.types import ErrorKind, Problem

GOLDEN = Path(__file__).with_name("minicode_answers.jsonl")
ROWS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
ALL = Minicode(levels=tuple(LEVELS))
PUBLIC = [[[[8, 3, 1]], [1, 3]], [[[7, 0, 5, 5]], [0, 5]], [[[2, 2, 6]], [2, 2]]]
HIDDEN = [[[[9, 4, 7, 1]], [1, 4]], [[[0, 0, 3]], [0, 0]], [[[6, 5, 8, 2]], [2, 5]], [[[3, 9]], [3, 9]], [[[1]], [1]]]
GIVEN = {"fix": " x=x[::-1]\n x=x[:2]\n return x\n", "min": " x=x[::-1]\n x=sorted(x)\n x=x[:2]\n return x\n"}
OUT = "def f(x):\n x=sorted(x)\n return x\n"


def asked(skill: str) -> Problem:
    """sort;take 2, put as each of the skills."""
    if skill == "out":
        reference: dict[str, Any] = {"skill": skill, "given": OUT, "arguments": [[3, 1]], "result": "[1,3]"}
    else:
        reference = {"skill": skill, "header": "def f(x):\n", "hidden": HIDDEN}
    if skill in GIVEN:
        reference["given"] = GIVEN[skill]
    if skill == "min":
        reference["below"] = size(GIVEN["min"])
    meta = {"level": 2, "spec": "sort;take 2", "solution": " x=sorted(x)\n x=x[:2]\n return x\n", "public": PUBLIC}
    return Problem(f"t:{skill}", "minicode", skill, "", reference, meta)


@pytest.mark.slow
def test_table_of_verdicts() -> None:
    wrong = []
    for style in ("bare", "chat"):
        rows = [row for row in ROWS if row["style"] == style]
        verdicts = Minicode(style=style).verify_many([(asked(row["skill"]), row["answer"]) for row in rows])  # type: ignore[arg-type]
        for row, verdict in zip(rows, verdicts, strict=True):
            if (verdict.correct, verdict.error.value) != (row["correct"], row["error"]):
                wrong.append((row["skill"], row["what"], verdict.correct, verdict.error.value, verdict.detail))
            assert verdict.correct or verdict.detail
            assert verdict.parts["correct"] == float(verdict.correct is True)
            assert verdict.parts["tests"] == verdict.score
            assert verdict.parts["format"] == float(verdict.error not in (ErrorKind.FORMAT, ErrorKind.SYNTAX))
    assert not wrong, "\n".join(map(str, wrong))


def test_what_is_longer_and_no_python_has_no_form() -> None:
    """`format` pays for programs: a reward with that part would pay for words here."""
    [verdict] = Minicode().verify_many(
        [(asked("min"), "<answer>words, and many more of them, longer than it</answer>")]
    )
    assert verdict.error is ErrorKind.SYNTAX and not any(verdict.parts.values())


def test_the_table_is_large_enough_and_covers_every_kind() -> None:
    assert len(ROWS) >= 60
    assert {row["skill"] for row in ROWS} == {"gen", "fix", "min", "out"}
    assert {row["error"] for row in ROWS} >= {
        "none", "format", "syntax", "runtime", "timeout", "memory", "output", "wrong_answer", "rule",
    }  # fmt: skip


@pytest.mark.parametrize("style", ["bare", "chat"])
def test_gold_is_accepted_in_every_skill_level_and_role(style: Any) -> None:
    env = Minicode(levels=tuple(LEVELS), style=style)
    problems = [p for role in ("train", "dev", "test") for p in env.problems(role, 72, 1)]  # type: ignore[arg-type]
    verdicts = env.verify_many([(p, env.gold(p) or "") for p in problems])
    assert [(p.prompt, v.detail) for p, v in zip(problems, verdicts, strict=True) if v.correct is not True] == []
    assert len({(p.skill, p.meta["level"]) for p in problems}) == 36
    ran = [v for p, v in zip(problems, verdicts, strict=True) if p.skill != "out"]
    assert all(v.isolation != "none" and v.passed == v.total == 8 for v in ran)


@pytest.mark.slow
def test_gold_is_accepted_and_no_cheat_is_on_many_problems() -> None:
    problems = ALL.problems("train", 144, 9)
    verdicts = ALL.verify_many([(p, ALL.gold(p) or "") for p in problems])
    assert Counter(v.correct for v in verdicts) == {True: 144}
    cheats = [(p, name, text) for p in problems[:36] for name, text in ALL.cheats(p).items() if "endless" not in name]
    verdicts = ALL.verify_many([(p, text) for p, _, text in cheats])
    accepted = [(p.prompt, name) for (p, name, _), v in zip(cheats, verdicts, strict=True) if v.correct is not False]
    assert accepted == []


@pytest.mark.slow
@pytest.mark.parametrize("style", ["bare", "chat"])
def test_self_check_passes_with_many_cheats_per_skill(style: Any) -> None:
    for skill in ("gen", "fix", "min", "out"):
        env = Minicode(skills=(skill,), style=style)
        problem = env.problems("train", 1, 0)[0]
        assert len(env.cheats(problem)) >= 20
    checks = Minicode(style=style).self_check()
    assert [(check.name, check.text, check.verdict.detail) for check in checks if not check.ok] == []
    assert sum(check.name == "gold" for check in checks) == 6


@given(
    any_text(max_size=40) | st.text(alphabet=" \nxreturn=[]():+1`<think/>", max_size=40),
    st.sampled_from(["gen", "fix", "min", "out"]),
    st.sampled_from(["bare", "chat"]),
)
def test_any_text_gets_a_verdict(text: str, skill: str, style: Any) -> None:
    env = Minicode(style=style)
    problem = asked(skill)
    verdict = env.verify(problem, text)
    assert verdict.correct in (True, False)
    assert verdict.correct is (verdict.error is ErrorKind.NONE)
    assert isinstance(env.second_turn(problem, text, verdict), str)


def test_the_score_is_the_share_of_hidden_tests() -> None:
    half = " return sorted(x)[:2] if len(x)>2 else None\n"
    verdict = Minicode().verify(asked("gen"), half)
    assert (verdict.correct, verdict.passed, verdict.total, verdict.score) == (False, 3, 5, 0.6)
    raising = " return sorted(x)[:2] if x[0]!=9 else 1/0\n"
    assert Minicode().verify(asked("gen"), raising).passed == 4, "a raising call does not end the others"


def test_one_call_of_the_judge_for_a_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[int] = []
    real = judged.shared_judge

    class Counting:
        def verify_many(self, items: Any, labels: Any) -> Any:
            asked_for.append(len(items))
            return real(True).verify_many(items, labels)

    monkeypatch.setattr(judged, "shared_judge", lambda every_test: Counting())
    problems = Minicode().problems("train", 24, 0)
    Minicode().verify_many([(p, Minicode().gold(p) or "") for p in problems])
    assert asked_for == [18], "predictions run nothing"


def test_a_failing_judge_leaves_answers_unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def verify_many(self, items: Any, labels: Any) -> Any:
            raise OSError("no workers")

    monkeypatch.setattr(judged, "shared_judge", lambda every_test: Broken())
    verdict = Minicode().verify(asked("gen"), " return x\n")
    assert (verdict.correct, verdict.error) == (None, ErrorKind.INFRA)
    assert Minicode().verify(asked("out"), "[1,3]").correct is True


def second_turn(skill: str, text: str, style: Any = "bare") -> str:
    env = Minicode(style=style)
    return env.second_turn(asked(skill), text, env.verify(asked(skill), text))


def test_second_turn_is_a_repair_prompt_with_a_public_failure() -> None:
    head = "#fix sort;take 2\ndef f(x):\n"
    assert second_turn("gen", " return x[:2]\n") == f"{head} return x[:2]\n#[8,3,1]>[1,3] not [8,3]\ndef f(x):\n"
    assert second_turn("fix", " return 1/0\n") == f"{head} return 1/0\n#[8,3,1]>[1,3] not ERR\ndef f(x):\n"
    assert second_turn("gen", " return (\n") == f"{head} return (\n#[8,3,1]>[1,3] not ERR\ndef f(x):\n"
    assert " not 'aaaaaaaaaaaaaaaaaaaaaaa\n" in second_turn("gen", " return 'a'*40\n"), "long results are cut"
    assert " not ERR\n" in second_turn("gen", " return 'a'*4000\n")
    only_hidden = " if x==[9,4,7,1]:return 0\n return sorted(x)[:2]\n"
    assert second_turn("gen", only_hidden).endswith("#[8,3,1]>[1,3]\ndef f(x):\n"), "right on every public input"


def test_second_turns_of_the_other_skills() -> None:
    assert "#too long\n" in second_turn("min", GIVEN["min"])
    assert second_turn("min", " return x\n").endswith("#[8,3,1]>[1,3] not [8,3,1]\ndef f(x):\n")
    assert second_turn("out", "[3,1]") == f"#out\n{OUT}#not [3,1]\n#[3,1]="
    assert second_turn("gen", "```python\ndef f(x): return x\n```", "chat").startswith("This Python function should")


LEAKS = {
    "message": " raise ValueError(repr(x))\n",
    "class name": " raise type('E'+'_'.join(map(str,x)),(Exception,),{})()\n",
    "result": " return [x,x]\n",
    "output": " print(x)\n return x\n",
    "kept for later": " global s\n try:s\n except NameError:s=[]\n s.append(x)\n return s\n",
    "files": " open('seen','a').write(repr(x))\n return open('seen').read()\n",
}


@pytest.mark.parametrize("leak", LEAKS)
def test_second_turns_carry_nothing_of_the_hidden_tests(leak: str) -> None:
    env = Minicode()
    for problem in [asked("gen"), asked("fix"), *ALL.problems("train", 8, 2)]:
        if problem.skill == "out":
            continue
        body = LEAKS[leak]
        prompt = env.second_turn(problem, body, env.verify(problem, body))
        for arguments, _ in problem.reference["hidden"]:
            if len(arguments_text(arguments)) > 5:
                assert arguments_text(arguments) not in prompt.replace(" ", "")


def test_second_turns_in_bulk_are_the_same_as_one_by_one() -> None:
    env = Minicode()
    tries = [(p, " return x\n", env.verify(p, " return x\n")) for p in env.problems("train", 12, 4)]
    assert env.second_turns(tries) == [env.second_turn(*one) for one in tries]
