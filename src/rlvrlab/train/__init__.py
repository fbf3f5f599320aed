"""Training: the loop, its phases and what makes it resumable.

Called, it is rlvrlab's public function: `rlvrlab.train("recipe.toml")` returns the Run.
"""

import sys

from rlvrlab.train.callable_package import CallablePackage

sys.modules[__name__].__class__ = CallablePackage
