"""The [engine] table of a recipe that trains a causal language model of Transformers, with LoRA or all parameters.

    [engine]
    type = "hf"
    model = "models/smollm2-135m"
    lora_rank = 16

Only safetensors are read and no code that comes with a model is run. Nothing here imports torch before `build`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rlvrlab.engines.base import EngineTable, ScoringSampler
from rlvrlab.engines.hf.config import EMBEDDED, HfConfig
from rlvrlab.errors import ModelUnavailable, UserError
from rlvrlab.extras import Lookup, install_hf, packages
from rlvrlab.recipe.presets import Preset, preset_for
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.registry import register

if TYPE_CHECKING:
    from rlvrlab.engines.hf.engine import HfEngine


@register("engine", "hf")
@dataclass(frozen=True)
class Hf(HfConfig, EngineTable):
    """A causal language model; folders of the Llama and Qwen kind need no Transformers, the others that and PEFT."""

    machines: ClassVar[str] = "A language model on one GPU"
    needs: ClassVar[str] = "torch and the hf extra"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Recipes and runs from before `sampler` may still hold `seed`."""
        from pydantic_core import core_schema

        def without_seed(table: Any) -> Any:
            if not isinstance(table, dict) or "seed" not in table:
                return table
            if table["seed"] != 0:
                why = "an adapter begins with the same values in every run"
                raise ValueError(f"seed is no longer a key: {why}; remove it")
            return {key: value for key, value in table.items() if key != "seed"}

        return core_schema.no_info_before_validator_function(without_seed, handler(source))

    def implies(self) -> dict[str, Any]:
        """Servers compute with other kernels than the trainer, which token-wise importance weights correct."""
        return {} if self.sampler == EMBEDDED else {"correction.level": "token"}

    def alone(self) -> Self:
        """Without the servers that draw its answers while it trains."""
        return replace(self, sampler=EMBEDDED)

    def preset(self) -> Preset:
        """Vetted values for a model of this size, with an adapter or without."""
        from rlvrlab.models import parameters_of

        return preset_for(parameters_of(self.model), lora=self.lora_rank > 0)

    def beside(self, folder: Path) -> Self:
        """The model's folder, and files of servers: looked up beside the recipe, then in the current directory."""
        from rlvrlab.engines.hf.addresses import entries_of, is_file
        from rlvrlab.models import locate

        entries = [
            str(folder / entry) if is_file(entry) and (folder / entry).is_file() else entry
            for entry in entries_of(self.sampler)
        ]
        return replace(self, model=locate(self.model, folder), sampler=",".join(entries))

    @classmethod
    def installed(cls) -> Lookup:
        """Whether the extra is there."""
        return packages("engine hf", ("torch", "transformers", "peft"), install_hf())

    def lookups(self) -> list[Lookup]:
        """The model and the extra."""
        from rlvrlab.models import looked_up

        return [looked_up(self.model), self.installed()]

    def build(self, optimizer: Optimizer) -> HfEngine:
        """Load the model; needs the `hf` extra."""
        if self.sampler != EMBEDDED and not self.lora_rank:
            remedy = "set engine.lora_rank, e.g. 16, or engine.sampler = 'embedded'"
            raise UserError(f"engine.sampler: servers take adapters, and lora_rank = 0 trains all weights; {remedy}")
        ready = self._read_ahead()
        from rlvrlab.engines.hf.engine import HfEngine  # torch, while the weights are being read

        return HfEngine(ready, optimizer)

    def read(self, optimizer: Optimizer) -> ScoringSampler:
        """Without Transformers where the model can be read without it, which saves seconds."""
        if self.sampler == EMBEDDED:
            ready = self._read_ahead()
            from rlvrlab.engines.hf.reading import reader_of

            if (reader := reader_of(ready)) is not None:
                return reader
        return self.build(optimizer)

    def _read_ahead(self) -> Self:
        """The same with the model's folder, whose weights begin to be read; refused where packages are missing."""
        # Not imported to see whether it is there: peft takes seconds, and only adapters need it.
        if (extra := self.installed()).state != "found":
            raise ModelUnavailable(f"engine hf: {extra.words}")
        from rlvrlab.models import resolve
        from rlvrlab.models.ahead import read_ahead

        folder = resolve(self.model)
        read_ahead(folder)
        return replace(self, model=str(folder))
