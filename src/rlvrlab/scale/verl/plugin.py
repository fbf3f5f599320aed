"""What verl loads in every Ray process, by its entry-point group `verl.plugins`.

verl is in the middle of its own import then, and hides whatever a plug-in raises. So nothing happens here but to wait:
when one of verl's modules that we add to has been imported, our addition follows. It runs inside that import, outside
verl's try: an error stops the process with its reason, and is printed besides.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

ADDITIONS = {
    "verl.trainer.ppo.core_algos": "algorithms",
    "verl.trainer.ppo.v1.trainer_sync": "trainer",
    "verl.utils.torch_functional": "token_log_probs",
    "verl.workers.engine.fsdp.transformer_impl": "engines",
    "verl.experimental.reward_loop.reward_manager.naive": "reward_manager",
    "verl.experimental.agent_loop.agent_loop": "agent_loop",
    "verl.workers.rollout.base": "cpu_rollout",
    "verl.workers.rollout.replica": "cpu_replica",
}
"""Module of verl -> function of registration.py that adds to it."""


class _Watcher(importlib.abc.MetaPathFinder):
    """Lets the other finders find, and adds to what they load."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in ADDITIONS:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, ADDITIONS[name])
                return spec
        return None


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader, addition: str) -> None:
        self._inner, self._addition = inner, addition

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        add(self._addition, module)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def add(addition: str, module: ModuleType) -> None:
    """Run one addition; what goes wrong is said and stops the import."""
    try:
        refuse_other_code()
        registration = importlib.import_module("rlvrlab.scale.verl.registration")
        getattr(registration, addition)(module)
    except BaseException as error:
        traceback.print_exc()
        print(f"rlvrlab's plug-in could not add {addition} to {module.__name__}: {error}", file=sys.stderr, flush=True)
        raise ImportError(f"rlvrlab's plug-in could not add {addition} to {module.__name__}: {error}") from error


def refuse_other_code() -> None:
    """Every process of a run has the code that it was started with, or takes no part in it."""
    from rlvrlab.scale.code_version import ONE_CODE, code_version
    from rlvrlab.scale.verl import CODE

    wanted = os.environ.get(CODE, code_version())
    if wanted != code_version():
        where = os.uname().nodename
        raise ImportError(f"{where}: the run was started with rlvrlab {wanted}; {ONE_CODE.format(code_version())}")


def _start() -> None:
    if not any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watcher())
    for name, addition in ADDITIONS.items():
        if name in sys.modules:
            add(addition, sys.modules[name])
    if os.environ.get("VERL_PLATFORM") == "cpu":
        add("cpu_platform", sys.modules["verl"])


_start()
