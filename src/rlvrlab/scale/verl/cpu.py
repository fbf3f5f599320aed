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


class _Cpu:
    """Members of the platform; its base is verl's."""

    device_name = property(lambda self: "cpu")
    vendor_name = property(lambda self: "cpu")
    device_module = property(lambda self: _DEVICE)

    def _true(self, *_: Any, **__: Any) -> bool:
        return True

    is_available = is_platform_available = _true

    def _nothing(self, *_: Any, **__: Any) -> None:
        """There is no device to set, to wait for, to free or to watch."""

    set_device = synchronize = empty_cache = set_allocator_settings = _nothing
    profiler_start = profiler_stop = cudart = _nothing

    def current_device(self) -> str:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def manual_seed(self, seed: int) -> None:
        import torch

        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_device_capability(self, device_id: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    def nvtx_range(self, message: str) -> Any:
        return contextlib.nullcontext()

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_resource_options(self, count: float) -> dict[str, float]:
        return {"num_gpus": count}

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False
