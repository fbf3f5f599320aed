"""The recipe's reward behind TRL's reward signature, and its learning rates behind TRL's trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlvrlab.scale.exports.folder import COLUMN, Scored, Scorer
from rlvrlab.train.update import learning_rate
from rlvrlab.types import Completion, Finish

Message = dict[str, Any]


class TrlReward:
    """Callable as TRL calls a reward function: one number per completion, None where it could not be judged."""

    def __init__(self, folder: Path) -> None:
        self.__name__ = "rlvr"
        """How TRL names its metrics: rewards/rlvr/mean."""
        self._scorer = Scorer(folder)
        self.end: int | None = None
        """The tokenizer's end token, by which an answer that fills its room is known to be complete."""

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[str | list[Message]],
        completion_ids: Sequence[Sequence[int]] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """`columns` are those of the data set; `rlvr_problem` says what was asked."""
        tokens = completion_ids or [()] * len(completions)
        room = self._scorer.resolved.recipe.rollout.max_tokens
        answers = []
        for completion, ids in zip(completions, tokens, strict=True):
            text = completion if isinstance(completion, str) else str(completion[-1]["content"])
            finish = Finish.LENGTH if len(ids) >= room and ids[-1] != self.end else Finish.STOP
            answers.append(Completion(text, tuple(ids), (), finish))
        scored = self._scorer.score(columns[COLUMN], answers)
        if log_metric is not None:
            for name, value in metrics(scored).items():
                log_metric(name, value)
        return [None if one.reward is None else one.reward.value for one in scored]


def metrics(scored: Sequence[Scored]) -> dict[str, float]:
    """Accuracy, named parts of the reward, and the share that could not be judged."""
    known = [one for one in scored if one.reward is not None]
    shares = {
        "rlvr/unjudged": 1 - len(known) / len(scored),
        "rlvr/acc": sum(one.verdict.correct is True for one in known) / max(1, len(known)),
    }
    parts = [dict(one.reward.parts) for one in known if one.reward is not None]
    names = dict.fromkeys(name for one in parts for name in one)
    return shares | {f"rlvr/reward/{name}": sum(one.get(name, 0.0) for one in parts) / len(parts) for name in names}


def trainer_class(folder: Path, updates_per_collection: int) -> type[Any]:
    """GRPOTrainer with the recipe's learning rates: warm-up and decay count collections, as in `rlvr train`."""
    from torch.optim.lr_scheduler import LambdaLR
    from trl import GRPOTrainer

    recipe = Scorer(folder).resolved.recipe
    steps: int = recipe.phase_tables["grpo"]["steps"]

    class RecipeTrainer(GRPOTrainer):  # type: ignore[misc]
        """GRPOTrainer with the schedule of the recipe."""

        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
            """Give all updates on a collection the same rate."""

            def share(update: int) -> float:
                return learning_rate(1.0, update // updates_per_collection, steps, recipe.optimizer)

            self.lr_scheduler = LambdaLR(optimizer or self.optimizer, share)
            return self.lr_scheduler

    return RecipeTrainer
