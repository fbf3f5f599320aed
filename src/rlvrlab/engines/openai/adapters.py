"""Load and unload LoRA adapters at a running server, as vLLM does: POST /v1/load_lora_adapter, /v1/unload_lora_adapter.

vLLM needs `--enable-lora`, a `--max-lora-rank` that is high enough and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True;
`rlvr serve model PATH --adapters RANK` sets all three. The server reads the adapter's folder itself;
how it comes there where trainer and server share none is in engines/openai/delivery.py.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from rlvrlab.errors import UserError
from rlvrlab.http_client import Host, Refused, reason
from rlvrlab.types import KEY_ENV

LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
ALREADY = "already been loaded"


async def load_adapter(host: Host, name: str, folder: str) -> None:
    """Have the server serve the adapter in `folder` as model `name`; one it serves already is left alone."""
    response = await host.request(LOAD, {"lora_name": name, "lora_path": folder})
    words = reason(response)
    if response.status == 200 or (response.status == 400 and ALREADY in words):
        return
    # vLLM has status 500 also for an adapter it cannot take (rank, modules, no --enable-lora); its words say so.
    for_good = response.status == 500 and "lora" in words.lower()
    if not for_good and (response.status >= 500 or response.status in (408, 425, 429)):
        raise Refused(response)
    if response.status in (401, 403):
        raise UserError(f"{host.url}: status {response.status}: {words}; the key comes from {KEY_ENV}")
    if response.status in (404, 405) and PurePosixPath(folder).name not in words:
        remedy = "start it with `rlvr serve model PATH --adapters RANK`, or vLLM with --enable-lora"
        raise UserError(
            f"{host.url} takes no adapters while it runs; {remedy} and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"
        )
    remedy = (
        "it must see that folder under the same path (below $XDG_CACHE_HOME), or be started with --receive PORT, and "
        "allow its rank (`rlvr serve model PATH --adapters RANK`; vLLM: --enable-lora --max-lora-rank RANK)"
    )
    raise UserError(f"{host.url} does not load the adapter {folder}: {words}; {remedy}")


async def unload_adapter(host: Host, name: str) -> None:
    """Have the server forget an adapter; whether it knew it does not matter."""
    await host.request(UNLOAD, {"lora_name": name})
