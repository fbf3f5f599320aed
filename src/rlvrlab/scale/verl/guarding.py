"""The skill-safe step inside verl's update: the guard of train/guards with what a shard can do.

Protected skills are remembered by the reference answers in the plan: nothing is sampled in the middle of an update.
The rows of the memory are divided among the ranks like any others.
"""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from rlvrlab.batch import Scale, TokenBatch
from rlvrlab.objectives.sft import Sft
from rlvrlab.scale.verl.plan import Plan
from rlvrlab.scale.verl.rows import part_of
from rlvrlab.scale.verl.shards import Shards, Vector
from rlvrlab.train.guards.base import Moment, protected_in
from rlvrlab.train.guards.projector import Projector
from rlvrlab.train.guards.skill_safe import SkillSafe
from rlvrlab.train.protocols.base import Stage, skills_of
from rlvrlab.types import Objective


class ShardProjector(Projector):
    """Anchors without sampling."""

    def _anchor(self, now: Moment, skill: str) -> None:
        self.memory["anchors"][skill] = self._value(now, skill, self._bank.batch(skill))

    def _value(self, now: Moment, skill: str, batch: TokenBatch | None) -> float:
        assert batch is not None
        vector, value, _ = now.lab.engine.gradient(batch, Sft())
        now.lab.engine.release([vector])
        return -value


class ShardGuard:
    """A guard and the moments it is asked at."""

    def __init__(self, plan: Plan, engine: Any) -> None:
        self._plan, self._engine = plan, engine
        table: SkillSafe = plan.resolved.build("guard")
        self.inner = ShardProjector(table)
        self._stage: int | None = None

    @property
    def memory(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"stage": self._stage, **self.inner.memory}

    def restore(self, memory: dict[str, Any]) -> None:
        """Back from a checkpoint."""
        self._stage = memory.pop("stage", None)
        self.inner.memory.clear()
        self.inner.memory.update(memory)

    def moment(self, step: int) -> Moment:
        """Where training stands; begins a stage where one is due."""
        stage = next((s for s in self._stages if s.first <= step < s.last), self._stages[-1])
        protected = protected_in(stage, self._stages[: stage.index], tuple(self.inner.table.protected))
        lab: Any = SimpleNamespace(engine=Verbs(self._engine), recipe=self._plan.resolved.recipe)
        now = Moment(lab, self._plan.phase, stage, step, step, protected)
        if self._stage != stage.index:
            self._remember()
            self.inner.begin(now)
            self._stage = stage.index
        return now

    @cached_property
    def _stages(self) -> list[Stage]:
        trained = [problem for problem in self._plan.problems.values() if problem.role == "train"]
        protocol, steps = self._plan.resolved.build("protocol"), self._plan.phase.steps
        if protocol is None:
            return [Stage(0, "all", tuple(skills_of(trained)), 0, steps)]
        found: list[Stage] = protocol.stages(trained, steps)
        return found

    def _remember(self) -> None:
        tokenizer = self._engine.model_config.tokenizer
        answers: dict[str, Any] = self.inner.memory.setdefault("answers", {})
        for skill, pairs in self._plan.memory.items():
            answers[skill] = {
                str(i): {"prompt": _prompt(tokenizer, prompt), "answers": [_answer(tokenizer, gold)]}
                for i, (prompt, gold) in enumerate(pairs)
            }


class Verbs:
    """gradient, gramian, shift, release: what the projector asks of an engine."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._shards: Shards = engine.rlvr_shards()

    def gradient(self, batch: TokenBatch, objective: Objective) -> tuple[Vector, float, dict[str, float]]:
        """Of rows that every rank knows; each computes its part of them. Gradients under way are set aside."""
        engine, ranks = self._engine, self._engine.rlvr_ranks()
        aside = self._shards.take()
        mine = list(range(ranks.rank, len(batch), ranks.size))
        size = -(-len(batch) // ranks.size)
        data = part_of(_data(engine, batch), mine, size)
        found = engine.forward_backward_batch(data, _loss(objective, batch.scale), forward_only=False)
        vector = self._shards.take()
        for parameter, gradient in zip(self._shards.parameters, aside, strict=True):
            parameter.grad = gradient
        value = float(ranks.total(float(np.sum(found["loss"])))) / ranks.size
        return vector, value, {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shards, name)


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
        found = objective(logp_BT, np.zeros_like(logp_BT), batch)
        ranks = int(data["dp_size"])
        exact = torch.promote_types(log_prob.dtype, torch.float32)
        coefficient = torch.as_tensor(found.c_logp_BT * ranks, dtype=exact, device=log_prob.device)
        moving = torch.where(mask, log_prob.to(exact) - log_prob.detach().to(exact), 0.0)
        return (coefficient * moving).sum() + found.value * ranks, {}

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


def _prompt(tokenizer: Any, text: str) -> list[int]:
    """As verl's rollouts ask."""
    message = [{"role": "user", "content": text}]
    found: list[int] = tokenizer.apply_chat_template(
        message, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    return list(found)


def _answer(tokenizer: Any, text: str) -> list[int]:
    return [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
