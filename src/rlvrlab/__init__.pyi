from rlvrlab.api import Comparison as Comparison
from rlvrlab.api import Evaluation as Evaluation
from rlvrlab.api import Run as Run
from rlvrlab.api import compare as compare
from rlvrlab.api import environment as environment
from rlvrlab.api import evaluate as evaluate
from rlvrlab.api import load_recipe as load_recipe
from rlvrlab.api import train as train
from rlvrlab.errors import LabError as LabError
from rlvrlab.errors import UserError as UserError
from rlvrlab.types import Completion as Completion
from rlvrlab.types import Problem as Problem
from rlvrlab.types import Verdict as Verdict

__version__: str
