"""The published data sets: every gold answer is read and accepted. Skipped where they are not at hand."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.clrs import Clrs, graphs, lists
from rlvrlab.envs.clrs.tasks import array, decimals, matrix
from rlvrlab.envs.data_set import split_rows
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.sql import Sql
from rlvrlab.envs.sql.spider import asked_by_role
from rlvrlab.judge.isolation import probe

needs_jail = pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate queries")
needs_math_verify = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="needs math-verify: pip install 'rlvrlab[math]'"
)
SUITES = {
    "aime24": 30, "aime25": 30, "amc23": 40, "aqua": 254, "asdiv": 2200, "carp_en": 950, "cmath": 600,
    "cn_middle_school": 101, "college_math": 2750, "gaokao2023en": 380, "gaokao2024_I": 14, "gaokao2024_II": 14,
    "gaokao2024_mix": 85, "gaokao_math_cloze": 110, "gaokao_math_qa": 345, "mawps": 1850, "minerva_math": 272,
    "mmlu_stem": 2950, "olympiadbench": 670, "sat_math": 32,
}  # fmt: skip
"""Suites and how many distinct, answered questions they have at least."""


def given(*parts: str) -> Path:
    beside = Path(__file__).resolve().parents[4] / "shared"
    root = Path(os.environ.get("RLVRLAB_DATA") or Path(os.environ.get("RLVRLAB_SHARED", beside)) / "data")
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} under RLVRLAB_DATA or RLVRLAB_SHARED/data")
    return path


@pytest.mark.slow
def test_gsm8k_gold_is_read_and_accepted() -> None:
    env = Gsm8k(path=str(given("gsm8k")))
    assert len(env.problems("test", 1319, 0)) == 1319
    problems = env.problems("train", 6600, 0) + env.problems("dev", 700, 0) + env.problems("test", 1319, 0)
    verdicts = env.verify_many([(problem, str(env.gold(problem))) for problem in problems])
    assert [p.id for p, verdict in zip(problems, verdicts, strict=True) if verdict.correct is not True] == []
    wrong = env.verify_many([(problem, "#### 123456789") for problem in problems])
    assert not any(verdict.correct for verdict in wrong)


@pytest.mark.parametrize("suite", SUITES)
def test_math_suites_accept_their_references(suite: str) -> None:
    path = str(given("math_suites", f"{suite}_test.jsonl.gz"))
    env = Mathematics(path=path)
    size = len(split_rows(env, Path(path)))
    assert size >= SUITES[suite]
    problems = env.problems("test", size, 0)
    verdicts = env.verify_many([(problem, str(env.gold(problem))) for problem in problems])
    refused = [problem.reference for problem, verdict in zip(problems, verdicts, strict=True) if not verdict.correct]
    assert refused == []


def test_svamp_and_math500_accept_their_references() -> None:
    for path, size in ((given("svamp", "SVAMP.json.gz"), 90), (given("math500", "test.jsonl.gz"), 500)):
        env = Mathematics(path=str(path))
        problems = env.problems("test", size, 0)
        verdicts = env.verify_many([(problem, str(env.gold(problem))) for problem in problems])
        assert all(verdict.correct for verdict in verdicts)


@pytest.mark.long
@needs_jail
@needs_math_verify
@pytest.mark.slow
def test_math500_references_equal_themselves_in_other_spelling() -> None:
    env = Mathematics(path=str(given("math500", "test.jsonl.gz")))
    problems = env.problems("test", 500, 0)
    spelled = [(p, f"\\boxed{{ {p.reference['answer'].replace('dfrac', 'frac')}\\, }}") for p in problems]
    verdicts = env.verify_many(spelled)
    counts = Counter(str(verdict.correct) for verdict in verdicts)
    assert counts["True"] >= 490, [p.reference for p, v in zip(problems, verdicts, strict=True) if not v.correct]
    shifted = env.verify_many([(p, text) for p, (_, text) in zip(problems, spelled[7:] + spelled[:7], strict=True)])
    same = sum(p.reference == q.reference for p, q in zip(problems, problems[7:] + problems[:7], strict=True))
    assert sum(verdict.correct is True for verdict in shifted) <= same + 3


@needs_jail
def test_spider_gold_is_accepted_on_a_sample() -> None:
    env = Sql(path=str(given("spider")))
    problems = env.problems("test", 25, 0)
    verdicts = env.verify_many([(problem, str(env.gold(problem))) for problem in problems])
    assert [p.reference for p, verdict in zip(problems, verdicts, strict=True) if verdict.correct is not True] == []
    assert not any(verdict.correct for verdict in env.verify_many([(problem, "SELECT 42") for problem in problems]))


@pytest.mark.long
@needs_jail
@pytest.mark.slow
def test_spider_gold_is_accepted_throughout() -> None:
    path = given("spider")
    env, by_role = Sql(path=str(path)), asked_by_role(path)
    problems = [problem for role, rows in by_role.items() for problem in env.problems(role, len(rows), 0)]
    assert len(problems) >= 540
    verdicts = env.verify_many([(problem, str(env.gold(problem))) for problem in problems])
    assert [p.reference for p, verdict in zip(problems, verdicts, strict=True) if verdict.correct is not True] == []
    contents = {role: {(row.database, row.gold) for row in rows} for role, rows in by_role.items()}
    assert not contents["train"] & contents["test"] and not contents["train"] & contents["dev"]


@needs_jail
def test_queries_on_chinook(tmp_path: Path) -> None:
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "music.sqlite").symlink_to(given("chinook", "Chinook_Sqlite.sqlite"))
    queries = {
        "How many tracks are there?": "SELECT COUNT(*) FROM Track",
        "How many tracks has each genre?": "SELECT g.Name, COUNT(*) FROM Genre g JOIN Track USING (GenreId) GROUP BY 1",
        "The three longest tracks, longest first?": "SELECT Name FROM Track ORDER BY Milliseconds DESC LIMIT 3",
    }
    rows = [{"db_id": "music", "question": question, "query": query} for question, query in queries.items()]
    (tmp_path / "dev.json").write_text(json.dumps(rows))
    env = Sql(path=str(tmp_path))
    problems = [p for role, found in asked_by_role(tmp_path).items() for p in env.problems(role, len(found), 0)]
    assert {problem.meta["question"] for problem in problems} == set(queries)
    assert all(verdict.correct for verdict in env.verify_many([(p, str(env.gold(p))) for p in problems]))
    literal = next(problem for problem in problems if "How many tracks are there?" in problem.prompt)
    assert env.verify(literal, "SELECT 3503").correct is False


def parsed(question: str) -> dict[str, Any]:
    found = re.findall(r"(\w+): (\[\[.*?\]\]|\[.*?\]|[-\d.]+)", question.split("\n")[1])
    return {name: _value(text) for name, text in found}


def _value(text: str) -> Any:
    if text.startswith("[["):
        return [_value(f"[{row.strip('[]')}]") for row in text[1:-1].split("], ")]
    if text.startswith("["):
        return [_value(word) for word in text[1:-1].split()]
    return round(float(text) * 1000) if "." in text else int(text)


def ours(name: str, given: dict[str, Any]) -> str:
    """The answer of our algorithm to a published question."""
    key, graph, source, xs, ys = (given.get(field) for field in ("key", "A", "s", "x", "y"))
    if name.endswith("_matcher"):
        length = given["string"].index(1)
        return str(lists.string_match(key[:length], key[length:]))  # type: ignore[index]
    if name == "topological_sort":
        following, first = graphs.topological_sort(graph)  # type: ignore[arg-type]
        return f"{array(following)}, {first}"
    run: dict[str, Any] = {
        **{sort: lambda sort=sort: decimals(getattr(lists, sort)(key)[0])
           for sort in ("insertion_sort", "bubble_sort", "heapsort", "quicksort")},
        "minimum": lambda: str(lists.minimum(key)), "quickselect": lambda: str(lists.quickselect(key)),
        "binary_search": lambda: str(lists.binary_search(key, given["target"])),
        "find_maximum_subarray_kadane": lambda: "{}, {}".format(*lists.maximum_subarray(key)),
        "activity_selector": lambda: array(lists.activity_selector(source, given["f"])),
        "segments_intersect": lambda: str(lists.segments_intersect(xs, ys)),
        "graham_scan": lambda: array(lists.convex_hull(xs, ys)),
        "jarvis_march": lambda: array(lists.convex_hull(xs, ys)),
        "bfs": lambda: array(graphs.bfs(graph, source)[0]), "dfs": lambda: array(graphs.dfs(graph)),
        "dijkstra": lambda: array(graphs.dijkstra(graph, source)[0]),
        "bellman_ford": lambda: array(graphs.bellman_ford(graph, source)[0]),
        "dag_shortest_paths": lambda: array(graphs.bellman_ford(graph, source)[0]),
        "mst_prim": lambda: array(graphs.prim(graph, source)[0]),
        "strongly_connected_components": lambda: array(graphs.strong_components(graph)),
        "articulation_points": lambda: array(graphs.articulation_points(graph)),
        "bridges": lambda: matrix(graphs.bridges(graph)),
        "floyd_warshall": lambda: matrix(graphs.floyd_warshall(graph)),
        "mst_kruskal": lambda: matrix(graphs.kruskal(graph)),
    }  # fmt: skip
    return str(run[name]())


NOT_MADE = {"lcs_length", "matrix_chain_order", "optimal_bst", "task_scheduling"}


def test_clrs_algorithms_agree_with_the_published_samples() -> None:
    rows = [json.loads(line) for line in given("clrs_text_sample.jsonl").read_text().splitlines()]
    checked = [row for row in rows if row["algo_name"] not in NOT_MADE]
    different = [row for row in checked if ours(row["algo_name"], parsed(row["question"])) != row["answer"].strip()]
    assert different == []
    assert len(checked) == 258 and len({row["algo_name"] for row in checked}) == 26


def test_clrs_rows_are_loaded_and_their_answers_accepted() -> None:
    path = str(given("clrs_text_sample.jsonl"))
    env = Clrs(path=path)
    roles = Counter(role for _, role in split_rows(env, Path(path)))
    assert sum(roles.values()) >= 280 and set(roles) == {"train", "dev", "test"}
    inputs: dict[str, set[str]] = {}
    for role, size in roles.items():
        problems = env.problems(role, size, 0)
        assert all(env.verify(problem, str(env.gold(problem)) + "\n\n").correct for problem in problems)
        inputs[role] = {problem.prompt.split("\n")[1] for problem in problems}
    assert not inputs["train"] & inputs["dev"] and not inputs["train"] & inputs["test"]
