"""Model cards: README.md with the front-matter that model hubs read, from plain facts of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvrlab.shares import markdown_cell


def front_matter(**facts: Any) -> str:
    """A YAML header; JSON is YAML, so no value can break out of its line."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items() if value]
    # YAML refuses characters that cannot be seen; its escape for them is not JSON's.
    visible = ["".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in line) for line in lines]
    return "\n".join(["---", *visible, "---", ""])


@dataclass(frozen=True)
class Result:
    """One row of the results."""

    phase: str
    before: str
    """Accuracy with its interval, as text."""
    here: str
    """Of the exported step, empty where another phase was exported."""
    best: str


@dataclass(frozen=True)
class Facts:
    """What a card says; every number comes from the run's record."""

    name: str
    run: str
    step: int
    base_model: str
    hub_id: str
    """Where the base model lies on the hub, if it does."""
    licence: str
    environment: str
    scorer_version: str
    recipe_sha256: str
    data: Mapping[str, Mapping[str, Any]]
    """Role -> {size, sha256}."""
    results: Sequence[Result]
    score: Mapping[str, float] | None
    """accuracy, low and high of the exported step on held-out problems, if it was evaluated."""
    command: str
    packages: Mapping[str, str]
    seed: int
    proof: Sequence[str] = field(default=())
    """What was checked after loading the export again, one sentence each."""


def card(facts: Facts) -> str:
    """README.md of an exported model."""
    index = []
    if facts.score is not None:
        metric = {"type": "accuracy", "name": "accepted@1", "value": round(facts.score["accuracy"], 4)}
        dataset = {"name": facts.environment, "type": facts.environment, "split": "dev"}
        result = {"task": {"type": "text-generation"}, "dataset": dataset, "metrics": [metric]}
        index = [{"name": facts.name, "results": [result]}]
    head = front_matter(
        license=facts.licence,
        base_model=facts.hub_id,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["rlvr", "reinforcement-learning-with-verifiable-rewards", facts.environment],
        **{"model-index": index},
    )
    proof = ["## Checked after export", "", *(f"- {line}" for line in facts.proof)] if facts.proof else []
    sections = [
        f"{head}\n# {_line(facts.name)}",
        f"`{_line(facts.base_model)}` trained on `{_line(facts.environment)}` with rlvrlab; step {facts.step} of run "
        f"`{_line(facts.run)}`.",
        _results(facts),
        _provenance(facts),
        "\n".join(proof),
        "## Limits\n\nMeasured on dev problems of the environment it was trained on, by the verifier named above. "
        "Nothing is known about anything else.",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _results(facts: Facts) -> str:
    if not facts.results:
        return "## Results\n\nThe run recorded no evaluation."
    lines = ["## Results", "", "accepted@1 on dev problems, one greedy answer each, 95 % intervals.", ""]
    lines += ["| phase | before | this model | best of the phase |", "|---|---|---|---|"]
    lines += [f"| {_line(r.phase)} | {r.before} | {r.here or '–'} | {r.best} |" for r in facts.results]
    return "\n".join(lines)


def _provenance(facts: Facts) -> str:
    rows = [("run", facts.run), ("recipe", f"sha256 {facts.recipe_sha256}"), ("seed", str(facts.seed))]
    rows += [(f"{role} problems", f"{one['size']}, sha256 {one['sha256']}") for role, one in facts.data.items()]
    rows += [("scoring", f"{facts.environment}, version {facts.scorer_version}")]
    rows += [("versions", ", ".join(f"{name} {version}" for name, version in facts.packages.items()))]
    lines = ["## Where it comes from", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_line(value)} |" for name, value in rows]
    return "\n".join([*lines, "", "```", _line(facts.command), "```"])


def _line(text: str) -> str:
    """One line that cannot end a table's cell or a code span."""
    return markdown_cell(text.replace("`", "'"))
