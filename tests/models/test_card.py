"""Model cards: valid front-matter whatever the names, and every fact of the run in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from texts import any_text

from rlvrlab.models.card import Facts, Result, card, front_matter


def facts(**changes) -> Facts:
    given = {
        "name": "count", "run": "count_20260101_000000_abcd", "step": 7, "base_model": "smollm2-135m",
        "hub_id": "HuggingFaceTB/SmolLM2-135M-Instruct", "licence": "apache-2.0", "environment": "countdown",
        "scorer_version": "2", "recipe_sha256": "aa11", "data": {"train": {"size": 40, "sha256": "bb22"}},
        "results": [Result("sft", "0.0 % [0.0, 1.3]", "", "25.0 % [20, 30]"), Result("grpo", "25 %", "57.7 %", "60 %")],
        "score": {"accuracy": 0.577, "low": 0.5, "high": 0.6}, "command": "rlvr train x.toml", "seed": 3,
        "packages": {"torch": "2.13"}, "proof": ("Loaded.",),
    }  # fmt: skip
    return Facts(**{**given, **changes})


def test_every_fact_is_there() -> None:
    text = card(facts())
    for part in (
        "step 7",
        "aa11",
        "bb22",
        "version 2",
        "57.7 %",
        "25.0 % [20, 30]",
        "torch 2.13",
        "- Loaded.",
        "0.577",
    ):
        assert part in text
    assert "recorded no evaluation" in card(facts(results=[], score=None))


@given(name=any_text(max_size=30), base=any_text(max_size=30))
def test_no_name_breaks_the_front_matter_or_the_table(name: str, base: str) -> None:
    yaml = pytest.importorskip("yaml")
    text = card(facts(name=name, run=name, base_model=base, hub_id=base))
    head = text.split("\n---\n")[0].removeprefix("---\n")
    found = yaml.safe_load(head)
    assert found["license"] == "apache-2.0" and found["tags"][0] == "rlvr"
    assert found.get("base_model", "") == base and found["model-index"][0]["name"] == name
    rows = [line for line in text.splitlines() if line.startswith("| run |")]
    assert len(rows) == 1 and rows[0].replace("\\|", "").count("|") == 3


def test_empty_facts_are_left_out() -> None:
    assert front_matter(license="", library_name="x") == '---\nlibrary_name: "x"\n---\n'
