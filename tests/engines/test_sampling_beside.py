"""The benchmark beside vLLM, with the laboratory's own server in vLLM's place: everyone does the same work."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
from local_server import LocalServer
from tiny_models import tiny

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import sampling
import sampling_beside
import vllm_offline

pytestmark = pytest.mark.slow


class FakeOffline:
    """Keeps what it was asked and tells of answers of full length."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def generate(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(asked)
        answers = len(asked["prompts"]) * asked["n"]
        return {"seconds": 0.5, "tokens": answers * asked["max_tokens"], "answers": answers, "ended": 0}


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer(tiny("qwen2")) as running:
        yield running


@pytest.fixture
def offline() -> Iterator[tuple[FakeOffline, str]]:
    fake = FakeOffline()
    door = vllm_offline.serve(fake, 0)
    thread = threading.Thread(target=door.serve_forever, daemon=True)
    thread.start()
    yield fake, f"http://127.0.0.1:{door.server_port}"
    door.shutdown()
    thread.join()
    door.server_close()


def measured(monkeypatch: pytest.MonkeyPatch, file: Path, server: LocalServer, *more: str) -> dict[str, Any]:
    words = ["--vllm", server.url.removesuffix("/v1"), "--model", tiny("qwen2"), "--rank", "4", "--batches", "8", "4"]
    sizes = ["--n", "2", "--tokens", "12", "--rounds", "2", "--all-at", "8", "--threads", "1", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["sampling.py", *words, *sizes, *more])
    sampling.main()
    return dict(json.loads(file.read_text()))


def test_all_answer_the_same_questions_and_the_adapter_is_what_answers(
    server: LocalServer, offline: tuple[FakeOffline, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, address = offline
    monkeypatch.setattr(sampling_beside, "SPREAD", 0.3)
    found = measured(monkeypatch, tmp_path / "found.json", server, "--offline", address)
    large, small = found["rows"]
    assert (large["batch"], small["batch"]) == (8, 4)
    assert sorted(small["median"]) == ["offline", "ours", "served"]
    assert sorted(large["median"]) == ["offline", "ours", "served", "served, base", "served, seeded"]
    assert all(len(rates) == 2 and min(rates) > 0 for row in (large, small) for rates in row["tokens_per_s"].values())
    assert large["median"]["offline"] == 8 * 12 / 0.5
    assert large["ours_over"]["offline"] == pytest.approx(large["median"]["ours"] / 192, abs=0.01)
    assert found["failed"] == {} and found["gap"]["with_adapter"] < 1e-4 < 0.02 < found["gap"]["without"]
    assert server.loaded and set(server.loaded) == {"benchmark"} and not server.adapters  # and it is gone again
    prompts = {tuple(one["prompt"]) for one in server.asked if one["max_tokens"] == 12}
    assert prompts == {tuple(p) for one in fake.asked if one["max_tokens"] == 12 for p in one["prompts"]}
    assert len({len(prompt) for prompt in prompts}) > 2  # ragged
    seeds = ["seed" in one for one in server.asked if one["model"] == "benchmark" and one["max_tokens"] == 12]
    assert sum(seeds) == 3 * 4 and len(seeds) == 3 * (4 + 4 + 2)  # three turns; only where a seed is what is measured


def test_answers_that_end_are_counted_and_rounds_share_no_prompt(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measured(monkeypatch, tmp_path / "found.json", server, "--tokens", "60")
    ended = found["rows"][0]["ended"]
    assert "offline" not in ended and ended["ours"] > 0 and ended["served"] > 0
    assert found["rows"][0]["tokens_per_answer"]["ours"] < 60
    starts = [tuple(one["prompt"]) for one in server.asked if one["model"] == "base" and one["max_tokens"] > 16]
    assert len(starts) == len(set(starts)) == 2 * 4


def test_nothing_is_begun_when_the_time_is_over(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measured(monkeypatch, tmp_path / "found.json", server, "--seconds", "0")["rows"] == []


def test_an_answer_without_log_probs_is_no_answer_and_the_others_go_on(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(body: dict[str, Any], right: dict[str, Any], number: int) -> dict[str, Any]:
        for choice in right["choices"]:
            choice["logprobs"] = None
        return right

    server.spoil = spoil
    found = measured(monkeypatch, tmp_path / "found.json", server)
    assert sorted(found["failed"]) == ["served", "served, base", "served, seeded"] and found["gap"] == {}
    assert "without log-probs" in found["failed"]["served"]
    assert [list(row["median"]) for row in found["rows"]] == [["ours"], ["ours"]]
