"""Surgery, springs and the skill-safe step on two and four real shards (FSDP2 over gloo) against one process."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlvrlab.scale.verl.shards import Shards
from rlvrlab.surgery.base import Scene
from rlvrlab.surgery.gradvac import GradVac
from rlvrlab.surgery.mgda import Mgda
from rlvrlab.surgery.pcgrad import PcGrad
from rlvrlab.surgery.projection import project
from rlvrlab.train.guards.base import Guard, Terms
from rlvrlab.train.state import NOTHING
from rlvrlab.train.surgery import operate
from rlvrlab.train.update import Backward, Gradients, apply

pytestmark = pytest.mark.slow
METHODS = {"mgda": Mgda, "pcgrad": PcGrad, "gradvac": GradVac}
ROWS_OF = {
    2: ([[0, 1, 2], [5]], [[3], [6, 7, 8, 9]], [[4], []]),
    4: ([[0, 1], [5], [], [2]], [[3], [], [6, 7, 8], [9]], [[], [], [], [4]]),
}
"""Rows of each group on the ranks: unequal, and some ranks have none of a group."""
TRAINED = ("full", "lora")
Found = dict[str, dict[str, Any]]


def model(torch, trained: str = "full"):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(7, 13), torch.nn.Tanh(), torch.nn.Linear(13, 5))
    if trained == "full":
        return net
    from peft import LoraConfig, inject_adapter_in_model

    net = inject_adapter_in_model(LoraConfig(r=3, target_modules=["0", "2"], init_lora_weights=False), net)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(0.1 if parameter.requires_grad else 1.0)  # small, so that the groups are in conflict
    return net


def data(torch):
    torch.manual_seed(1)
    return torch.randn(10, 7), torch.randn(10, 5) * 3


def updated(torch, net, group, rows_of, world: int, method: str) -> dict:
    """Two updates as the actor makes them, then a projected shift; what came out."""
    x, y = data(torch)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    shards = Shards(net.parameters(), group, world > 1, optimizer.step, displacement=True)
    memory, seen, anchor = {}, [], shards.snapshot()
    for step in range(2):
        vectors = []
        for own, size in rows_of:
            rows = own or [0]  # a rank without rows must still take part in the collectives
            loss = ((net(x[rows]) - y[rows]) ** 2).sum(dim=1)
            (loss * bool(own)).sum().mul(world / size).backward()
            vectors.append(shards.take())
        share = np.array([0.4, 0.5, 0.1])
        found = Gradients.of([Backward(vector, i, 0.0, {}) for i, vector in enumerate(vectors)], share)
        scene = Scene(np.zeros((0, 0)), share, np.full(3, 0.5), ("a", "b", "c"), (0, step))
        _, weight, memory, _ = operate(shards, METHODS[method](), found, scene, memory)
        kept = [[t.clone() for t in vector] for vector in vectors]
        gramian = shards.gramian(kept)["global"]
        guard, now = TestGuard(shards, kept, anchor), SimpleNamespace(protected=("a",))
        apply(shards, found, weight, 0.01, 0.0, guard, now, NOTHING)
        seen.append({"weight": weight.tolist(), "gramian": gramian.tolist()})
    return {"seen": seen, "parameters": [full(torch, p) for p in shards.parameters]}


class TestGuard(Guard):
    """L2's spring to where training began, and skill_safe's promise: the first two groups must not lose by the step."""

    __test__ = False

    def __init__(self, shards: Shards, held, anchor) -> None:
        self.shards, self.held, self.anchor = shards, held[:2], anchor

    def terms(self, now, kept, gradient):
        return Terms([self.shards.pull(self.anchor), self.shards.pull(self.anchor, self.held[0])], [0.5, 0.1], {})

    def after_step(self, now, kept, applied):
        sign = np.diag([-1.0, -1.0, 1.0])
        gramian = sign @ self.shards.gramian([*self.held, applied])["global"] @ sign
        norm = float(np.sqrt(gramian[2, 2]))
        found = project(gramian[:2, :2], gramian[:2, 2], np.full(2, -0.3) * np.sqrt(np.diag(gramian)[:2]) * norm, norm)
        self.shards.shift(self.held, [-float(one) for one in found.multiplier_S])
        return kept, {}


def full(torch, parameter) -> list:
    whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
    return whole.detach().double().flatten().tolist()


def rank(number: int, world: int, port: int, out: str) -> None:
    """One of several processes; every method and kind of training in turn."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=number, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    rows_of = [(parts[number], sum(map(len, parts))) for parts in ROWS_OF[world]]
    found = {}
    for method in METHODS:
        for trained in TRAINED:
            net = model(torch, trained)
            for layer in (net[0], net[2], net):
                fully_shard(layer, mesh=mesh)
            found[f"{method} {trained}"] = updated(torch, net, mesh.get_group(0), rows_of, world, method)
    if number == 0:
        Path(out).write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.long)])
def sharded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What came out of so many processes."""
    for name in ("torch", "peft"):
        pytest.importorskip(name, reason="needs the hf extra")
    from torch import multiprocessing

    out = tmp_path_factory.mktemp("shards") / "found.json"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(rank, args=(request.param, port, str(out)), nprocs=request.param)
    return json.loads(out.read_text())


@pytest.mark.parametrize("trained", TRAINED)
@pytest.mark.parametrize("method", METHODS)
def test_shards_equal_one_process(sharded: Found, method: str, trained: str) -> None:
    import torch

    rows_of = [([row for part in parts for row in part], sum(map(len, parts))) for parts in ROWS_OF[2]]
    one, several = updated(torch, model(torch, trained), None, rows_of, 1, method), sharded[f"{method} {trained}"]
    for here, there in zip(one["seen"], several["seen"], strict=True):
        np.testing.assert_allclose(there["gramian"], here["gramian"], rtol=1e-6)
        np.testing.assert_allclose(there["weight"], here["weight"], rtol=1e-6, atol=1e-9)
    assert len(set(np.round(one["seen"][0]["weight"], 6))) > 1, "the weights must not be uniform"
    assert len(several["parameters"]) == len(one["parameters"]) == 4
    for here, there in zip(one["parameters"], several["parameters"], strict=True):
        np.testing.assert_allclose(there, here, atol=1e-6)


def test_a_parameter_that_took_no_part(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the hf extra")
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    shards = Shards([a, b])
    (a * torch.tensor([1.0, 2.0])).sum().backward()
    first = shards.take()
    (b * 3).sum().backward()
    second = shards.take()
    np.testing.assert_allclose(shards.gramian([first, second])["global"], [[5, 0], [0, 18]])
    shards.step([first, second], [2.0, 0.5], 0.1)
    assert a.grad.tolist() == [2.0, 4.0] and b.grad.tolist() == [1.5, 1.5]


def test_shards_go_back_to_a_snapshot_and_to_a_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the hf extra")
    net = model(torch)
    shards = Shards(net.parameters())
    before = shards.snapshot()
    shards.write(tmp_path / "anchors" / "step_3_rank_0.safetensors")
    shards.shift([[torch.ones_like(p) for p in shards.parameters]], [0.1])
    assert all(float(one.min()) > 0.09 for one in shards.pull(before)), "the pull is the distance from the anchor"
    moved = shards.snapshot()
    shards.read(tmp_path / "anchors" / "step_3_rank_0.safetensors")
    assert all(torch.equal(p, old) for p, old in zip(shards.parameters, before, strict=True))
    shards.restore(moved)
    assert all(torch.equal(p, new) for p, new in zip(shards.parameters, moved, strict=True))
