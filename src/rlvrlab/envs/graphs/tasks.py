"""Every graph task by name."""

from __future__ import annotations

from rlvrlab.envs.graphs.amounts import MaximumFlow, MaximumTriplet, ShortestPath, TopologicalOrder
from rlvrlab.envs.graphs.decisions import Bipartite, Connectivity, Cycle, HamiltonianPath, Substructure
from rlvrlab.envs.graphs.edits_cpsat import RandomEditDistance
from rlvrlab.envs.graphs.learning import LinkPrediction, NodeClassification
from rlvrlab.envs.graphs.molecules import CommonSubgraph, EditDistance
from rlvrlab.envs.graphs.polynomial import CommonNeighbours, Components, Diameter, Distance
from rlvrlab.envs.graphs.subsets import MaximumClique, MaximumIndependentSet, MinimumVertexCover
from rlvrlab.envs.graphs.task import Task
from rlvrlab.envs.graphs.tsp import Tsp

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *(Tsp(), EditDistance(), MaximumClique(), MaximumIndependentSet(), MinimumVertexCover(), CommonSubgraph()),
        *(CommonNeighbours(), Distance(), Components(), Diameter()),
        *(Connectivity(), Cycle(), Bipartite(), TopologicalOrder(), ShortestPath()),
        *(MaximumTriplet(), MaximumFlow(), HamiltonianPath(), Substructure()),
        *(NodeClassification(), LinkPrediction(), RandomEditDistance()),
    )
}
NP = ("TSP", "GED", "MCP", "MIS", "MVC", "MCS")
POLYNOMIAL = ("Neighbor", "Distance", "Connected", "Diameter")
GRAPHWIZ = tuple(name for name, task in TASKS.items() if task.suite == "graphwiz")
LEARNING = tuple(name for name, task in TASKS.items() if task.suite == "learning")
