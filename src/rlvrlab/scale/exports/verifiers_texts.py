"""The texts of a package exported for verifiers."""

from __future__ import annotations

INIT = '''"""@NAME@ as an environment for verifiers."""

from verifiers.v1.harnesses.null import NullHarness  # one question, one answer: no shell, no tools

from @PACKAGE@.taskset import RlvrTaskset, load_environment

__all__ = ["NullHarness", "RlvrTaskset", "load_environment"]
'''
TASKSET = '''"""Problems, and the recipe's own environment, judge and reward as rubric.

An answer that could not be judged raises, so that its rollout counts as failed: it is never worth 0.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import verifiers.v1 as vf

from rlvrlab.scale.exports.folder import Scorer
from rlvrlab.types import Completion, Finish

HERE = Path(__file__).parent
SCORER = Scorer(HERE)


class RlvrData(vf.TaskData):
    """One problem."""

    rlvr_problem: str
    skill: str


class RlvrTask(vf.Task[RlvrData]):
    """One answer to it."""

    @vf.reward(weight=1.0)
    async def rlvr(self, trace: vf.Trace) -> dict[str, float]:
        """The named parts of the reward; they add up to it."""
        said = trace.assistant_messages
        finish = Finish.LENGTH if trace.is_truncated else Finish.STOP
        completion = Completion((said[-1].content or "") if said else "", (), (), finish)
        (scored,) = await asyncio.to_thread(SCORER.score, [self.data.rlvr_problem], [completion])
        parts = {f"rlvr_{name}": value for name, value in scored.reward.parts.items()}
        return parts or {"rlvr": scored.reward.value}


class RlvrConfig(vf.TasksetConfig):
    """Which problems."""

    split: Literal["train", "dev"] = "train"


class RlvrTaskset(vf.Taskset[RlvrTask, RlvrConfig]):
    """The recipe's problems."""

    def load(self) -> Iterator[RlvrTask]:
        """From the files of this package."""
        with (HERE / f"{self.config.split}.jsonl").open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                name = json.loads(row["rlvr_problem"])["extra_info"]["id"]
                yield RlvrTask(RlvrData(id=name, name=name, **row), self.config.task)


def load_environment(split: str = "train") -> vf.Env:
    """The environment, as verifiers builds it from this package's id."""
    from verifiers.v1.utils.loaders import load_environment as build
    from verifiers.v1.utils.loaders import resolve_env_config

    return build(resolve_env_config({"taskset": {"id": "@DASHED@", "split": split}}))
'''
PYPROJECT = """[project]
name = "@DASHED@"
version = "0.1.0"
description = "@NAME@: problems and a verifiable reward, exported by rlvrlab"
requires-python = ">=3.11"
dependencies = ["verifiers>=@VERSION@", "rlvrlab==@OURS@"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["@PACKAGE@"]
"""
README = """# @DASHED@

@COUNTS@ and their reward, for verifiers @VERSION@ and whatever trains with it. Made by `rlvr export verifiers`.

    pip install -e .
    vf-eval @DASHED@ -m MODEL --client.base-url http://127.0.0.1:8000/v1 --sampling.max-tokens @MAX_TOKENS@ \\
        --env.agent.runtime.type subprocess --no-push
    RLVR_JUDGE=http://HOST:8080 vf-eval …        have programs judged by `rlvr serve judge`

Without `--env.agent.runtime.type subprocess` verifiers asks its own cloud for a sandbox that is not needed here.

`--env.taskset.split dev` asks the held-out problems instead. Each problem is one user message, and its answer is judged
by the recipe's own environment, judge and reward (`@PACKAGE@/recipe.json`). The parts of the reward are named `rlvr_…`
and add up to it. An answer that could not be judged fails its rollout with a TaskError; it is never worth 0.

An environment has no say in how a policy is trained. These keys of the recipe are left to the trainer:

@LEFT@
"""
