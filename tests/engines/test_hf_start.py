"""What an hf engine does at the same time while it starts, and what it does not do at all."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from engine_factories import hf
from needs_torch import torch
from tiny_models import tiny

from rlvrlab.engines.hf import early_kernels, load, threads

ORDER = """
import sys
from rlvrlab.engines.hf import Hf
from rlvrlab.models import ahead
from rlvrlab.recipe.schema import Optimizer
seen = []
def asked(folder):
    seen.append(("weights", "torch" in sys.modules))
    from rlvrlab.engines.hf import load
    load.wake = lambda device: seen.append(("device", "transformers" in sys.modules))
ahead.read_ahead = asked
Hf(sys.argv[1], device="cpu").build(Optimizer())
print(seen)
"""


@pytest.mark.slow
def test_weights_are_asked_for_before_torch_is_imported_and_the_device_before_transformers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORDER, str(tiny())], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == "[('weights', False), ('device', False)]"


def test_a_device_is_woken_by_a_thread_and_a_processor_is_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[Any] = []

    def empty(size: int, *, device: Any) -> None:
        touched.append(device)
        raise RuntimeError("no such device")  # told again, and to somebody, where the model is moved there

    monkeypatch.setattr(load, "torch", SimpleNamespace(empty=empty, device=torch.device))
    assert load.wake(torch.device("cpu")) is None
    thread = load.wake(torch.device("cuda:1"))
    assert thread is not None
    thread.join(20)
    assert touched == [torch.device("cuda:1")]


def test_a_model_computes_nothing_before_it_is_known_on_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside other busy processes a pass on one thread too many takes several times as long."""
    done: list[str] = []
    monkeypatch.setattr(threads, "use_threads", lambda count: done.append("threads"))
    forward = torch.nn.Linear.forward
    monkeypatch.setattr(torch.nn.Linear, "forward", lambda *given: done.append("computes") or forward(*given))
    hf("llama", 0)(0)
    assert done[0] == "threads" and "computes" in done


def test_nobody_looks_for_idle_cores_beside_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[float] = []
    monkeypatch.setattr(threads, "idle_cores", lambda: looked.append(1.0) or 1.0)
    monkeypatch.setattr(threads, "USUAL_THREADS", 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads.threads_for(10**9, "cuda") == 4 and not looked
    assert threads.threads_for(10**9, "cpu") == 1 and looked


def test_kernels_are_compiled_while_weights_are_read_and_never_where_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, going_on = threading.Event(), threading.Event()

    def compiling(*given: Any) -> None:
        begun.set()
        going_on.wait(20)

    monkeypatch.setattr(early_kernels, "_compile", compiling)
    monkeypatch.setattr(early_kernels, "find_spec", lambda name: object())
    with early_kernels.compiled_meanwhile({}, torch.device("cpu"), torch.float32, train=True):
        assert not begun.is_set()
    with early_kernels.compiled_meanwhile({}, torch.device("cuda"), torch.float32, train=True):
        assert begun.wait(20), "the body waited for the compiler"
        going_on.set()
    assert not [one for one in threading.enumerate() if one.name == "rlvr-kernels"], "used before it was compiled"
