"""How long does an adapter take to a server: by its path, and through an adapter door?

    python benchmarks/adapter_sending.py [--model smollm2-135m] [--rank 16] [--adapters 7] [--json]

One `rlvr serve model MODEL --adapters RANK --receive 0` on this machine, in a process of its own. Each adapter is
loaded by path, unloaded, sent to the door and loaded from there; medians are told. The way is this machine's own
network: another one adds its own time for the megabytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch

from rlvrlab.engines.hf import Hf, store
from rlvrlab.engines.openai.adapters import load_adapter, unload_adapter
from rlvrlab.engines.openai.delivery import Adapter, send_adapter
from rlvrlab.http_client import Host
from rlvrlab.models import cache
from rlvrlab.models.tensors import ADAPTER_TENSORS
from rlvrlab.recipe.schema import Optimizer


def written(home: Path, model: str, rank: int, count: int) -> list[Adapter]:
    """Adapters with different numbers, as a trainer writes them."""
    engine = Hf(model, lora_rank=rank, device="cpu").build(Optimizer())
    assert engine.peft is not None
    made = []
    for version in range(count):
        with torch.no_grad():
            for name, parameter in engine.peft.named_parameters():
                if "lora_B" in name:
                    parameter.normal_(std=0.001)
        folder = home / f"policy-{version}-0a1b2c3d"
        store.export_adapter(folder, engine.peft)
        made.append(Adapter(folder.name, folder, cache.sha256(folder / ADAPTER_TENSORS)))
    return made


async def times(url: str, door_url: str, adapters: list[Adapter]) -> dict[str, float]:
    """Medians in seconds, and the size."""
    host, door = Host(url), Host(door_url)
    taken: dict[str, list[float]] = {"by_path_s": [], "sending_s": [], "loading_from_door_s": []}
    for adapter in adapters:
        began = time.perf_counter()
        await load_adapter(host, adapter.name, str(adapter.folder))
        taken["by_path_s"].append(time.perf_counter() - began)
        await unload_adapter(host, adapter.name)
        began = time.perf_counter()
        place = await send_adapter(door, adapter)
        sent = time.perf_counter()
        await load_adapter(host, adapter.name, place)
        taken["sending_s"].append(sent - began)
        taken["loading_from_door_s"].append(time.perf_counter() - sent)
        await unload_adapter(host, adapter.name)
        await door.request("/forget", {"name": adapter.name})
    await host.close()
    await door.close()
    size = (adapters[0].folder / ADAPTER_TENSORS).stat().st_size
    return {"megabytes": round(size / 1e6, 1), **{key: round(median(all_of), 4) for key, all_of in taken.items()}}


def main() -> None:
    """Serve, write, measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--adapters", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp())
    words = ["serve", "model", given.model, "--backend", "embedded", "--adapters", str(given.rank), "--receive", "0"]
    process = subprocess.Popen([sys.executable, "-m", "rlvrlab", *words, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        adapters = written(home, given.model, given.rank, given.adapters)
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        found = asyncio.run(times(facts["urls"][0], facts["adapters"], adapters))
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(home, ignore_errors=True)
    if given.json:
        print(json.dumps(found))
    else:
        print("\n".join(f"{key:22} {value:g}" for key, value in found.items()))


if __name__ == "__main__":
    main()
