"""The published data sets, prepared and audited. Skipped where they are not at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlvrlab.cli.check import built
from rlvrlab.data.audit import audit
from rlvrlab.data.prepare import Prepared, from_preset
from rlvrlab.data.presets import PRESETS

pytestmark = pytest.mark.slow
SUITES = ("aime24", "aime25", "amc23", "aqua", "asdiv", "cmath", "college_math", "gaokao2023en", "gaokao2024_mix",
          "mawps", "minerva_math", "mmlu_stem", "olympiadbench", "sat_math")  # fmt: skip


def given(*parts: str) -> Path:
    beside = Path(__file__).resolve().parents[3] / "shared"
    root = Path(os.environ.get("RLVRLAB_DATA") or Path(os.environ.get("RLVRLAB_SHARED", beside)) / "data")
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} under RLVRLAB_DATA or RLVRLAB_SHARED/data")
    return path


def prepared(name: str, *parts: str) -> Prepared:
    preset, origin = PRESETS[name], given(*parts)
    keys = [f"{key}={value}" for key, value in preset.keys.items()]
    keys += [f"{preset.folder_key}={origin}"] if preset.folder_key else []
    return from_preset(name, preset, built("env", preset.env, tuple(keys)), origin)


@pytest.mark.parametrize(
    ("name", "parts", "sizes"),
    [
        ("gsm8k", ["gsm8k"], (6695, 778, 1319)),
        ("humaneval", ["humaneval"], (0, 0, 164)),
        ("mbpp", ["mbpp"], (369, 89, 498)),
        ("svamp", ["svamp"], (0, 0, 1000)),
        ("math500", ["math500"], (0, 0, 500)),
        ("nlgraph", ["nlgraph"], (0, 0, 1000)),
        ("humanevalfix", ["humanevalpack", "humanevalpack.jsonl.gz"], (0, 0, 164)),
    ],
)
def test_published_sets_have_their_roles(name: str, parts: list[str], sizes: tuple[int, int, int]) -> None:
    found = prepared(name, *parts)
    assert tuple(len(found.problems[role]) for role in ("train", "dev", "test")) == sizes
    assert {problem.role for problem in found.problems["test"]} == {"test"}


def test_mathematics_suites_are_test_data() -> None:
    for name in SUITES:
        found = prepared(name, "math_suites")
        assert found.problems["test"] and not found.problems["train"] and not found.problems["dev"], name


def test_the_regression_set_is_fixed() -> None:
    numbers = {int(problem.id.removeprefix("MBPP/")) for problem in prepared("mbpp_reg", "mbpp").problems["dev"]}
    assert 95 <= len(numbers) <= 100 and all(n <= 10 or 511 <= n <= 600 for n in numbers), "no test or training row"


def test_humaneval_is_not_in_mbpp() -> None:
    found = audit([given("humaneval", "HumanEval.jsonl.gz"), given("mbpp", "mbpp.jsonl.gz")])
    assert found.leaks == []
    assert sum(hit.kind == "exact" and hit.part == "prompt" for hit in found.hits) == 4


def test_two_test_questions_of_gsm8k_have_a_twin_in_its_training_set() -> None:
    found = audit([given("gsm8k", "train.jsonl.gz"), given("gsm8k", "test.jsonl.gz")])
    pairs = {(hit.left.row, hit.right.row) for hit in found.leaks}
    assert pairs == {(1315, 603), (5163, 603), (21, 633)} and found.leaked_rows == 2
