"""What the toy policy reads and writes: tokens, features and samples."""

from __future__ import annotations

import numpy as np
import pytest
from answers import rounded
from engine_factories import toy
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.batch import batch_of
from rlvrlab.engines.toy.engine import ToyEngine
from rlvrlab.engines.toy.features import (
    CHARACTERS,
    END,
    UNKNOWN,
    ToyTokenizer,
    advance,
    contexts_of,
    dense_size,
    view_prompts,
)
from rlvrlab.types import Finish, Request, Sampling

TOKENIZER = ToyTokenizer(99)
DRAWS = 4000


@given(st.text(alphabet=CHARACTERS))
def test_text_of_the_alphabet_comes_back(text: str) -> None:
    tokens = TOKENIZER.encode(text)
    assert TOKENIZER.decode(tokens) == text
    assert all(UNKNOWN < token < TOKENIZER.vocab_size for token in tokens)


@given(any_text())
def test_any_other_character_becomes_one_unknown_token(text: str) -> None:
    expected = "".join(c if c in CHARACTERS else "\0" for c in text)
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == expected


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("17+5", ["17", "+", "5"]),
        ("100", ["1", "0", "0"]),
        ("99", ["99"]),
        ("007", ["0", "0", "7"]),
        ("٣", ["\0"]),
        ("", []),
    ],
)
def test_numbers_are_one_token_up_to_the_largest(text: str, pieces: list[str]) -> None:
    assert [TOKENIZER.decode([token]) for token in TOKENIZER.encode(text)] == pieces


def test_values_of_number_tokens_and_the_end() -> None:
    assert [int(TOKENIZER.number_of_token[t]) for t in TOKENIZER.encode("0 9 10 99 x")] == [
        0,
        -1,
        9,
        -1,
        10,
        -1,
        99,
        -1,
        -1,
    ]
    assert TOKENIZER.decode([*TOKENIZER.encode("5"), END]) == "5"
    assert TOKENIZER.vocab_size == TOKENIZER.characters + 90


def view(*prompts: str, slots: int = 3):
    return view_prompts([TOKENIZER.encode(p) for p in prompts], TOKENIZER, slots, 100.0)


def test_a_shape_forgets_the_numbers_but_not_the_words() -> None:
    """That is what carries a rule to numbers never trained on."""
    shapes = view("3 7 = 21\n", "5 9 = 14\n", "3 7 = 9\n", "3 7 + 21\n", "3 3 = 21\n").shape_N
    assert shapes[0] == shapes[1] == shapes[2]
    assert len({int(s) for s in shapes[[0, 3, 4]]}) == 3, "another word and a number named twice are other shapes"


def test_answers_advance_the_shape_by_slots() -> None:
    def after(prompt: str, answer: str) -> int:
        seen = view(prompt)
        shape = seen.shape_N
        for token in TOKENIZER.encode(answer):
            shape = advance(shape, seen.slots_NM, np.array([token]))
        return int(shape[0])

    assert after("3 7 = 21\n", "3*7") == after("5 9 = 45\n", "5*9")
    assert len({after("3 7 = 21\n", answer) for answer in ("3*7", "7*3", "3+7", "3*", "8*7")}) == 5


def test_teacher_forcing_sees_the_context_sampling_sees() -> None:
    prompt, answer = TOKENIZER.encode("3 7 = 21\n"), TOKENIZER.encode("3*7")
    seen = view("3 7 = 21\n")
    contexts = contexts_of(batch_of([prompt], [answer]), seen)
    shape, shapes = seen.shape_N, []
    for token in answer:
        shapes.append(int(shape[0]))
        shape = advance(shape, seen.slots_NM, np.array([token]))
    assert contexts.shape_N.tolist() == shapes and contexts.position_N.tolist() == [0, 1, 2]


def test_slots_hold_the_first_numbers_and_dense_features_their_products() -> None:
    seen = view("3 17 = 20 99\n", "5\n", "no numbers")
    text = [[TOKENIZER.decode([t]) if t >= 0 else None for t in row] for row in seen.slots_NM]
    assert text == [["3", "17", "20"], ["5", None, None], [None, None, None]]
    base = [1, 0.03, 0.17, 0.2, *(np.log([3, 17, 20]) / np.log(100))]
    products = [base[i] * base[j] for i in range(7) for j in range(i, 7)]
    assert np.allclose(seen.dense_ND[0], products) and len(products) == dense_size(3) == seen.dense_ND.shape[1]
    assert np.isfinite(seen.dense_ND).all()


def policy(seed: int = 5) -> ToyEngine:
    engine = toy()(0)
    engine.theta = np.random.default_rng(seed).normal(0, 1.0, engine.layout.size)
    return engine


def first_token_probabilities(engine: ToyEngine, prompt) -> np.ndarray:
    size = engine.tokenizer.vocab_size
    return np.exp(engine.logprobs(batch_of([prompt] * size, [(t,) for t in range(size)]))[0][:, 0])


def nucleus(p, mass: float):
    """The likeliest tokens until their mass reaches `mass`, renormalised."""
    kept, total = np.zeros_like(p), 0.0
    for token in sorted(range(len(p)), key=lambda t: -p[t]):
        if total >= mass:
            break
        kept[token] = p[token]
        total += p[token]
    return kept / total


@pytest.mark.parametrize(
    ("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (2.0, 1.0), (1.0, 0.7), (0.7, 0.5), (1.0, 1e-9)]
)
def test_frequencies_are_the_probabilities(temperature: float, top_p: float) -> None:
    """Every token's count lies within five standard deviations of what the exact distribution expects."""
    engine = policy()
    prompt = engine.tokenizer.encode("3 7 = 21\n")
    p = first_token_probabilities(engine, prompt) ** (1 / temperature)
    p = nucleus(p / p.sum(), top_p)
    drawn = engine.sample([Request(prompt, DRAWS, ("frequency",), Sampling(1, temperature, top_p))])[0]
    counts = np.bincount([c.tokens[0] for c in drawn], minlength=len(p))
    assert (np.abs(counts - DRAWS * p) <= 5 * np.sqrt(DRAWS * p * (1 - p)) + 1e-6).all()
    assert counts[p == 0].sum() == 0
    assert all(c.logprobs[0] == pytest.approx(np.log(p[c.tokens[0]]), abs=1e-9) for c in drawn)


def test_temperature_zero_repeats_the_likeliest() -> None:
    engine = policy()
    prompt = engine.tokenizer.encode("3 7 = 21\n")
    drawn = engine.sample([Request(prompt, 5, ("greedy",), Sampling(1, 0.0))])[0]
    assert {c.tokens[0] for c in drawn} == {int(first_token_probabilities(engine, prompt).argmax())}


def test_completions_end_at_the_end_token_a_stop_string_or_the_limit() -> None:
    engine = policy(1)
    prompt = engine.tokenizer.encode("3 7 = 21\n")
    free = engine.sample([Request(prompt, 200, ("stop",), Sampling(8))])[0]
    letter = next(c.text[1] for c in free if len(c.text) > 2)
    stopped = engine.sample([Request(prompt, 200, ("stop",), Sampling(8, stop=(letter, "nothing")))])[0]
    assert {c.finish for c in free} == {Finish.STOP, Finish.LENGTH}
    for before, after in zip(free, stopped, strict=True):
        assert before.tokens[: len(after.tokens)] == after.tokens and len(after.tokens) == len(after.logprobs)
        assert END not in after.tokens[:-1] and letter not in after.text[:-1]
        ended = after.tokens[-1] == END or after.text.endswith(letter)
        assert after.finish is (Finish.STOP if ended else Finish.LENGTH)
        assert ended or len(after.tokens) == 8
    assert any(letter in c.text for c in stopped)


def test_mixed_settings_in_one_call_keep_their_order() -> None:
    engine = policy()
    prompt = engine.tokenizer.encode("3 7 = 21\n")
    requests = [Request(prompt, 2, ("a", i), Sampling(3, 0.0 if i % 2 else 1.0)) for i in range(4)]
    alone = [engine.sample([request])[0] for request in requests]
    assert rounded(engine.sample(requests)) == rounded(alone)
    assert engine.sample([]) == []
