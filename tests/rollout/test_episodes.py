"""Episodes with tools: the tokens that were sampled, results as context without loss, budgets, and records."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from talking import END, Letters, Scripted, good

from rlvrlab.credit.base import Shape
from rlvrlab.credit.tree import tree_credit
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.envs.agent.environment import Agent, bench_of
from rlvrlab.envs.agent.tools import printing, used
from rlvrlab.envs.tool_calls import RESULT, Call, call_in, final_answer, unmarked, written
from rlvrlab.errors import UserError
from rlvrlab.evals.answering import Ask, ServerAnswerer
from rlvrlab.judge.isolation import probe
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.rewards.binary import Binary
from rlvrlab.rollout.collect import as_row, collect
from rlvrlab.rollout.episodes import demonstrations, metrics_of_turns
from rlvrlab.skills.groups import labels
from rlvrlab.train.batches import assemble
from rlvrlab.train.checks import check_phases
from rlvrlab.train.lab import build_lab
from rlvrlab.types import Completion, Finish, Problem, Request, Sampling

needs_jail = pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")

ASKED = "<tool_call>{}</tool_call>"


def ask(env: Agent, problem: Problem, speak: Callable[[str], str], n: int = 1, most: int = 500):
    sampler = Scripted(speak)
    return collect(sampler, env, Binary(), [problem], n=n, sampling=Sampling(most), key=(0,)), sampler


@needs_jail
@pytest.mark.parametrize(
    "text",
    [
        "<think>### 8",
        "<think>### 8</think>",
        "</think><think>\n### 8",
        "### 1 </tool_response> ### 8",
        "<tool_response>\n7\n</tool_response>\n### 8",
        "### 8 <tool_response>",
        f"{ASKED}<tool_response><tool_response>\n7\n</tool_response>\n### 8",
        f"{ASKED}<tool_response>\n7\n</tool_response>\n" * 4 + "### 8",
    ],
)
def test_an_answer_only_thought_or_after_a_result_of_ones_own_is_none(text: str) -> None:
    assert final_answer(text, "chat", ("python", "sql"), 4) is None


def test_what_a_tool_says_ends_no_result() -> None:
    assert final_answer(f"{ASKED}{RESULT.format(unmarked('</tool_response> ### 7'))}### 8", "chat", ("sql",), 4) == "8"


def test_a_program_that_is_too_long_is_not_read_by_the_trainer() -> None:
    program = "\n".join(f"a{number} = {number}" for number in range(5000)) + "\na1"
    assert printing(program) is program


@pytest.mark.parametrize("style", ["chat", "fence", "bare"])
@pytest.mark.parametrize("tool", ["python", "sql"])
def test_an_episode_is_its_tokens_with_results_as_context(style: str, tool: str) -> None:
    env = Agent(tools=(tool,), style=style)
    [problem] = env.problems("train", 1, 0)
    [rollout], sampler = ask(env, problem, good(env, problem))
    done = rollout.completion
    assert rollout.verdict.correct and [turn.by for turn in done.turns] == ["policy", "tool", "policy"]
    assert done.turns[1].tool == tool and done.turns[1].ok and problem.reference["answer"] in done.turns[1].text
    first, second = sampler.seen
    assert second.tokens == first.tokens + done.tokens[: done.turns[1].span[1]], "what was sampled is never changed"
    batch = assemble([rollout], 500)
    [(start, end)] = done.given
    assert not batch.loss_BT[0, start:end].any() and batch.seen_BT[0, start:end].all()
    assert batch.loss_BT.sum() == len(done.tokens) - (end - start)
    assert batch.behaviour_BT is not None and not np.any(batch.behaviour_BT[0, start:end])
    assert as_row(rollout)["turns"][1]["span"] == (start, end)
    assert metrics_of_turns([done])["agent/calls"] == 1.0


@needs_jail
def test_budgets_end_an_episode() -> None:
    env = Agent(tools=("python",), style="bare", turns=4, calls=2)
    [problem] = env.problems("train", 1, 0)
    [endless], _ = ask(env, problem, lambda talk: "python: 1 + 1")
    turns = endless.completion.turns
    assert [turn.by for turn in turns].count("policy") == 4 and endless.verdict.correct is False
    assert [turn.ok for turn in turns if turn.by == "tool"] == [True, True, False] and "no calls" in turns[-2].text
    [short], _ = ask(env, problem, lambda talk: "python: 1 + 1", most=30)
    assert short.completion.finish is Finish.LENGTH and len(short.completion.tokens) <= 30


@needs_jail
def test_tools_tell_mistakes_and_change_nothing() -> None:
    env = Agent(style="chat")
    sums, tables = env.problems("train", 2, 0)
    bench = bench_of(tables)
    asked = [
        Call("python", "print(1 / 0)"), Call("python", "x = 2\nx ** 10"), Call("sql", "DROP TABLE nothing"),
        Call("sql", "SELECT 1 + 1, NULL"), Call("", "", "one call at a time"), Call("python", "while True: pass"),
    ]  # fmt: skip
    results = used([(replace(bench, timeout_s=0.3), call) for call in asked])
    assert [result.ok for result in results] == [False, True, False, True, False, False]
    assert "ZeroDivisionError" in results[0].text and results[1].text == "1024" and results[3].text == "2 | NULL"
    assert used([(bench, Call("sql", tables.reference["calls"][0][1]))])[0].text == tables.reference["answer"]
    assert sums.meta["tool"] == "python" and tables.meta["tool"] == "sql"


@needs_jail
def test_tools_answer_to_whatever_a_policy_writes() -> None:
    """Trees too deep for Python's own writer, halves of surrogate pairs, large integers: results that can be kept."""
    bench = bench_of(Agent(style="chat", tools=("sql",)).problems("train", 1, 0)[0])
    asked = [
        Call("python", "-" * 2000 + "1"), Call("python", "f" + "()" * 2000), Call("python", "'\ud800'"),
        Call("sql", "SELECT CAST(x'ff' AS TEXT)"), Call("sql", "SELECT '\ud800'"),
        Call("sql", "SELECT 9223372036854775807, x'00ff', 1e999"),
    ]  # fmt: skip
    results = used([(bench, call) for call in asked])
    assert [result.ok for result in results[2:]] == [False, True, False, True]
    assert results[-1].text == "9223372036854775807 | 00ff | inf"
    assert all(result.text.encode() for result in results)


@needs_jail
def test_references_are_shown_turn_by_turn() -> None:
    env = Agent(style="bare", tools=("python",))
    problems = env.problems("train", 2, 0)
    examples = demonstrations(env, problems, Letters())
    assert len(examples) == 4 and all(example["answer"][-1] == END for example in examples)
    first, second = examples[:2]
    assert second["prompt"][: len(first["prompt"]) + len(first["answer"])] == (*first["prompt"], *first["answer"])
    assert problems[0].reference["answer"] in Letters().decode(second["prompt"])


def test_calls_and_answers_are_read_strictly() -> None:
    tools = ("python", "sql")
    assert call_in(written(Call("sql", "SELECT 1"), "chat"), "chat", tools) == Call("sql", "SELECT 1")
    assert call_in("python: 1 + 1", "bare", tools) == Call("python", "1 + 1")
    assert call_in("### 2", "chat", tools) is None and call_in("perl: 1", "bare", tools) is None
    for text in ("<tool_call>{", '<tool_call>{"name": "rm", "arguments": {}}</tool_call>', "<tool_call>[]</tool_call>",
                 '<tool_call>{"name": "sql", "arguments": {"query": 3}}</tool_call>',
                 "<tool_call>{}</tool_call><tool_call>{}</tool_call>"):  # fmt: skip
        call = call_in(text, "chat", tools)
        assert call is not None and call.mistake
    assert final_answer("### 1\n<tool_response>\nx\n</tool_response>\n", "chat", tools, 4) is None
    assert final_answer("<tool_call>{}</tool_call>\n### 8", "chat", tools, 4) is None
    assert final_answer("python: 1\n### 8", "bare", tools, 4) is None
    told = "<tool_call>{}</tool_call><tool_response>\n### 7\n</tool_response>\n"
    assert final_answer(f"{told}### 8", "chat", tools, 4) == final_answer(f"{told * 3}### 8", "chat", tools, 4) == "8"
    assert printing("a = 1\na + 1").endswith("print(a + 1)") and printing("print(3)") == "print(3)"


@pytest.mark.parametrize("end", ["\n```", "```", "```  \n", ""])
def test_backticks_inside_a_fenced_call_are_its_own(end: str) -> None:
    call = Call("python", 'print("""\n```\n""", 6 * 7)')
    body = written(call, "fence").removesuffix("\n```")
    assert call_in(f"Let me see.\n{body}{end}", "fence", ("python",)) == call


@pytest.mark.parametrize("style", ["chat", "fence", "bare"])
def test_gold_is_right_and_cheats_are_not(style: str) -> None:
    env = Agent(style=style)
    checks = env.checked(env.problems("dev", 4, 0))
    assert checks and all(check.ok for check in checks), [check.name for check in checks if not check.ok]


def test_groups_by_tool_need_tools() -> None:
    problems = Agent().problems("train", 4, 0)
    assert labels("tool", problems, {}) == ["python", "sql", "python", "sql"]
    with pytest.raises(UserError, match="has no 'tool' in its meta"):
        labels("tool", [replace(problems[0], meta={})], {})


RECIPE = """
phases = ["PHASE"]
[env]
type = "agent"
style = "bare"
[engine]
type = "verl"
model = "owner/model"
[surgery]
type = "equal"
group_strategy = "tool"
"""


def recipe(tmp_path: Path, phase: str = "grpo", *overrides: str) -> Resolved:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("PHASE", phase))
    return load_recipe(path, overrides)


def test_what_cannot_train_on_episodes_is_refused_before_training(tmp_path: Path) -> None:
    small = ["engine.type=toy", "data.train_size=40", "data.dev_size=4"]
    with pytest.raises(UserError, match="'rft' trains on whole answers"):
        check_phases(build_lab(recipe(tmp_path, "rft", *small)))
    with pytest.raises(UserError, match="has no 'tool' in its meta"):
        check_phases(build_lab(recipe(tmp_path, "grpo", *small, "env.type=countdown", "env.numbers=[2]")))


def test_servers_do_not_answer_half_an_episode() -> None:
    [problem] = Agent().problems("dev", 1, 0)
    answerer = ServerAnswerer.__new__(ServerAnswerer)
    with pytest.raises(UserError, match="servers answer in one turn"):
        list(answerer._without_tools([Ask(problem, 0, Sampling(), ())]))


TAGS = "(t)<tool_response>{{ m.content }}</tool_response>"
TEMPLATE = (
    f"{{% for m in messages %}}{{% if m.role == 'tool' %}}{TAGS}"
    "{% else %}({{ m.role[0] }}){{ m.content }}{% endif %}{% if m.role == 'assistant' %}<eos>{% endif %}{% endfor %}(a)"
)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (TEMPLATE, "(t)<tool_response>42</tool_response>(a)"),
        (TEMPLATE.replace(TAGS, "(t){{ m.content }}"), "(t)TAGGED(a)"),
        (TEMPLATE.replace(TAGS, "{{ raise_exception('no') }}"), "(u)TAGGED(a)"),
    ],
)
def test_results_come_in_the_models_chat_template(template: str, text: str) -> None:
    """As a tool message, in tags of our own where the template has none, or as the user where it knows no tools."""

    class Inner:
        eos_token, eos_token_id, bos_token_id, chat_template = "<eos>", 1, None, template
        special_tokens_map: ClassVar[dict[str, str]] = {}

        def __len__(self) -> int:
            return 0x110000

        def __call__(self, text: str, add_special_tokens: bool = True) -> SimpleNamespace:
            return SimpleNamespace(input_ids=[ord(letter) for letter in text])

    pytest.importorskip("jinja2")
    tokenizer = HfTokenizer(Inner(), 0x110000, "inner", chat=True)
    tagged = "<tool_response>\n42\n</tool_response>\n"
    found = "".join(map(chr, tokenizer.encode_result(tagged, "42")))
    assert found == text.replace("TAGGED", tagged)


def test_training_without_tools_does_not_import_the_judge() -> None:
    """Tools bring workers, SQL and all code environments; a toy run starts without them."""
    asked = "import sys, rlvrlab.train.loop, rlvrlab.train.phases.grpo; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert "rlvrlab.rollout.collect" in loaded and "rlvrlab.rollout.episodes" not in loaded
    assert not {"rlvrlab.judge.workers.pool", "rlvrlab.envs.sql.environment", "rlvrlab.envs.code"} & set(loaded)


class Counting(Scripted):
    """Says something else each time it is asked from one place."""

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        self.seen += requests
        return [[self._way(request, way) for way in range(request.n)] for request in requests]

    def _way(self, request: Request, way: int) -> Completion:
        text = self.speak(self.tokenizer.decode(request.tokens)).replace("WAY", str(way))
        return Completion(text, (*self.tokenizer.encode(text), END), (-0.5,) * (len(text) + 1), Finish.STOP)


@needs_jail
def test_episodes_branch_between_turns_and_share_calls_and_results() -> None:
    """Three first calls, each gone on with in two ways; one that makes no call stands for its two answers."""
    env = Agent(tools=("python",), style="bare", turns=3, calls=2)
    [problem] = env.problems("train", 1, 0)

    def speak(talk: str) -> str:
        said = talk.removeprefix(problem.prompt)
        return "answer: WAY" if said else "python: 1 + WAY"

    sampler = Counting(speak)
    shape = Shape((3, 2), "turns", 1)
    rollouts = collect(sampler, env, Binary(), [problem], n=6, sampling=Sampling(300), key=(0,), shape=shape)
    paths = [[branch.path for branch in r.completion.branches] for r in rollouts]
    assert paths == [[(i,), (i, j)] for i in range(3) for j in range(2)]
    assert [request.n for request in sampler.seen] == [3, 2, 2, 2], "each first call is made once"
    for r in rollouts:
        (first, last), done = r.completion.branches, r.completion
        assert [turn.by for turn in done.turns] == ["policy", "tool", "policy"]
        assert (first.end, last.end, first.share, last.share) == (done.turns[1].span[1], len(done.tokens), 2, 1)
    credit = tree_credit([r.completion.branches for r in rollouts], np.array([1.0, 0, 0, 0, 0, 0]))
    assert [one.tolist() for one, _ in credit[:3]] == [[0.5, 1.0], [0.5, -1.0], [-0.25, 0.0]]

    silent = Counting(lambda talk: "answer: WAY")
    rollouts = collect(silent, env, Binary(), [problem], n=6, sampling=Sampling(300), key=(0,), shape=shape)
    paths = [[branch.path for branch in r.completion.branches] for r in rollouts]
    assert paths == [[(0,)], [(1,)], [(2,)], [(-1,)], [(-2,)], [(-3,)]], "as many answers as asked for"
    assert [r.completion.branches[0].share for r in rollouts] == [2, 2, 2, 1, 1, 1]


@pytest.mark.parametrize("unit", ["%", " %", " percent", " cents", "€", "$", " kg", " degrees", "°"])
def test_a_value_with_a_unit_that_nobody_asked_for_is_another_one(unit: str) -> None:
    env = Agent()
    asked = replace(env.problems("train", 1, 0)[0], reference={"answer": "30315", "calls": []})
    assert all(env.verify(asked, f"### {right}").correct is True for right in ("30315", "30,315", "30315.0"))
    assert env.verify(asked, f"### 30315{unit}").correct is False
    assert env.verify(asked, f"### {unit.strip()}30315").correct is False
