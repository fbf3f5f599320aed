"""`rlvr export verifiers`: a package that verifiers itself loads, with our reward as its rubric."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.errors import RecipeError
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.registry import find
from rlvrlab.scale.exports.verifiers import export, left_to_trainer, package_name, refusals
from rlvrlab.types import Completion, Finish, unjudged

RECIPE = """
name = "Small sums"
phases = ["grpo"]
env = {type = "countdown", numbers = [2], high = 20, style = "bare"}
reward = {type = "binary_format"}
data = {train_size = 12, dev_size = 4}
grpo = {steps = 3, batch_size = 6}
"""


def recipe(folder: Path, *overrides: str) -> Resolved:
    (folder / "r.toml").write_text(RECIPE.replace("Small sums", "small-sums"))
    return load_recipe(folder / "r.toml", overrides)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("kl={coef=0.1,place='reward'}", "kl.place"),
        ("phases=['grpo','repair']", "phases"),
        ("reward={type='overlong'}", "reward"),
        ("protocol.type=mixed", "protocol"),
    ],
)
def test_what_would_change_the_reward_is_refused_by_name(tmp_path: Path, override: str, key: str) -> None:
    resolved = recipe(tmp_path, override, "repair.batch_size=4")
    assert [text.split()[0].rstrip(":") for text in refusals(resolved)] == [key]
    with pytest.raises(RecipeError):
        export(resolved, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_rest_is_named_as_the_trainers(tmp_path: Path) -> None:
    resolved = recipe(tmp_path, "rollout.n=16")
    left = left_to_trainer(resolved)
    assert left["rollout.n"] == 16 and left["grpo.steps"] == 3 and not any(key.startswith("env") for key in left)
    made = export(resolved, tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text()
    assert all(f"`{key} = " in page for key in made.left_to_trainer) and "@" not in page.replace("…@", "")
    assert package_name("My run-2.0") == "rlvr_my_run_2_0"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("verifiers.v1", reason="needs verifiers 0.4: pip install verifiers")
    export(recipe(tmp_path), tmp_path / "out")
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    import rlvr_small_sums

    yield rlvr_small_sums
    for name in [name for name in sys.modules if name.startswith("rlvr_small_sums")]:
        del sys.modules[name]


def reply(task: Any, text: str) -> Any:
    """A trace that ends with this answer."""
    import verifiers.v1 as vf
    from verifiers.v1.types import AssistantMessage

    config = vf.AgentConfig()
    trace = vf.Trace(task=vf.TraceTask(type="RlvrTask", data=task.data), agent=vf.AgentInfo(config=config))
    trace.nodes.append(vf.MessageNode(parent=None, message=AssistantMessage(content=text), sampled=True))
    return trace


def test_verifiers_loads_it_and_scores_as_we_do(package: Any) -> None:
    env = find("env", "countdown")(numbers=(2,), high=20, style="bare")
    built = package.load_environment("dev")
    tasks = list(built.taskset)
    problems = env.problems("dev", 4, 0)
    assert [task.data.prompt_text for task in tasks] == [problem.prompt for problem in problems]
    reward = find("reward", "binary_format")()
    for task, problem in zip(tasks, problems, strict=True):
        for text in (env.gold(problem), "1+1", "no idea"):
            trace = reply(task, text)
            asyncio.run(task.score(trace))
            expected = reward(problem, Completion(text, (), (), Finish.STOP), env.verify(problem, text)).value
            assert trace.reward == pytest.approx(expected)
    assert len(list(package.load_environment("train").taskset)) == 12


def test_an_answer_that_cannot_be_judged_is_an_error_and_not_zero(
    package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verifiers.v1.errors import TaskError

    environment = type(package.taskset.SCORER.resolved.build("env"))
    monkeypatch.setattr(environment, "verify_many", lambda self, items: [unjudged("down")] * len(items))
    task = next(iter(package.load_environment().taskset))
    with pytest.raises(TaskError, match="could be judged"):
        asyncio.run(task.score(reply(task, "1+1")))


def test_the_data_hold_the_whole_problem(tmp_path: Path) -> None:
    made = export(recipe(tmp_path), tmp_path / "out")
    rows = [json.loads(line) for line in (made.folder / made.package / "train.jsonl").read_text().splitlines()]
    assert len(rows) == 12 and rows[0]["prompt"][0]["role"] == "user"
    assert json.loads(rows[0]["rlvr_problem"])["extra_info"]["split"] == "train"
