"""Surgery and the skill-safe step on two real shards (FSDP2 over gloo) against one process with everything."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.scale.verl.shards import Shards
from rlvrlab.surgery.base import Scene
from rlvrlab.surgery.gradvac import GradVac
from rlvrlab.surgery.mgda import Mgda
from rlvrlab.surgery.pcgrad import PcGrad
from rlvrlab.surgery.projection import project
from rlvrlab.train.guards.base import NOTHING, Guard, Terms
from rlvrlab.train.update import Backward, Gradients, apply, operate

pytestmark = pytest.mark.slow
METHODS = {"mgda": Mgda, "pcgrad": PcGrad, "gradvac": GradVac}
ROWS_OF = ([[0, 1, 2], [5]], [[3], [6, 7, 8, 9]], [[4], []])
"""Rows of each group on the two ranks: unequal, and one rank has none of the third."""


def model(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(7, 13), torch.nn.Tanh(), torch.nn.Linear(13, 5))


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
        apply(shards, found, weight, 0.01, 0.0, TestGuard(shards, kept, anchor), object(), NOTHING)
        seen.append({"weight": weight.tolist(), "gramian": gramian.tolist()})
    return {"seen": seen, "parameters": [full(torch, p) for p in net.parameters()]}


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


def rank(number: int, port: int, method: str, out: str) -> None:
    """One of two processes."""
    import json

    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=number, world_size=2)
    net = model(torch)
    mesh = init_device_mesh("cpu", (2,))
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    rows_of = [(parts[number], sum(map(len, parts))) for parts in ROWS_OF]
    found = updated(torch, net, mesh.get_group(0), rows_of, 2, method)
    if number == 0:
        Path(out).write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("method", METHODS)
def test_two_shards_equal_one_process(tmp_path: Path, method: str) -> None:
    import json

    torch = pytest.importorskip("torch", reason="needs the hf extra")
    from torch import multiprocessing

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(rank, args=(port, method, str(tmp_path / "two.json")), nprocs=2)
    two = json.loads((tmp_path / "two.json").read_text())
    net = model(torch)
    rows_of = [([row for part in parts for row in part], sum(map(len, parts))) for parts in ROWS_OF]
    one = updated(torch, net, None, rows_of, 1, method)
    for here, there in zip(one["seen"], two["seen"], strict=True):
        np.testing.assert_allclose(there["gramian"], here["gramian"], rtol=1e-6)
        np.testing.assert_allclose(there["weight"], here["weight"], rtol=1e-6, atol=1e-9)
    assert len(set(np.round(one["seen"][0]["weight"], 6))) > 1, "the weights must not be uniform"
    for here, there in zip(one["parameters"], two["parameters"], strict=True):
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
