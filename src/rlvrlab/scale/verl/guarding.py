"""The recipe's guard inside verl's update: the same guard as everywhere, with what a shard can do.

Nothing is sampled in the middle of an update, so protected skills are remembered by the reference answers in the job.
The rows of the memory are divided among the ranks like any others. A guard's anchors are parameters of an earlier step:
each rank keeps its own shard of them under anchors/ in the job's folder and rebuilds from there after a resume.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rlvrlab.batch import Scale, TokenBatch
from rlvrlab.errors import InfrastructureError
from rlvrlab.objectives.sft import Sft
from rlvrlab.scale.verl.job import Job
from rlvrlab.scale.verl.rows import part_of
from rlvrlab.scale.verl.shards import Shards, Vector
from rlvrlab.scale.verl.told import write_events
from rlvrlab.train.guards.base import Guard
from rlvrlab.train.lab import stages_of
from rlvrlab.train.state import NOTHING, Kept, Moment, Stage, stage_at
from rlvrlab.types import Objective


class ShardGuard:
    """A guard, what it remembers, and the moments it is asked at."""

    def __init__(self, job: Job, engine: Any) -> None:
        guard: Guard = job.resolved.build("guard")
        self.guard = guard
        self.kept: Kept = NOTHING
        self._job, self._engine = job, engine
        self._begun: int | None = None
        self._rebuilt = True
        self._told = -1
        """The step whose events were written last."""

    def plain(self) -> dict[str, Any]:
        """Plain data for a checkpoint; what it does not hold is forgotten, as in a resumed run."""
        self.kept = self.guard.saved(self.kept)
        return {"stage": self._begun, **self.kept.memory}

    def restore(self, plain: dict[str, Any]) -> None:
        """Back from a checkpoint; anchors are rebuilt when the parameters are next at hand."""
        self._begun = plain.get("stage")
        self.kept = Kept({name: value for name, value in plain.items() if name != "stage"})
        self._rebuilt = False

    def moment(self, step: int) -> Moment:
        """Where training stands; begins a stage where one is due."""
        stage, recipe, shards = stage_at(self._stages, step), self._job.resolved.recipe, ActorShards(self._engine)
        protected = self.guard.protected_in(stage, self._stages)
        now = Moment(stage, protected, self._job.phase.name, step, step, recipe.seed, self._job.train, engine=shards)
        if not self._rebuilt:
            self._rebuild(shards)
        if self._begun != stage.index:
            if len(self._stages) > 1:
                now.events.append(("stage", f"stage {stage.index + 1} of {len(self._stages)} begins: {stage.name}"))
            self.kept = self.guard.begin(now, self._with_references())
            self._begun = stage.index
            for anchor in self.guard.anchors(self.kept) & {step}:
                shards.write(self._anchor_file(anchor))
        return now

    def tell(self, now: Moment) -> None:
        """Leave what was said in this update for the process that follows verl; all ranks say the same, one writes."""
        import torch

        if now.events and torch.distributed.get_rank() == 0:
            write_events(self._job.folder, now.step, now.events, begun=self._told != now.step)
            self._told = now.step

    @cached_property
    def _stages(self) -> list[Stage]:
        return stages_of(self._job.resolved.build("protocol"), self._job.train, self._job.phase.steps)

    def _anchor_file(self, step: int) -> Any:
        import torch

        # By process, not by data-parallel rank: with sequence parallelism several shards share one of those.
        return self._job.folder / "anchors" / f"step_{step}_rank_{torch.distributed.get_rank()}.safetensors"

    def _rebuild(self, shards: ActorShards) -> None:
        aside = shards.snapshot()
        for step in sorted(self.guard.anchors(self.kept)):
            path = self._anchor_file(step)
            if not path.is_file():
                raise InfrastructureError(
                    f"{path}: the guard's anchor is missing; resume with as many processes as the run began with"
                )
            shards.read(path)
            self.kept = self.guard.rebuild(shards, self.kept, step)
        shards.restore(aside)
        self._rebuilt = True

    def _with_references(self) -> Kept:
        """What is remembered, with the job's reference answers in place of sampled ones."""
        tokenizer = self._engine.model_config.tokenizer
        answers: dict[str, dict[str, Any]] = {}
        for skill, pairs in self._job.memory.items():
            for i, (prompt, gold) in enumerate(pairs):
                message = [{"role": "user", "content": prompt}]  # as verl's rollouts ask
                asked = tokenizer.apply_chat_template(
                    message, add_generation_prompt=True, tokenize=True, return_dict=False
                )
                answer = [*tokenizer.encode(gold, add_special_tokens=False), tokenizer.eos_token_id]
                answers.setdefault(skill, {})[str(i)] = {"prompt": list(asked), "answers": [answer]}
        return self.kept._replace(memory={**self.kept.memory, **({"answers": answers} if answers else {})})


class ActorShards(Shards):
    """The verbs that update and guard ask of an engine, on the shards of verl's actor."""

    def __init__(self, engine: Any) -> None:
        import torch

        mesh = engine.device_mesh
        # In a hybrid mesh only the last dimension shards; along the other one parameters are copies.
        group = mesh.get_group(mesh.ndim - 1)
        several = torch.distributed.get_world_size() > 1
        super().__init__(engine.module.parameters(), group, several, engine.optimizer_step, engine.rlvr_guarded)
        self._engine = engine

    def gradient(self, batch: TokenBatch, objective: Objective) -> tuple[Vector, float, dict[str, float]]:
        """Gradient on rows that every rank has; each computes its share. Gradients already collected are kept aside."""
        engine, ranks = self._engine, self._engine.rlvr_ranks()
        aside = self.take()
        mine = list(range(ranks.rank, len(batch), ranks.size))
        data = part_of(_data(engine, batch), mine, -(-len(batch) // ranks.size))
        outputs = engine.forward_backward_batch(data, _loss(objective, batch.scale), forward_only=False)
        vector = self.take()
        for parameter, gradient in zip(self.parameters, aside, strict=True):
            parameter.grad = gradient
        value = float(ranks.total(float(np.sum(outputs["loss"])))) / ranks.size
        return vector, value, {}

    def fisher(self, batch: TokenBatch) -> Vector:
        """The mean over rows of the squared gradient of one row's log-likelihood: a backward pass for each row."""
        total: Vector = [None] * len(self.parameters)
        objective = Sft(aggregation="token-sum")
        for row in range(len(batch)):
            vector, _, _ = self.gradient(batch.rows([row]).rescaled(), objective)
            squares = [None if one is None else one.detach() ** 2 / len(batch) for one in vector]
            total = [b if a is None else a if b is None else a + b for a, b in zip(total, squares, strict=True)]
        return total


def _loss(objective: Objective, scale: Scale) -> Any:
    """Coefficient form, as in losses.py, with the scale of the whole memory."""

    def compute(model_output: Any, data: Any, dp_group: Any = None) -> tuple[Any, dict[str, Any]]:
        import torch
        from verl.workers.utils.padding import no_padding_2_padding

        log_prob = no_padding_2_padding(model_output["log_probs"], data)
        mask = data["response_mask"].to_padded_tensor(0).bool()
        mask_BT = mask.cpu().numpy()
        logp_BT = log_prob.detach().cpu().double().numpy()
        rows = ((),) * len(mask_BT)
        batch = TokenBatch(rows, np.zeros(mask_BT.shape, dtype=np.int64), mask_BT, mask_BT, scale)
        loss = objective(logp_BT, np.zeros_like(logp_BT), batch)
        ranks = int(data["dp_size"])
        exact = torch.promote_types(log_prob.dtype, torch.float32)
        coefficient = torch.as_tensor(loss.c_logp_BT * ranks, dtype=exact, device=log_prob.device)
        moving = torch.where(mask, log_prob.to(exact) - log_prob.detach().to(exact), 0.0)
        return (coefficient * moving).sum() + loss.value * ranks, {}

    return compute


def _data(engine: Any, batch: TokenBatch) -> Any:
    """A batch of ours in verl's form."""
    import torch
    from tensordict import TensorDict
    from verl.utils import tensordict_utils as tu

    rows = []
    for i, prompt in enumerate(batch.prompts):
        answer = batch.tokens_BT[i][batch.seen_BT[i]]
        mask = torch.tensor(batch.loss_BT[i][batch.seen_BT[i]].astype(np.int64))
        tokens = torch.tensor([*prompt, *answer.tolist()])
        rows.append(
            {
                "prompts": torch.tensor(prompt),
                "responses": torch.tensor(answer),
                "response_mask": mask,
                "loss_mask": mask.clone(),
                "input_ids": tokens,
                "position_ids": torch.arange(len(tokens)),
            }
        )
    nested = {name: tu.nested_tensor_from_tensor_list([row[name] for row in rows]) for name in rows[0]}
    data = TensorDict(nested, batch_size=len(rows))
    settings = engine.engine_config
    tu.assign_non_tensor(
        data,
        temperature=1.0,
        calculate_entropy=False,
        use_remove_padding=settings.use_remove_padding,
        use_dynamic_bsz=True,
        max_token_len_per_gpu=max(settings.max_token_len_per_gpu, *(len(row["input_ids"]) for row in rows)),
        use_fused_kernels=settings.use_fused_kernels,
        global_batch_size=len(batch),
    )
    return data
