"""What the comparisons at equal calls compare: how large each is, its arms and their settings, its recipes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from spending import WORK

from rlvrlab.recipe import Resolved, load_recipe

HERE = Path(__file__).parent
CANDIDATES: dict[str, tuple[tuple[str, ...], ...]] = {
    "grpo": (("grpo.learning_rate=5e-4",), ("grpo.learning_rate=1e-3",), ("grpo.learning_rate=2.5e-4",)),
    "tree": (
        ("credit.branches=[4, 2]",),
        ("credit.branches=[4, 2]", "credit.credit_normalization=group"),
        ("credit.branches=[2, 2, 2]", "credit.credit_normalization=group"),
    ),
    "trace": (("credit.before=group",), ("credit.before=zero",), ("credit.before=zero", "credit.weight=2")),
    "doubly_robust": (("credit.weight=1",), ("credit.weight=0.5",), ("credit.weight=0.25",)),
    "sum": ((),),
    "counterfactual": ((),),
    "earning": ((),),
}
"""Three settings of each arm, the first is the default; `sum` puts the chosen ones of the other three together. Arms of
queries are as their recipe has them."""
SINGLE = ("grpo", "tree", "trace", "doubly_robust")


@dataclass(frozen=True)
class Design:
    """How large a comparison is; each has a declaration of its name."""

    name: str
    calls: int
    """Verdicts per run."""
    candidates: int
    """So many settings of each arm are tried, the first ones listed; with one there is nothing to tune."""
    tuning: tuple[int, ...]
    """Seeds that choose among them."""
    final: tuple[int, ...]
    arms: tuple[str, ...] = SINGLE
    tokens: int = 0
    """Tokens per run, where runs are examined a second time after these; they go on until both are spent."""
    cap: int = 0
    """A run is over after so many steps, whatever it has spent by then; 0: only what is spent ends it."""
    words: tuple[str, ...] = ()
    """Of the recipe, for all arms: another model."""
    family: str = "equal_calls"
    """How the files of its arms' recipes begin."""
    start: str = "equal_calls"
    """Comparisons with the same name here share their starts."""
    enough: float = math.inf
    """SFT ends once so large a share of the held-out problems is solved."""
    least: int = 1
    """With fewer seeds that have all arms nothing is tested."""
    apart: bool = False
    """Every run is a process of its own: for a GPU, whose memory only an end gives back."""

    def file(self, what: str) -> Path:
        """A committed file of this comparison."""
        return HERE / f"{self.name}_{what}.json"

    @property
    def runs(self) -> Path:
        """Where finished runs are noted."""
        return WORK / f"{self.name}_runs.jsonl"

    @property
    def starts(self) -> Path:
        """Where finished starts are noted."""
        return WORK / f"{self.start}_starts.jsonl"

    def start_folder(self, seed: int) -> Path:
        """Where the policy lies that every arm of a seed begins with."""
        return WORK / f"{self.start}_start_{seed}"

    @property
    def budgets(self) -> dict[str, int]:
        """What is spent by the end that a row of results has under this name."""
        return {"end": self.calls} | ({"tokens_end": self.tokens} if self.tokens else {})

    def settings(self) -> dict[str, int]:
        """The candidate of each arm that the final runs have."""
        found: dict[str, int] = json.loads(self.file("chosen").read_text())
        return found

    def recipe(self, arm: str, candidate: int, seed: int, words: tuple[str, ...] = ()) -> Resolved:
        """An arm's recipe with one of its candidates, with data and training of this seed."""
        given = [f"seed={seed}", f"data.seed={seed}", *CANDIDATES[arm][candidate], *self.words, *words]
        return load_recipe(HERE / f"{self.family}_{arm}.toml", given)

    def setting(self, arm: str, candidate: int) -> str:
        """A candidate in words, less what this comparison sets for all arms."""
        fixed = {word.partition("=")[0] for word in self.words}
        return " ".join(word for word in CANDIDATES[arm][candidate] if word.partition("=")[0] not in fixed)


DESIGNS = {
    one.name: one
    for one in (
        Design("equal_calls", 14_000, 3, (100, 101, 102), tuple(range(8))),
        Design("equal_calls_small", 3_000, 1, (), tuple(range(20, 28))),
        Design(
            "equal_calls_smollm2",
            4_000,
            1,
            (),
            tuple(range(8)),
            arms=(*SINGLE, "sum"),
            tokens=300_000,
            cap=80,
            words=(
                "engine.model=smollm2-135m", "engine.micro_tokens=4096", "rollout.max_tokens=48",
                "sft.steps=120", "sft.learning_rate=1e-4", "grpo.learning_rate=4e-5", "optimizer.warmup_steps=10",
            ),
            start="equal_calls_smollm2",
            enough=0.25,
            least=6,
            apart=True,
        ),
        Design(
            "equal_calls_sql",
            4_000,
            1,
            (),
            tuple(range(40, 48)),
            arms=("grpo", "counterfactual", "earning", "doubly_robust"),
            tokens=200_000,
            cap=120,
            words=("data.dev_size=150",),
            family="sql_nano",
            start="equal_calls_sql",
            enough=0.15,
            least=6,
        ),
    )
}  # fmt: skip
