"""A test row trains nobody: not by its role, not relabelled, not hidden in another file, not as SFT data or a pair."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rlvrlab.data.loading import load
from rlvrlab.data.manifest import manifest_of, path_of, read_manifest, renewed, write_manifest
from rlvrlab.data.rows import read_problems, write_problems
from rlvrlab.envs.code import Code
from rlvrlab.envs.countdown import Countdown
from rlvrlab.envs.graphs.environment import GraphWiz
from rlvrlab.envs.split import ALLOWED, Use, require
from rlvrlab.errors import UserError
from rlvrlab.types import Problem, Role

ENV = Countdown(numbers=(2,), style="bare")
ROLES: tuple[Role, ...] = ("train", "dev", "test")
PROBLEMS = {role: ENV.problems(role, 4, seed=0) for role in ROLES}
MAY = {("train", use) for use in ("train", "sft", "preference", "evaluate")} | {
    ("dev", "tune"), ("dev", "evaluate"), ("test", "evaluate"),
}  # fmt: skip


def written(folder: Path, name: str, problems: list[Problem], manifest: bool = True) -> Path:
    path = folder / name
    write_problems(path, problems)
    if manifest:
        write_manifest(manifest_of(path, problems, {"style": ENV.style}), path_of(path))
    return path


@pytest.mark.parametrize("use", ALLOWED)
@pytest.mark.parametrize("role", ROLES)
def test_the_table_of_uses(tmp_path: Path, role: Role, use: Use) -> None:
    path = written(tmp_path, "a.jsonl", PROBLEMS[role])
    if (role, use) in MAY:
        assert list(load(path, use, ENV).problems) == PROBLEMS[role]
        return
    with pytest.raises(UserError) as caught:
        load(path, use, ENV)
    assert f"{path}: 4 rows are not for" in str(caught.value)
    assert all(f"{problem.id} ({role})" in str(caught.value) for problem in PROBLEMS[role])


def test_a_row_relabelled_in_its_file_is_noticed_by_the_manifest(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", PROBLEMS["train"] + PROBLEMS["test"])
    write_problems(path, PROBLEMS["train"] + [replace(problem, role="train") for problem in PROBLEMS["test"]])
    with pytest.raises(
        UserError, match=r"not what manifests/a.jsonl says: row 5 \(.*\) has role train, was test, row 6"
    ):
        load(path, "train", ENV)


def test_a_test_row_in_another_file_is_known_by_the_manifests_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "test.jsonl", PROBLEMS["test"])
    stolen = replace(
        PROBLEMS["test"][0], id="mine:1", role="train", prompt=PROBLEMS["test"][0].prompt.replace(" ", "  ")
    )
    path = written(tmp_path, "train.jsonl", [*PROBLEMS["train"], stolen])
    with pytest.raises(UserError, match=r"1 row is not for training.*: mine:1 \(test in manifests/test.jsonl\)"):
        load(path, "train", ENV)
    assert load(path, "evaluate", ENV)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "1 1 = 2\n"}, r"row 2 \(.*\) has another prompt"),
        ({"reference": {"numbers": [1, 1], "target": 3}}, r"row 2 \(.*\) has another reference, meta, skill or source"),
        ({"meta": {}}, r"row 2 \(.*\) has another reference, meta, skill or source"),
        ({"id": "new"}, r"row 2 \(.*\) is now new"),
        (None, "3 rows, were 4"),
    ],
)
def test_any_change_is_named(tmp_path: Path, change: dict | None, message: str) -> None:
    problems = PROBLEMS["train"]
    path = written(tmp_path, "a.jsonl", problems)
    changed = problems[:3] if change is None else [problems[0], replace(problems[1], **change), *problems[2:]]
    write_problems(path, changed)
    with pytest.raises(UserError, match=message):
        load(path, "train", ENV)


def test_a_manifest_holds_for_any_format_and_survives_the_disk(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = written(tmp_path, "a.jsonl", PROBLEMS["train"])
    manifest = read_manifest(path_of(path))
    assert manifest.header() == manifest_of(path, PROBLEMS["train"], {"style": "bare"}).header()
    write_problems(tmp_path / "a.parquet", PROBLEMS["train"])
    facts = load(tmp_path / "a.parquet", "train", ENV).facts
    assert facts["sha256"] == load(path, "train", ENV).facts["sha256"] == manifest.sha256
    assert facts["manifest"] and len(facts["manifest"]) == 64


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", PROBLEMS["train"])
    home = path_of(path)
    lines = home.read_text().splitlines()
    for text, message in {
        "\n".join(lines[:-1]): "the rows are not those its first line speaks of",
        "\n".join([lines[0], '{"row": 1}']): r"a\.jsonl:2: column 'id' is missing or unknown",
        "\n".join(lines[1:]): "no manifest of version 1",
        "\n".join([lines[0], lines[1].replace('"train"', '"exam"'), *lines[2:]]): "'exam' is no role",
    }.items():
        home.write_text(text)
        with pytest.raises(UserError, match=message):
            load(path, "train", ENV)


def test_humaneval_stays_test_under_any_label() -> None:
    rows = [replace(Code().problems("train", 1, 0)[0], id="HumanEval/7", role="train")]
    with pytest.raises(UserError, match=r"HumanEval/7 \(test\)"):
        require(rows, "sft", "here")
    require(rows, "evaluate", "here")


def test_the_environment_must_fit_the_rows(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", PROBLEMS["train"])
    with pytest.raises(UserError, match=r"environment 'code' cannot judge rows of another data_source: countdown:"):
        load(path, "train", Code())
    with pytest.raises(UserError, match=r"its prompts ask for style 'bare', but env.style is 'think'"):
        load(path, "train", Countdown(numbers=(2,)))
    graphs = GraphWiz(tasks=("cycle",), levels=(1,))
    problems = graphs.problems("train", 2, seed=0)
    write_problems(tmp_path / "graphs.jsonl", problems)
    assert list(load(tmp_path / "graphs.jsonl", "train", graphs).problems) == problems


def test_a_share_of_a_file_is_drawn_by_key(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", ENV.problems("train", 40, seed=0))
    first, again = (load(path, "train", ENV, size=10, seed=3).problems for _ in range(2))
    assert first == again and {p.id for p in first} < {p.id for p in read_problems(path)}
    assert [p.id for p in first] != [p.id for p in load(path, "train", ENV, size=10, seed=4).problems]
    with pytest.raises(UserError, match="41 problems asked for, the file has 40"):
        load(path, "train", ENV, size=41)


def test_manifests_speak_of_no_time_or_machine(tmp_path: Path) -> None:
    header = json.loads(path_of(written(tmp_path, "a.jsonl", PROBLEMS["dev"])).read_text().splitlines()[0])
    assert set(header) == {"manifest", "file", "rows", "roles", "sha256", "style"} and header["roles"] == {"dev": 4}
    assert str(tmp_path) not in json.dumps(header)


def test_a_manifest_is_renewed_but_frees_no_test_row(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", PROBLEMS["dev"] + PROBLEMS["test"])
    before = read_manifest(path_of(path))
    fewer = renewed(before, path, PROBLEMS["dev"][:2])
    assert len(fewer.entries) == 2 and fewer.facts == {"style": "bare"}
    with pytest.raises(UserError, match=r"rows that were test are to get another role: countdown:.*\(train\)"):
        renewed(before, path, [replace(problem, role="train") for problem in PROBLEMS["test"]])
