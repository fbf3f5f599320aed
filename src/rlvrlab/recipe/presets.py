"""Settings that fit an engine, a size of model and a way of tuning it; they stand where the recipe says nothing.

    toy                                  the policy in NumPy
    hf/full/nano    hf/lora/nano         below 10 million parameters
    hf/full/100m    hf/lora/100m         from there to 1 billion
    hf/full/1b      hf/lora/1b           from there to 10 billion; also where the size is not known, and above

`rlvr train RECIPE --plan` shows them with the origin "preset hf/lora/1b" and their sources. Keys of phases are given
for a family of phases ("imitation.learning_rate"): imitation (sft, rft, repair), preference (dpo), online (grpo, …).
A value outside `low` … `high` is allowed, and warned of before a step is spent on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

FAMILIES = ("imitation", "preference", "online")
"""Kinds of phases that learn at about the same rate."""
SMALL, LARGE = 10_000_000, 1_000_000_000
"""Parameters below which a model counts as nano, and from which it counts as 1b."""


class Vetted(NamedTuple):
    """A value, the range in which it makes sense, and who says so."""

    value: Any
    low: float
    high: float
    source: str


@dataclass(frozen=True)
class Preset:
    """Vetted values by key."""

    name: str
    values: Mapping[str, Vetted] = field(default_factory=dict)
    grad_norm: tuple[float, float] = (0.0, inf)
    """Between which norms of the gradient such a policy usually trains, before it is clipped."""

    @property
    def origin(self) -> str:
        """How a value that comes from here is told."""
        return f"preset {self.name}"


NANO = "studies/coding_five_phase/nano.toml and studies/interference/nano.toml"
SMOLLM2 = "studies/countdown_gsm8k (SmolLM2-135M)"
QWEN = "studies/qwen_coder_mbpp (Qwen2.5-Coder-1.5B)"
TRL = "default of TRL 1.16"
TENFOLD = "ten times the rate of full tuning (Schulman et al. 2025, LoRA Without Regret)"


def _rates(
    imitation: tuple[float, str], preference: tuple[float, str], online: tuple[float, str], value: tuple[float, str]
) -> dict[str, Vetted]:
    """Learning rates; a factor of twenty to either side passes without a word."""
    given = {
        "imitation.learning_rate": imitation,
        "preference.learning_rate": preference,
        "online.learning_rate": online,
        "online.value_learning_rate": value,
    }
    return {key: Vetted(rate, rate / 20, rate * 20, source) for key, (rate, source) in given.items()}


def _collection(problems: int, answers: int, longest: int, warmup: int, source: str) -> dict[str, Vetted]:
    """How much is drawn per step of an on-line phase, how long answers may be, and how the rate begins."""
    return {
        "online.batch_size": Vetted(problems, 2, 4096, source),
        "rollout.n": Vetted(answers, 2, 256, source),
        "rollout.max_tokens": Vetted(longest, 1, 32_768, source),
        "optimizer.warmup_steps": Vetted(warmup, 0, 1000, source),
    }


TOY = "recipes/toy_pipeline.toml"
NORMS = {
    "toy": (0.01, 1.0),
    "full/nano": (0.005, 5.0), "lora/nano": (0.005, 5.0),
    "full/100m": (0.1, 50.0), "lora/100m": (0.1, 50.0),
    "full/1b": (0.05, 0.2), "lora/1b": (0.04, 1.0),
}  # fmt: skip
"""Norms of on-line phases. Seen in the kept runs: toy 0.02 to 1.0, nano 0.007 to 3.2, SmolLM2-135M 0.3 to 46 (all fully
tuned), Qwen2.5-Coder-1.5B with LoRA 0.05 to 0.96. For full tuning of large models: what guides to verl ask for."""
PRESETS = {
    name: Preset(name, _rates(*rates) | _collection(*collection), NORMS[name.removeprefix("hf/")])
    for name, rates, collection in (
        ("toy", ((0.02, TOY), (0.005, TOY), (0.01, TOY), (0.02, TOY)), (16, 8, 64, 0, TOY)),
        ("hf/full/nano", ((3e-3, NANO), (3e-4, NANO), (5e-4, NANO), (1e-3, NANO)), (16, 8, 64, 0, NANO)),
        ("hf/lora/nano", ((1e-2, TENFOLD), (1e-3, TENFOLD), (2e-3, TENFOLD), (1e-3, NANO)), (16, 8, 64, 0, NANO)),
        ("hf/full/100m", ((5e-5, SMOLLM2), (1e-6, TRL), (1e-5, SMOLLM2), (1e-4, SMOLLM2)), (32, 8, 256, 10, SMOLLM2)),
        ("hf/lora/100m", ((5e-4, SMOLLM2), (1e-5, TENFOLD), (5e-5, SMOLLM2), (1e-4, SMOLLM2)),
         (32, 8, 256, 10, SMOLLM2)),
        ("hf/full/1b", ((2e-5, TRL), (1e-6, TRL), (1e-6, TRL), (1e-5, TENFOLD)), (32, 16, 512, 10, QWEN)),
        ("hf/lora/1b", ((2e-4, TENFOLD), (1e-5, TENFOLD), (5e-5, QWEN), (1e-4, TENFOLD)), (32, 16, 512, 10, QWEN)),
    )
}  # fmt: skip
"""Rates of imitation, preference, on-line phases and critic; then problems, answers, longest answer and warm-up."""


def preset_for(parameters: int | None, *, lora: bool) -> Preset:
    """The preset of a language model; one whose size nobody knows is taken for a large one, whose rates are low."""
    size = "1b" if parameters is None or parameters >= LARGE else "100m" if parameters >= SMALL else "nano"
    return PRESETS[f"hf/{'lora' if lora else 'full'}/{size}"]
