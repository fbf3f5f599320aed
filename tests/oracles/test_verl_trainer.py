"""The trainer's hooks on a batch in a stand-in for the TransferQueue, with verl's tensors: credit, masks, labels."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rlvrlab.errors import InfrastructureError
from rlvrlab.recipe import load_recipe
from rlvrlab.scale.verl import PLAN, job
from rlvrlab.scale.verl.advantages import estimator
from rlvrlab.scale.verl.export import export
from rlvrlab.scale.verl.trainer import TrainerHooks
from rlvrlab.train.credit.methods import credit_of
from rlvrlab.types import Sampling

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
RECIPE = """
phases = ["grpo"]
[env]
type = "minicode"
skills = ["gen", "out"]
levels = [1]
[engine]
type = "verl"
model = "nano"
gpus = 1
[data]
train_size = 8
dev_size = 2
[rollout]
n = 4
max_tokens = 400
[grpo]
batch_size = 4
[surgery]
type = "pcgrad"
group_strategy = "task_type"
noise_every = 0
[credit]
type = "counterfactual"
counterfactual_k = 0
intervention_types = ["delete"]
"""


class Queue:
    """Rows by key: as much of the TransferQueue as the hooks use."""

    def __init__(self, rows: dict[str, dict]) -> None:
        self.rows = rows

    def kv_batch_get(self, keys, partition_id, select_fields):
        from verl.utils.tensordict_utils import list_of_dict_to_tensordict

        return list_of_dict_to_tensordict([{name: self.rows[key][name] for name in select_fields} for key in keys])

    def kv_batch_put(self, keys, partition_id, fields):
        for name, column in fields.items():
            for key, row in zip(keys, column.unbind(), strict=True):
                self.rows[key][name] = row


class Base:
    """verl's trainer, as far as the hooks lean on it."""

    use_critic = False

    def __init__(self, config) -> None:
        self.config, self.replay_buffer = config, SimpleNamespace(poll_interval=2.0)

    def _compute_advantage(self, batch, metrics):
        import torch

        rows = [self.queue.rows[key] for key in batch.keys]
        width = max(len(row["rm_scores"]) for row in rows)

        def padded(name):
            return torch.stack(
                [torch.nn.functional.pad(row[name].double(), (0, width - len(row[name]))) for row in rows]
            )

        found, _ = estimator("grpo")(padded("rm_scores"), padded("response_mask"), index=[row["uid"] for row in rows])
        for row, advantage in zip(rows, found, strict=True):
            row["advantages"] = advantage[: len(row["rm_scores"])]
        return SimpleNamespace(**{**vars(batch), "fields": ["responses"], "extra_info": {}})

    def _update_actor(self, batch, metrics):
        metrics["updated"] = True
        return batch


class Hooked(TrainerHooks, Base):
    tokenizer = SimpleNamespace(
        decode=lambda tokens, skip_special_tokens=True: "".join(map(chr, tokens)),
        encode=lambda text, add_special_tokens=False: [ord(c) for c in text],
        eos_token_id=0,
    )
    global_steps = 1


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("verl", "tensordict", "omegaconf"):
        pytest.importorskip(name, reason="needs verl's environment: make verl-test")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    folder = export(load_recipe(tmp_path / "recipe.toml"), tmp_path / "out").folder
    monkeypatch.setenv(PLAN, str(folder))
    job.current.cache_clear()

    def made(answers):
        """(uid, problem, text, score) of each row -> trainer, batch, queue."""
        import sys

        import torch
        from omegaconf import OmegaConf

        rows, tags = {}, []
        for i, (uid, problem, text, score) in enumerate(answers):
            judged = not math.isnan(score)
            info = {"judged": float(judged), "acc": score, "error": "none", "part/binary": score, "detail": "away"}
            tokens = torch.tensor([ord(c) for c in text])
            scores = torch.zeros(len(text))
            scores[-1] = score
            ones = torch.ones(len(text), dtype=torch.int64)
            rows[f"{uid}_{i}_0"] = {
                "uid": uid, "extra_info": {"id": problem.id}, "extra_fields": {"reward_extra_info": info},
                "rm_scores": scores, "prompts": torch.tensor([1, 2]), "responses": tokens, "response_mask": ones,
                "loss_mask": ones,
            }  # fmt: skip
            tags.append({"is_padding": uid == "padding"})
        queue = Queue(rows)
        monkeypatch.setitem(sys.modules, "transfer_queue", queue)
        monkeypatch.setattr(Base, "queue", queue, raising=False)
        trainer = Hooked(OmegaConf.create({"trainer": {"v1": {"trainer_mode": "rlvr_sync"}}}))
        assert trainer.config.trainer.v1.trainer_mode == "sync"
        batch = SimpleNamespace(keys=list(rows), tags=tags, partition_id="train", fields=None, extra_info={})
        return trainer, batch, queue

    yield made
    job.current.cache_clear()


def two(skill: str):
    found = [p for p in job.current().problems.values() if p.skill == skill and p.role == "train"]
    return found[:2]


def test_credit_masks_and_labels(world) -> None:
    current = job.current()
    gen, dead = two("gen")
    (out, _) = two("out")
    gold = current.env.gold(gen)
    answers = [
        ("a", gen, gold, 1.0), ("b", out, "never", 0.0), ("a", gen, "def f(x):\n    return None\n", 0.0),
        ("a", gen, gold + "\n", 1.0), ("b", out, current.env.gold(out), 1.0), ("a", gen, "lost", math.nan),
        ("d", dead, "no", 0.0), ("d", dead, "nor this", 0.0), ("padding", gen, "x", 0.0),
    ]  # fmt: skip
    trainer, batch, queue = world(answers)
    before = {key: row.copy() for key, row in queue.rows.items()}
    metrics: dict = {}
    after = trainer._compute_advantage(batch, metrics)
    rows = [queue.rows[key] for key in batch.keys]

    trained = [bool(row["loss_mask"].any()) for row in rows]
    assert trained[:6] == [True, True, True, True, True, False], "the unjudged answer is not trained on"
    assert not trained[6] and not trained[7], "a group without signal is dropped"
    assert [int(row["rlvr_group"]) for row in rows] == [0, 1, 0, 0, 1, 0, 0, 0, -1]
    assert "rlvr_group" in after.fields, "verl hands workers the fields that are listed"
    facts = after.extra_info["rlvr_facts"]
    assert facts["names"] == ["gen", "out"] and facts["owner"] == [0, 1]
    assert all(np.isfinite(row["advantages"].numpy()).all() for row in rows)

    found = trainer._rlvr_metrics
    assert (found["groups/unjudged_rows"], found["groups/all_wrong"], found["credit/steps"] > 0) == (1.0, 1.0, True)
    stored = (current.folder / "rollouts" / "step_1.jsonl").read_text().splitlines()
    assert len(stored) == 8

    from rlvrlab.scale.verl.collection import Collection

    again = Collection.fetch(current, batch, Hooked.tokenizer, 0)
    plugin = current.resolved.build("credit")
    credits = credit_of(plugin, again.rollouts, current.env, current.reward, again.sampler, Sampling(400))
    one = credits.answers[again.rollouts[0].id]
    group_T = estimator_advantage(before, batch)[0]
    expected = plugin.mapped(np.asarray(group_T, dtype=float), one.trajectory.step_T, one.credit_S)
    np.testing.assert_allclose(rows[0]["advantages"].numpy(), expected, atol=1e-6)
    assert np.abs(rows[0]["advantages"].numpy() - group_T).min() > 0.1, "step credit was added to the group's advantage"

    trainer._update_actor(after, metrics)
    assert metrics["updated"]


def estimator_advantage(before, batch):
    base = Base(None)
    base.queue = Queue({key: dict(row) for key, row in before.items()})
    base._compute_advantage(batch, {})
    return [base.queue.rows[key]["advantages"].tolist() for key in batch.keys]


def test_nothing_to_learn_from_is_no_update(world) -> None:
    gen, other = two("gen")
    trainer, batch, queue = world(
        [("a", gen, "no", 0.0), ("a", gen, "nor", 0.0), ("b", other, "?", 0.0), ("b", other, "!", 0.0)]
    )
    metrics: dict = {}
    after = trainer._compute_advantage(batch, metrics)
    assert all(bool(row["loss_mask"].all()) for row in queue.rows.values()), "verl's metrics need rows"
    trainer._update_actor(after, metrics)
    assert "updated" not in metrics and metrics["actor/silent"] == 1.0


def test_a_lost_judge_stops_the_run(world) -> None:
    gen, _ = two("gen")
    trainer, batch, _ = world([("a", gen, "x", math.nan), ("a", gen, "y", math.nan), ("a", gen, "z", 1.0)])
    with pytest.raises(InfrastructureError, match=r"2 of 3 answers could not be judged \(away\)"):
        trainer._compute_advantage(batch, {})


def test_held_out_answers_are_counted_as_without_verl(world) -> None:
    """By skill too; an answer that was cut off counts whether it could be judged or not."""
    trainer, _, _ = world([])
    names = [one.id for skill in ("gen", "gen", "out") for one in two(skill)[:1]]
    infos = {
        "problem": names, "acc": [1.0, math.nan, 0.0], "judged": [1.0, 0.0, 1.0], "truncated": [0.0, 1.0, 1.0],
        "error": ["none", "infra", "syntax"],
    }  # fmt: skip
    found = trainer._val_metrics_update([], [], infos, [])
    told = {name.removeprefix("val-core/minicode/"): value for name, value in found.items()}
    assert (told["acc"], told["unjudged"], told["truncated"], told["error/syntax"]) == (0.5, 1.0, 2.0, 1.0)
    assert (told["gen/acc"], told["out/acc"]) == (1.0, 0.0)
