"""A platform for verl without an accelerator: for trying a run out before paying for GPUs, and for tests.

verl 0.9.1 knows NVIDIA, Ascend and AMD. Ray is told of as many "GPUs" as the recipe wants; they are only names.
"""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any


def register_platform() -> None:
    """`VERL_PLATFORM=cpu`."""
    from verl.plugin.platform.platform_base import PlatformBase
    from verl.plugin.platform.platform_manager import PlatformRegistry

    given = {name: member for name, member in vars(_Cpu).items() if not name.startswith("__")}
    PlatformRegistry.register(platform="cpu")(type("PlatformCpu", (PlatformBase,), given))
    _plain_gloo()


def _plain_gloo() -> None:
    """verl asks for `cpu:gloo,cpu:gloo`, which torch refuses as a device named twice."""
    import torch.distributed as distributed

    inner = distributed.init_process_group

    def init_process_group(backend: Any = None, *arguments: Any, **named: Any) -> Any:
        return inner("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *arguments, **named)

    distributed.init_process_group = init_process_group


class _Device(ModuleType):
    """Stands where verl expects torch.cuda."""

    def __getattr__(self, name: str) -> Any:
        import torch

        if name.startswith("__"):
            raise AttributeError(name)
        own = {
            "is_available": lambda: True,
            "current_device": lambda: "cpu",
            "device_count": lambda: 1,
            "get_rng_state": lambda *_: torch.get_rng_state(),
            "set_rng_state": lambda state, *_: torch.set_rng_state(state),
            "mem_get_info": lambda *_: (1 << 33, 1 << 34),
            "get_device_name": lambda *_: "cpu",
        }
        return own.get(name) or getattr(torch.cpu, name, lambda *_, **__: 0)


_DEVICE = _Device("rlvr_cpu")


def _always(value: Any) -> Any:
    """A method that gives this value, whatever it is asked with."""
    return lambda self, *_, **__: value


class _Cpu:
    """Members of the platform; its base is verl's."""

    device_name = property(lambda self: "cpu")
    vendor_name = property(lambda self: "cpu")
    device_module = property(lambda self: _DEVICE)

    is_available = is_platform_available = _always(True)
    # There is no device to set, to wait for, to free or to watch.
    set_device = synchronize = empty_cache = set_allocator_settings = _always(None)
    profiler_start = profiler_stop = cudart = _always(None)
    current_device = _always("cpu")
    device_count = _always(1)
    get_device_capability = _always((None, None))
    communication_backend_name = _always("gloo")
    visible_devices_envvar = _always("CUDA_VISIBLE_DEVICES")
    ray_resource_name = _always("GPU")
    ray_noset_envvars = _always(["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"])
    is_ipc_supported = _always(False)

    def manual_seed(self, seed: int) -> None:
        import torch

        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def nvtx_range(self, message: str) -> Any:
        return contextlib.nullcontext()

    def ray_resource_options(self, count: float) -> dict[str, float]:
        return {"num_gpus": count}
