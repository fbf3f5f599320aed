"""What is fuzzed: every function that reads what a policy, a stranger on the network or a user's file wrote.

A target may answer anything or raise one of its own errors. Any other exception is a find, and so is time that grows
faster than the input.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from fuzz_inputs import bytes_of, text_of, value_of

from rlvrlab.engines.openai.wire import parse as parse_reply
from rlvrlab.envs import arithmetic, python_trees
from rlvrlab.envs.amounts import amount
from rlvrlab.envs.answers import squeezed
from rlvrlab.envs.base import Environment
from rlvrlab.envs.data_files import read_rows
from rlvrlab.envs.mathematics import equality
from rlvrlab.envs.tool_calls import call_in, final_answer
from rlvrlab.errors import LabError, UserError
from rlvrlab.evals.suites.plan_file import plan_from_text
from rlvrlab.http_client import BadAnswer, Response
from rlvrlab.http_messages import HttpError, body_size, headers_of, request_of
from rlvrlab.judge import compare, extract
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.fusion.submissions import published
from rlvrlab.judge.jail.frames import Frames, PeerGone
from rlvrlab.judge.modes import expressions, mathematics, quantities, spelling, sql_text
from rlvrlab.judge.task_forms import task_of
from rlvrlab.judge.workers.worker import lines_of
from rlvrlab.recipe.load import load_tables
from rlvrlab.recipe.parse import parse_overrides, parse_toml
from rlvrlab.record.redact import redact
from rlvrlab.registry import find
from rlvrlab.rollout.python_steps import canonical_python, python_steps
from rlvrlab.rollout.segment import segment
from rlvrlab.rollout.segments import Segments, cut, swapped
from rlvrlab.rollout.sql_steps import canonical_sql, sql_steps
from rlvrlab.rollout.text_steps import text_steps, turn_steps, word_steps
from rlvrlab.study.load import load_study

Input = str | bytes
MOST_CUT = 20_000
"""Characters of an answer that is also taken apart; of longer ones, reading alone is timed."""


@dataclass(frozen=True)
class Target:
    """One reader with the inputs it is given."""

    name: str
    read: Callable[[Any], object]
    kind: str
    """Of the grammar in fuzz_inputs.py."""
    refuses: tuple[type[BaseException], ...] = ()
    """Errors that are the reader's way to say no."""
    binary: bool = False

    def input(self, rng: random.Random, size: int) -> Input:
        if self.kind == "value":
            return json.dumps(value_of(rng))
        return bytes_of(rng, self.kind, size) if self.binary else text_of(rng, self.kind, size)

    def run(self, given: Input) -> None:
        with suppress(*self.refuses):
            self.read(given)


def frame(data: bytes) -> object:
    """All messages of a stream, with right and wrong lengths in front."""
    with tempfile.TemporaryFile() as file:
        file.write(len(data).to_bytes(4, "little") + data + data)
        file.seek(0)
        frames = Frames(os.dup(file.fileno()))
        try:
            return [frames.receive() for _ in range(3)]
        finally:
            os.close(frames._descriptor)


def whole_and_in_pieces(steps: Segments) -> None:
    """Steps lie in the text in order, and any of them can go."""
    spans = steps.spans
    assert all(0 <= start <= end <= len(steps.text) for start, end in spans)
    assert all(first[0] <= second[0] for first, second in pairwise(spans))
    if len(steps.text) > MOST_CUT:
        return
    rng = random.Random(len(steps.text))
    assert cut(steps, [True] * len(steps)).text == steps.text
    cut(steps, [False] * len(steps))
    cut(steps, [rng.random() < 0.5 for _ in spans])
    if spans:
        swapped(steps, rng.randrange(len(spans)))


def segmented(read: Callable[[str], Segments]) -> Callable[[str], None]:
    return lambda text: whole_and_in_pieces(read(text))


def recipe(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return load_tables(parse_toml(text, "fuzz.toml"), {}, Path(folder), "fuzz.toml", text)


def study(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return load_study(path)


def rows(ending: str) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"rows{ending}"
            path.write_bytes(data)
            for _ in read_rows(path):
                pass

    return read


def as_object(read: Callable[[dict[str, Any]], object]) -> Callable[[str], object]:
    def on_objects(text: str) -> object:
        try:
            return read(Response(200, {}, text.encode("utf-8", "surrogatepass")).json())
        except RecursionError:  # the routes of a server answer 400 then
            return None

    return on_objects


@cache
def environment(name: str) -> tuple[Environment, Any]:
    env = find("env", name)()
    return env, env.problems("train", 1, 0)[0]


def verified(name: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        env, problem = environment(name)
        verdict = env.verify(problem, text)
        assert verdict.correct is not None, verdict.detail
        assert 0 <= verdict.score <= 1
        return verdict

    return read


GOLDS = ("12", "\\frac{3}{4}", "1,000", "x^2 + 1", "50%", "204_5", "11:45", "(1, 2)", "3 \\text{ cm}", "A")


def against_gold(read: Callable[[str, str], object]) -> Callable[[str], object]:
    return lambda text: read(text, GOLDS[len(text) % len(GOLDS)])


def compared(text: str) -> None:
    data = text.encode("utf-8", "replace")
    for policy in (compare.RSTRIP_LINES, compare.Comparison("float", abs_tol=1e-6), compare.Comparison("tokens")):
        compare.same_text(data, text, policy)
        compare.same_text(data, "1 2\n3", policy)


TARGETS = (
    Target("frames", frame, "json", (PeerGone,), binary=True),
    Target("report lines", lambda data: lines_of(data, 200_000), "json", (ValueError,), binary=True),
    Target("http request", lambda data: body_size(request_of(data)), "http", (HttpError,), binary=True),
    Target("http headers", lambda text: headers_of(text.split("\r\n")), "http", (ValueError,)),
    Target("json body", as_object(lambda form: form), "json", (BadAnswer,)),
    Target("run_code answer", as_object(wire.checked_run), "value", (BadAnswer,)),
    Target("verdict", as_object(wire.verdict_from_wire), "value", (BadAnswer,)),
    Target("task", as_object(task_of), "value", (BadAnswer, UserError)),
    Target("model answer", as_object(parse_reply), "value", (BadAnswer,)),
    Target("submitted row", as_object(published), "value", (BadAnswer, UserError)),
    Target(
        "tool call", lambda text: (call_in(text, "chat", ("sql",)), final_answer(text, "chat", ("sql",), 4)), "json"
    ),
    Target("program_in", lambda text: extract.program_in(text, "f", "def f(x):\n"), "python"),
    Target("query_in", extract.query_in, "sql"),
    Target("value_in", extract.value_in, "text"),
    Target("boxed", extract.boxed, "mathematics"),
    Target("hashed", extract.hashed, "mathematics"),
    Target("tagged", extract.tagged, "text"),
    Target("python_steps", segmented(python_steps), "python"),
    Target("sql_steps", segmented(sql_steps), "sql"),
    Target("text_steps", segmented(text_steps), "text"),
    Target("turn_steps", segmented(turn_steps), "text"),
    Target("word_steps", segmented(word_steps), "text"),
    Target("segment python", segmented(segment.__wrapped__), "python"),
    Target("segment sql", segmented(segment.__wrapped__), "sql"),
    Target("segment text", segmented(segment.__wrapped__), "text"),
    Target("canonical_python", canonical_python.__wrapped__, "python"),
    Target("canonical_sql", canonical_sql, "sql"),
    Target("parses", python_trees.parses, "python"),
    Target("sql order", lambda text: sql_text.ending_of.__wrapped__(text, 1000), "sql", (ValueError,)),
    Target("recipe", recipe, "toml", (LabError,)),
    Target("study", study, "toml", (LabError,)),
    Target("plan of a baseline", lambda text: plan_from_text(text, Path("p.toml"), Path()), "toml", (LabError,)),
    Target("overrides", lambda text: parse_overrides(text.split("\n")), "toml", (LabError,)),
    Target("redacted text", lambda text: redact({"text": text, "words": [text]}), "text"),
    Target("jsonl rows", rows(".jsonl"), "json", (UserError,), binary=True),
    Target("json rows", rows(".json"), "json", (UserError,), binary=True),
    Target("csv rows", rows(".csv"), "csv", (UserError,), binary=True),
    Target("gz rows", rows(".jsonl.gz"), "json", (UserError,), binary=True),
    Target("exactly_equal", against_gold(mathematics.exactly_equal), "mathematics"),
    Target("quantities", against_gold(quantities.differ), "mathematics"),
    Target("spelling", against_gold(spelling.same), "mathematics"),
    Target("number", expressions.number, "mathematics"),
    Target("exact", equality.exact, "mathematics"),
    Target("letters", equality.letters, "mathematics"),
    Target("is_hedged", against_gold(equality.is_hedged), "mathematics"),
    Target("no_number", equality.no_number, "mathematics"),
    Target("amount", lambda text: amount(squeezed(text)), "mathematics"),
    Target("arithmetic", arithmetic.parse, "mathematics", (arithmetic.BadExpression,)),
    Target("printed output", compared, "mathematics"),
    Target("countdown", verified("countdown"), "mathematics"),
    Target("gsm8k", verified("gsm8k"), "mathematics"),
    Target("zebra", verified("zebra"), "json"),
    Target("clrs", verified("clrs"), "text"),
    Target("graph", verified("graph"), "text"),
    Target("graph_p", verified("graph_p"), "text"),
    Target("graph_learning", verified("graph_learning"), "text"),
    Target("graphwiz", verified("graphwiz"), "text"),
)
