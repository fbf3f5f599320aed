"""Log-probabilities, token ids and entropies as servers tell them; token in, token out."""

from __future__ import annotations

import math

import pytest
from faulty_server import FaultyServer, chat, http

from rlvrlab.engines.openai import Servers
from rlvrlab.engines.openai.wire import chat_body, parse, spread, text_body, token_body
from rlvrlab.engines.toy.features import ToyTokenizer
from rlvrlab.http_client import BadAnswer
from rlvrlab.types import Finish, Sampling


def tops(*probabilities: float) -> list[dict]:
    return [{"token": str(i), "logprob": math.log(p)} for i, p in enumerate(probabilities)]


def test_chat_logprobs_and_the_entropy_they_leave_open() -> None:
    content = [
        {"token": "a", "logprob": math.log(0.5), "top_logprobs": tops(0.5, 0.25)},
        {"token": "b", "logprob": math.log(0.9), "top_logprobs": tops(0.9, 0.1)},
    ]
    reply = parse(chat("ab", logprobs={"content": content}))[0]
    assert reply.logprobs == pytest.approx((math.log(0.5), math.log(0.9)))
    first = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25))  # the unseen quarter counts as one token
    second = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    assert reply.entropy == pytest.approx((first + second) / 2)
    # With the unseen quarter spread over two tokens the true entropy is higher: the figure is a lower bound.
    assert first < -(0.5 * math.log(0.5) + 0.25 * math.log(0.25) + 2 * 0.125 * math.log(0.125))


@pytest.mark.parametrize("ids", [{"token_ids": [5, 6]}, {}])
def test_completion_logprobs_and_token_ids_both_ways(ids: dict) -> None:
    logprobs = {
        "tokens": ["token_id:5", "token_id:6"],
        "token_logprobs": [-0.5, -1.5],
        "top_logprobs": [{"x": -0.5}] * 2,
    }
    choice = {"text": "hi", "finish_reason": "length", "logprobs": logprobs, **ids}
    reply = parse({"model": "m", "choices": [choice]})[0]
    assert (reply.text, reply.tokens, reply.logprobs) == ("hi", (5, 6), (-0.5, -1.5))
    assert reply.finish is Finish.LENGTH and reply.gen_tokens == 2 and reply.entropy is None


def test_a_thought_taken_out_by_the_server_is_put_back() -> None:
    message = {"role": "assistant", "content": "<answer>7</answer>", "reasoning_content": "3+4"}
    reply = parse({"choices": [{"message": message, "finish_reason": "stop"}]})[0]
    assert reply.text == "<think>3+4</think><answer>7</answer>"


def test_bodies_ask_only_for_what_is_wanted() -> None:
    plain = chat_body("q", Sampling(9, 0.0, 1.0), 3)
    assert set(plain) == {"messages", "max_tokens", "temperature", "top_p", "seed"}
    assert chat_body("q", Sampling(9), 3, 4)["top_logprobs"] == 4
    assert text_body("q", Sampling(9, stop=("\n",)), 3)["stop"] == ["\n"]
    assert token_body((1, 2), Sampling(9), 3, 4)["prompt"] == [1, 2]


TOKENIZER = ToyTokenizer(9)


def choices(n: int, **extra) -> dict:
    tokens = [*TOKENIZER.encode("1+2"), TOKENIZER.end]
    logprobs = {"tokens": [f"token_id:{t}" for t in tokens], "token_logprobs": [-0.25] * len(tokens)}
    return {"model": "m", "choices": [{"text": "", "finish_reason": "stop", "logprobs": logprobs, **extra}] * n}


def all_choices(content: dict, n: int, sampling: Sampling, status: int = 200):
    with FaultyServer(lambda *_: http(status, content)) as server, Servers([server.url], attempts=1) as servers:
        body = token_body(TOKENIZER.encode("1 2 = 3"), sampling, 7, n)
        return spread(dict(servers.all_choices([body]))[0], sampling, n), server.bodies


def test_tokens_in_tokens_out() -> None:
    replies, bodies = all_choices(choices(3), 3, Sampling(8))
    assert len(replies) == 3 and bodies[0]["n"] == 3 and bodies[0]["prompt"] == list(TOKENIZER.encode("1 2 = 3"))
    assert TOKENIZER.decode(replies[0].tokens) == "1+2" and replies[0].tokens[-1] == TOKENIZER.end
    assert replies[0].logprobs == (-0.25,) * len(replies[0].tokens)


def test_a_failed_request_and_a_part_of_a_group_are_errors() -> None:
    failed = all_choices({}, 2, Sampling(8), status=500)[0]
    assert {reply.finish for reply in failed} == {Finish.ERROR}
    (part,) = all_choices(choices(1), 2, Sampling(8))[0]
    assert part.finish is Finish.ERROR and "1 answers instead of 2" in part.error


GOOD = {"text": "7", "finish_reason": "stop", "token_ids": [5], "logprobs": {"tokens": ["7"], "token_logprobs": [-0.5]}}


@pytest.mark.parametrize(
    "changes",
    [
        {"text": None},
        {"text": 7},
        {"text": "7\ud800"},
        {"finish_reason": None},
        {"finish_reason": "soon"},
        {"finish_reason": ["stop"]},
        {"token_ids": [5, 6]},
        {"token_ids": [-1]},
        {"token_ids": [5.0]},
        {"token_ids": [True]},
        {"token_ids": [10**30]},
        {"logprobs": {"tokens": ["token_id:-5"], "token_logprobs": [-0.5]}, "token_ids": None},
        {"logprobs": {"tokens": [f"token_id:{10**30}"], "token_logprobs": [-0.5]}, "token_ids": None},
        {"token_ids": 5},
        {"logprobs": {"token_logprobs": [float("nan")]}},
        {"logprobs": {"token_logprobs": [None]}},
        {"logprobs": {"token_logprobs": ["-0.5"]}},
        {"logprobs": [1]},
        {"logprobs": {"content": [{}]}},
        {"logprobs": {"content": 3}},
    ],
    ids=str,
)
def test_a_choice_with_an_odd_part_is_no_answer(changes: dict) -> None:
    assert parse({"model": "m", "choices": [GOOD]})[0].tokens == (5,)
    with pytest.raises(BadAnswer):
        parse({"model": "m", "choices": [{**GOOD, **changes}]})


LOST = [{}, {"content": None}, {"role": "assistant"}, {"content": None, "tool_calls": []}, {"content": None, "x": 1}]


@pytest.mark.parametrize("message", LOST, ids=str)
def test_a_message_without_its_content_is_no_empty_answer(message: dict) -> None:
    answer = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"completion_tokens": 9}}
    for given in (answer, {"choices": answer["choices"]}):
        with pytest.raises(BadAnswer, match="no text in the answer"):
            parse(given)


def test_nothing_said_a_thought_and_a_call_are_empty_answers() -> None:
    def text(message: dict, tokens: int) -> str:
        choice = {"message": message, "finish_reason": "stop"}
        return parse({"choices": [choice], "usage": {"completion_tokens": tokens}})[0].text

    assert text({"content": None}, 1) == "" == text({"content": ""}, 9)
    assert text({"content": None, "tool_calls": [{}]}, 9) == ""
    assert text({"content": None, "reasoning_content": "3+4"}, 9) == "<think>3+4</think>"


@pytest.mark.parametrize("count", [10**400, 10**30, 1 << 53])
def test_a_count_of_tokens_that_nobody_could_write_is_no_answer(count: int) -> None:
    """Taken as it is, it ended the evaluation after the last answer, and every resumption of it."""
    usage = {"usage": {"completion_tokens": 300}}
    assert parse({"choices": [GOOD], **usage})[0].gen_tokens == 300
    with pytest.raises(BadAnswer, match="a count of tokens"):
        parse({"choices": [GOOD], "usage": {"completion_tokens": count}})


@pytest.mark.parametrize(
    "content", [{}, {"choices": []}, {"choices": {}}, {"choices": [3]}, {"choices": [GOOD], "model": 3}]
)
def test_an_answer_without_choices_is_none(content: dict) -> None:
    with pytest.raises(BadAnswer):
        parse(content)
