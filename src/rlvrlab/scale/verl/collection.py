"""A collection in verl's TransferQueue, read as rollouts of ours and written back. Suffixes: B rows, T positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from rlvrlab.batch import Floats, Ints, pad
from rlvrlab.scale.verl.job import Job
from rlvrlab.scale.verl.reward import EPISODE, completion_of
from rlvrlab.types import ErrorKind, Reward, Rollout, Verdict

FIELDS = ["uid", "extra_info", "extra_fields", "rm_scores", "prompts", "responses", "response_mask"]


@dataclass(frozen=True)
class Collection:
    """Rows of a batch that are answers, in the order of their groups; padding rows are left out."""

    rollouts: list[Rollout]
    place: list[int]
    """Row of each rollout in verl's batch."""
    size: int
    """Rows of verl's batch, padding included."""
    keys: list[str]
    partition: str
    sampler: Any
    """Only its tokenizer, for step credit."""
    value_BT: Floats | None = None
    parts: Mapping[str, Floats] = field(default_factory=dict)
    """By row of verl's batch."""

    @classmethod
    def fetch(cls, job: Job, batch: Any, tokenizer: Any, step: int) -> Collection:
        """From the queue; the critic's values too, where there are any."""
        import transfer_queue as tq

        wanted = [*FIELDS, "values"] if job.phase.critic else FIELDS
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=wanted)
        uids, infos, extras = (data.pop(name).tolist() for name in ("uid", "extra_info", "extra_fields"))
        answers = [row.tolist() for row in data["responses"].unbind()]
        asked = [row.tolist() for row in data["prompts"].unbind()]
        scores = [float(row.sum()) for row in data["rm_scores"].unbind()]
        real = [i for i, tag in enumerate(batch.tags) if not tag.get("is_padding", False)]
        first = {uids[i]: i for i in reversed(real)}
        order = sorted(real, key=lambda i: (first[uids[i]], i))
        groups: dict[str, dict[str, None]] = {}
        for i in order:
            groups.setdefault(infos[first[uids[i]]]["id"], {})[uids[i]] = None
        # A mark for each group of a problem after the first: a small data set may ask twice in one step.
        again = {uid: f"#{i}" if i else "" for asked_in in groups.values() for i, uid in enumerate(asked_in)}
        rollouts, parts = [], dict[str, Floats]()
        for i in order:
            problem = job.problems[infos[i]["id"]]
            session = batch.keys[i].rsplit("_", 2)[1]
            text = tokenizer.decode(answers[i], skip_special_tokens=True)
            more = extras[i] if isinstance(extras[i], dict) else {}
            end = tokenizer.eos_token_id
            completion = completion_of(job, text, tuple(answers[i]), more.get(EPISODE), end=end)
            said = more.get("reward_extra_info", {})
            verdict, reward = _judged(said, scores[i])
            group = f"{step}/{job.phase.name}/{problem.id}{again[uids[i]]}"
            rollouts.append(
                Rollout(f"{group}/{session}", uids[i], problem, tuple(asked[i]), completion, verdict, reward)
            )
            for name, value in (reward.parts if reward else {}).items():
                parts.setdefault(name, np.zeros(len(uids)))[i] = value
        value_BT = pad([row.tolist() for row in data["values"].unbind()]) if job.phase.critic else None
        words = SimpleNamespace(
            decode=lambda tokens: tokenizer.decode(list(tokens), skip_special_tokens=True),
            encode=lambda text: tuple(tokenizer.encode(text, add_special_tokens=False)),
        )
        sampler = SimpleNamespace(tokenizer=words)
        return cls(rollouts, order, len(uids), list(batch.keys), batch.partition_id, sampler, value_BT, parts)

    def advantages(self) -> list[list[float]]:
        """Advantages of each rollout's tokens, as verl has them now."""
        import transfer_queue as tq

        data = tq.kv_batch_get(keys=self.keys, partition_id=self.partition, select_fields=["advantages"])
        rows = [row.tolist() for row in data["advantages"].unbind()]
        return [rows[i] for i in self.place]

    def put_back(self, batch: Any, changed: Mapping[str, Floats], kept: Sequence[bool] | None) -> None:
        """Changed advantages, and empty masks for answers that are not trained on; `kept` None leaves all masks."""
        import transfer_queue as tq

        names = ["advantages", "response_mask"]
        data = tq.kv_batch_get(keys=self.keys, partition_id=self.partition, select_fields=names)
        advantages, masks = list(data["advantages"].unbind()), list(data["response_mask"].unbind())
        for row, (i, rollout) in enumerate(zip(self.place, self.rollouts, strict=True)):
            if rollout.id in changed:
                advantages[i] = advantages[i].new_tensor(changed[rollout.id])
            if rollout.reward is None or (kept is not None and not kept[row]):
                masks[i] = masks[i].new_zeros(masks[i].shape)
        if kept is None:
            masks = list(data["response_mask"].unbind())
        self._put(batch, {"advantages": advantages, "response_mask": masks, "loss_mask": masks})

    def put_column(self, batch: Any, name: str, value_R: Ints) -> None:
        """One number per rollout; padding rows get −1."""
        import torch

        column = np.full(self.size, -1, dtype=np.int64)
        column[self.place] = value_R
        self._put(batch, {name: [torch.tensor([int(one)]) for one in column]})
        if batch.fields is not None and name not in batch.fields:
            batch.fields.append(name)  # workers get the fields listed here and no others

    def _put(self, batch: Any, fields: Mapping[str, list[Any]]) -> None:
        import transfer_queue as tq
        from tensordict import TensorDict
        from verl.utils.tensordict_utils import nested_tensor_from_tensor_list

        nested = {name: nested_tensor_from_tensor_list(rows) for name, rows in fields.items()}
        tq.kv_batch_put(keys=self.keys, partition_id=self.partition, fields=TensorDict(nested, batch_size=self.size))


def _judged(said: Mapping[str, Any], score: float) -> tuple[Verdict, Reward | None]:
    """The verdict and reward that compute_score reported."""
    parts = {name.removeprefix("part/"): float(x) for name, x in said.items() if name.startswith("part/")}
    detail = str(said.get("detail", ""))
    if not said.get("judged", 1.0) or np.isnan(score):
        return Verdict(None, error=ErrorKind.INFRA, detail=detail), None
    right = bool(said.get("acc", 0.0))
    verdict = Verdict(right, float(right), ErrorKind(said.get("error", "none")), detail=detail)
    return verdict, Reward(score, parts or {"score": score})
