"""Training: the loop, its phases and what makes it resumable.

Called, it is rlvrlab's public function: `rlvrlab.train("recipe.toml")` returns the Run.
"""

from __future__ import annotations

import importlib
import sys
from inspect import Signature, getdoc, signature
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):  # noqa: D101 -- its __doc__ is the function's, which `help` shows of the module
    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """Help of the public function, and below it what the package is."""
        function = importlib.import_module("rlvrlab.api").train
        return f"train{signature(function)}\n\n{getdoc(function)}\n\n{vars(self)['__doc__']}"

    @property
    def __signature__(self) -> Signature:
        """That of the public function."""
        return signature(importlib.import_module("rlvrlab.api").train)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Train a recipe (file, TOML text, dict or loaded) to its end and return the run; see docs/python.md."""
        run = importlib.import_module("rlvrlab.api").train  # upwards on purpose: the public function has this name too
        return run(*given, **named)


sys.modules[__name__].__class__ = CallablePackage  # whichever of the two was imported first
