"""Graph environments: tasks with proved optima, one file per family; importing this registers them."""

from rlvrlab.envs.graphs import environment as environment
from rlvrlab.envs.graphs import learning as learning
from rlvrlab.envs.graphs import nlgraph as nlgraph
from rlvrlab.envs.graphs import published as published
