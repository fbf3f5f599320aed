"""Servers that misbehave: what fails is no answer, never a wrong one, never for long, never silently another model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from faulty_server import FaultyServer, chat, http, question

from rlvrlab.engines.openai import ModelChanged, Reply, Servers, ServersGone
from rlvrlab.engines.openai import servers as openai_servers
from rlvrlab.engines.openai.wire import chat_body
from rlvrlab.errors import UserError
from rlvrlab.types import Finish, Sampling

FAST = {"pause_s": 0.01, "deadline_s": 60.0, "check_s": 60.0, "give_up_s": 60.0, "start_s": 60.0}


def echo(server: FaultyServer, body: Any, number: int) -> bytes:
    return http(200, chat(f"said {question(body)}", server.models[0]))


def ask(servers: Servers, words: Sequence[str]) -> dict[str, Reply]:
    orders = ((word, chat_body(word, Sampling(8), 7)) for word in words)
    return {word: reply for ready in servers.replies(orders) for word, reply in ready}


def asked_of(act, words: Sequence[str] = ("a",), **options: Any) -> dict[str, Reply]:
    with FaultyServer(act) as server, Servers([server.url], **{**FAST, **options}) as servers:
        return ask(servers, words)


def test_many_requests_are_all_answered_over_kept_connections() -> None:
    words = [str(i) for i in range(200)]
    with FaultyServer(echo) as server, Servers([server.url], concurrency=8, **FAST) as servers:
        found = ask(servers, words)
        assert server.connections <= 8 + 1
        body = server.bodies[0]
    assert {word: reply.text for word, reply in found.items()} == {word: f"said {word}" for word in words}
    assert all(
        reply.finish is Finish.STOP and reply.gen_tokens == 3 and reply.attempts == 1 for reply in found.values()
    )
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("m", 8, 1.0, 7)


def test_replicas_share_the_work_and_their_identity_is_told() -> None:
    with (
        FaultyServer(echo) as one,
        FaultyServer(echo) as two,
        Servers([one.url, f"{two.url}/v1/"], "m", concurrency=4, **FAST) as servers,
    ):
        ask(servers, [str(i) for i in range(40)])
        assert one.requests + two.requests == 40 and min(one.requests, two.requests) >= 10
        identity = servers.identity()
    assert identity["model"] == "m"
    assert [s["url"] for s in identity["servers"]] == [one.url, two.url]
    assert all(s["served"] == "m" and s["listed"] == {"id": "m", "root": "/weights"} for s in identity["servers"])


def once(bad: bytes | None):
    """The first answer of each question is bad, the next is right."""
    seen: set[str] = set()

    def act(server: FaultyServer, body: Any, number: int) -> bytes | None:
        if question(body) in seen:
            return echo(server, body, number)
        seen.add(question(body))
        return bad

    return act


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(http(500, {"error": "boom"}), id="500"),
        pytest.param(http(503, b"<html>"), id="503"),
        pytest.param(http(429, {}, Retry_After="0"), id="429"),
        pytest.param(http(200, b'{"choices": [{"mess'), id="truncated JSON"),
        pytest.param(http(200, b"[1, 2]"), id="list"),
        pytest.param(http(200, {"choices": []}), id="no choices"),
        pytest.param(http(200, {"error": {"message": "out of memory"}}), id="error under 200"),
        pytest.param(http(200, chat("x", finish="abort")), id="aborted"),
        pytest.param(http(200, {"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]}), id="no text"),
        pytest.param(http(200, chat("x", logprobs={"content": [{"token": "x"}]})), id="odd logprobs"),
        pytest.param(http(200, chat("cut"), declared=5000, Connection="close"), id="cut off"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="odd chunks"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="not HTTP"),
    ],
)
def test_a_bad_answer_is_asked_again(bad: bytes) -> None:
    reply = asked_of(once(bad))["a"]
    assert (reply.text, reply.finish, reply.attempts) == ("said a", Finish.STOP, 2)


def test_a_server_that_hangs_after_accepting_costs_its_deadline_and_no_more() -> None:
    began = time.monotonic()
    reply = asked_of(lambda *_: None, deadline_s=0.2, attempts=2)["a"]
    assert reply.finish is Finish.ERROR and reply.text == "" and reply.attempts == 2
    assert "no answer within 0.2 s" in reply.error
    assert time.monotonic() - began < FAST["deadline_s"]


def test_a_server_that_hangs_up_without_a_word_is_a_failure() -> None:
    reply = asked_of(lambda *_: b"", attempts=2)["a"]
    assert reply.finish is Finish.ERROR and "closed without an answer" in reply.error


def test_what_fails_for_good_is_an_error_with_its_reason_and_not_an_answer() -> None:
    reply = asked_of(lambda *_: http(500, {"error": "boom"}), attempts=2)["a"]
    assert reply.finish is Finish.ERROR and "status 500" in reply.error and "boom" in reply.error


def test_a_refused_request_is_not_repeated() -> None:
    with (
        FaultyServer(lambda *_: http(400, {"error": "prompt too long"})) as server,
        Servers([server.url], **FAST) as servers,
    ):
        reply = ask(servers, ["a"])["a"]
        assert server.requests == 1
    assert reply.finish is Finish.ERROR and "prompt too long" in reply.error and reply.attempts == 1


@pytest.mark.slow
def test_retry_after_is_obeyed() -> None:
    began = time.monotonic()
    assert asked_of(once(http(429, {}, Retry_After="1")))["a"].attempts == 2
    assert time.monotonic() - began >= 1.0


def test_chunked_and_unmarked_bodies_are_read() -> None:
    import json

    body = json.dumps(chat("whole")).encode()
    half = len(body) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:])) + b"0\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    unmarked = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body
    assert {reply.text for reply in asked_of(lambda s, b, n: (chunked, unmarked)[n % 2], "abcd").values()} == {"whole"}


def test_a_connection_closed_between_requests_is_no_failure() -> None:
    def act(server: FaultyServer, body: Any, number: int) -> bytes:
        return http(200, chat("ok"), Connection="close") if number % 2 else http(200, chat("ok"))

    found = asked_of(act, [str(i) for i in range(20)], concurrency=2)
    assert all(reply.attempts == 1 for reply in found.values())


def test_a_replica_that_dies_mid_run_is_left_out_and_loses_nothing() -> None:
    def dies(server: FaultyServer, body: Any, number: int) -> bytes | None:
        if number == 5:
            server.die()
            return None
        return echo(server, body, number)

    words = [str(i) for i in range(60)]
    with (
        FaultyServer(dies) as one,
        FaultyServer(echo) as two,
        Servers([one.url, two.url], concurrency=4, **FAST) as servers,
    ):
        found = ask(servers, words)
        facts = {s["url"]: s["trouble"] for s in servers.identity()["servers"]}
    assert all(found[word].text == f"said {word}" for word in words)
    assert facts[one.url] and not facts[two.url]


def test_a_replica_that_comes_back_is_used_again() -> None:
    def dies(server: FaultyServer, body: Any, number: int) -> bytes | None:
        if number == 3:
            server.die()
            return None
        return echo(server, body, number)

    with FaultyServer(dies) as server, Servers([server.url], concurrency=2, **{**FAST, "check_s": 0.05}) as servers:
        found: dict[str, Reply] = {}
        orders = ((w, chat_body(w, Sampling(8), 7)) for w in map(str, range(12)))
        stream = servers.replies(orders)
        found |= dict(next(stream))
        assert server.dead.wait(60)
        server.revive()
        for ready in stream:
            found |= dict(ready)
    assert all(reply.text == f"said {word}" for word, reply in found.items()) and len(found) == 12


def test_when_no_server_is_left_the_call_ends() -> None:
    def dies(server: FaultyServer, body: Any, number: int) -> bytes | None:
        server.die()
        return None

    with (
        FaultyServer(dies) as server,
        Servers([server.url], **{**FAST, "give_up_s": 0.3, "attempts": 8}) as servers,
        pytest.raises(ServersGone, match=server.url),
    ):
        ask(servers, ["a"])


def changing(how):
    def act(server: FaultyServer, body: Any, number: int) -> bytes:
        if number == 3:
            how(server)
        return echo(server, body, number)

    return act


def test_another_name_in_an_answer_ends_the_call_at_once() -> None:
    def how(server: FaultyServer) -> None:
        server.models = ["other"]

    with pytest.raises(ModelChanged, match="answers as 'other', not 'm'"):
        asked_of(changing(how), [str(i) for i in range(50)], concurrency=1)


def test_a_model_that_is_refused_is_found_to_be_gone() -> None:
    def act(server: FaultyServer, body: Any, number: int) -> bytes:
        server.models = ["other"]
        return http(404, {"error": "model m does not exist"})

    with pytest.raises(ModelChanged, match="no longer serves 'm'"):
        asked_of(act)


@pytest.mark.parametrize("kind", ["weights", "probabilities"])
def test_other_weights_under_the_same_name_are_noticed_by_the_watch(kind: str) -> None:
    def greeting(server: FaultyServer, body: Any, number: int) -> bytes:
        logprob = -0.1 if number < 4 or kind == "weights" else -2.0
        return http(200, chat("Blue.", logprobs={"content": [{"token": "B", "logprob": logprob}]}))

    def act(server: FaultyServer, body: Any, number: int) -> bytes:
        if number == 3 and kind == "weights":
            server.root = "/other"
        time.sleep(0.02)
        return echo(server, body, number)

    with FaultyServer(act) as server:
        server.greeting = greeting
        with (
            Servers([server.url], concurrency=1, **{**FAST, "check_s": 0.02}) as servers,
            pytest.raises(ModelChanged) as told,
        ):
            ask(servers, [str(i) for i in range(500)])
    assert told.value.server == server.url
    assert ("other weights" if kind == "weights" else "other probabilities") in str(told.value)


def test_the_wrong_model_is_refused_before_anything_is_asked() -> None:
    def greeting(server: FaultyServer, body: Any, number: int) -> bytes:
        return http(404, {"error": f"no {body['model']}"})

    with FaultyServer(echo, ["a", "b"]) as server:
        server.greeting = greeting
        with pytest.raises(UserError, match="serves a, b, not 'm'"), Servers([server.url], "m", **FAST):
            pass
        with pytest.raises(UserError, match="serves a, b; choose with --model"), Servers([server.url], **FAST):
            pass
        assert server.requests == 0


def test_a_server_that_answers_as_another_model_is_refused() -> None:
    with FaultyServer(echo, ["other"]) as server:
        expected = pytest.raises(UserError, match="answers as 'other'")
        with expected, Servers([server.url], "m", **FAST):
            pass


def test_two_servers_of_two_models_are_refused() -> None:
    with FaultyServer(echo, ["m"]) as one, FaultyServer(echo, ["other"]) as two:
        expected = pytest.raises(UserError, match="other")
        with expected, Servers([one.url, two.url], "m", **FAST):
            pass


def test_a_server_without_a_model_list_is_known_by_its_answers() -> None:
    """`transformers serve` lists its cache, not what it serves, and appends a revision."""
    with FaultyServer(lambda s, b, n: http(200, chat("ok", "m@main")), ["unrelated"]) as server:
        server.greeting = lambda s, b, n: http(200, chat("Blue.", "m@main"))
        for models in (["unrelated"], http(500, b"Internal Server Error")):
            server.models = models
            with Servers([server.url], "m", **FAST) as servers:
                assert ask(servers, ["a"])["a"].text == "ok"


def test_of_a_greeting_without_end_only_the_beginning_is_kept() -> None:
    with FaultyServer(echo) as server:
        server.greeting = lambda s, b, n: http(200, chat("Blue." * 1_000_000, s.models[0]))
        with Servers([server.url], **FAST) as servers:
            [facts] = servers.identity()["servers"]
            assert facts["greeting"].startswith("Blue.Blue.") and len(facts["greeting"]) == 1000


def test_nobody_there_is_one_clear_error() -> None:
    with FaultyServer(echo) as server:
        gone = server.url
    with pytest.raises(ServersGone, match=gone), Servers([gone], **FAST):
        pass


def test_a_server_that_is_down_at_the_start_does_not_stop_the_others() -> None:
    with FaultyServer(echo) as gone:
        url = gone.url
    with FaultyServer(echo) as server, Servers([url, server.url], **FAST) as servers:
        assert ask(servers, ["a", "b"])["b"].text == "said b"


def test_a_lost_server_is_tried_once_for_the_next_adapter_and_used_again_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["m", "n", "o"]
    with (
        FaultyServer(echo, models=names) as one,
        FaultyServer(echo, models=names) as two,
        Servers([one.url, two.url], "m", **FAST) as servers,
    ):
        lost, tries = servers.replicas.all[1], []

        async def gone(model: str) -> None:
            tries.append(model)
            raise ConnectionError("nobody there")

        with monkeypatch.context() as patch:
            patch.setattr(lost, "check", gone)
            servers.switch("n")
            servers.switch("o")
        assert tries == ["n"] * 4 + ["o"] and lost.down
        servers.switch("o")
        assert not lost.down


def test_whoever_joins_the_list_during_a_call_is_asked_and_who_left_it_is_not() -> None:
    words = [str(i) for i in range(60)]
    with FaultyServer(echo) as one, FaultyServer(echo) as two:
        roster = [one.url]
        with Servers([one.url], "m", concurrency=4, roster=lambda: roster, **FAST) as servers:
            with one.held(after=5):
                stream = servers.replies((word, chat_body(word, Sampling(8), 7)) for word in words)
                found = dict(next(stream))
                roster = [f"{one.url}/v1", two.url]
                until = time.monotonic() + 60
                while not servers.replicas.changes and time.monotonic() < until:
                    time.sleep(0.02)  # all who ask wait for the first one: the second is met meanwhile
            for ready in stream:
                found |= dict(ready)
            assert two.requests and {word: reply.text for word, reply in found.items()} == {
                w: f"said {w}" for w in words
            }
            assert [(change.url, change.there) for change in servers.changes()] == [(two.url, True)]
            roster, asked = [two.url], one.requests
            ask(servers, words)
            assert one.requests == asked
            assert [(c.url, c.there, c.why) for c in servers.changes()] == [(one.url, False, "no longer on the list")]


@pytest.mark.parametrize("kind", ["other name", "other probabilities"])
def test_who_joins_with_another_model_is_left_out_and_the_work_goes_on(kind: str) -> None:
    def greeting(logprob: float) -> Any:
        return lambda s, b, n: http(200, chat("Blue.", logprobs={"content": [{"token": "B", "logprob": logprob}]}))

    with FaultyServer(echo) as one, FaultyServer(echo, ["other"] if kind == "other name" else None) as two:
        one.greeting = greeting(-0.1)
        two.greeting = greeting(-2.0) if kind == "other probabilities" else two.greeting
        roster = [one.url]
        with Servers([one.url], "m", roster=lambda: roster, **FAST) as servers:
            roster = [one.url, two.url]
            servers.switch("m")
            assert ask(servers, ["a", "b"])["b"].text == "said b" and two.requests == 0
            (told,) = servers.changes()
            assert told.url == two.url and not told.there and "not taken" in told.why
            two.models, two.greeting = ["m"], greeting(-0.1)  # mended under the same address
            servers.switch("m")
            assert [(change.url, change.there) for change in servers.changes()] == [(two.url, True)]


def test_a_server_that_came_back_with_other_weights_ends_the_call() -> None:
    """Also when the model asked for is another by then, so that nothing of its own is left to compare with."""

    def greeting(logprob: float) -> Any:
        return lambda s, b, n: http(
            200, chat("Blue.", b["model"], logprobs={"content": [{"token": "B", "logprob": logprob}]})
        )

    names = ["m", "n"]
    with FaultyServer(echo, names) as one, FaultyServer(echo, names) as two:
        one.greeting = two.greeting = greeting(-0.1)
        with Servers([one.url, two.url], "m", **FAST) as servers:
            servers.replicas.absent(servers.replicas.all[1], "nobody there")
            two.greeting = greeting(-2.0)
            with pytest.raises(ModelChanged, match=f"{two.url}: answers with other probabilities than {one.url}"):
                servers.switch("n")


def test_a_lost_server_that_hangs_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_servers, "RETURN_S", 0.05)
    with FaultyServer(echo) as one, FaultyServer(echo) as two, Servers([one.url, two.url], "m", **FAST) as servers:
        servers.replicas.absent(servers.replicas.all[1], "nobody there")
        two.greeting = lambda *_: None
        began = time.monotonic()
        servers.switch("m")
        assert time.monotonic() - began < FAST["start_s"] / 2
        assert ask(servers, ["a"])["a"].text == "said a"


def test_keys_go_to_the_server_and_nowhere_else() -> None:
    with FaultyServer(echo) as server, Servers([server.url], key="sk-very-secret", **FAST) as servers:
        ask(servers, ["a"])
        assert all(headers["authorization"] == "Bearer sk-very-secret" for headers in server.headers)
        assert "very-secret" not in str(servers.identity())


@pytest.mark.parametrize("status", [401, 403])
def test_a_missing_key_is_the_users_to_give(status: int) -> None:
    with FaultyServer(echo) as server:
        server.models = http(status, {"error": "no key"})
        with pytest.raises(UserError, match="key"), Servers([server.url], **FAST):
            pass


def test_redirects_are_not_followed() -> None:
    with FaultyServer(echo) as other, FaultyServer(lambda *_: http(307, {}, Location=other.url)) as server:
        with Servers([server.url], **FAST) as servers:
            assert ask(servers, ["a"])["a"].finish is Finish.ERROR
        assert other.requests == 0


ODD = [
    "ftp://x",
    "127.0.0.1:8000",
    "http://",
    "http://user:secret@x",
    "http://x/?q=1",
    "ftp://user:secret@x",
    "a:secret@x",
    "http://x:65536",
    "http://user:secret@x:port",
    "http://[x",
]


@pytest.mark.parametrize("url", ODD)
def test_odd_addresses_are_refused(url: str) -> None:
    with pytest.raises(UserError) as told:
        Servers([url])
    assert "secret" not in str(told.value)


def test_leaving_in_the_middle_leaves_nothing_behind() -> None:
    with FaultyServer(echo) as server, Servers([server.url], concurrency=4, **FAST) as servers:
        stream = servers.replies((str(i), chat_body("x", Sampling(8), 7)) for i in range(10_000))
        next(stream)
        stream.close()
        asked = server.requests
        assert asked < 2000
        time.sleep(0.1)
        assert server.requests <= asked + 4
        assert ask(servers, ["a"])["a"].text == "said a"


def test_busy_is_not_broken_and_costs_no_attempt() -> None:
    def act(server: FaultyServer, body: Any, number: int) -> bytes:
        return echo(server, body, number) if number >= 5 else http(429, {}, Retry_After="0")

    reply = asked_of(act, attempts=1)["a"]
    assert (reply.text, reply.finish, reply.attempts) == ("said a", Finish.STOP, 6)
