"""Near-duplicates and shared passages against plain Python: nothing planted is missed, nothing is invented."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import corpus, similarity

from rlvrlab.data.near import BANDS, CROWD, ROWS, VALUES, near_duplicates, signed
from rlvrlab.data.overlap import LENGTH, overlaps
from rlvrlab.data.texts import Texts
from rlvrlab.envs.answers import as_seen, normalised

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d1", "e", "+"]), max_size=12)


@pytest.fixture(params=["rensa", "numpy"])
def hashing(request, monkeypatch) -> str:
    if request.param == "rensa":
        pytest.importorskip("rensa", reason="needs rensa: pip install 'rlvrlab[audit]'")
    else:
        monkeypatch.setattr("rlvrlab.data.near.importlib.util.find_spec", lambda name: None)
    return request.param


def test_planted_near_duplicates_are_found_and_nothing_else(hashing: str) -> None:
    texts, planted = corpus(3000, 400, seed=3)
    found = near_duplicates(Texts.of(texts).grams(3), 0.5)
    assert found.hashing == hashing
    truth = {pair: similarity(texts[pair[0]], texts[pair[1]]) for pair in planted}
    wanted = {pair for pair, value in truth.items() if value >= 0.6}
    reported = {(pair.left, pair.right): pair.jaccard for pair in found.pairs}
    assert len(wanted) > 250 and len(wanted & set(reported)) >= 0.99 * len(wanted)
    for (left, right), value in reported.items():
        assert value >= 0.5 and value == pytest.approx(similarity(texts[left], texts[right]))


def test_every_pair_of_a_small_set_by_brute_force(hashing: str) -> None:
    texts, _ = corpus(120, 50, seed=5)
    grams = Texts.of(texts).grams(3)
    truth = {pair for pair in combinations(range(120), 2) if similarity(texts[pair[0]], texts[pair[1]]) >= 0.7}
    assert {(p.left, p.right) for p in near_duplicates(grams, 0.7).pairs} == truth and len(truth) > 15


def test_agreeing_values_estimate_the_similarity(hashing: str) -> None:
    """A hash that is no random order shows here first: the estimate is biased."""
    texts, planted = corpus(300, 150, seed=7)
    signatures, _ = signed(Texts.of(texts).grams(3), np.arange(300))
    assert signatures.shape == (300, VALUES) and VALUES == BANDS * ROWS
    errors = [(signatures[i] == signatures[j]).mean() - similarity(texts[i], texts[j]) for i, j in planted]
    assert abs(np.mean(errors)) < 0.01 and np.std(errors) < 1.3 * 0.5 / VALUES**0.5


def test_texts_of_one_template_are_all_found_but_not_all_pairs_of_them() -> None:
    common = " ".join(f"w{i}" for i in range(40))
    found = near_duplicates(Texts.of([f"{common} x{i} y{i} z{i}" for i in range(400)]).grams(3), 0.5)
    assert found.crowded > 0 and 399 <= len(found.pairs) <= 400 * 3 * CROWD
    assert {pair.left for pair in found.pairs} | {pair.right for pair in found.pairs} == set(range(400))


def test_equal_texts_are_a_chain_not_all_pairs() -> None:
    found = near_duplicates(Texts.of(["one two three four five six seven"] * 300).grams(3), 0.5)
    assert [(p.left, p.right, p.jaccard) for p in found.pairs] == [(0, i, 1.0) for i in range(1, 300)]


@given(st.lists(WORDS, max_size=6), st.integers(1, 4))
def test_ngrams_are_those_of_python(texts: list[list[str]], n: int) -> None:
    grams = Texts.of([" ".join(words) for words in texts]).grams(n)
    sets = [{tuple(w[i : i + n]) for i in range(len(w) - n + 1)} or ({tuple(w)} if w else set()) for w in texts]
    assert grams.sizes.tolist() == [len(one) for one in sets]
    for i, j in combinations(range(len(texts)), 2):
        assert len(np.intersect1d(grams.of(i), grams.of(j))) == len(sets[i] & sets[j])


@given(st.lists(WORDS, max_size=6))
def test_passages_are_those_of_python(texts: list[list[str]]) -> None:
    """Words only, five of them different, in at most ten texts: with runs of six words here."""
    bare = [[word for word in words if word != "+"] for words in texts]
    runs = [{tuple(w[i : i + 6]) for i in range(len(w) - 5)} for w in bare]
    tokens = Texts.of([" ".join(words) for words in texts])
    found = {(o.left, o.right): o.shared for o in overlaps(tokens, 6)}
    for i, j in combinations(range(len(texts)), 2):
        shared = runs[i] & runs[j]
        telling = [run for run in shared if len(set(run)) >= 5]
        assert found.get((i, j), 0) == (len(shared) if telling else 0)


def test_a_passage_is_found_across_case_and_signs() -> None:
    passage = "the quick brown fox jumps over the lazy dog while seven wizards watch"
    texts = ["Once: " + passage.title().replace(" ", ", ") + "!", f"x y {passage} z", passage.rsplit(" ", 1)[0]]
    (found,) = overlaps(Texts.of(texts))
    assert (found.left, found.right, found.shared) == (0, 1, 1) and LENGTH == 13
    assert found.place == (2, 2)


def test_rows_of_numbers_are_no_passage() -> None:
    numbers = " ".join(map(str, range(1, 30)))
    assert overlaps(Texts.of([f"assert f([{numbers}])", f"assert g([{numbers}])"])) == []


def test_what_every_text_is_wrapped_in_is_form() -> None:
    wrapped = [
        f"{i} a{i} b{i} c{i}. Solve it step by step and end with the number alone on one line" for i in range(40)
    ]
    texts, parts = Texts.of(wrapped), np.zeros(40, np.int64)
    assert len(overlaps(texts)) == 0  # more than ten texts share it
    assert len(overlaps(Texts.of(wrapped[:5]))) == 10
    assert len(near_duplicates(texts.grams(3), 0.5).pairs) > 39
    assert near_duplicates(texts.grams(3).without(texts.grams(3).form(parts)), 0.5).pairs == []


def test_scripts_without_spaces_are_compared_by_character() -> None:
    left, right = "芳芳买了一本书有九十九页看了九十页还剩多少页", "芳芳买了一本书有九十八页看了九十页还剩多少页"
    ((pair),) = near_duplicates(Texts.of([left, right]).grams(3), 0.5).pairs
    assert pair.jaccard == pytest.approx(similarity(" ".join(left), " ".join(right)))


def test_normalisation() -> None:
    assert normalised("  Ａnn\u00a0HAS\n½ ") == "ann has 1⁄2"
    assert normalised("3 - 4") != normalised("3 + 4")
    for unseen in ("\ufe0f", "\u034f", "\u115f", "\u17b5", "\u180b", "\U000e0101", "\x00", "\x7f", "\x9d"):
        assert as_seen(f"Ann{unseen} has 3 ♥{unseen} apples") == as_seen("Ann has 3 ♥ apples"), repr(unseen)
    for blank in ("\u3164", "\u2800", "\uffa0"):
        assert as_seen(f"Ann{blank}has") == as_seen("Ann has"), repr(blank)
    assert as_seen("\ufeffＡnn\u200b HAS\u00ad ½ ") == "ann has 1⁄2" and as_seen("3 - 4") != as_seen("3 + 4")


def test_a_pair_exactly_at_the_threshold_is_reported(hashing: str) -> None:
    """Ten words have eight runs of three; one other word at the end leaves seven of nine in common."""
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    texts = [" ".join(words), " ".join([*words[:-1], "eleven"])]
    grams = Texts.of(texts).grams(3)
    assert similarity(*texts) == 7 / 9
    assert [pair.jaccard for pair in near_duplicates(grams, 7 / 9).pairs] == [7 / 9]
    assert not near_duplicates(grams, np.nextafter(7 / 9, 1)).pairs
