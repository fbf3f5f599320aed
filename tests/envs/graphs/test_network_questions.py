"""Questions from a published network: true, each once, and nothing held out stands in a prompt that is not its own."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest

from rlvrlab.cli.check import built
from rlvrlab.data.prepare import from_preset
from rlvrlab.data.presets import PRESETS
from rlvrlab.envs.graphs import network_questions
from rlvrlab.envs.graphs.learning import GraphLearning
from rlvrlab.envs.graphs.network import Published, network_of
from rlvrlab.envs.graphs.network_questions import held_out
from rlvrlab.envs.split import ROLES, role_of
from rlvrlab.errors import UserError
from rlvrlab.evals.evaluate import rule_metrics
from rlvrlab.evals.suites import members_of
from rlvrlab.evals.suites.base import Ready, prepare
from rlvrlab.notes import FOUND, hearing
from rlvrlab.types import Problem, Role

KARATE, NOVEL = nx.karate_club_graph(), nx.les_miserables_graph()
LINKS = ("link_prediction",)
EDGE, CLASS = re.compile(r"\((\d+),(\d+)\)"), re.compile(r"(\d+): ([^;.]+)")


@pytest.fixture(scope="module")
def karate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("club") / "karate.gml"
    nx.write_gml(KARATE, path)
    return path


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("novel") / "novel.gml"
    nx.write_gml(NOVEL, path)
    return path


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ninety nodes in a row of cliques, each with a class of its own, by which prompts tell which node is which."""
    graph = nx.relabel_nodes(nx.ring_of_cliques(15, 6), lambda v: f"n{v:02d}")
    nx.set_node_attributes(graph, {node: f"class of {node}" for node in graph}, "kind")
    path = tmp_path_factory.mktemp("groups") / "groups.gml"
    nx.write_gml(graph, path)
    return path


def every(env: GraphLearning) -> list[Problem]:
    return [problem for problems in env.problems_in_folder().values() for problem in problems]


def shown(problem: Problem) -> nx.Graph:
    """The part of the network, as the words of the prompt have it."""
    last = int(re.search(r"numbered from 0 to (\d+)", problem.prompt)[1])  # type: ignore[index]
    graph = nx.empty_graph(last + 1)
    words = problem.prompt.partition("links are: ")[2]
    graph.add_edges_from((int(u), int(v)) for u, v in EDGE.findall(words.partition(". ")[0]))
    known = words.partition("classes are known: ")[2].partition(". What")[0] + ";"
    nx.set_node_attributes(graph, {int(v): name for v, name in re.findall(r"(\d+): ([^;]+);", known)}, "known")
    return graph


def asked(problem: Problem) -> list[int]:
    last = problem.prompt.rpartition("In the whole network")[2] or problem.prompt.rpartition("What is the class")[2]
    return [int(v) for v in re.findall(r"node (\d+)\?|nodes (\d+) and (\d+)", last)[0] if v]


def test_answers_are_what_was_published(karate: Path, novel: Path) -> None:
    for problem in every(GraphLearning(path=str(karate))):
        nodes, answer = [int(name) for name in problem.meta["nodes"]], problem.reference["optimum"]
        if problem.skill == "published_link_prediction":
            assert answer == KARATE.has_edge(*nodes) and len(nodes) == 2
        else:
            assert answer == KARATE.nodes[nodes[0]]["club"] and len(nodes) == 1
    for problem in every(GraphLearning(path=str(novel), tasks=LINKS)):
        assert problem.reference["optimum"] == NOVEL.has_edge(*problem.meta["nodes"])


def test_every_node_is_asked_about_once_in_the_role_of_its_name(novel: Path, groups: Path) -> None:
    for path, tasks in ((novel, LINKS), (groups, ("node_classification", "link_prediction"))):
        found = every(GraphLearning(path=str(path), tasks=tasks))
        met = Counter((problem.skill, problem.meta["nodes"][0]) for problem in found)
        assert max(met.values()) == 1 and len(found) > len(met) / 2
        assert all(problem.role == role_of("network", problem.meta["nodes"][0]) for problem in found)
        assert {problem.role for problem in found} == set(ROLES)
        pairs = Counter(frozenset(one.meta["nodes"]) for one in found if one.skill == "published_link_prediction")
        assert max(pairs.values()) == 1
        assert len({one.meta["shape"] for one in found}) == len({one.id for one in found}) == len(found)


def test_no_prompt_shows_the_class_of_a_dev_or_test_node(groups: Path) -> None:
    problems = every(GraphLearning(path=str(groups), tasks=("node_classification",), hops=4))
    told = [name for problem in problems for _, name in shown(problem).nodes(data="known") if name]
    roles = {name: role_of("network", name.removeprefix("class of ")) for name in told}
    assert len(told) > 500 and set(roles.values()) == {"train"}
    for problem in problems:
        graph, (own,) = shown(problem), asked(problem)
        assert graph.nodes[own].get("known") is None
        assert problem.reference["answer"] not in [f"### {name}" for _, name in graph.nodes(data="known")]


@pytest.mark.parametrize("tasks", [LINKS, ("node_classification",)], ids=["links", "classes"])
def test_links_that_dev_and_test_ask_for_are_in_no_prompt(karate: Path, tasks: tuple[str, ...]) -> None:
    """With all that four steps reach in every prompt, it is what was published, less those links and its own."""
    whole = {"path": str(karate), "sizes": (4, 100), "hops": 4}
    pairs = [p for p in every(GraphLearning(**whole, tasks=LINKS)) if p.reference["optimum"]]
    held = {tuple(map(int, p.meta["nodes"])) for p in pairs if p.role != "train"}
    assert held
    for problem in every(GraphLearning(**whole, tasks=tasks)):
        rest = nx.Graph(KARATE.edges)
        rest.remove_edges_from(held)
        nodes = [int(name) for name in problem.meta["nodes"]]
        if len(nodes) == 2 and rest.has_edge(*nodes):
            rest.remove_edge(*nodes)
        reached = {v for node in nodes for v in nx.single_source_shortest_path_length(rest, node, cutoff=4)}
        graph, rest = shown(problem), nx.Graph(rest.subgraph(reached))
        assert len(graph) > 25
        nx.set_node_attributes(graph, {v: i for i, v in enumerate(asked(problem), 1)}, "asked")
        nx.set_node_attributes(rest, {v: i for i, v in enumerate(nodes, 1)}, "asked")
        assert nx.is_isomorphic(graph, rest, node_match=lambda one, other: one.get("asked") == other.get("asked"))


def test_a_question_is_a_part_of_the_network_around_its_nodes(groups: Path) -> None:
    env = GraphLearning(path=str(groups), tasks=("node_classification",), levels=(1,))
    published = nx.read_gml(groups)
    for problem in every(env):
        graph, (own,) = shown(problem), asked(problem)
        name = {v: known.removeprefix("class of ") for v, known in graph.nodes(data="known") if known}
        name[own] = problem.meta["nodes"][0]
        assert 2 <= len(graph) <= 14 and problem.meta["size"] == len(graph) and problem.meta["level"] == 1
        assert problem.meta["links"] == graph.number_of_edges()
        assert max(nx.single_source_shortest_path_length(graph, own).values()) <= 2 and nx.is_connected(graph)
        for u, v in combinations(name, 2):
            assert not graph.has_edge(u, v) or published.has_edge(name[u], name[v])


def test_a_pair_is_never_shown_and_keeps_a_link_at_either_end(novel: Path) -> None:
    problems = every(GraphLearning(path=str(novel), tasks=LINKS, levels=(5,), sizes=(4, 100)))
    for problem in problems:
        graph, (a, b) = shown(problem), asked(problem)
        assert not graph.has_edge(a, b) and graph.degree(a) and graph.degree(b)
    yes = sum(problem.reference["optimum"] for problem in problems)
    assert 0.3 < yes / len(problems) < 0.7


def test_what_dev_or_test_asks_for_is_asked_for_by_nobody_else() -> None:
    links = absent = 0
    for seed in range(60):
        graph = nx.relabel_nodes(nx.gnp_random_graph(12, 0.5, seed=seed), lambda v, seed=seed: f"{seed}.{v}")
        edges = ((i, u, v) for i, (u, v) in enumerate(graph.edges, 1))
        held = held_out(network_of(Published("g", dict.fromkeys(graph, ""), edges, Path("g"), None), ()))
        nodes, network = held.network.nodes, held.network
        hidden = {frozenset((u, v)) for u, row in held.hidden.items() for v in row}
        roles = {frozenset(pair[:2]): held.roles[pair.first] for pair in held.pairs if pair.linked}
        assert hidden == {pair for pair, role in roles.items() if role != "train"}
        links += len(hidden)
        absent += sum(not pair.linked and held.roles[pair.first] != "train" for pair in held.pairs)
        assert all(pair.linked == graph.has_edge(nodes[pair.first], nodes[pair.second]) for pair in held.pairs)
        assert all(len(held.seen(v)) for v in range(len(nodes)) if len(network.near(v)))
        assert {pair.first for pair in held.pairs} == {v for v in range(len(nodes)) if len(network.near(v))}
    assert links > 30 and absent > 30


def test_blind_rules_are_what_networkx_counts(karate: Path, novel: Path) -> None:
    for path, tasks in ((karate, ("node_classification", "link_prediction")), (novel, LINKS)):
        problems = every(GraphLearning(path=str(path), tasks=tasks))
        for problem in problems:
            graph, nodes, answer = shown(problem), asked(problem), problem.reference["optimum"]
            if len(nodes) == 2:
                found = bool(list(nx.common_neighbors(graph, *nodes)))
                assert problem.meta["rules"] == {"common_neighbours": found == answer}
                continue
            near = Counter(known for v in graph[nodes[0]] if (known := graph.nodes[v].get("known")))
            everywhere = Counter(known for _, known in graph.nodes(data="known") if known)
            best = max(near or everywhere, key=lambda name: (near[name], everywhere[name], name))
            assert problem.meta["rules"] == {"neighbours_majority": best == answer}
        told = rule_metrics(problems)
        rights = [right for problem in problems for name, right in problem.meta["rules"].items() if "common" in name]
        assert told["rule/common_neighbours"] == sum(rights) / len(rights) and 0 < told["rule/common_neighbours"] < 1


def test_problems_are_the_same_in_any_order_of_lines_and_for_any_seed(karate: Path, tmp_path: Path) -> None:
    lines = [f"{v}\t{club.replace(' ', '_')}\n" for v, club in KARATE.nodes(data="club")]
    cites = [f"{u}\t{v}\n" for u, v in KARATE.edges]
    contents = []
    for name, turn in (("one", 1), ("two", -1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "k.content").write_text("".join(lines[::turn]))
        (tmp_path / name / "k.cites").write_text("".join(cites[::turn]))
        contents.append({(one.id, one.prompt, one.role) for one in every(GraphLearning(path=str(tmp_path / name)))})
    assert contents[0] == contents[1] and len(contents[0]) > 50
    env = GraphLearning(path=str(karate))
    long = env.problems("train", 40, 7)
    assert env.problems("train", 9, 7) == long[:9] and env.problems("train", 40, 8) != long
    assert [one.skill for one in long[:4]] == ["published_node_classification", "published_link_prediction"] * 2


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path, env = tmp_path / "g_edges.csv", GraphLearning(path=str(tmp_path), tasks=LINKS)
    path.write_text("u,v\n" + "".join(f"{u},{v}\n" for u, v in KARATE.edges))
    before = every(env)
    path.write_text("u,v\n" + "".join(f"{u},{v}\n" for u, v in NOVEL.edges))
    assert len(every(env)) > len(before)


@pytest.mark.parametrize("style", ["plain", "chat", "think"])
def test_gold_is_right_and_cheats_are_not(karate: Path, style: str) -> None:
    env = GraphLearning(path=str(karate), style=style)  # type: ignore[arg-type]
    checks = env.checked(every(env))
    assert [check for check in checks if not check.ok] == []
    assert sum(check.name == "gold" for check in checks) == len(every(env)) and len({c.name for c in checks}) > 15


def test_an_answer_is_one_of_the_classes_whatever_is_shown(karate: Path) -> None:
    env = GraphLearning(path=str(karate), tasks=("node_classification",))
    problem = next(one for one in every(env) if one.reference["optimum"] == "Mr. Hi")
    told = {"### mr. hi": True, "### **Mr. Hi**.": True, "### Officer": False, "### Hi": False, "### Mr": False,
            "### Mr. Hi or Officer": False, "### ?": False, "Mr. Hi": False}  # fmt: skip
    assert {text: env.verify(problem, text).correct for text in told} == told
    assert json.loads(json.dumps(problem.reference)) == problem.reference


def test_what_is_read_and_left_out_is_told_with_what_the_rule_gets(karate: Path) -> None:
    heard: list[str] = []
    env = GraphLearning(path=str(karate), hops=3, drop=("loops",))
    with hearing(lambda kind, words: heard.append(words) if kind == FOUND else None):
        found = env.problems_in_folder()
    assert heard[0] == "karate: 34 nodes, 78 links, 2 classes"
    count = len([one for one in found["train"] if one.skill == "published_node_classification"])
    right = sum(one.meta["rules"].get("neighbours_majority", False) for one in found["train"])
    line = next(words for words in heard if "train problems of node_classification" in words)
    assert (
        f"{count} train problems of node_classification, of which the rule 'neighbours_majority' alone gets {right}"
        in line
    )
    centres = [node for node in map(str, KARATE) if role_of("network", node) == "train"]
    assert count + sum(int(n) for n in re.findall(r"; (\d+) ", line)) == len(centres)


def test_of_a_large_network_a_part_is_asked_about_and_that_is_told(
    novel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_questions, "MOST_ASKED", 30)
    heard: list[str] = []
    with hearing(lambda kind, words: heard.append(words) if kind == FOUND else None):
        found = every(GraphLearning(path=str(novel), tasks=LINKS, drop=("loops",)))
    assert heard[0] == "novel: 77 nodes, 254 links, 0 classes; 30 of its nodes are asked about"
    assert 20 < len(found) <= 30


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"drop": ("loops",)}, "drop is for a published network; set path"),
        ({"classes": "club"}, "classes is for a published network; set path"),
        ({"path": "x", "drop": ("loop",)}, 'drop = [\'loop\']: allowed: "unknown", "loops", "repeats"'),
        ({"path": "x", "tasks": ("MIS",)}, "no task 'MIS' with path; allowed: node_classification, link_prediction"),
        ({"path": "x", "hops": 5}, "hops = 5: at most 4"),
        ({"path": "x", "copies": 2}, "copies = 2 with path"),
        ({"path": "x", "levels": (1, 2), "sizes": (4, 9, 4, 9)}, "give one pair"),
    ],
)
def test_keys_that_mean_nothing_are_refused(keys: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        GraphLearning(**keys)  # type: ignore[arg-type]


def test_too_few_and_none_are_said(karate: Path, novel: Path) -> None:
    with pytest.raises(UserError, match=r"100 test problems asked for, .*karate\.gml has 6"):
        GraphLearning(path=str(karate)).problems("test", 100, 0)
    with pytest.raises(UserError, match=r"novel\.gml: no node has a class, .* set tasks = \[\"link_prediction\"\]"):
        GraphLearning(path=str(novel)).problems("test", 1, 0)
    with pytest.raises(UserError, match=r"karat\.gml: no such file or folder; allowed: NAME\.content"):
        GraphLearning(path=str(karate.with_name("karat.gml"))).problems("test", 1, 0)
    with pytest.raises(UserError, match="no path; name a published network"):
        GraphLearning().problems_in_folder()


def test_made_problems_are_those_that_they_were() -> None:
    """A published network is a key more; what is made without one has the ids of version 2."""
    made = GraphLearning(levels=(1,)).problems("test", 2, 0)
    assert [one.id for one in made] == ["node_classification:1:124413b5eaca93f4", "link_prediction:1:08db4e9ecdb5f4aa"]


def test_they_are_prepared_and_a_member_of_the_suite(karate: Path, tmp_path: Path) -> None:
    preset = PRESETS["network"]
    prepared = from_preset("network", preset, built("env", preset.env, (f"path={karate}",)), karate)
    roles: tuple[Role, ...] = ("train", "dev", "test")
    assert [len(prepared.problems[role]) for role in roles] == [51, 4, 6] and prepared.raw[0]["file"] == "karate.gml"
    (tmp_path / "cora").mkdir()
    rows = "".join(f"{v}\t1\t{club.split()[0]}\n" for v, club in KARATE.nodes(data="club"))
    (tmp_path / "cora" / "cora.content").write_text(rows)
    (tmp_path / "cora" / "cora.cites").write_text("".join(f"{u}\t{v}\n" for u, v in KARATE.edges))
    for name in ("cora_nodes", "cora_links"):
        ready = prepare(next(one for one in members_of("graphs") if one.name == name), "full", tmp_path)
        assert isinstance(ready, Ready) and len(ready.problems) == 3 and ready.file == str(tmp_path / "cora")
