"""HumanEval+ and MBPP+ as published: their plus tests decide, and what was loaded is said."""

from __future__ import annotations

import gzip
import inspect
import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest
from code_data import data_file
from evalplus_rows import (
    BASE_ONLY,
    HUMANEVAL_HUB,
    HUMANEVAL_RELEASE,
    MBPP_HUB,
    MBPP_RELEASE,
    MEAN,
    TUPLES_WANTED,
    examples_of,
    hub_check,
    hub_loop,
    hub_poly,
)

from rlvrlab.data.manifest import path_of, read_manifest
from rlvrlab.data.prepare import from_preset, write
from rlvrlab.data.presets import PRESETS
from rlvrlab.envs.code import Code, evalplus_oracle
from rlvrlab.envs.code.evalplus import same_shape
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import python_block
from rlvrlab.judge.jail import arrays
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.types import Problem, Verdict


def env_of(folder: Path, rows: list[Any], **keys: Any) -> Code:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Code(path=str(path), role_of="test", **keys)


def verdicts(env: Code, answers: list[str]) -> list[Verdict]:
    [problem] = env.problems("test", 1, 0)
    return env.verify_many([(problem, python_block(answer)) for answer in answers])


def correct(env: Code, *answers: str) -> list[bool | None]:
    return [verdict.correct for verdict in verdicts(env, list(answers))]


@pytest.mark.parametrize("row", [HUMANEVAL_RELEASE, HUMANEVAL_HUB], ids=["release", "hub"])
def test_humaneval_plus_refuses_what_only_the_base_tests_accept(tmp_path: Path, row: Any) -> None:
    env = env_of(tmp_path, [row])
    assert correct(env, MEAN + row["canonical_solution"], MEAN + BASE_ONLY) == [True, False]


def test_the_first_test_of_a_release_is_its_base_inputs(tmp_path: Path) -> None:
    assert correct(env_of(tmp_path, [HUMANEVAL_RELEASE], most_tests=1), MEAN + BASE_ONLY) == [True]


@pytest.mark.parametrize("row", [MBPP_RELEASE, MBPP_HUB], ids=["release", "hub"])
def test_mbpp_plus_hands_over_tuples_and_refuses_what_only_the_base_tests_accept(tmp_path: Path, row: Any) -> None:
    env = env_of(tmp_path, [row])
    base_only = "def shared(a, b):\n    return tuple(x for x in a if x in b)\n"
    duplicates = correct(env, TUPLES_WANTED, base_only)
    assert duplicates == [True, False]
    [problem] = env.problems("test", 1, 0)
    assert "assert shared((1, 2),(2, 3)) == (2,)" in problem.prompt and "1, 1, 2" not in problem.prompt


def test_what_was_loaded_is_said_and_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    anything = {**MBPP_RELEASE, "task_id": "Mbpp/164", "entry_point": "are_equivalent", "prompt": '"""\nOther.\n"""'}
    code = "\ndef are_equivalent(a, b):\n    return True\n"
    env = env_of(tmp_path, [HUMANEVAL_RELEASE, MBPP_RELEASE, {**anything, "canonical_solution": code}])
    problems = env.problems("test", 2, 0)
    told = capsys.readouterr().err
    assert "data.jsonl: 2 problems; tests: 3 base, 5 plus; left out, EvalPlus accepts any result: 1 (Mbpp/164)" in told
    assert [p.meta["tests"] for p in sorted(problems, key=lambda p: p.id)] == [
        {"base": 2, "plus": 3},
        {"base": 1, "plus": 2},
    ]
    [problem] = env_of(tmp_path, [HUMANEVAL_HUB]).problems("test", 1, 0)
    assert problem.meta["tests"] == {"base and plus": 4}


ZEROS = "def shared(n):\n    return [0] * n\n"
"""What is asked of the rows below: too large a list for some inputs."""


def zeros_asked(base: list[Any], plus: list[Any]) -> dict[str, Any]:
    return {**MBPP_RELEASE, "task_id": "Mbpp/3", "canonical_solution": ZEROS, "base_input": base, "plus_input": plus}


@pytest.mark.slow
def test_what_nobody_could_send_is_not_asked(tmp_path: Path) -> None:
    too_large = evalplus_oracle.MOST_VALUES + 1
    env = env_of(tmp_path, [zeros_asked([[1]], [[too_large], [3]])])
    wrong = "def shared(n):\n    return [0] * (n if n != 3 else n + 1)\n"
    assert correct(env, ZEROS, wrong) == [True, False]
    assert correct(env_of(tmp_path, [zeros_asked([[too_large]], [])]), ZEROS) == [None]  # the fault of the row


@pytest.mark.parametrize("result", [[0] * 7, [(0,) * 3, [0, 0]], ([[0] * 5],)])
def test_values_are_counted_at_every_depth(result: Any) -> None:
    assert evalplus_oracle.values_in(result) == 7


def test_the_hubs_rows_with_too_large_results_run_beside_the_answer(tmp_path: Path) -> None:
    code = "def combinations_colors(l, n):\n    return [(one,) * n for one in l]\n"
    test = hub_loop("combinations_colors", [[["a"], 2]], [[("a", "a")]])
    row = {**MBPP_HUB, "code": code, "test": test, "test_list": ["assert combinations_colors([], 1) == []"]}
    assert not env_of(tmp_path, [row]).rows()
    assert correct(env_of(tmp_path, [row], inprocess=True), code) == [True]


def test_a_published_test_that_nothing_passes_is_left_out_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {**HUMANEVAL_HUB, "task_id": "HumanEval/9001"}
    broken["prompt"] = MEAN.replace("mean", "average")  # another question: equal ones are refused
    broken |= {"test": hub_poly([[[1, 2]]], [0.5]), "entry_point": "average_of"}
    assert [row.id for row in env_of(tmp_path, [HUMANEVAL_HUB, broken], shape="evalplus").rows()] == ["HumanEval/9000"]
    assert "left out, its published test passes nothing: 1 (HumanEval/9001)" in capsys.readouterr().err


@pytest.mark.parametrize("row", [HUMANEVAL_RELEASE, HUMANEVAL_HUB, MBPP_RELEASE, MBPP_HUB])
def test_a_list_of_inputs_has_more_time_than_one_test(tmp_path: Path, row: Any) -> None:
    env = env_of(tmp_path, [row], timeout_s=7.0)
    [problem] = env.problems("test", 1, 0)
    [(task, _)] = env.prepare(problem, env.gold(problem) or "")
    assert isinstance(task, TestsTask) and task.limits.cpu_s == 42.0
    assert env.seconds(replace(problem, meta={}), 7.0) == 7.0


@pytest.mark.parametrize(
    ("row", "shape", "says"),
    [
        (HUMANEVAL_RELEASE, "humaneval", "column 'plus_input': .* only shape = \"evalplus\" reads"),
        (MBPP_HUB, "mbpp", "column 'test': .* only shape = \"evalplus\" reads"),
        ({**HUMANEVAL_HUB, "test": HUMANEVAL_RELEASE["test"]}, "evalplus", "column 'test': .* these are base tests"),
        ({**MBPP_HUB, "test": MBPP_HUB["test_list"][0]}, "evalplus", "column 'test': .* these are base tests"),
        ({**HUMANEVAL_RELEASE, "base_input": []}, "evalplus", "column 'base_input': no test"),
        ({**HUMANEVAL_RELEASE, "plus_input": [1]}, "evalplus", "column 'plus_input': a list of lists"),
        ({**HUMANEVAL_RELEASE, "atol": "0"}, "evalplus", "column 'atol': a number"),
        ({**MBPP_RELEASE, "prompt": "words"}, "evalplus", "column 'prompt': a docstring|not Python"),
    ],
)
def test_base_tests_are_never_taken_for_plus_tests(tmp_path: Path, row: Any, shape: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        env_of(tmp_path, [row], shape=shape).problems("test", 1, 0)


def test_published_test_rows_never_become_training_data(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(MBPP_RELEASE) + "\n")
    assert [row.role for row in Code(path=str(path), role_of="train").rows()] == ["test"]


@pytest.mark.parametrize(
    ("result", "expected", "arguments", "function", "right"),
    [
        (1.0000004, 1.0, [], "f", True),
        (1.00001, 1.0, [], "f", False),
        ([1.0000004], [1.0], [], "f", True),
        ((1.0000004,), [1.0], [], "f", False),
        ([1, 2], [2, 1], [], "f", False),
        ([1, 2], [2, 1], [], "find_char_long", True),
        ("x", object(), [], "check_str", True),
        (None, object(), [], "check_str", False),
        (0, 7, [], "sum_div", True),
        (0, 7, [], "sum_divisors", False),
        (1.0, -5.0, [[-1, 1]], "HumanEval find_zero", True),
        (2.0, -5.0, [[-1, 1]], "HumanEval find_zero", False),
        (4, 3, [7, 123], "digit_distance_nums", False),
        (7, 3, [7, 123], "digit_distance_nums", True),
    ],
)
def test_the_rules_are_those_of_evalplus(
    result: Any, expected: Any, arguments: list[Any], function: str, right: bool
) -> None:
    assert evalplus_oracle.right(result, expected, arguments, function, 0) is right


@pytest.mark.parametrize(
    ("result", "expected"),
    [([], [1.0]), ([1.0], [[1.0], [1.0]]), ([1.0, 1.0], [[1.0, 1.0], [1.0, 1.0]]),
     ([[1.0], [1.0, 2.0]], [[1.0], [1.0]]), ([[]], [[1.0]])],
)  # fmt: skip
def test_nothing_is_stretched_to_the_shape_that_is_expected(result: Any, expected: Any) -> None:
    assert evalplus_oracle.right(result, expected, [], "f", 1e-6) is False


@pytest.mark.parametrize(
    ("result", "expected", "arguments", "function"),
    [(np.array([[[3]]]), 3, [], "f"), (np.array(2), [2], [], "f"), (np.array([2]), [[2]], [], "f"),
     (np.array("vv"), "vv", [], "f"), ([np.array([2])], [2], [], "f"), ({"a": np.array([2])}, {"a": 2}, [], "f"),
     (np.array([1.0]), -5.0, [[-1, 1]], "HumanEval find_zero"), (np.array([0]), 7, [], "sum_div"),
     (np.array([7]), 3, [7, 123], "digit_distance_nums"), (np.array([[1, 2]]), np.array([1, 2]), [], "f")],
)  # fmt: skip
def test_an_array_of_one_item_is_not_that_item(result: Any, expected: Any, arguments: Any, function: str) -> None:
    """`==` of the two is an array that is as true as its only item."""
    assert evalplus_oracle.right(result, expected, arguments, function, 1e-6) is False


GRID = np.arange(4).reshape(2, 2)
ARRAYS = [
    *(np.ones(shape) for shape in ((), 0, 1, 3, (1, 1), (1, 3), (3, 1), (0, 2), (1, 1, 1))),
    *(np.array(item) for item in ("vv", [None], [True])), GRID, GRID[0], GRID.T, np.ma.array(GRID),
]  # fmt: skip
PLAIN = [None, True, 1, 0.5, "vv", np.int64(1), (), [], [1.0], (1.0,), [[1.0]], [1.0, 2.0], {}, {"a": 1}, {"b": 1}, {1}]
HELD = [held for one in (*ARRAYS[:6], 1, [1]) for held in ([one], (one,), [one, 1], [1, one], {"a": one}, {"a": [one]})]


def test_which_arrays_fit_is_one_rule_for_every_tester() -> None:
    """The jail's tester imports nothing of the package, so it has a copy; the hub's tests have the oracle's text."""
    arrays.learn()
    values = [*ARRAYS, *PLAIN, *HELD]
    rules = evalplus_oracle.arrays_fit, arrays.fit
    oracle, tester = ([rule(*pair) for pair in product(values, values)] for rule in rules)
    assert oracle == tester and {*oracle} == {True, False}
    assert indent(inspect.getsource(evalplus_oracle.arrays_fit), "    ") in same_shape()


def test_nor_is_it_in_the_tests_of_the_hub(tmp_path: Path) -> None:
    row = {**HUMANEVAL_HUB, "test": hub_check([[[3]], [[4]]], [[3], [4]]), "canonical_solution": "    return values\n"}
    wrong = ("np.array(values)", "np.array([values])", "[np.array(values)]", "values[:0]")
    answers = [f"import numpy as np\n{MEAN}    return {result}\n" for result in ("values", *wrong)]
    assert correct(env_of(tmp_path, [row]), *answers) == [True, False, False, False, False]


def test_nor_in_the_tests_of_the_hub(tmp_path: Path) -> None:
    """Their own code asks numpy.allclose alone."""
    test = hub_check([[[0.5]], [[1.0, 1.0]]], [[0.5], [1.0, 1.0]], 1e-6)
    row = {**HUMANEVAL_HUB, "test": test, "canonical_solution": "    return [x + 1e-9 for x in values]\n"}
    wrong = ("    return []\n", "    return values[0]\n", "    return values[:1]\n", "    return [values]\n")
    answers = [MEAN + body for body in (row["canonical_solution"], *wrong)]
    assert correct(env_of(tmp_path, [row]), *answers) == [True, False, False, False, False]


def from_humaneval(row: dict[str, Any]) -> tuple[Any, Any] | None:
    """A row of HumanEval in EvalPlus' two shapes, every second example as a plus input."""
    found = examples_of(row["test"], {"candidate"})
    if len(found) < 2:
        return None
    base, plus = [given for given, _ in found[::2]], [given for given, _ in found[1::2]]
    release = {**row, "base_input": base, "plus_input": plus, "atol": 0, "contract": ""}
    inputs, results = [given for given, _ in found], [wanted for _, wanted in found]
    return release, {**row, "test": hub_check(inputs, results)}


def test_a_prepared_file_records_its_tests(tmp_path: Path) -> None:
    origin = tmp_path / "MbppPlus.jsonl"
    origin.write_text(json.dumps(MBPP_RELEASE) + "\n")
    prepared = from_preset("mbppplus", PRESETS["mbppplus"], Code(shape="evalplus"), origin)
    assert "mbppplus: 1 test; tests: 1 base, 2 plus" in prepared.summary()
    [path] = write(prepared, tmp_path / "out", "jsonl")
    assert read_manifest(path_of(path)).facts["tests"] == {"base": 1, "plus": 2}


def is_json(value: Any) -> bool:
    """Is it the same after a journey through JSON, tuples and sets included?"""
    try:
        return repr(json.loads(json.dumps(value))) == repr(value)
    except TypeError:
        return False


def from_mbpp(row: dict[str, Any]) -> tuple[Any, Any] | None:
    """A row of MBPP likewise, under another id: which arguments are tuples is a table by id, for EvalPlus' inputs."""
    names = {line.split("(")[0].removeprefix("assert ").strip() for line in row["test_list"]}
    found = examples_of("\n".join(row["test_list"]), names)
    if len(found) < 2 or len(names) != 1 or not all(is_json(given) for given, _ in found):
        return None  # tuples and sets: which of them come back is a table by id, tried above
    [name], prompt = names, f'"""\n{row["text"]}\n{row["test_list"][0]}\n"""\n'
    hub = {**{key: row[key] for key in ("task_id", "code", "test_list")}, "prompt": row["text"], "test_imports": []}
    hub["test"] = hub_loop(name, [given for given, _ in found], [wanted for _, wanted in found])
    base, plus = [[given for given, _ in some] for some in (found[:1], found[1:])]
    release = {
        "task_id": f"Mbpp/{1000 + row['task_id']}",
        "prompt": prompt,
        "entry_point": name,
        "atol": 0,
        "contract": "",
    }
    return {**release, "canonical_solution": row["code"], "base_input": base, "plus_input": plus}, hub


def converted(name: str, convert: Any, every: int) -> list[tuple[Any, Any]]:
    with gzip.open(data_file(name), "rt") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return [pair for row in rows[::every] if (pair := convert(row)) is not None]


def refused(env: Code) -> list[str]:
    problems: list[Problem] = [problem for row in env.rows() for problem in env.problems_of(row, "test")]
    judged = env.verify_many([(problem, env.gold(problem) or "") for problem in problems])
    return [f"{p.id}: {v.detail}" for p, v in zip(problems, judged, strict=True) if v.correct is not True]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "convert", "least"),
    [("humaneval/HumanEval.jsonl.gz", from_humaneval, 120), ("mbpp/mbpp.jsonl.gz", from_mbpp, 500)],
)
def test_references_pass_in_both_shapes(tmp_path: Path, name: str, convert: Any, least: int) -> None:
    pairs = converted(name, convert, 1)
    assert len(pairs) >= least
    for shape in (0, 1):
        assert refused(env_of(tmp_path, [pair[shape] for pair in pairs], timeout_s=60.0)) == []


PUBLISHED = {
    # file: problems, those left out, tests
    "HumanEvalPlus": (164, "", {"base": 1570, "plus": 122_683}),
    "HumanEvalPlus-OriginFmt": (163, "HumanEval/32", {"base and plus": 123_095}),
    "MbppPlus": (378, "", {"base": 1174, "plus": 39_841}),
    "MbppPlus-OriginFmt": (377, "MBPP/255", {"base and plus": 40_522}),
}
"""HumanEval+ v0.1.10 and MBPP+ v0.2.0, as released on EvalPlus' own pages."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_files_are_read_and_every_reference_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    env = Code(path=data_file(f"evalplus/{name}.jsonl.gz"), shape="evalplus", role_of="test", timeout_s=60.0)
    problems, left_out, tests = PUBLISHED[name]
    rows = env.rows()
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row.counted)
    assert (len(rows), counts) == (problems, tests) and left_out in capsys.readouterr().err
    assert refused(env) == []


@pytest.mark.parametrize(
    ("number", "given", "taken"),
    [
        (2, [[1, 2], [3]], [(1, 2), (3,)]),
        (63, [[[1, 2], [3, 4]]], [[(1, 2), (3, 4)]]),
        (259, [[[1, 2]], [[3, 4]]], [((1, 2),), ((3, 4),)]),
        (75, [[[1, 2], [3, 4]], 5], [[(1, 2), (3, 4)], 5]),
        (250, [[1, 2, 1], 1], [(1, 2, 1), 1]),
        (580, [[1, [2, [3]]]], ((1, (2, (3,))),)),
        (124, ["0", "1j"], [0.0, 1j]),
        (3, [[1, 2]], [[1, 2]]),
    ],
)
def test_mbpps_functions_get_what_json_cannot_hold(number: int, given: list[Any], taken: Any) -> None:
    found = evalplus_oracle.mbpp_arguments(number, given)
    assert repr(found) == repr(taken)
