"""Direct preference optimisation (arXiv 2305.18290) and its relatives on z = Σ_t (log p − log reference), d = z⁺ − z⁻.

    sigmoid  −(1−ε) log σ(βd) − ε log σ(−βd)              ε = label_smoothing (cDPO)
    robust   (−(1−ε) log σ(βd) + ε log σ(−βd)) / (1−2ε)   arXiv 2403.00409: unbiased when a share ε of labels is flipped
    hinge    max(0, 1 − βd)                               SLiC, arXiv 2305.10425
    ipo      (z⁺/|y⁺| − z⁻/|y⁻| − 1/(2β))²                arXiv 2310.12036, averaged per token as TRL and the authors do

    + sft_coef · mean over pairs of the chosen row's NLL per token (iterative RPO, arXiv 2404.19733)

Array suffixes: B rows, T completion positions, P preference pairs.
Assumption: both rows of a pair are in the same slice (couples = "pair"), each with trained tokens.
Trap: d grows just as well by making the rejected answer unlikely; watch dpo/chosen_reward, add sft_coef if it falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Lt

from rlvrlab.batch import Floats, Ints, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.objectives.base import PolicyObjective, masked, missing, needed, token_mean
from rlvrlab.registry import register
from rlvrlab.types import Couples, Loss, NonNegative, Positive

TIE = 1e-12
"""Margins below this are rounding: before its first update a policy ranks no pair."""


@register("objective", "dpo")
@dataclass(frozen=True)
class Dpo(PolicyObjective):
    """Prefer the chosen answer over the rejected one, relative to the reference policy."""

    loss: Literal["sigmoid", "ipo", "hinge", "robust"] = "sigmoid"
    """Shape of the preference loss."""
    beta: Positive = 0.1
    """Strength of the pull to the reference; for ipo the paper's τ."""
    label_smoothing: Annotated[float, Ge(0), Lt(0.5)] = 0.0
    """Share of flipped labels that sigmoid and robust expect."""
    sft_coef: NonNegative = 0.0
    """Weight of the chosen rows' negative log-likelihood."""

    couples: ClassVar[Couples] = "pair"
    uses_advantages: ClassVar[bool] = False

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """Mean over all pairs of the update."""
        chosen_P, rejected_P = pairs_of(batch)
        length_B = np.maximum(batch.loss_BT.sum(axis=1), 1)
        share_B = 1.0 / length_B if self.loss == "ipo" else np.ones(len(batch))
        score_B = _score_B(logp_BT, batch) * share_B
        loss_P, slope_P = self._preference(score_B[chosen_P] - score_B[rejected_P])
        row_B = np.zeros(len(batch))
        row_B[chosen_P], row_B[rejected_P] = slope_P, -slope_P
        row_B *= share_B
        nll_P = -masked(logp_BT, batch).sum(axis=1)[chosen_P] / length_B[chosen_P]
        row_B[chosen_P] -= self.sft_coef / length_B[chosen_P]
        pairs = max(batch.scale.pairs, 1)
        value = float((loss_P + self.sft_coef * nll_P).sum()) / pairs
        return Loss(value, np.where(batch.loss_BT, row_B[:, None] / pairs, 0.0))

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """`dpo/accuracy`: share of pairs ranked rightly beyond rounding; `dpo/margin`: mean β d; its two halves."""
        chosen_P, rejected_P = pairs_of(batch)
        reward_B = self.beta * _score_B(logp_BT, batch) / max(batch.scale.pairs, 1)
        margin_P = reward_B[chosen_P] - reward_B[rejected_P]
        return {
            "dpo/accuracy": float((margin_P > TIE).sum()) / max(batch.scale.pairs, 1),
            "dpo/margin": float(margin_P.sum()),
            "dpo/chosen_reward": float(reward_B[chosen_P].sum()),
            "dpo/rejected_reward": float(reward_B[rejected_P].sum()),
            "actor/entropy": token_mean(entropy_BT, batch),
        }

    def _preference(self, gap_P: Floats) -> tuple[Floats, Floats]:
        """Loss of each pair and its derivative by the score gap."""
        margin_P, smooth = self.beta * gap_P, self.label_smoothing
        match self.loss:
            case "ipo":
                distance_P = gap_P - 1 / (2 * self.beta)
                return distance_P**2, 2 * distance_P
            case "hinge":
                return np.maximum(0.0, 1 - margin_P), np.where(margin_P < 1, -self.beta, 0.0)
            case "sigmoid":
                right, wrong = 1 - smooth, smooth
            case "robust":
                right, wrong = (1 - smooth) / (1 - 2 * smooth), -smooth / (1 - 2 * smooth)
        loss_P = right * np.logaddexp(0, -margin_P) + wrong * np.logaddexp(0, margin_P)
        return loss_P, self.beta * (wrong * _sigmoid(margin_P) - right * _sigmoid(-margin_P))


def pairs_of(batch: TokenBatch) -> tuple[Ints, Ints]:
    """Row numbers of the chosen and the rejected answers, pair by pair."""
    if batch.pair_B is None or batch.chosen_B is None:
        raise missing("pair_B" if batch.pair_B is None else "chosen_B", "objective dpo")
    pair_B = batch.pair_B
    order = np.argsort(pair_B, kind="stable")
    chosen_P, rejected_P = order[batch.chosen_B[order]], order[~batch.chosen_B[order]]
    twice = len(np.unique(pair_B)) != len(chosen_P)
    if twice or not np.array_equal(pair_B[chosen_P], pair_B[rejected_P]):
        raise UserError("objective dpo: every pair_B needs one chosen and one rejected row in the same slice")
    return chosen_P, rejected_P


def _score_B(logp_BT: Floats, batch: TokenBatch) -> Floats:
    reference_BT = needed(batch, "reference_BT", "objective dpo")
    return (masked(logp_BT, batch) - reference_BT).sum(axis=1)


def _sigmoid(x: Floats) -> Floats:
    return np.exp(-np.logaddexp(0, -x))
