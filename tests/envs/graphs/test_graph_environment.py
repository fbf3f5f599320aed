"""Graph environments: problems keep their promises, roles never mix, cheats never pay, other scorers are reproduced."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from instances import USERS, problem
from pydantic import TypeAdapter, ValidationError
from slow_cases import some_slow

from rlvrlab.envs.graphs.environment import GraphEnvironment
from rlvrlab.envs.graphs.tasks.catalogue import GRAPHWIZ, LEARNING, NP, POLYNOMIAL, TASKS
from rlvrlab.errors import UserError
from rlvrlab.registry import find, keys_of
from rlvrlab.types import Environment, Role

CORE = (*NP, *POLYNOMIAL, *GRAPHWIZ, *LEARNING)
ENVS = {"graph": NP, "graph_p": POLYNOMIAL, "graphwiz": GRAPHWIZ, "graph_learning": LEARNING}


@pytest.mark.parametrize("name", ENVS)
def test_they_are_environments_found_by_name(name: str) -> None:
    env = find("env", name)()
    assert isinstance(env, Environment) and env.tasks == ENVS[name] and env.version
    assert len(keys_of(type(env))) <= 12


def test_all_tasks_are_there() -> None:
    assert NP == ("TSP", "GED", "MCP", "MIS", "MVC", "MCS") and len(GRAPHWIZ) == 9 and len(CORE) == 21
    assert set(TASKS) == {*CORE, "GED_random"}


def test_the_sizes_of_the_documentation_are_those_of_the_tasks() -> None:
    page = (Path(__file__).parents[3] / "docs" / "graphs.md").read_text(encoding="utf-8")
    table = page.split("| nodes at level |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    told = {}
    for row in table:
        names, *sizes = (cell.strip() for cell in row.strip("|").split("|"))
        bands = tuple((int(size.split("–")[0]), int(size.split("–")[-1])) for size in sizes)
        told |= dict.fromkeys(re.sub(r" \(.*\)", "", names).split(", "), bands)
    assert told == {name: tuple(TASKS[name].bands) for name in CORE}


@pytest.mark.parametrize("style", some_slow(["plain", "chat", "think"], {"think"}))
@pytest.mark.parametrize("name", ENVS)
def test_self_check_covers_every_task_and_passes(name: str, style: str) -> None:
    checks = find("env", name)(style=style, levels=(1, 2)).self_check()
    assert [check for check in checks if not check.ok] == []
    assert sum(check.name == "gold" for check in checks) >= len(ENVS[name])
    assert len({check.name for check in checks}) > 15


@pytest.mark.parametrize("task", CORE)
def test_problems_keep_their_promises(task: str) -> None:
    env = GraphEnvironment(tasks=(task,), levels=(1, 3))
    problems = env.problems("train", 6, seed=3)
    assert len({p.id for p in problems}) == len({p.meta["shape"] for p in problems}) == 6
    for index, made in enumerate(problems):
        low, high = TASKS[task].bands[made.meta["level"] - 1]
        assert made.meta["level"] == (1, 3)[index % 2]
        assert low <= made.meta["size"] <= high or task == "Connected"
        assert (made.skill, made.role, made.meta["seed"]) == (task, "train", 3)
        assert made.meta["proof"] and made.meta["solver"] and made.meta["bound"] == made.reference["optimum"]
        assert json.loads(json.dumps(made.reference)) == made.reference and json.dumps(dict(made.meta))
        assert made.reference["answer"] not in made.prompt
        assert env.verify(made, env.gold(made) or "").correct is True
        accepted = [name for name, text in env.cheats(made).items() if env.verify(made, text).correct is not False]
        assert accepted == [], made.id


@pytest.mark.parametrize("task", ["MIS", "MCS", "cycle"])
def test_shapes_never_cross_roles(task: str) -> None:
    env = GraphEnvironment(tasks=(task,), levels=(1,))
    roles: tuple[Role, ...] = ("train", "dev", "test")
    shapes = [{p.meta["shape"] for s in (0, 1) for p in env.problems(r, 30 if r == "train" else 10, s)} for r in roles]
    assert not shapes[0] & shapes[1] and not shapes[0] & shapes[2] and not shapes[1] & shapes[2]


def test_a_small_graph_may_come_in_several_numberings_and_stays_in_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"tasks": ("MVC",), "levels": (1,), "sizes": (4, 5), "style": "bare"}
    with monkeypatch.context() as patch, pytest.raises(UserError, match="found only 8 different ones"):
        patch.setattr("rlvrlab.envs.graphs.production.FRUITLESS_DRAWS", 2000)  # ten times as many find no ninth graph
        GraphEnvironment(**small).problems("train", 40, 0)
    env = GraphEnvironment(**small, copies=6)
    train, test = (env.problems(role, size, 0) for role, size in (("train", 40), ("test", 5)))
    assert len({p.prompt for p in train}) == 40
    met = Counter(p.meta["shape"] for p in train)
    assert len(met) == 8 and max(met.values()) == 6 and not met.keys() & {p.meta["shape"] for p in test}
    assert env.problems("train", 7, 0) == train[:7]


def test_tasks_share_the_split() -> None:
    """A graph that trains MIS must not test MVC, whose optimum is what MIS leaves over."""
    train = {p.meta["shape"] for p in GraphEnvironment(tasks=("MIS",), levels=(1,)).problems("train", 150, 0)}
    test = {p.meta["shape"] for p in GraphEnvironment(tasks=("MVC",), levels=(1,)).problems("test", 15, 0)}
    assert not train & test


def test_same_seed_same_problems_and_a_prefix_stays_one() -> None:
    env = GraphEnvironment(levels=(1, 2))
    long = env.problems("dev", 24, seed=7)
    assert env.problems("dev", 24, seed=7) == long
    assert env.problems("dev", 9, seed=7) == long[:9]
    assert env.problems("dev", 24, seed=8) != long
    assert [p.skill for p in long[:6]] == list(NP) and Counter(p.meta["level"] for p in long) == {1: 12, 2: 12}


@pytest.mark.slow
def test_workers_change_nothing() -> None:
    env = GraphEnvironment(tasks=("MIS", "TSP"), levels=(1,))
    assert GraphEnvironment(tasks=("MIS", "TSP"), levels=(1,), workers=2).problems("train", 8, 0) == env.problems(
        "train", 8, 0
    )


@pytest.mark.slow
def test_problems_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from rlvrlab.envs.graphs.environment import GraphEnvironment as G\n"
        "from rlvrlab.envs.graphs.tasks.catalogue import GRAPHWIZ, LEARNING, NP, POLYNOMIAL\n"
        "core = NP + POLYNOMIAL + GRAPHWIZ + LEARNING\n"
        "print([(p.id, p.reference) for p in G(tasks=core, levels=(1,)).problems('train', 21, 0)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "12345")
    }
    assert len(outputs) == 1


def test_yes_and_no_come_equally_often() -> None:
    for task in TASKS.values():
        if task.balanced:
            made = GraphEnvironment(tasks=(task.name,), levels=(1,)).problems("train", 40, 1)
            assert 10 <= sum(p.reference["optimum"] for p in made) <= 30, task.name


def test_a_space_that_runs_dry_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.envs.graphs.production.FRUITLESS_DRAWS", 300)
    with pytest.raises(
        UserError, match=r"500 train problems of MIS at level 1 asked for, a long search found only \d+"
    ):
        GraphEnvironment(tasks=("MIS",), levels=(1,), sizes=(4, 5)).problems("train", 500, 0)


def test_unproved_instances_are_never_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.envs.graphs.production.FRUITLESS_DRAWS", 30)
    monkeypatch.setattr("rlvrlab.envs.graphs.solvers.mcsplit.MAX_NODES", 1)
    with pytest.raises(UserError, match="found only 0"):
        GraphEnvironment(tasks=("MCS",), levels=(3,)).problems("train", 1, 0)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tasks": ()}, "tasks"),
        ({"tasks": ("MIS", "MIS")}, "tasks"),
        ({"tasks": ("MISS",)}, "did you mean 'MIS'"),
        ({"levels": ()}, "levels"),
        ({"levels": (0,)}, "levels"),
        ({"levels": (1, 1)}, "levels"),
        ({"sizes": (3, 9)}, "sizes"),
        ({"sizes": (9,)}, "sizes"),
        ({"sizes": (4, 5, 6, 7), "levels": (1, 2, 3)}, "sizes"),
        ({"sizes": (9, 8)}, "sizes"),
        ({"mode": "graphwiz"}, "mode 'graphwiz' has no task 'TSP'"),
        ({"mode": "lenient"}, "mode"),
        ({"style": "brief"}, "style"),
    ],
)
def test_bad_settings_are_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        GraphEnvironment(**options)


def test_recipe_table_is_checked() -> None:
    adapter = TypeAdapter(GraphEnvironment)
    assert adapter.validate_json('{"tasks": ["MIS"], "levels": [2]}') == GraphEnvironment(tasks=("MIS",), levels=(2,))
    for table in ('{"task": ["MIS"]}', '{"mode": "easy"}', '{"workers": 0}', '{"levels": "1"}'):
        with pytest.raises(ValidationError):
            adapter.validate_json(table)


GOOD = "[Ada Abbott, Ann Leeson, Di O'Hara]"
PEER_TABLE = [
    # task, answer, strict, GraphArena's value, NPG-Muse's value
    ("MIS", GOOD, True, 3, 3),
    ("MIS", "<think>" + GOOD, False, 3, 3),
    ("MIS", "[Ada Abbott, Ada Abbott, Ada Abbott]", False, 3, 3),
    ("MIS", "[Ada Abbott, Ada Abbott, Ada Abbott, Ada Abbott]", False, 4, 4),
    ("MIS", "[Ada Abbott, Nobody, Ann Leeson, Di O'Hara]", False, 3, 3),
    ("MIS", "[Nobody]", False, 0, -2),
    ("MIS", "none", False, -1, -1),
    ("MIS", '["Ada Abbott", "Ann Leeson", "Di O\'Hara"]', True, 0, -2),
    ("MIS", GOOD + " of size [3]", True, 0, -2),
    ("MVC", "[Ann Lee, Nobody, José Ruiz]", False, 2, -2),
    ("MCP", "[Ada Abbott, Ann Lee, Ann Leeson, Nobody]", False, 3, 3),
    ("MCP", "[Ada Abbott, Ada Abbott]", False, -2, -2),
    ("TSP", "[AAA, BBB, CCC, DDD, AAA]", True, 4, 4),
    ("TSP", "[aaa, bbb, ccc, ddd, aaa]", True, -1, -1),
    ("TSP", "[AAA, BBB, CCC, DDD]", False, -2, -2),
    ("TSP", "[AAA, BBB, XXX, DDD, AAA]", False, -2, -2),
    ("GED", "[1, 0, 2, 3]", True, 1, 1),
    ("GED", "[1, 0, 2, 3] or [7]", True, 1, -2),
    ("GED", "[1 0 2 3]", False, 1, 1),
    ("GED", "[1, 0, 2, 3,]", True, -2, -2),
    ("MCS", "[100, 101, 102, 103], [200, 201, 202, 203]", False, 4, 4),
    ("MCS", "[0, 0, 0, 0], [0, 0, 0, 0]", False, 4, 4),
    ("MCS", "[0, 1], [0, ]", False, -1, -2),
    ("MCS", "[0, 1], [ ]", False, -1, -2),
    ("Neighbor", "[Ann Leeson, José Ruiz] or [Di O'Hara]", False, 2, -2),
    ("Neighbor", "[Ann Leeson, José Ruiz, Nobody]", False, 2, -2),
    ("Distance", "[Ada Abbott, Nowhere, Ann Lee, Ann Leeson]", False, 2, 2),
    ("Connected", "[Ada Abbott, Ann Leeson, Di O'Hara, Nobody]", False, 3, 3),
    ("Diameter", "[Ada Abbott, X, Ann Lee, Ann Leeson, José Ruiz, Di O'Hara]", False, 4, 4),
    ("Diameter", "[X]", False, -2, -2),
]


@pytest.mark.parametrize(("task", "text", "strict", "arena", "muse"), PEER_TABLE)
def test_other_scorers_are_reproduced(task: str, text: str, strict: bool, arena: int, muse: int) -> None:
    asked = problem(task)
    assert GraphEnvironment().verify(asked, text).correct is strict
    for mode, value in (("grapharena", arena), ("npgmuse", muse)):
        verdict = GraphEnvironment(mode=mode).verify(asked, text)  # type: ignore[arg-type]
        assert verdict.answer == str(value)
        assert verdict.correct is (value == asked.reference["optimum"]) and 0 <= verdict.score <= 1
        assert ("better_than_optimum" in verdict.flags) is (
            task in ("MIS", "MCS") and value > asked.reference["optimum"]
        )


@pytest.mark.parametrize(
    ("task", "text", "theirs", "ours"),
    [
        ("cycle", "### No", True, True),
        ("cycle", "### node", True, False),
        ("cycle", "### Yes and No", True, False),
        ("cycle", "yes ... no", True, False),
        ("cycle", "### Yes", False, False),
        ("connectivity", "### yesterday", True, False),
        ("flow", "### 1234", True, True),
        ("flow", "### -1234", True, False),
        ("flow", "### 1,234", True, True),
        ("flow", "### 1234 via 0-1-2", False, False),
        ("flow", "1234", True, False),
        ("topology", "### ", True, False),
        ("topology", "### [0, 1, 2, 3]", True, True),
        ("topology", "### [0, 2, 1, 3]", False, True),
        ("topology", "2", True, False),
    ],
)
def test_graphwiz_is_reproduced(task: str, text: str, theirs: bool, ours: bool) -> None:
    mode = GraphEnvironment(tasks=(task,), mode="graphwiz")
    assert mode.verify(problem(task), text).correct is theirs
    assert GraphEnvironment().verify(problem(task), text).correct is ours


@pytest.mark.parametrize(("mode", "tasks"), [("grapharena", NP + POLYNOMIAL), ("npgmuse", NP), ("graphwiz", GRAPHWIZ)])
def test_gold_is_right_for_other_scorers_too(mode: Any, tasks: tuple[str, ...]) -> None:
    env = GraphEnvironment(tasks=tasks, levels=(1,), mode=mode)
    made = env.problems("train", 3 * len(tasks), 0)
    assert all(env.verify(p, env.gold(p) or "").correct for p in made)
    assert all(check.ok for check in env.self_check())


@pytest.mark.parametrize("mode", ["grapharena", "npgmuse"])
def test_other_scorers_do_not_hang(mode: Any) -> None:
    env = GraphEnvironment(mode=mode)
    for text in ("[" * 200_000, "[" + " " * 200_000, "[" + "A" * 100_000, "[A" * 100_000, f"[{'9' * 100_000}]" * 2):
        for task in ("TSP", "MIS", "GED", "MCS"):
            assert env.verify(problem(task), text).correct is False


def test_format_of_npgmuse_is_a_prefix_and_ours_is_a_list_of_nodes() -> None:
    muse, ours = GraphEnvironment(mode="npgmuse"), GraphEnvironment()
    assert muse.verify(problem("MIS"), "<think>\n").parts["format"] == 1.0
    assert muse.verify(problem("MIS"), GOOD).parts["format"] == 0.0
    assert ours.verify(problem("MIS"), "<think>\n").parts["format"] == 0.0
    assert ours.verify(problem("MIS"), f"[{USERS[0]}, {USERS[1]}]").parts["format"] == 1.0


AUDITED = """
import json, sys
from instances import problem
from rlvrlab.envs.graphs.environment import GraphEnvironment
jobs = []
for row in map(json.loads, open(sys.argv[1])):
    text = row["answer"] if isinstance(row["answer"], str) else "".join(piece * n for piece, n in row["answer"])
    jobs.append((GraphEnvironment(style=row.get("style", "plain")), problem(row["task"]), text))
for env, asked, text in jobs:  # NumPy imports parts of itself on first use
    env.verify(asked, text)
events = []
sys.addaudithook(lambda event, args: events.append(event))
for env, asked, text in jobs:
    env.verify(asked, text)
seen = sorted(set(events))
print(len(jobs), seen)
"""


@pytest.mark.slow
def test_judging_hostile_answers_executes_nothing() -> None:
    folder = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", AUDITED, os.path.join(folder, "graph_answers.jsonl")],
        env={**os.environ, "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=True,
    )
    jobs, _, events = done.stdout.strip().partition(" ")
    assert int(jobs) > 180 and events == "[]"


def test_a_bare_question_is_the_same_question_in_one_line() -> None:
    """Read back by hand, it is the graph of the reference; names, weights and labels included."""
    env = GraphEnvironment(style="bare", levels=(1, 5))
    assert [check for check in env.self_check() if not check.ok] == []
    for made, long in zip(
        env.problems("test", 24, 7), GraphEnvironment(levels=(1, 5)).problems("test", 24, 7), strict=True
    ):
        assert made.meta["shape"] == long.meta["shape"] and made.reference["optimum"] == long.reference["optimum"]
        task, _, rest = made.prompt.rstrip("\n").partition(" ")
        assert task == made.skill and "\n" not in rest
        for text, graph in zip(rest.split(" | "), made.reference["graphs"], strict=True):
            nodes, _, edges = text.partition(": ")
            names = [re.match(r"\d+|\w+", node)[0] for node in nodes.split()]
            labels = [node[len(name) :] for node, name in zip(nodes.split(), names, strict=True)]
            pairs = [edge.split()[0] for edge in edges.split(", ") if edge]
            ends = [pair.split("-") if "-" in pair else list(pair) for pair in pairs]
            assert [[names.index(u), names.index(v)] for u, v in ends] == graph["edges"]
            assert [int(edge.split()[1]) for edge in edges.split(", ") if " " in edge] == graph.get("weights", [])
            assert labels == graph.get("labels", [""] * graph["n"])


def test_a_bare_question_is_refused_where_it_would_leave_something_out() -> None:
    with pytest.raises(UserError, match="style 'bare' has no task 'Neighbor'; allowed: TSP"):
        GraphEnvironment(tasks=("MIS", "Neighbor"), style="bare")


def test_sizes_for_each_level_are_what_its_problems_have() -> None:
    made = GraphEnvironment(tasks=("TSP",), levels=(1, 3), sizes=(4, 4, 6, 7)).problems("train", 40, 0)
    sizes = {level: {p.meta["size"] for p in made if p.meta["level"] == level} for level in (1, 3)}
    assert sizes == {1: {4}, 3: {6, 7}}
