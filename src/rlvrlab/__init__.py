"""rlvrlab: the laboratory for reinforcement learning with verifiable rewards.

    run = rlvrlab.train("recipe.toml", reward=my_function)     docs/python.md

Everything below is imported when it is first used, so that `import rlvrlab` costs nothing.
"""

import importlib

__version__ = "0.1.0"

_OFFERED = {
    "rlvrlab.api": ("Comparison", "Evaluation", "Run", "compare", "environment", "evaluate", "load_recipe"),
    "rlvrlab.errors": ("LabError", "UserError"),
    "rlvrlab.types": ("Completion", "Problem", "Verdict"),
}
_HOMES = {name: module for module, names in _OFFERED.items() for name in names}
"""Public name -> the module it is taken from. `train` is missing: the package of that name can itself be called."""

__all__ = [*sorted(_HOMES), "__version__", "train"]


def __getattr__(name: str) -> object:
    if name == "train":
        return importlib.import_module("rlvrlab.train")
    if name not in _HOMES:
        raise AttributeError(f"module 'rlvrlab' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
