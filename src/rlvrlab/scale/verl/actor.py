"""The actor's update inside verl: per-skill gradients, surgery and the skill-safe step on FSDP shards.

verl's engine makes one backward pass over a mini-batch and steps. Here each group of rows gets a pass of its own, with
its own normalisers and free of verl's data-parallel scaling; the Gramian of the groups' gradients goes through the
same surgery code as everywhere, and the optimiser steps along the weighted sum. The trainer (trainer.py) sends group
labels with the rows, since verl itself knows none. These are hooks before verl's own engine class.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.scale.verl.guarding import ActorShards, ShardGuard
from rlvrlab.scale.verl.job import current
from rlvrlab.scale.verl.log_probs import padded_outputs
from rlvrlab.scale.verl.losses import tally
from rlvrlab.scale.verl.rows import Ranks, counts, part_of
from rlvrlab.surgery.base import Memory, Scene, Surgery
from rlvrlab.train.surgery import operate
from rlvrlab.train.update import Backward, Gradients, apply, learning_rate, shares

GROUP, FACTS = "rlvr_group", "rlvr_facts"
"""Fields of a batch: the group of each row, and what is known of the groups."""
RULES = "rlvr_rules.json"
"""Beside verl's checkpoint: what surgery and guard remember."""


class EngineHooks:
    """Mixin placed before verl's FSDP engine with a language model head, so that its methods come first."""

    _rlvr_memory: Memory
    _rlvr_guard: ShardGuard | None

    def initialize(self) -> None:
        """verl's own, then what surgery and guard need."""
        super().initialize()  # type: ignore[misc]
        job = current()
        self._rlvr_memory = {}
        self._rlvr_surgery: Surgery | None = job.resolved.build("surgery")
        self._rlvr_guard = ShardGuard(job, self) if job.resolved.recipe.guard else None

    def _build_lr_scheduler(self, optimizer: Any) -> Any:
        """The recipe's schedule; verl steps it once per collection."""
        from torch.optim.lr_scheduler import LambdaLR

        job = current()
        settings, steps = job.resolved.recipe.optimizer, job.phase.steps
        return LambdaLR(optimizer, lambda step: learning_rate(1.0, step, steps, settings))

    def train_batch(self, data: Any, loss_function: Any) -> Any:
        """One optimiser step on a mini-batch."""
        rows, tokens, _ = counts(data, np.zeros(len(data), dtype=np.int64), 1, self.rlvr_ranks())[0]
        if not tokens:  # an optimiser would move on by its momentum
            return {"model_output": {}, "loss": [0.0], "metrics": {"grad_norm": 0.0, "actor/silent_update": [1.0]}}
        if self._rlvr_surgery is None and self._rlvr_guard is None:
            return self._rlvr_plain(data, loss_function, int(rows))
        from verl.utils import tensordict_utils as tu

        facts = tu.get(data, FACTS, None) if GROUP in set(data.keys()) else None
        if facts is None:
            raise RuntimeError("surgery or guard is asked for, but the rows have no groups: not our trainer's")
        return self._rlvr_groups(data, loss_function, dict(facts))

    def prepare_model_outputs(
        self, output: Any, output_args: dict[str, Any], micro_batch: Any, logits_processor_func: Any
    ) -> dict[str, Any]:
        """Numbers of each token; padded rows are not cut into pieces with gradients as large as all logits each."""
        from verl.utils import tensordict_utils as tu

        def asked(name: str, usual: bool = False) -> bool:
            return bool(tu.get_non_tensor_data(data=micro_batch, key=name, default=usual))

        others = ("use_fused_kernels", "calculate_sum_pi_squared", "distillation_use_topk", "distillation_only")
        if asked("use_remove_padding", True) or any(map(asked, others)) or hasattr(output.logits, "full_tensor"):
            return dict(super().prepare_model_outputs(output, output_args, micro_batch, logits_processor_func))  # type: ignore[misc]
        logits = output.logits
        if not output_args.get("temperature_is_one", False):
            logits = logits / output_args["temperature"].clamp(min=1e-8)[:, None, None].to(logits.dtype)
        needed = current().resolved.recipe.entropy.coef > 0 if asked("calculate_entropy") else None
        return padded_outputs(logits, micro_batch["input_ids"], output_args["input_ids_rmpad_rolled"], needed)

    def save_checkpoint(self, local_path: str, *arguments: Any, **named: Any) -> Any:
        """verl's own, and beside it what surgery and guard remember."""
        import torch

        found = super().save_checkpoint(local_path, *arguments, **named)  # type: ignore[misc]
        # On every rank, because `plain` makes the guard forget what all ranks must then compute anew together.
        memory = {"surgery": self._rlvr_memory, "guard": self._rlvr_guard.plain() if self._rlvr_guard else {}}
        if torch.distributed.get_rank() == 0:
            Path(local_path, RULES).write_text(json.dumps(memory), encoding="utf-8")
        return found

    def load_checkpoint(self, local_path: str, *arguments: Any, **named: Any) -> Any:
        """Load verl's own checkpoint, and what surgery and guard remembered beside it."""
        found = super().load_checkpoint(local_path, *arguments, **named)  # type: ignore[misc]
        path = Path(local_path or "", RULES)
        if local_path and path.is_file():
            memory = json.loads(path.read_text(encoding="utf-8"))
            self._rlvr_memory = memory["surgery"]
            if self._rlvr_guard:
                self._rlvr_guard.restore(memory["guard"])
        return found

    @property
    def rlvr_guarded(self) -> bool:
        """Does a guard want to know what the optimiser really did?"""
        return self._rlvr_guard is not None

    def rlvr_ranks(self) -> Ranks:
        """The ranks among which rows are divided."""
        engine: Any = self
        device = next(iter(engine.module.parameters())).device
        group = engine.get_data_parallel_group()
        return Ranks(engine.get_data_parallel_size(), engine.get_data_parallel_rank(), group, device)

    def _rlvr_plain(self, data: Any, loss_function: Any, rows: int) -> Any:
        """verl's own step; means over rows count those that have something to train on."""
        from verl.utils import tensordict_utils as tu

        ranks = self.rlvr_ranks()
        tu.assign_non_tensor(data, global_batch_size=rows)
        tally.begin()
        outputs = super().train_batch(data, loss_function)  # type: ignore[misc]
        outputs["metrics"].update({name: [value * ranks.size] for name, value in tally.end().items()})
        return outputs

    def _rlvr_groups(self, data: Any, loss_function: Any, facts: dict[str, Any]) -> Any:
        """A backward pass for every group of rows, surgery on their Gramian, and one step."""
        column = data[GROUP].values() if data[GROUP].is_nested else data[GROUP].reshape(-1)
        label_B = np.asarray(column.cpu(), dtype=np.int64)
        count_A3 = counts(data, label_B, len(facts["owner"]), self.rlvr_ranks())
        present = [a for a in range(len(count_A3)) if count_A3[a, 1] > 0]
        owners = sorted({facts["owner"][a] for a in present})
        owner_A = [owners.index(facts["owner"][a]) for a in present]
        count_S2 = np.zeros((len(owners), 2))
        np.add.at(count_S2, owner_A, count_A3[present, :2])
        shards, passes = ActorShards(self), []
        self.optimizer_zero_grad()  # type: ignore[attr-defined]
        for a, owner in zip(present, owner_A, strict=True):
            part = part_of(data, np.flatnonzero(label_B == a).tolist(), int(count_A3[a, 2]))
            value, metrics = self._rlvr_pass(part, loss_function, count_A3[a, :2], count_S2[owner])
            passes.append(Backward(shards.take(), owner, value, metrics))
        share_S = shares(count_S2[:, 0], count_S2[:, 1], current().objective.aggregation)
        return self._rlvr_update(shards, Gradients.of(passes, share_S), owners, facts)

    def _rlvr_pass(
        self, part: Any, loss_function: Any, own_2: Floats, whole_2: Floats
    ) -> tuple[float, dict[str, float]]:
        """Backward of (part of) a group; both counts are (rows, tokens) with loss, over all ranks.

        Loss and entropy are those of all ranks; the other metrics are such that the mean over ranks is right.
        """
        from verl.utils import tensordict_utils as tu

        column = {"token-sum": None, "token-mean": 1}.get(current().objective.aggregation, 0)
        factor = 1.0 if column is None else float(own_2[column] / max(1.0, whole_2[column]))
        tu.assign_non_tensor(part, global_batch_size=max(1, int(own_2[0])))

        def scaled(**given: Any) -> Any:
            loss, metrics = loss_function(**given)
            return loss * factor, metrics

        tally.begin()
        outputs = self.forward_backward_batch(part, scaled, forward_only=False)  # type: ignore[attr-defined]
        ranks = self.rlvr_ranks()
        metrics = {name: value * ranks.size * factor for name, value in tally.end().items()}
        sums = {name: one for name, one in outputs["metrics"].items() if hasattr(one, "aggregate")}
        metrics |= {name: float(one.aggregate()) * factor for name, one in sums.items()}
        both = [float(np.sum(outputs["loss"])), metrics.get("actor/entropy_loss", 0.0)]
        value, entropy = ranks.total(both) / ranks.size
        known = {"actor/entropy": float(entropy)} if "actor/entropy_loss" in metrics else {}
        return float(value), metrics | known

    def _rlvr_update(
        self, shards: ActorShards, found: Gradients, owners: list[int], facts: dict[str, Any]
    ) -> dict[str, Any]:
        weight_S = found.share_S
        metrics: dict[str, float] = {}
        if self._rlvr_surgery is not None:
            names = tuple(str(facts["names"][s]) for s in owners)
            success_S = np.array([facts["success"][s] for s in owners])
            scene = Scene(np.zeros((0, 0)), found.share_S, success_S, names, tuple(facts["key"]))
            try:
                operated = operate(shards, self._rlvr_surgery, found, scene, self._rlvr_memory)
                found, weight_S, self._rlvr_memory, metrics = operated
            except (np.linalg.LinAlgError, ValueError) as error:  # on every rank alike: they share the Gramian
                shards.release(found.vectors)
                failed = "surgery/failed" if isinstance(error, np.linalg.LinAlgError) else "actor/skipped"
                return {"model_output": {}, "loss": [0.0], "metrics": {"grad_norm": 0.0, failed: [1.0]}}
        rate = self.optimizer.param_groups[0]["lr"]  # type: ignore[attr-defined]
        # verl's optimizer_step does the clipping; a limit of 0 turns off ours.
        if self._rlvr_guard is None:
            applied, _ = apply(shards, found, weight_S, rate, 0.0)
        else:
            guard, now = self._rlvr_guard, self._rlvr_guard.moment(int(facts["step"]))
            applied, guard.kept = apply(shards, found, weight_S, rate, 0.0, guard.guard, now, guard.kept)
            guard.tell(now)
        done: dict[str, Any] = {name: [value] for name, value in (applied.metrics | metrics).items()}
        done |= {"grad_norm": done.pop("actor/grad_norm")[0], "actor/skipped": [float(applied.skipped)]}
        return {"model_output": {}, "loss": [float(found.value_S @ found.share_S)], "metrics": done}
