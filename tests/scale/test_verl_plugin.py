"""What verl calls: reward, estimators, losses, and loud failures. No verl here; tests/oracles has the real one."""

from __future__ import annotations

import asyncio
import importlib
import math
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from rlvrlab.advantages.grpo import Grpo
from rlvrlab.batch import Scale, TokenBatch
from rlvrlab.objectives.cispo import Cispo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.reinforce import Reinforce
from rlvrlab.recipe import load_recipe
from rlvrlab.scale.code_version import code_version
from rlvrlab.scale.verl import CODE, PLAN, job, reward
from rlvrlab.scale.verl.advantages import Extras, estimator, laid_out
from rlvrlab.scale.verl.export import export
from rlvrlab.scale.verl.losses import policy_loss, tally
from rlvrlab.types import Verdict, unjudged

RECIPE = """
phases = ["grpo"]
[env]
type = "countdown"
numbers = [2]
style = "bare"
[engine]
type = "verl"
model = "owner/model"
gpus = 1
[data]
train_size = 20
dev_size = 4
[reward]
type = "partial"
[rollout]
n = 4
max_tokens = 6
[grpo]
batch_size = 4
"""


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A process of a run: the plan is where the environment variable says."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    made = export(load_recipe(tmp_path / "recipe.toml"), tmp_path / "out")
    monkeypatch.setenv(PLAN, str(made.folder))
    job.current.cache_clear()
    reward._desks.clear()
    yield job.current()
    job.current.cache_clear()
    reward._desks.clear()


def asked(problem, text: str, tokens: tuple[int, ...] = (1, 2)) -> dict:
    extra = {"id": problem.id, reward.TOKENS: list(tokens), reward.END: 9}
    return asyncio.run(reward.compute_score(problem.source, text, "", extra))


def test_score_and_parts(planned) -> None:
    problem = next(iter(planned.problems.values()))
    gold = planned.env.gold(problem)
    right, wrong = asked(problem, gold), asked(problem, "no")
    assert right["acc"] == right["judged"] == 1.0 and wrong["acc"] == 0.0
    expected = planned.reward(problem, reward.completion_of(planned, gold, (1, 2)), planned.env.verify(problem, gold))
    assert right["score"] == expected.value > wrong["score"]
    assert {f"part/{name}": value for name, value in expected.parts.items()}.items() <= right.items()
    most = planned.resolved.recipe.rollout.max_tokens
    lengths = {(1,) * (most - 1): 0.0, (1,) * most: 1.0, (1,) * (most - 1) + (9,): 0.0}
    assert {tokens: asked(problem, gold, tokens)["truncated"] for tokens in lengths} == lengths


def test_what_cannot_be_judged_is_asked_again_and_never_0(planned, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = next(iter(planned.problems.values()))
    calls = []

    def verify_many(items):
        calls.append(len(items))
        return [unjudged("the judge is away") if len(calls) < 3 else Verdict(True, 1.0) for _ in items]

    monkeypatch.setattr(reward, "FIRST_PAUSE_S", 0.001)
    object.__setattr__(planned, "env", SimpleNamespace(verify_many=verify_many, name="away"))
    assert asked(problem, "x")["acc"] == 1.0 and len(calls) == 3
    calls.clear()
    monkeypatch.setattr(reward, "PATIENCE_S", 0.0)
    lost = asked(problem, "x")
    assert math.isnan(lost["score"]) and lost["judged"] == 0.0 and "away" in lost["detail"]


def test_answers_are_judged_together(planned) -> None:
    problems = list(planned.problems.values())[:8]
    sizes = []

    def verify_many(items):
        sizes.append(len(items))
        return [Verdict(False)] * len(items)

    object.__setattr__(planned, "env", SimpleNamespace(verify_many=verify_many, name="many"))

    async def all_at_once():
        return await asyncio.gather(
            *(reward.compute_score("", str(i), "", {"id": p.id}) for i, p in enumerate(problems))
        )

    assert len(asyncio.run(all_at_once())) == 8
    assert sum(sizes) == 8 and len(sizes) < 8


def test_a_verifier_that_breaks_is_heard(planned) -> None:
    def verify_many(items):
        raise ZeroDivisionError("broken")

    object.__setattr__(planned, "env", SimpleNamespace(verify_many=verify_many, name="broken"))
    with pytest.raises(ZeroDivisionError):
        asked(next(iter(planned.problems.values())), "x")


def test_a_row_of_another_file_is_refused(planned) -> None:
    with pytest.raises(Exception, match="Parquet files of this folder"):
        asyncio.run(reward.compute_score("", "x", "", {"id": "stranger"}))


def test_estimator_leaves_unjudged_and_padding_rows_out() -> None:
    torch = pytest.importorskip("torch")
    mask = torch.ones(5, 3)
    mask[4] = 0
    rewards = torch.zeros(5, 3)
    rewards[:, 2] = torch.tensor([1.0, 0.0, math.nan, 1.0, 0.0])
    with laid_out(Extras()) as given:
        advantage, _ = estimator("grpo")(rewards, mask, index=["a", "a", "a", "b", "b"])
    found = advantage.numpy()
    assert np.isfinite(found).all() and not found[2:].any(), "unjudged, lone and padding rows carry no signal"
    assert found[0, 0] == pytest.approx(0.5 / (math.sqrt(0.5) + Grpo().epsilon)) and found[1, 0] == -found[0, 0]
    assert given.counts["advantage/unjudged_rows"] == 2


def test_estimator_uses_what_the_trainer_lays_out() -> None:
    torch = pytest.importorskip("torch")
    value_BT = np.arange(6.0).reshape(2, 3)
    with laid_out(Extras(value_BT=value_BT)):
        advantage, returns = estimator("gae")(torch.zeros(2, 3), torch.ones(2, 3), index=["a", "b"])
    assert returns.shape == advantage.shape and float(returns.abs().sum()) > 0


def case(rows: int = 6, width: int = 5):
    rng = np.random.default_rng(0)
    mask = np.arange(width)[None, :] < rng.integers(1, width + 1, rows)[:, None]
    return rng.normal(size=(rows, width)) - 2, rng.normal(size=(rows, width)) - 2, rng.normal(size=(rows, width)), mask


@pytest.mark.parametrize("objective", [PpoClip(), Gspo(), Cispo(), Reinforce()], ids=lambda one: one.name)
def test_loss_has_the_objectives_value_and_gradient(objective) -> None:
    """Micro-batches on two data-parallel ranks: the mean over ranks of what they accumulate is the whole's gradient."""
    torch = pytest.importorskip("torch")
    logp, old, advantage, mask = case()
    scale = Scale(int(mask.sum()), 6, 0, 5)
    zeros = np.zeros(mask.shape, dtype=np.int64)
    batch = TokenBatch(((),) * 6, zeros, mask, mask, scale, old_BT=old, advantage_BT=advantage)
    expected = objective(logp, np.zeros_like(logp), batch)
    facts = {"dp_size": 2, "batch_num_tokens": scale.tokens, "global_batch_size": 6, "loss_scale_factor": 5}
    leaf = torch.tensor(logp, requires_grad=True)
    tally.begin()
    value = 0.0
    for rows in ([0, 1], [2], [3, 4], [5]):
        arrays = [torch.tensor(x[rows]) for x in (old, advantage, mask)]
        loss, metrics = policy_loss(objective.name)(
            arrays[0], leaf[rows], arrays[1], arrays[2], config=SimpleNamespace(global_batch_info=facts)
        )
        (loss / 2).backward()
        value += float(loss.detach()) / 2
        assert metrics == {}
    assert value == pytest.approx(expected.value, abs=1e-12)
    np.testing.assert_allclose(leaf.grad.numpy(), expected.c_logp_BT, atol=1e-12)
    whole = objective.metrics(logp, np.zeros_like(logp), batch)
    for name, total in tally.end().items():
        assert total == pytest.approx(whole[name], abs=1e-9), name


def test_an_addition_that_fails_stops_the_import(monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "victim.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin = importlib.import_module("rlvrlab.scale.verl.plugin")
    monkeypatch.setitem(plugin.ADDITIONS, "victim", "no_such_addition")
    with pytest.raises(ImportError, match="could not add no_such_addition to victim"):
        importlib.import_module("victim")
    assert "could not add" in capsys.readouterr().err
    assert "victim" not in sys.modules


def test_a_process_with_other_code_takes_no_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same version number says nothing: an edited copy on one node would pay other rewards."""
    (tmp_path / "victim.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin = importlib.import_module("rlvrlab.scale.verl.plugin")
    registration = importlib.import_module("rlvrlab.scale.verl.registration")
    monkeypatch.setattr(registration, "guest", lambda module: None, raising=False)
    monkeypatch.setitem(plugin.ADDITIONS, "victim", "guest")
    monkeypatch.setenv(CODE, code_version().partition("+")[0] + "+000000000000")
    with pytest.raises(ImportError, match=r"started with rlvrlab \S+\+0{12}; here it is .*same code on all"):
        importlib.import_module("victim")
    monkeypatch.setenv(CODE, code_version())
    importlib.import_module("victim")
    monkeypatch.delitem(sys.modules, "victim")


def test_an_addition_follows_its_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin = importlib.import_module("rlvrlab.scale.verl.plugin")
    registration = importlib.import_module("rlvrlab.scale.verl.registration")
    seen: list[ModuleType] = []
    monkeypatch.setattr(registration, "guest", seen.append, raising=False)
    monkeypatch.setitem(plugin.ADDITIONS, "host", "guest")
    module = importlib.import_module("host")
    assert seen == [module] and module.value == 1
    monkeypatch.delitem(sys.modules, "host")


@pytest.mark.parametrize("error", [OSError("no descriptors"), MemoryError()])
def test_a_failing_machine_leaves_answers_unjudged(planned, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """verl drops an answer whose reward raises, without a count."""

    def fail(*_: object) -> None:
        raise error

    problem = next(iter(planned.problems.values()))
    monkeypatch.setattr(reward, "PATIENCE_S", 0.0)
    monkeypatch.setattr(type(planned.env), "verify_many", fail)
    found = asked(problem, "an answer")
    assert math.isnan(found["score"]) and found["judged"] == 0.0


def test_a_lost_judge_server_leaves_answers_unjudged(planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs go to the named server; without one there is no verdict, and so no reward."""
    from rlvrlab.envs.code import shared_judge
    from rlvrlab.envs.minicode import Minicode
    from rlvrlab.judge.fusion import client

    monkeypatch.setattr(client, "FusionClient", partial(client.FusionClient, give_up_s=0.2, attempts=1))
    monkeypatch.setattr(reward, "PATIENCE_S", 0.0)
    env = Minicode(skills=("gen",))
    problem = env.problems("train", 1, seed=0)[0]
    object.__setattr__(planned, "env", env)
    object.__setattr__(planned, "problems", {problem.id: problem})
    object.__setattr__(planned, "judges", ("http://127.0.0.1:9",))
    shared_judge.close()
    try:
        lost = asked(problem, env.gold(problem))
        assert math.isnan(lost["score"]) and lost["judged"] == 0.0 and "127.0.0.1:9" in lost["detail"]
    finally:
        shared_judge.close()
