"""What vLLM 0.32 answers to an adapter, in its own words, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.engines.openai.adapters import load_adapter
from rlvrlab.errors import UserError
from rlvrlab.http_client import Refused, Response

FOLDER = Path("/cache/policy-1-abcdef01")
RANK = (
    "Call to add_lora method failed: Worker failed with error 'LoRA rank 16 is greater than max_lora_rank 8.', please "
    "check the stack trace above for the root cause"
)
DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
LOADED = "The lora adapter 'policy-1-abcdef01' has already been loaded. If you want to load the adapter in place, set"
MISSING = "Loading lora policy-1-abcdef01 failed: No adapter found for /cache/policy-1-abcdef01"


class Answering:
    """A host that always says the same."""

    url = "http://there"

    def __init__(self, status: int, content: dict[str, Any] | str) -> None:
        self.response = Response(status, {}, (content if isinstance(content, str) else json.dumps(content)).encode())

    async def request(self, path: str, content: dict[str, Any]) -> Response:
        return self.response


def load(status: int, content: dict[str, Any] | str) -> None:
    asyncio.run(load_adapter(Answering(status, content), FOLDER.name, str(FOLDER)))  # type: ignore[arg-type]


def error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "InternalServerError", "param": None, "code": 500}}


def test_loaded_now_or_before_is_loaded() -> None:
    load(200, "Success: LoRA adapter 'policy-1-abcdef01' added successfully.")
    load(400, error(LOADED))


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (
            500,
            error(RANK),
            "does not load .*: Call to add_lora .*rank 16 is greater.* --max-lora-rank RANK",
        ),
        (404, error(MISSING), "No adapter found for /cache/policy-1-abcdef01; it must see that folder"),
        (404, {"detail": "Not Found"}, "takes no adapters while it runs; .*VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"),
        (401, {"error": "Unauthorized"}, "status 401: .*Unauthorized.*; the key comes from RLVR_API_KEY"),
    ],
)
def test_what_waiting_does_not_mend_is_said_at_once(status: int, content: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        load(status, content)


@pytest.mark.parametrize(("status", "content"), [(500, error(DEAD)), (503, "starting"), (500, ""), (429, "{")])
def test_a_server_in_trouble_is_waited_for(status: int, content: dict[str, Any] | str) -> None:
    with pytest.raises(Refused, match=f"status {status}"):
        load(status, content)
