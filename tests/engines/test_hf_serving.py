"""The model server on the embedded sampler: requests, refusals, and adapters that come and go."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import needs_torch
import pytest
from local_server import LocalServer
from tiny_models import tiny

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf, store
from rlvrlab.engines.openai import Servers
from rlvrlab.engines.openai.wire import chat_body
from rlvrlab.http_client import Host
from rlvrlab.http_messages import HttpError
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Finish, Sampling


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with LocalServer(tiny()) as running:
        yield running


def post(server: LocalServer, path: str, content: Any) -> tuple[int, Any]:
    async def ask() -> tuple[int, Any]:
        host = Host(server.url)
        try:
            response = await host.request(path, content)
            return response.status, json.loads(response.body)
        finally:
            await host.close()

    return asyncio.run(ask())


def complete(server: LocalServer, **changes: Any) -> tuple[int, Any]:
    usual = {"model": "base", "prompt": [5, 6, 7], "max_tokens": 6, "seed": 3, "logprobs": 1, "return_token_ids": True}
    return post(server, "/v1/completions", usual | changes)


def test_a_seed_gives_the_same_answers_and_n_of_them(server: LocalServer) -> None:
    _, once = complete(server, n=3)
    _, again = complete(server, n=3)
    _, other = complete(server, n=3, seed=4)
    ids = [[c["token_ids"] for c in one["choices"]] for one in (once, again, other)]
    assert ids[0] == ids[1] != ids[2] and len(ids[0]) == 3
    assert once["usage"]["completion_tokens"] == sum(map(len, ids[0]))
    engine = Hf(tiny(), device="cpu").build(Optimizer())
    batch = batch_of([(5, 6, 7)] * 3, [tuple(one) for one in ids[0]])
    for choice, logp_T in zip(once["choices"], engine.logprobs(batch)[0], strict=True):
        told = choice["logprobs"]["token_logprobs"]
        assert told == pytest.approx(logp_T[: len(told)], abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"prompt": [5, 999]}, 400, "token ids in 0…"),
        ({"prompt": [True]}, 400, "token ids in 0…"),
        ({"prompt": None}, 400, "a text, or token ids"),
        ({"prompt": []}, 400, "a text, or token ids"),
        ({"prompt": ""}, 400, "not nothing"),
        ({"temperature": 1e-40}, 400, "at least 0.0001"),
        ({"max_tokens": 126}, 400, "do not fit the window of 128"),
        ({"max_tokens": 0}, 400, "from 1 to 128"),
        ({"n": True}, 400, "a number from 1"),
        ({"temperature": -1}, 400, "from 0 to 100"),
        ({"temperature": "hot"}, 400, "'hot'"),
        ({"top_p": 0}, 400, "top_p"),
        ({"top_k": 20}, 400, "top_k: 20 is not supported"),
        ({"repetition_penalty": 1.1}, 400, "repetition_penalty"),
        ({"logit_bias": {"5": 100}}, 400, "logit_bias"),
        ({"min_tokens": 3}, 400, "min_tokens: 3 is not supported; allowed: 0"),
        ({"echo": True}, 400, "echo"),
        ({"best_of": 2}, 400, "best_of"),
        ({"stop_token_ids": [5]}, 400, "stop_token_ids: answers end with"),
        ({"guided_regex": "a+"}, 400, "guided_regex: not a setting of this server"),
        ({"model": "gone"}, 404, "does not exist"),
        ({"model": []}, 400, "model: a text"),
        ({"prompt": [5] * 129}, 400, "129 tokens do not fit"),
        ({"stop": [""]}, 400, "stop: a text"),
        ({"stop": ["x"] * 17}, 400, "up to 16"),
        ({"stop": "x" * 1001}, 400, "at most 1000 characters"),
    ],
)
def test_what_it_cannot_do_is_refused(server: LocalServer, changes: Any, status: int, words: str) -> None:
    found, content = complete(server, **changes)
    assert found == status and words in content["detail"]


def test_a_request_that_fails_does_not_fail_those_drawn_with_it(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = server.server._sample

    def fail_on_nine(adapter: str | None, requests: list[Any], unwanted: Any) -> Any:
        if any(request.tokens == (9,) for request in requests):
            raise ValueError("nine")
        return sample(adapter, requests, unwanted)

    monkeypatch.setattr(server.server, "_sample", fail_on_nine)
    monkeypatch.setattr("rlvrlab.engines.hf.serving.GATHER_S", 0.2)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda prompt: complete(server, prompt=prompt)[0], ([5], [9], [6])))
    assert found == [200, 500, 200]


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not holds() and time.monotonic() < ends:
        time.sleep(0.01)
    assert holds()


def calling(server: LocalServer) -> socket.socket:
    """A caller who has asked and may hang up."""
    body = json.dumps({"model": "base", "prompt": [5], "max_tokens": 4}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    caller = socket.create_connection(("127.0.0.1", server.server.port))
    caller.sendall(f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + body)
    return caller


def test_who_hangs_up_is_not_drawn_for(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise requests that nobody waits for any more would hold up all others, and fill the memory."""
    free, batches, sample = threading.Event(), [], server.server._sample

    def patient(adapter: str | None, requests: list[Any], unwanted: Any) -> Any:
        batches.append(len(requests))
        assert free.wait(60)
        return sample(adapter, requests, unwanted)

    monkeypatch.setattr(server.server, "_sample", patient)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(complete, server)
        until(lambda: batches == [1])
        with calling(server):
            until(lambda: len(server.server.waiting) == 1)
        until(lambda: not server.server.waiting)
        free.set()
        assert first.result()[0] == 200 and batches == [1]


def test_who_hangs_up_while_it_is_drawn_for_is_given_up(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler hears of it, and those who are drawn with it or wait behind it do not pay for the rest."""
    heard: list[list[bool]] = []
    sample = server.server._sample

    def listening(adapter: str | None, requests: list[Any], unwanted: Any) -> Any:
        heard.append([unwanted(i) for i in range(len(requests))])
        if heard == [[False]]:
            caller.close()
            until(lambda: unwanted(0))
        return sample(adapter, requests, unwanted)

    monkeypatch.setattr(server.server, "_sample", listening)
    with calling(server) as caller:
        until(lambda: heard == [[False]])
        assert complete(server)[0] == 200 and heard == [[False], [False]]


@pytest.mark.parametrize(
    ("host", "kind", "status"),
    [("127.0.0.1", "text/plain", b" 415 "), ("somewhere.example", "application/json", b" 403 ")],
    ids=["a form", "a name that leads here"],
)
def test_no_page_in_a_browser_reaches_it(server: LocalServer, host: str, kind: str, status: bytes) -> None:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port)
        head = f"POST /v1/load_lora_adapter HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: 2"
        writer.write(head.encode() + b"\r\n\r\n{}")
        line = await reader.readline()
        writer.close()
        return line

    assert status in asyncio.run(ask())


def test_a_stream_holds_the_same_answer_and_its_cost(server: LocalServer) -> None:
    asked = {"model": "base", "messages": [{"role": "user", "content": "1 + 1"}], "max_tokens": 5, "temperature": 0}
    told = {}
    for stream in (False, True):
        form = asked | {"stream": stream, "stream_options": {"include_usage": True}}
        request = urllib.request.Request(
            f"{server.url}/chat/completions", json.dumps(form).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            told[stream] = answer.headers["Content-Type"], answer.read().decode()
    whole = json.loads(told[False][1])
    *chunks, last = [event.removeprefix("data: ") for event in told[True][1].split("\n\n") if event]
    assert told[True][0] == "text/event-stream" and last == "[DONE]"
    answer, usage = map(json.loads, chunks)
    assert answer["choices"][0]["delta"] == whole["choices"][0]["message"] and answer["object"].endswith("chunk")
    assert answer["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert usage["usage"] == whole["usage"] and usage["choices"] == []


def test_an_evaluation_can_ask_it_in_chat(server: LocalServer) -> None:
    with Servers([server.url], start_s=20) as servers:
        ((found,),) = servers.replies([("a", chat_body("1 + 1", Sampling(5, 0.0), 0, 1))])
        assert servers.model == "base"
    reply = found[1]
    assert reply.finish in (Finish.STOP, Finish.LENGTH) and len(reply.logprobs) == reply.gen_tokens > 0


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    engine = Hf(tiny(), lora_rank=4, device="cpu").build(Optimizer())
    engine.weights.add(0.3 * needs_torch.torch.ones_like(engine.weights.theta))
    folder = tmp_path_factory.mktemp("adapter")
    store.export_adapter(folder, engine.peft)
    return folder


def tokens(server: LocalServer, model: str) -> list[int]:
    return complete(server, model=model, max_tokens=20)[1]["choices"][0]["token_ids"]


def test_adapters_come_and_go_and_the_base_stays(server: LocalServer, adapter: Path) -> None:
    base = tokens(server, "base")
    load = {"lora_name": "a", "lora_path": str(adapter)}
    assert post(server, "/v1/load_lora_adapter", load)[0] == 200
    assert post(server, "/v1/load_lora_adapter", load)[0] == 400
    changed = tokens(server, "a")
    assert changed != base == tokens(server, "base") and tokens(server, "a") == changed
    assert post(server, "/v1/unload_lora_adapter", {"lora_name": "a"})[0] == 200
    assert complete(server, model="a")[0] == 404 and tokens(server, "base") == base
    assert post(server, "/v1/unload_lora_adapter", {"lora_name": "a"})[0] == 404
    assert post(server, "/v1/unload_lora_adapter", {"lora_name": []})[0] == 400
    settings = json.loads((adapter / "adapter_config.json").read_text())
    other = adapter.with_name("other")
    shutil.copytree(adapter, other)
    (other / "adapter_config.json").write_text(json.dumps(settings | {"lora_alpha": 0.001}))
    assert post(server, "/v1/load_lora_adapter", load)[0] == 200 and tokens(server, "a") == changed
    assert post(server, "/v1/unload_lora_adapter", {"lora_name": "a"})[0] == 200
    assert post(server, "/v1/load_lora_adapter", load | {"lora_path": str(other)})[0] == 200
    assert tokens(server, "a") == base  # another adapter under the same name
    post(server, "/v1/unload_lora_adapter", {"lora_name": "a"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"use_dora": True}, "only plain LoRA"),
        ({"peft_type": "IA3"}, "another type"),
        ({"r": 0}, "another type"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"lora_alpha": None}, "No adapter found"),
        ({"lora_alpha": float("inf")}, "no finite scale"),
        ({"lora_alpha": float("nan")}, "no finite scale"),
        ({"lora_alpha": 1e300}, "once they are merged"),
        ({"r": float("inf")}, "No adapter found"),
        ({"r": 10**400}, "No adapter found"),
        ({"r": 3}, "no update of rank 3"),
        ({"notes": "x" * (1 << 20)}, "no plain file of at most"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_odd_adapters_are_refused(
    server: LocalServer, adapter: Path, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    settings = json.loads((adapter / "adapter_config.json").read_text())
    shutil.copy(adapter / "adapter_model.safetensors", tmp_path)
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings | changes))
    status, content = post(server, "/v1/load_lora_adapter", {"lora_name": "odd", "lora_path": str(tmp_path)})
    assert status == 400 and words in content["detail"] and "odd" not in server.adapters


ODD_TENSORS: dict[str, Callable[[str, Any], Any]] = {
    "no tensors": lambda name, tensor: None,
    "other ranks": lambda name, tensor: tensor[:, :-1].contiguous() if ".lora_B." in name else tensor,
    "rows": lambda name, tensor: tensor[0].contiguous() if ".lora_A." in name else tensor,
    "too large": lambda name, tensor: (tensor + 1) * 1e19,
    "not a number": lambda name, tensor: tensor * float("nan"),
}


@pytest.mark.parametrize("change", ODD_TENSORS.values(), ids=ODD_TENSORS)
def test_tensors_that_cannot_be_merged_are_refused_when_they_are_loaded(
    server: LocalServer, adapter: Path, tmp_path: Path, change: Callable[[str, Any], Any]
) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copy(adapter / "adapter_config.json", tmp_path)
    tensors = {n: change(n, t) for n, t in load_file(adapter / "adapter_model.safetensors").items()}
    save_file({n: t for n, t in tensors.items() if t is not None}, tmp_path / "adapter_model.safetensors")
    status, content = post(server, "/v1/load_lora_adapter", {"lora_name": "odd", "lora_path": str(tmp_path)})
    assert status == 400 and str(tmp_path) in content["detail"] and "odd" not in server.adapters, content


def test_no_name_stands_for_weights_that_are_left_over(server: LocalServer, adapter: Path, tmp_path: Path) -> None:
    settings = json.loads((adapter / "adapter_config.json").read_text())
    shutil.copytree(adapter, tmp_path / "weak")
    (tmp_path / "weak" / "adapter_config.json").write_text(json.dumps(settings | {"lora_alpha": 0.001}))
    base, unload = tokens(server, "base"), "/v1/unload_lora_adapter"
    assert post(server, "/v1/load_lora_adapter", {"lora_name": "a", "lora_path": str(adapter)})[0] == 200
    assert tokens(server, "a") != base and post(server, unload, {"lora_name": "a"})[0] == 200
    assert post(server, "/v1/load_lora_adapter", {"lora_name": "\0", "lora_path": str(tmp_path / "weak")})[0] == 200
    assert tokens(server, "\0") == base and post(server, unload, {"lora_name": "\0"})[0] == 200


def test_a_pipe_in_place_of_an_adapter_is_refused(server: LocalServer, adapter: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "adapter_config.json")
    load = {"lora_name": "pipe", "lora_path": str(tmp_path)}
    status, content = post(server, "/v1/load_lora_adapter", load)
    assert status == 400 and "no plain file" in content["detail"]


def test_folders_that_hang_hold_up_neither_answers_nor_their_callers(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = threading.Event()
    monkeypatch.setattr("rlvrlab.engines.hf.serving.READ_S", 0.2)
    monkeypatch.setattr(server.server.merging, "read", lambda folder: done.wait(60))
    try:
        for number in range(min(32, (os.cpu_count() or 1) + 4)):  # as many threads as asyncio keeps for such work
            status, content = post(server, "/v1/load_lora_adapter", {"lora_name": f"f{number}", "lora_path": "/x"})
            assert status == 503 and "could not be read" in content["detail"] and not server.adapters
        assert tokens(server, "base")
    finally:
        done.set()


def test_pickles_and_adapters_of_other_models_are_refused(server: LocalServer, adapter: Path, tmp_path: Path) -> None:
    shutil.copy(adapter / "adapter_config.json", tmp_path)
    (tmp_path / "adapter_model.bin").write_bytes(b"\x80\x04.")
    load = {"lora_name": "p", "lora_path": str(tmp_path)}
    assert "No adapter found" in post(server, "/v1/load_lora_adapter", load)[1]["detail"]
    engine = Hf(tiny("gpt2"), lora_rank=4, device="cpu").build(Optimizer())
    store.export_adapter(tmp_path, engine.peft)
    assert "an adapter of another model" in post(server, "/v1/load_lora_adapter", load)[1]["detail"]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize(
    ("text", "words"),
    [("1 + " * 500_000, "cannot fit the window"), ("1 \ud800", "half a character")],
    ids=["two megabytes", "a lone surrogate"],
)
def test_texts_that_cannot_be_prompts_are_refused_at_once(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, path: str, text: str, words: str
) -> None:
    monkeypatch.setattr(server.server.tokenizer, "encode", lambda text: pytest.fail("it was tokenised"))
    usual = {"prompt": text} if path == "/v1/completions" else {"messages": [{"role": "user", "content": text}]}
    status, content = post(server, path, usual | {"model": "base", "max_tokens": 4})
    assert status == 400 and words in content["detail"]


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": ["x"]}]},
        {"messages": [3]},
        {"stop": 3},
    ],
    ids=str,
)
def test_odd_chats_are_bad_requests(server: LocalServer, changes: dict[str, Any]) -> None:
    usual = {"model": "base", "messages": [{"role": "user", "content": "1"}], "max_tokens": 4}
    assert post(server, "/v1/chat/completions", usual | changes)[0] == 400


def test_who_asked_for_an_adapter_that_was_replaced_meanwhile_gets_no_answer_of_another(
    server: LocalServer, adapter: Path
) -> None:
    load = {"lora_name": "r", "lora_path": str(adapter)}
    assert post(server, "/v1/load_lora_adapter", load)[0] == 200
    asked = server.server.merging.adapters["r"]
    assert post(server, "/v1/unload_lora_adapter", {"lora_name": "r"})[0] == 200
    assert post(server, "/v1/load_lora_adapter", load)[0] == 200
    with pytest.raises(HttpError, match="`r` does not exist any more"):
        server.server._sample(asked, [], lambda i: False)
    assert post(server, "/v1/unload_lora_adapter", {"lora_name": "r"})[0] == 200


def test_a_chat_of_very_many_messages_is_refused_before_it_is_laid_out(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.server.tokenizer, "encode_chat", lambda messages: pytest.fail("it was laid out"))
    chat = {"model": "base", "messages": [{"role": "", "content": ""}] * 1025, "max_tokens": 1}
    status, content = post(server, "/v1/chat/completions", chat)
    assert status == 400 and "1025 of them; at most 1024" in content["detail"]


def test_more_tokens_than_anybody_can_take_are_not_drawn(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.engines.hf.serving.MOST_TOKENS", 100)
    status, content = complete(server, n=51, max_tokens=2)
    assert status == 400 and "n 51 and max_tokens 2 are 102 tokens" in content["detail"]
    assert complete(server, n=50, max_tokens=2)[0] == 200


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_long_texts_and_many_tokens_are_read_and_written_beside_the_loop(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Whatever takes long there keeps every other caller waiting, also those who only ask whether it is alive."""
    tokenizer, threads = server.server.tokenizer, set[str]()
    encode, spelled = tokenizer.encode, server.server.spelled

    def noted(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda given: (threads.add(threading.current_thread().name.partition("_")[0]), work(given))[1]

    monkeypatch.setattr(tokenizer, "encode", noted(encode))
    monkeypatch.setattr(server.server, "spelled", noted(spelled))
    usual: dict[str, Any] = {"prompt": "1 + 1"}
    if "chat" in path:
        usual = {"messages": [{"role": "user", "content": "1 + 1"}]}
    asked = usual | {"model": "base", "max_tokens": 8, "n": 3, "seed": 3, "logprobs": True}
    at_once = post(server, path, asked)
    monkeypatch.setattr("rlvrlab.engines.hf.serving.AT_ONCE", 0)
    assert threads and "texts" not in threads
    threads.clear()
    beside = post(server, path, asked)
    assert threads == {"texts"}
    assert at_once[0] == beside[0] == 200 and at_once[1]["choices"] == beside[1]["choices"]


def test_there_are_not_more_adapters_than_fit(
    server: LocalServer, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlvrlab.engines.hf.serving.MOST_ADAPTERS", 2)
    load = lambda name: post(server, "/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(adapter)})  # noqa: E731
    assert [load(name)[0] for name in "ab"] == [200, 200]
    status, content = load("c")
    assert status == 400 and content["detail"].endswith("free one with POST /v1/unload_lora_adapter")
    assert post(server, "/v1/unload_lora_adapter", {"lora_name": "a"})[0] == 200 and load("c")[0] == 200
    assert [post(server, "/v1/unload_lora_adapter", {"lora_name": name})[0] for name in "bc"] == [200, 200]
