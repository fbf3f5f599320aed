"""Several model servers behind one evaluation: when all are gone it waits, stops, and goes on later with the rest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer, chat, http, question
from scripted import Sums

from rlvrlab.engines.openai import Servers, ServersGone
from rlvrlab.evals.answering import ServerAnswerer
from rlvrlab.evals.kept import Kept, evaluate_into
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.record.evaluation import read_evaluation


def right(server: FaultyServer, body: Any, number: int) -> bytes:
    time.sleep(0.01)
    return http(200, chat(str(sum(map(int, question(body).split("+")))), server.models[0]))


def examine(folder: Path, urls: list[str]) -> Kept:
    env = Sums()
    with Servers(urls, "m", concurrency=4, attempts=2, pause_s=0.01, give_up_s=0.5, start_s=60) as servers:
        return evaluate_into(folder, ServerAnswerer(servers), env, env.problems("test", 60), eval_at_1(8))


@pytest.mark.slow
def test_all_gone_in_the_middle_then_back_elsewhere(tmp_path: Path) -> None:
    def lost_on_the_way(server: FaultyServer, body: Any, number: int) -> bytes:
        """Counted here and not where answers arrive, which on a busy machine may be when all are given."""
        if one.requests + two.requests <= 20:
            return right(server, body, number)
        for each in (one, two):
            each.act = each.greeting = lambda *_: b""  # hangs up on everyone
        return b""

    one, two = FaultyServer(lost_on_the_way), FaultyServer(lost_on_the_way)
    one.__enter__()
    two.__enter__()
    with pytest.raises(ServersGone, match=r"no server has answered for 0.5 s"):
        examine(tmp_path / "e", [one.url, two.url])
    for server in (one, two):
        server.__exit__(None, None, None)
    rows = read_evaluation(tmp_path / "e").rows
    assert {row["correct"] for row in rows} <= {True, None}, "a lost server is no wrong answer"
    kept = sum(row["correct"] is True for row in rows)
    assert 10 < kept < 60
    with FaultyServer(right) as third:
        done = examine(tmp_path / "e", [third.url])
        assert third.requests <= 60 - kept + 5  # what was judged is not asked again
    assert done.metrics["accepted_at_1"] == 1.0 and done.metrics["samples"] == 60
