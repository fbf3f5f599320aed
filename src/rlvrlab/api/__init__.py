"""What `import rlvrlab` offers to scripts and notebooks; the names are those of rlvrlab.__all__."""

from rlvrlab.api.comparison import Comparison, compare
from rlvrlab.api.evaluation import Evaluation, evaluate
from rlvrlab.api.plugins import environment
from rlvrlab.api.recipes import load_recipe
from rlvrlab.api.run import Run, train

__all__ = ["Comparison", "Evaluation", "Run", "compare", "environment", "evaluate", "load_recipe", "train"]
