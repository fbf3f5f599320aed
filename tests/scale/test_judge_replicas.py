"""Several judge servers: one dies and the others take over, all die and the run stops; nothing is scored 0 for it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import rlvr
from faulty_server import FaultyServer, chat, http, question
from judge_servers import DOUBLE, RIGHT, WRONG, JudgeProcess, isolated

from rlvrlab.errors import JudgeLost
from rlvrlab.judge.fusion.client import FusionClient
from rlvrlab.registry import find

pytestmark = pytest.mark.skipif(not isolated(), reason="this machine cannot isolate code")

RECIPE = """
phases = ["grpo"]
env = {type = "minicode"}
data = {train_size = 8, dev_size = 4}
rollout = {n = 2, max_tokens = 8}
eval = {every = 0}
checkpoint = {every = 1}
grpo = {steps = 2, batch_size = 2}
"""


@pytest.mark.slow
def test_one_of_two_dies_in_the_middle_and_no_answer_is_lost() -> None:
    async def go() -> list[bool | None]:
        client = FusionClient((one.url, two.url), concurrency=16, pause_s=0.01)
        work = [asyncio.create_task(client.judge(f"{RIGHT if i % 2 else WRONG}  # {i}", DOUBLE)) for i in range(120)]
        while sum(task.done() for task in work) < 20:
            await asyncio.sleep(0.005)
        one.process.kill()  # here and now: in another thread it might come when all is done
        await asyncio.to_thread(one.close)
        found = [(await task).correct for task in work]
        await client.close()
        return found

    with JudgeProcess() as one, JudgeProcess() as two:
        assert asyncio.run(go()) == [bool(i % 2) for i in range(120)]
        assert two.facts()["answered"] > 60


@pytest.mark.slow
def test_all_gone_is_waited_for_and_then_a_clear_stop() -> None:
    async def go(give_up_s: float) -> bool | None:
        client = FusionClient((server.url,), give_up_s=give_up_s)
        try:
            return (await client.judge(RIGHT, DOUBLE)).correct
        finally:
            await client.close()

    server = JudgeProcess()
    server.kill()
    started = time.monotonic()
    with pytest.raises(JudgeLost, match=r"no judge server has answered for 1 s .*nothing was scored"):
        asyncio.run(go(1.0))
    assert 1.0 <= time.monotonic() - started < 60
    back: list[JudgeProcess] = []
    starting = threading.Thread(target=lambda: back.append(JudgeProcess(port=server.port)))
    starting.start()
    assert asyncio.run(go(120.0)) is True  # it waits for a server that is started again
    starting.join()
    back[0].close()


@pytest.mark.slow
def test_training_does_not_begin_without_its_judge(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    server = JudgeProcess()
    server.kill()
    done = rlvr("train", "r.toml", folder=tmp_path, RLVR_JUDGE=server.url, RLVR_JUDGE_WAIT_S="1")
    assert done.returncode == 1 and "error: no judge server has answered for 1 s" in done.stderr
    assert not (tmp_path / "experiments").exists()


@pytest.mark.slow
def test_training_stops_without_zero_rewards_and_resumes(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE.replace("steps = 2", "steps = 40"))
    server = JudgeProcess()

    def kill_after_the_first_step() -> None:
        while not list(tmp_path.glob("experiments/*/rollouts/step_*")):
            time.sleep(0.01)
        server.kill()

    killing = threading.Thread(target=kill_after_the_first_step)
    killing.start()
    done = rlvr("train", "r.toml", folder=tmp_path, RLVR_JUDGE=server.url, RLVR_JUDGE_WAIT_S="1")
    killing.join()
    assert done.returncode == 1 and "error: no judge server has answered for 1 s" in done.stderr
    run = next((tmp_path / "experiments").iterdir())
    assert json.loads((run / "run_info.json").read_text())["status"] == "failed"
    with JudgeProcess(port=server.port):
        again = rlvr("train", "--resume", str(run), folder=tmp_path, RLVR_JUDGE=server.url)
    assert again.returncode == 0, again.stderr
    rows = [json.loads(line) for path in (run / "rollouts").iterdir() for line in path.read_text().splitlines()]
    assert len(rows) == 40 * 2 * 2 and all(row["correct"] is not None for row in rows)


@pytest.mark.slow
def test_an_evaluation_stops_and_goes_on_with_the_same_result(tmp_path: Path) -> None:
    env = find("env", "minicode")()
    asked = env.problems("test", 6, 0)
    known = {p.prompt: env.gold(p) if i % 2 else env.gold(asked[i - 1]) for i, p in enumerate(asked)}
    lost = JudgeProcess()
    lost.kill()
    with FaultyServer(lambda server, body, n: http(200, chat(known[question(body)], server.models[0]))) as model:
        words = ("eval", "minicode", "--size", "6", "--server", model.url, "--json")
        done = rlvr(*words, "--judge", lost.url, "-o", "e", folder=tmp_path, RLVR_JUDGE_WAIT_S="1")
        assert done.returncode == 1 and "error: no judge server" in done.stderr and "--resume e" in done.stderr
        assert (tmp_path / "e" / "samples.jsonl").read_text() == ""
        with JudgeProcess() as other:  # it came back at another address
            resumed = rlvr("eval", "--resume", "e", "--judge", other.url, "--json", folder=tmp_path)
            assert resumed.returncode == 0, resumed.stderr
            assert other.facts()["answered"] > 0
        assert rlvr(*words, "-o", "here", folder=tmp_path).returncode == 0
    assert samples(tmp_path / "e") == samples(tmp_path / "here")
    assert {one["correct"] for one in samples(tmp_path / "e").values()} == {True, False}


def samples(folder: Path) -> dict[str, dict[str, Any]]:
    rows = map(json.loads, (folder / "samples.jsonl").read_text().splitlines())
    keys = ("completion", "correct", "score", "error", "parts", "passed", "total", "answer", "detail", "flags")
    return {row["problem"]: {key: row[key] for key in keys} for row in rows}
