"""Every token that generation_config.json lets an answer end with ends it, on every path that draws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from needs_torch import torch
from tiny_models import CHARACTERS, write_model

from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf.folder_files import end_tokens
from rlvrlab.engines.hf.reading import reader_of
from rlvrlab.errors import UserError
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Finish, Request, Sampling

OWN = 1
OTHERS = [3 + CHARACTERS.index(letter) for letter in "ae5("]
"""Four of some fifty tokens, so that most answers meet one."""
LONGEST = 40


def model_with(folder: Path, ends: object, kind: str = "llama") -> str:
    write_model(folder, kind)
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": ends}))
    return str(folder)


def engine_of(model: str, way: str):
    table = Hf(model, lora_rank=2 if way == "trained" else 0, device="cpu")  # float32: compared to the last digits
    return reader_of(table) if way == "read" else table.build(Optimizer())


def answers(engine) -> list:
    prompts = ["1+2=", "7*8=", "a b c"]
    requests = [Request(engine.tokenizer.encode(p), 6, ("k", p), Sampling(LONGEST, 1.0)) for p in prompts]
    return [one for group in engine.sample(requests) for one in group]


@pytest.mark.parametrize(
    ("way", "kind"), [("trained", "llama"), ("whole", "qwen2"), ("read", "llama"), ("whole", "gpt2")]
)
def test_an_answer_ends_at_the_first_of_them(tmp_path: Path, way: str, kind: str) -> None:
    one = answers(engine_of(model_with(tmp_path / "one", OWN, kind), way))
    engine = engine_of(model_with(tmp_path / "several", [OWN, *OTHERS], kind), way)
    assert engine.tokenizer.ends == {OWN, *OTHERS} and engine.tokenizer.end == OWN
    several = answers(engine)
    met = 0
    for before, after in zip(one, several, strict=True):
        ends = [i for i, token in enumerate(before.tokens) if token in engine.tokenizer.ends]
        stop = ends[0] + 1 if ends else LONGEST
        assert after.tokens == before.tokens[:stop]
        assert after.logprobs == pytest.approx(before.logprobs[:stop], abs=1e-5)
        assert after.finish is (Finish.STOP if ends else Finish.LENGTH)
        met += bool(ends and ends[0] + 1 < len(before.tokens))
    assert met >= 3


def test_greedy_answers_are_those_of_transformers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = model_with(tmp_path, [OWN, *OTHERS])
    engine = engine_of(model, "trained")
    theirs = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    for prompt in ("1+2=", "7*8=", "a b c", "x"):
        tokens = engine.tokenizer.encode(prompt)
        [[ours]] = engine.sample([Request(tokens, 1, ("g", prompt), Sampling(LONGEST, 0.0))])
        whole = theirs.generate(torch.tensor([tokens]), do_sample=False, max_new_tokens=LONGEST, pad_token_id=0)
        assert list(ours.tokens) == whole[0, len(tokens) :].tolist()


@pytest.mark.parametrize("said", ["1", [1, "2"], [True], -1, {"a": 1}, 1.5])
def test_what_is_no_token_is_refused(tmp_path: Path, said: object) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": said}))
    with pytest.raises(UserError, match="eos_token_id: allowed are a token's number or a list of such"):
        end_tokens(tmp_path)


@pytest.mark.parametrize(("said", "ends"), [(None, ()), (7, (7,)), ([3, 4], (3, 4)), ([], ())])
def test_what_a_file_says(tmp_path: Path, said: object, ends: tuple[int, ...]) -> None:
    assert end_tokens(tmp_path) == ()
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": said}))
    assert end_tokens(tmp_path) == ends


def test_tokens_beyond_the_vocabulary_are_left_out(tmp_path: Path) -> None:
    assert engine_of(model_with(tmp_path, [OWN, 10**6]), "read").tokenizer.ends == {OWN}
