"""Words and numbers that deep code has for the run it works for."""

from __future__ import annotations

from rlvrlab.notes import hearing, measure, measuring, note, noting


def test_notes_reach_whoever_listens_and_nobody_else() -> None:
    heard: list[str] = []
    note("kind", "before")
    with noting(lambda kind, words: heard.append(f"outer {words}")):
        with hearing(lambda kind, words: heard.append(f"inner {words}")):
            note("kind", "both")
        note("kind", "one")
    assert heard == ["inner both", "outer both", "outer one"]


def test_the_last_value_of_each_measure_belongs_to_the_step() -> None:
    measure({"sampler/servers": 9.0})
    with measuring() as first:
        measure({"sampler/servers": 2.0, "sampler/mismatch": 0.1})
        measure({"sampler/servers": 1.0})
    with measuring() as second:
        pass
    assert first == {"sampler/servers": 1.0, "sampler/mismatch": 0.1} and second == {}
