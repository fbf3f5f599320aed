"""Every graph task by name."""

from __future__ import annotations

from rlvrlab.envs.graphs.solvers.edits_cpsat import RandomEditDistance
from rlvrlab.envs.graphs.tasks.amounts import MaximumFlow, MaximumTriplet, ShortestPath, TopologicalOrder
from rlvrlab.envs.graphs.tasks.base import Task
from rlvrlab.envs.graphs.tasks.decisions import Bipartite, Connectivity, Cycle, HamiltonianPath, Substructure
from rlvrlab.envs.graphs.tasks.learning import LinkPrediction, NodeClassification
from rlvrlab.envs.graphs.tasks.molecules import CommonSubgraph, EditDistance
from rlvrlab.envs.graphs.tasks.polynomial import CommonNeighbours, Components, Diameter, Distance
from rlvrlab.envs.graphs.tasks.subsets import MaximumClique, MaximumIndependentSet, MinimumVertexCover
from rlvrlab.envs.graphs.tasks.tsp import Tsp

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
