"""Tokens that a model has a name for and never learnt are told before a run, where adapters cannot teach them."""

from __future__ import annotations

from pathlib import Path

import pytest
from needs_torch import torch
from tiny_models import write_model

from rlvrlab.engines.base import KnowsUntrained
from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf.untrained import OTHERS, untrained
from rlvrlab.notes import hearing
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.train.checks import note_untrained_tokens, ready_lab

TAGS = ["<tool_call>", "</tool_call>"]


def with_tags(folder: Path, *, trained: bool) -> Path:
    """A tiny model whose tokenizer has the tags of tool calls; their rows and some that have no name are one vector."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    write_model(folder, "qwen2")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    tokenizer.add_tokens(TAGS, special_tokens=False)
    model.resize_token_embeddings(len(tokenizer) + OTHERS, mean_resizing=False)
    with torch.no_grad():
        rows = model.get_output_embeddings().weight
        rows[-len(TAGS) - OTHERS :] = 0.3 + 0.001 * torch.randn(len(TAGS) + OTHERS, rows.shape[1])
        if trained:
            rows[len(tokenizer) - len(TAGS) : len(tokenizer)] = torch.randn(len(TAGS), rows.shape[1])
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("trained", "rank", "told"), [(False, 4, TAGS), (True, 4, []), (False, 0, [])])
def test_only_tokens_that_were_never_trained_and_will_not_be_are_told(tmp_path, trained, rank, told) -> None:
    engine = Hf(str(with_tags(tmp_path, trained=trained)), lora_rank=rank).build(Optimizer())
    assert isinstance(engine, KnowsUntrained)
    assert engine.untrained(["<tool_call>1+2</tool_call>", "3"]) == told
    assert engine.untrained(["1+2=3"]) == []


def test_rows_that_few_others_share_count_as_trained() -> None:
    rows = torch.randn(50, 8)
    rows[10 : 10 + OTHERS] = rows[10]
    assert untrained(rows, range(50)) == []
    rows[10 : 11 + OTHERS] = rows[10]
    assert untrained(rows, range(50)) == list(range(10, 11 + OTHERS))


RECIPE = """
phases = ["sft"]
[env]
type = "agent"
tools = ["python"]
style = "{style}"
[engine]
type = "hf"
model = "{model}"
lora_rank = 4
[data]
train_size = 4
dev_size = 2
[sft]
batch_size = 4
"""


@pytest.mark.parametrize(("style", "warned"), [("chat", True), ("fence", False)])
def test_a_run_is_warned_and_told_the_way_out(tmp_path, style, warned) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(style=style, model=with_tags(tmp_path / "model", trained=False)))
    lab = ready_lab(load_recipe(recipe))
    said: list[str] = []
    with hearing(lambda _, words: said.append(words)):
        note_untrained_tokens(lab)
    assert bool(said) == warned
    assert all("<tool_call> and </tool_call>" in words and "env.style=fence" in words for words in said)
