"""Final answers: the table of verdicts, and what extraction promises for any text."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.envs.amounts import amount, asked_for, equal_amounts
from rlvrlab.envs.clrs import Clrs
from rlvrlab.envs.data_files import read_rows
from rlvrlab.envs.data_set import split_rows
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.mathematics.equality import exact, letters
from rlvrlab.envs.split import role_of
from rlvrlab.envs.zebra import Zebra
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import boxed, fenced, hashed
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.types import Problem, Verdict

ROWS = [json.loads(line) for line in Path(__file__).with_name("final_answers.jsonl").read_text().splitlines()]


def text_of(answer: str | list[list[Any]]) -> str:
    return answer if isinstance(answer, str) else "".join(piece * times for piece, times in answer)


def judge(row: dict[str, Any]) -> Verdict:
    if row["env"] == "gsm8k":
        problem = Problem("p", "gsm8k", "gsm8k", "", row["gold"])
        return Gsm8k(style=row["style"]).verify(problem, text_of(row["answer"]))
    reference = {"answer": row["gold"], "choices": row.get("choices", 0)}
    return Mathematics(style=row["style"]).verify(Problem("p", "math", "math", "", reference), text_of(row["answer"]))


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['env']} {row['style']}: {row['what']}" for row in ROWS])
def test_table_of_verdicts(quickly: Any, row: dict[str, Any]) -> None:
    verdict = quickly(0.3, lambda: judge(row))
    assert (verdict.correct, verdict.error.value) == (row["correct"], row["error"]), verdict.detail
    assert verdict.score == verdict.parts["correct"] == float(row["correct"])
    assert verdict.parts["format"] == float(row["error"] in ("none", "wrong_answer"))
    assert verdict.answer is None or len(verdict.answer) <= 200


def test_table_is_large_enough_and_covers_every_kind() -> None:
    assert len(ROWS) >= 150
    for env in ("gsm8k", "math"):
        assert {row["error"] for row in ROWS if row["env"] == env} == {"none", "format", "syntax", "wrong_answer"}


@given(any_text(max_size=80) | st.text(alphabet="0123456789#.,$%-/ e\n<>think/", max_size=60))
def test_any_text_gets_a_verdict_and_none_is_right_by_accident(text: str) -> None:
    problem = Problem("p", "gsm8k", "gsm8k", "", "18")
    for answer in (text, f"#### {text}"):
        verdict = Gsm8k().verify(problem, answer)
        assert verdict.correct in (True, False)
        if verdict.correct:
            assert "18" in (verdict.answer or "").replace(",", "") or exact(verdict.answer or "") == 18


@given(st.fractions(max_denominator=999).filter(lambda value: abs(value) < 10**9))
def test_every_way_to_write_a_number_has_its_value(value: Fraction) -> None:
    sign, above, below = "-" if value < 0 else "", abs(value.numerator), value.denominator
    assert exact(f"{sign}\\frac{{{above}}}{{{below}}}") == exact(f"{sign}{above}/{below}") == value
    assert amount(f"{sign}{above:,}/{below}") == value
    assert amount(f"{value.numerator:,}.250") == value.numerator + Fraction(1, 4) * (-1 if value.numerator < 0 else 1)


def test_a_word_that_changes_the_value_is_no_unit() -> None:
    changing = (
        "thousand thousands dozens hundreds millions lakh crores sixths ninths thousandths half twice negative bn tens"
        " maybe perhaps wrong false twelfths sixteenths grand quadrillion googol cubed never nope negated pct kilo mega"
        " inverted hex ish tenfold hundredfold myriad sqrt log mod fewer"
    )
    assert [amount(f"5 {word}") for word in changing.split()] == [None] * len(changing.split())
    assert [amount(f"5 {word}") for word in ("dollars", "hours", "tenants", "pints", "berries", "boxes")] == [5] * 6


def test_a_unit_must_be_known_or_asked_for() -> None:
    asked = asked_for("Ann has 3 gnomes. How many more gnomes does she need, and how many dozen eggs?")
    assert asked == {"gnomes", "dozen"} and asked_for("In %, or in cents?") == {"percent", "cent"}
    assert amount("5 gnomes") is None and amount("5 gnomes", asked) == 5
    for answer, gold in (("5 cents", "$5"), ("£5", "$5"), ("5 euros", "$5"), ("5 minutes", "5 hours")):
        assert equal_amounts(answer, gold) is False
    assert equal_amounts("5 cents", "5", asked) is False
    assert equal_amounts("5 cents", "5", asked_for("How much are five pennies?")) is True
    for percent in ("5%", "5 percent", "5\\%"):
        assert equal_amounts(percent, "5", asked) is False and equal_amounts(percent, "5%", asked) is True
        assert equal_amounts(percent, "5", asked_for("What percentage is that?")) is True
    for answer, gold in (("5 cents", "5"), ("5 dollars", "$5"), ("$5", "5"), ("5 hrs", "5 hours"), ("5 apples", "$5")):
        assert equal_amounts(answer, gold) is True


@given(st.text(alphabet="ab{}\\ ", max_size=40))
def test_a_box_is_balanced(inner: str) -> None:
    found = boxed(f"\\boxed{{{inner}}}")
    if found is not None:
        bare = found.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
        assert bare.count("{") == bare.count("}")


@pytest.mark.parametrize(
    ("text", "must_think", "tail"),
    [
        ("a", False, "a"), ("a", True, None), ("<think>a</think>b", True, "b"), ("a</think>b", True, "b"),
        ("<think>a", False, None), ("<think>a</think>b<think>c</think>d", True, "d"), ("</think><think>", False, None),
    ],
)  # fmt: skip
def test_thinking(text: str, must_think: bool, tail: str | None) -> None:
    assert after_thinking(text, must_think) == tail


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("a\n```\nSELECT 1\n```\nb", "SELECT 1"),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("```sql\nSELECT 1\n```\n```python\n1\n```", None),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2", None),
        ("```sql\nSELECT 1", None),
        ("```sql\nSELECT '\n```sql\n'\n```", "SELECT '\n```sql\n'"),
        ("inline ```sql SELECT 1```", None),
    ],
)
def test_fences(text: str, content: str | None) -> None:
    assert fenced(text, ("sql", "")) == content


@pytest.mark.parametrize(
    "extract",
    [boxed, hashed, letters, exact, amount, after_thinking, lambda text: fenced(text, ("sql",))],
)
@pytest.mark.parametrize(
    "piece", ["```sql\n", "\\boxed{", "####", "<think>", "</think>", "A, ", "\\frac", "1,000", "\n"]
)
def test_no_text_is_slow(quickly: Any, extract: Callable[[str], object], piece: str) -> None:
    text = piece * (500_000 // len(piece))
    quickly(0.25, lambda: extract(text))


def test_rows_name_what_is_wrong(tmp_path: Path) -> None:
    cases = {
        "cut.jsonl": ('{"a": 1}\n{"a": ', "cut.jsonl:2: .*not JSON"),
        "list.jsonl": ('{"a": 1}\n[1]\n', "list.jsonl:2: an object was expected"),
        "object.json": ('{"a": 1}', "a list of rows"),
        "deep.jsonl": ("[" * 100_000, "deep.jsonl:1: nested too deeply"),
        "bytes.jsonl": (b"\xff\xfe", "is UTF-16"),
        "torn.jsonl.gz": (b"\x1f\x8b\x08", "broken gzip"),
    }
    for name, (content, message) in cases.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(UserError, match=message):
            list(read_rows(tmp_path / name))
    with pytest.raises(UserError, match=r"none\.jsonl: no such file"):
        list(read_rows(tmp_path / "none.jsonl"))
    (tmp_path / "bom.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": "\xe2\x80\xa8"}\r\n')
    assert [row for _, row in read_rows(tmp_path / "bom.jsonl")] == [{"a": 1}, {"a": "\u2028"}]


def test_published_test_stays_test_and_leaves_train(tmp_path: Path) -> None:
    for name, questions in {"train": [*map(str, range(200)), "Shared  Q"], "test": ["x", "shared q"]}.items():
        lines = [json.dumps({"question": question, "answer": "1"}) for question in questions]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    rows = split_rows(Mathematics(), tmp_path)
    by_role = {role: {read.content for read, its in rows if its == role} for role in ("train", "dev", "test")}
    assert by_role["test"] == {"x", "shared q"}
    assert by_role["dev"] and by_role["train"] and len(by_role["dev"] | by_role["train"]) == 200
    assert {role for _, role in split_rows(Mathematics(), tmp_path / "test.jsonl")} == {"test"}
    with pytest.raises(UserError, match=r"grids\.jsonl:1: column 'puzzle' is missing"):
        split_rows(Zebra(), _lines(tmp_path / "grids.jsonl", {"solution": {"header": ["House"], "rows": [["1"]]}}))
    with pytest.raises(UserError, match=r"runs\.jsonl:1: column 'algo_name' is missing"):
        split_rows(Clrs(), _lines(tmp_path / "runs.jsonl", {"answer": "1"}))


def _lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_roles_have_their_shares() -> None:
    roles = [role_of("x", i) for i in range(5000)]
    assert 350 < roles.count("test") < 650 and 350 < roles.count("dev") < 650


def test_a_formula_that_is_the_whole_answer_may_have_borders() -> None:
    assert exact("\\[1,000\\]") == exact("\\(1000\\).") == 1000 and exact("\\[1\\] \\[2\\]") is None
    assert letters("\\[\\text{B}\\]") == letters("\\(B\\)") == "B"


@pytest.mark.parametrize("sign", ["\\$", "$", "€", "£", "¥"])
def test_an_amount_is_of_one_money(sign: str) -> None:
    own = {"€": "euros", "£": "pounds", "¥": "yen"}.get(sign, "dollars")
    assert equal_amounts(f"{sign}5 {own}", "5") is True
    for unit in ("dollars", "euros", "pounds", "yen", "kg", "cents", "apples", "hours"):
        assert unit == own or equal_amounts(f"{sign}5 {unit}", "5") is None
    assert not any(equal_amounts(f"{sign}{other}5", "5") for other in ("\\$", "$", "€", "£", "¥"))
    assert equal_amounts(f"{sign}5%", "5") is None
