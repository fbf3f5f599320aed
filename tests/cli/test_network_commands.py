"""Commands on a published network say what was read, what was left out, and what blind rules get right."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest
from command_line import errors, inside

from rlvrlab.envs.graphs import learning


def forget() -> None:
    """What was read before would be neither read nor told again; commands are processes of their own."""
    learning._held.cache_clear()
    learning._problems.cache_clear()


@pytest.fixture
def club(tmp_path: Path) -> Path:
    forget()
    graph = nx.karate_club_graph()
    (tmp_path / "club_edges.csv").write_text("u,v\n" + "".join(f"{u},{v}\n" for u, v in graph.edges) + "3,3\n")
    (tmp_path / "club_nodes.csv").write_text("id,c\n" + "".join(f"{v},{c}\n" for v, c in graph.nodes(data="club")))
    return tmp_path


def test_eval_tells_the_rules_beside_the_policy(monkeypatch, capsys, club: Path) -> None:
    words = ("eval", "graph_learning", f"path={club}", 'drop=["loops"]', "--engine", "toy", "-o", "out")
    done = inside(monkeypatch, capsys, *words, folder=club)
    assert done.returncode == 0, done.stderr
    assert "club: 34 nodes, 78 links, 2 classes; 1 edges dropped, each leads back to its own node\n" in done.stderr
    assert "3 test problems of link_prediction, of which the rule 'common_neighbours' alone gets 2 right" in done.stderr
    assert "right by the rule neighbours_majority" in done.stdout
    (metrics,) = json.loads((club / "out" / "metrics.json").read_text()).values()
    assert metrics["rule/neighbours_majority"] == 1 and metrics["rule/common_neighbours"] == pytest.approx(2 / 3)


def test_preview_and_prepare_tell_it_too(monkeypatch, capsys, club: Path) -> None:
    shown = inside(
        monkeypatch, capsys, "data", "preview", "graph_learning", f"path={club}", 'drop=["loops"]', folder=club
    )
    assert shown.returncode == 0 and "1 edges dropped" in shown.stderr and "judged correct: True" in shown.stdout
    forget()
    words = ("data", "prepare", "network", "--from", str(club), 'drop=["loops"]', "-o", "data")
    made = inside(monkeypatch, capsys, *words, folder=club)
    assert (
        made.returncode == 0 and "1 edges dropped" in made.stderr and "network: 6 test, 4 dev, 51 train" in made.stdout
    )


def test_a_mistake_is_one_line(monkeypatch, capsys, club: Path) -> None:
    (line,) = errors(
        inside(monkeypatch, capsys, "eval", "graph_learning", f"path={club}", "--engine", "toy", folder=club)
    )
    assert "club_edges.csv:79: the edge of node '3' leads back to it; mend the file, or set drop" in line
