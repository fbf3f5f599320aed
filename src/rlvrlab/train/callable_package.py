"""Lets the package rlvrlab.train be called as the function of the same name, whichever was imported first."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """The class of the module object rlvrlab.train."""

    def __call__(
        self,
        recipe: Any,
        *,
        reward: Any = None,
        env: Any = None,
        data: Any = None,
        overrides: Any = (),
        progress: bool = True,
    ) -> Any:
        """Train a recipe (file, TOML text, dict or loaded) to its end and return the run; see docs/python.md."""
        run = importlib.import_module("rlvrlab.api").train  # upwards on purpose: the public function has this name too
        return run(recipe, reward=reward, env=env, data=data, overrides=overrides, progress=progress)
