"""Every key of a phase-0 plan, with its default and one line that explains it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, Field, field_validator

from rlvrlab.evals.protocol import MAX_NEW_TOKENS, Protocol, named_protocol
from rlvrlab.recipe.schema import NAME
from rlvrlab.types import KEY_ENV, Count, CountOrZero, Positive, Role, Temperature

PROMPT = "{prompt}"
"""Where a template has the problem's own prompt."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class ModelTable(_Section):
    """Who answers: exactly one of serve, servers, run."""

    serve: str | None = Field(None, description="model to start servers of: a name, a folder or a hub id")
    servers: list[str] = Field(default_factory=list, description="OpenAI-compatible servers that are running")
    run: str | None = Field(None, description="a run's policy in this process: RUN@best, @last, @STEP, @base")
    name: str | None = Field(None, description="model that `servers` must serve; None: the only one they list")
    replicas: Count = Field(1, description="servers to start, GPUs in turn")
    backend: Literal["auto", "vllm", "transformers", "embedded"] = Field("auto", description="of what is started")
    arguments: list[str] = Field(default_factory=list, description="further words for the servers that are started")
    wait_s: Positive = Field(600.0, description="seconds until all servers that are started must answer")
    system_prompt: str = Field("", description="system message before every prompt; needs a chat template")
    completions: bool = Field(False, description="continue plain text, for models without a chat template")
    concurrency: Count = Field(64, description="requests at once, in turn over all servers")
    timeout_s: Positive = Field(600.0, description="seconds for one request")
    key_env: str = Field(KEY_ENV, description="environment variable with the servers' key")


class ProtocolTable(_Section):
    """How every data set is asked; see evals/protocol.py."""

    names: Annotated[list[Literal["@1", "@k", "@budget"]], MinLen(1)] = Field(
        ["@1"], description="each of them is asked of every data set, the headline first"
    )
    n: Count | None = Field(None, description="@k: answers per problem, 8 where nothing is said; @budget: at most")
    k: list[Count] = Field(default_factory=list, description="@k: pass@k for these; empty: 1 and n")
    budget: str = Field("", description="@budget: tokens=N or judge_s=S per problem, wall_s=S in all")
    temperature: Temperature | None = Field(None, description="@k and @budget; None: 1")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="@k and @budget")
    max_tokens: Count = Field(MAX_NEW_TOKENS, description="longest answer")
    tries: Literal[1, 2] = Field(1, description="2: failed first answers get a second try after feedback (not @budget)")

    def protocol(self, name: str, max_tokens: int | None) -> Protocol:
        """One of the named protocols; settings that belong to another one of them do not concern it."""
        longest, sampled = max_tokens or self.max_tokens, name != "@1"
        return named_protocol(
            name,
            max_tokens=longest,
            n=self.n if sampled else None,
            ks=self.k if name == "@k" else (),
            budget=self.budget if name == "@budget" else "",
            temperature=self.temperature if sampled else None,
            top_p=self.top_p if sampled else 1.0,
            tries=1 if name == "@budget" else self.tries,
        )


class JudgeTable(_Section):
    """Where programs are judged."""

    servers: list[str] = Field(default_factory=list, description="judges to ask; empty: this machine, in the jail")
    plain_sandbox: bool = Field(False, description="trust a plain SandboxFusion with assert code, which can be forged")


class DataTable(_Section):
    """One data set: a member of `rlvr suite` by its name, a file of your own, or what an environment makes."""

    name: str
    file: str | None = Field(None, description="prepared rows, or raw ones; relative to this file")
    env: str | None = Field(None, description="environment that judges the file, or makes problems; None: a member's")
    keys: dict[str, Any] = Field(default_factory=dict, description="the environment's own keys")
    role: Role | None = Field(None, description="rows of this role; needed where raw rows do not say theirs")
    size: Count | None = Field(None, description="problems, a fixed selection; None: all")
    template: str = Field(PROMPT, description="words around the problem's own prompt, which stands at {prompt}")
    max_tokens: Count | None = Field(None, description="longest answer of this data set")

    @field_validator("name")
    @classmethod
    def _names_a_file(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError("cannot name files; allowed: letters, digits, . _ -")
        return name

    @field_validator("template")
    @classmethod
    def _has_prompt(cls, template: str) -> str:
        if template.count(PROMPT) != 1:
            raise ValueError(f"must hold {PROMPT} once")
        return template


class Plan(_Section):
    """Every key of the file."""

    name: str = Field("phase0", description="names the folder")
    output: str = Field("outputs", description="where the folder is made")
    data_folder: str | None = Field(None, description="of the members' files; None: $RLVRLAB_DATA, else ./data")
    seed: CountOrZero = Field(0, description="draws problems and answers")
    sinks: list[str] = Field(default_factory=list, description="trackers that get the numbers: wandb, trackio, …")
    model: ModelTable
    protocol: ProtocolTable = ProtocolTable()
    judge: JudgeTable = JudgeTable()
    data: Annotated[list[DataTable], MinLen(1)]


TABLES: dict[str, type[BaseModel]] = {
    "model": ModelTable, "protocol": ProtocolTable, "judge": JudgeTable, "data": DataTable,
}  # fmt: skip
