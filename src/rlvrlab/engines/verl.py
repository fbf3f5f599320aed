"""The table of a recipe that verl trains: what verl must know beyond the recipe. verl owns its loop, so nothing is
trained here; see rlvrlab.scale.verl and `rlvr train RECIPE --engine verl`.

    [engine]
    type = "verl"
    model = "Qwen/Qwen2.5-7B-Instruct"
    gpus = 8
    overrides = ["actor_rollout_ref.actor.fsdp_config.param_offload=True"]

A finished run is evaluated here: its merged weights are loaded by the hf engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from rlvrlab.engines.base import EngineTable
from rlvrlab.errors import UserError
from rlvrlab.extras import Lookup, packages
from rlvrlab.recipe.presets import Preset, preset_for
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.registry import register
from rlvrlab.types import Count, CountOrZero, NonNegative

if TYPE_CHECKING:
    from rlvrlab.engines.hf.engine import HfEngine


REMEDY = "install what verl needs on the cluster; docs/cluster.md"


@register("engine", "verl")
@dataclass(frozen=True)
class Verl(EngineTable):
    """A causal language model trained by verl on one node or a Ray cluster."""

    machines: ClassVar[str] = "Larger models on a cluster, by verl"
    needs: ClassVar[str] = "verl and GPUs, docs/cluster.md"
    draws_within_steps: ClassVar[bool] = False
    model: str
    """A model on hand (`rlvr model list`), a folder in Hugging Face layout, or a name on the hub."""
    lora_rank: CountOrZero = 0
    """Rank of the adapter; 0 trains every parameter."""
    lora_alpha: NonNegative = 0.0
    """The adapter counts lora_alpha / lora_rank times; 0 takes twice the rank."""
    chat: bool = False
    """Wrap prompts in the tokenizer's chat template; otherwise they stand as they are."""
    micro_tokens: CountOrZero = 0
    """Tokens per forward pass and GPU; 0 takes 16384, or one longest row where that is more."""
    gradient_checkpointing: bool = True
    """Make activations again in the backward pass: less memory, about a third more time."""
    gpus: Count = 8
    """GPUs per node."""
    nodes: Count = 1
    """Nodes."""
    rollout: Literal["vllm", "sglang", "cpu"] = "vllm"
    """What samples; cpu is for trying things out where there is no GPU, and slow."""
    tensor_parallel: Count = 1
    """GPUs that hold one copy of the model while sampling."""
    prompt_tokens: Count = 512
    """Longest prompt; all are measured before anything is started, and a longer one is refused."""
    overrides: tuple[str, ...] = ()
    """Further settings of verl, each `key=value` in Hydra's spelling; they win over what the recipe says."""

    def preset(self) -> Preset:
        """Vetted values for a model of this size, with an adapter or without."""
        from rlvrlab.models import parameters_of

        return preset_for(parameters_of(self.model), lora=self.lora_rank > 0)

    def beside(self, folder: Path) -> Self:
        """The model's folder is looked up beside the recipe first, then where the command was started."""
        from rlvrlab.models import locate

        return replace(self, model=locate(self.model, folder))

    @classmethod
    def installed(cls) -> Lookup:
        """Whether verl is here; it may as well live in an environment of its own."""
        return packages("engine verl", ("verl",), REMEDY)

    def lookups(self) -> list[Lookup]:
        """The model, and verl with what samples for it."""
        from rlvrlab.models import looked_up

        needed = ("verl",) if self.rollout == "cpu" else ("verl", self.rollout)
        return [looked_up(self.model), packages("engine verl", needed, REMEDY)]

    def build(self, optimizer: Optimizer) -> Merged:
        """For evaluation: `load` of a checkpoint brings the merged model."""
        return Merged(self, optimizer)


class Merged:
    """An engine once a checkpoint was loaded: the hf engine on the weights that verl's merger wrote."""

    def __init__(self, table: Verl, optimizer: Optimizer) -> None:
        self._table, self._optimizer = table, optimizer
        self._engine: HfEngine | None = None

    def load(self, folder: Path) -> None:
        """The model in `folder`/huggingface."""
        from rlvrlab.engines.hf.table import Hf

        self._engine = Hf(str(folder / "huggingface"), chat=self._table.chat).build(self._optimizer)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._engine is None:
            raise UserError("engine verl has no policy before training; a finished run has one: rlvr eval --run FOLDER")
        return getattr(self._engine, name)
