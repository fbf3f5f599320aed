"""Tool calls in the chat template that a real tokenizer gives: what is sampled and what the template writes are one.

Templates: SmolLM2's as it comes (it knows no tools) where that model is on the shelf, and one of the form that Qwen and
Hermes models have (tools in the system turn, calls and results in tags), on nano's tokenizer and on SmolLM2's.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from talking import Scripted

from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.envs.agent.environment import Agent
from rlvrlab.envs.tool_calls import ARGUMENT, RESULT, Call, call_in, written
from rlvrlab.errors import LabError
from rlvrlab.judge.isolation import probe
from rlvrlab.models import resolve, smollm2
from rlvrlab.rewards.binary import Binary
from rlvrlab.rollout.collect import collect
from rlvrlab.train.batches import assemble
from rlvrlab.types import Completion, Finish, Request, Sampling

if find_spec("transformers") is None:  # not imported: every worker collects every file
    pytest.skip("the hf engine needs transformers", allow_module_level=True)
WITH_TOOLS = r"""
{%- set turn, end = '<|im_start|>', eos_token + '\n' %}
{%- if tools %}
    {{- turn + 'system\nFunctions:' }}
    {%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
    {{- end }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- turn + 'user\n<tool_response>\n' + message.content + '\n</tool_response>' + end }}
    {%- elif message.tool_calls %}
        {{- turn + 'assistant' }}
        {%- for call in message.tool_calls %}
            {{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}{{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- end }}
    {%- else %}
        {{- turn + message.role + '\n' + message.content + end }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- turn + 'assistant\n' }}{%- endif %}
"""
"""Ours, in the form of those models'."""
SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": tool,
            "description": f"runs {tool}",
            "parameters": {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]},
        },
    }
    for tool, name in ARGUMENT.items()
]
CALLS = [
    Call("python", "48271 * 3917 - 55"),
    Call("python", 'print("ä\\n", {"a": 1})\n'),
    Call("sql", "SELECT 'x' || \"y\""),
]


@pytest.fixture(
    params=["nano", *(pytest.param(name, marks=pytest.mark.long) for name in ("smollm2", "smollm2 as it comes"))]
)
def tokenizer(request: pytest.FixtureRequest) -> HfTokenizer:
    from transformers import AutoTokenizer

    model, _, own = request.param.partition(" ")
    try:
        folder = resolve("nano" if model == "nano" else smollm2.NAME)
    except LabError as error:
        pytest.skip(f"no package index has given the model yet: {error}")
    inner = AutoTokenizer.from_pretrained(folder)
    if not own:
        inner.chat_template = WITH_TOOLS
    return HfTokenizer(inner, len(inner), request.param, chat=True)


def knows_tools(tokenizer: HfTokenizer) -> bool:
    return tokenizer.inner.chat_template == WITH_TOOLS


def called(tokenizer: HfTokenizer, call: Call) -> dict[str, Any]:
    """The turn of a call as the template wants it: by its own field where it has one, else as text."""
    if not knows_tools(tokenizer):
        return {"role": "assistant", "content": written(call, "chat")}
    function = {"name": call.tool, "arguments": {ARGUMENT[call.tool]: call.argument}}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}


def rendered(tokenizer: HfTokenizer, messages: list[dict[str, Any]], **more: Any) -> str:
    return str(tokenizer.inner.apply_chat_template(messages, tokenize=False, **more))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.tool)
def test_what_a_template_writes_of_a_call_is_read_and_is_what_we_write(tokenizer: HfTokenizer, call: Call) -> None:
    """With `tools=`, as models were trained: the turn of the call is character by character the one that SFT shows."""
    question = {"role": "user", "content": "What is it?"}
    whole = rendered(tokenizer, [question, called(tokenizer, call)], tools=SCHEMAS)
    turn = whole.rpartition("assistant\n")[2].removesuffix("\n").removesuffix(tokenizer.inner.eos_token)
    assert turn == written(call, "chat")
    assert call_in(turn, "chat", tuple(ARGUMENT)) == call
    assert all(tool in whole.partition("What is it?")[0] for tool in ARGUMENT) == knows_tools(tokenizer)
    plain = rendered(tokenizer, [question, called(tokenizer, call)])
    assert whole.partition("What is it?")[2] == plain.partition("What is it?")[2], "tools are told before the question"


class InTemplate(Scripted):
    """Talks in the tokens of a real tokenizer."""

    def __init__(self, tokenizer: HfTokenizer, call: str, answer: str) -> None:
        super().__init__(lambda talk: answer if "</tool_response>" in talk else call)
        self.tokenizer = tokenizer  # type: ignore[assignment]

    def _one(self, request: Request) -> Completion:
        text = self.speak(self.tokenizer.decode(request.tokens))
        tokens = (*self.tokenizer.encode(text), self.tokenizer.end)
        return Completion(text, tokens, (-0.5,) * len(tokens), Finish.STOP)


@pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
@pytest.mark.parametrize("tool", ["python", "sql"])
def test_an_episode_is_token_by_token_the_templates_conversation(tokenizer: HfTokenizer, tool: str) -> None:
    env = Agent(tools=(tool,), style="chat")
    [problem] = env.problems("train", 1, 0)
    said, answer = env.gold_turns(problem)
    sampler = InTemplate(tokenizer, said, answer)
    [rollout] = collect(sampler, env, Binary(), [problem], n=1, sampling=Sampling(2000), key=(0,))
    done, call = rollout.completion, call_in(said, "chat", (tool,))
    assert rollout.verdict.correct and call is not None
    result = done.turns[1].text
    told = result if knows_tools(tokenizer) else RESULT.format(result)
    turns = [{"role": "user", "content": problem.prompt}, called(tokenizer, call), {"role": "tool", "content": told}]
    whole = rendered(tokenizer, [*turns, {"role": "assistant", "content": answer}])
    assert (*sampler.seen[0].tokens, *done.tokens) == tokenizer.encode(whole.removesuffix("\n"))

    batch = assemble([rollout], 2000)
    loss_T = batch.loss_BT[0][: len(done.tokens)]
    policy = [*tokenizer.encode(said), tokenizer.end, *tokenizer.encode(answer), tokenizer.end]
    assert np.asarray(done.tokens)[loss_T].tolist() == policy, "what the policy wrote, with its end tokens, and no more"
    between = tokenizer.inner.decode(np.asarray(done.tokens)[~loss_T].tolist())
    begun, ended = rendered(tokenizer, turns[:2]), rendered(tokenizer, turns, add_generation_prompt=True)
    assert begun.removesuffix("\n") + between == ended, "the template's own words around the result, to the last one"
