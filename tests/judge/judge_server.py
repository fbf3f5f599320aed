"""A judge server on a loop of its own, and requests that several tests make."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from typing import Any

from rlvrlab.judge.fusion.server import JudgeServer
from rlvrlab.judge.workers.pool import Pool


class Running:
    """A server on a loop in its own thread."""

    def __init__(self, **settings: Any) -> None:
        self.server = JudgeServer(Pool(size=2), port=0, **settings)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.server.start(), self.loop).result()
        self.url = f"http://127.0.0.1:{self.server.port}"

    def post(self, path: str, content: Any, **headers: str) -> tuple[int, Any, dict[str, str]]:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        request = urllib.request.Request(
            self.url + path, data=body, headers={"Content-Type": "application/json", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.loads(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read()), dict(error.headers)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


CASES = (("1 2", "3"), ("5 5", "10"))
CONTEST = {"id": 7, "test": [{"input": {"stdin": given}, "output": {"stdout": wanted}} for given, wanted in CASES]}
ADDS = "Here:\n```python\nprint(sum(map(int, input().split())))\n```"


def submission(completion: str, row: dict[str, Any], **config: Any) -> dict[str, Any]:
    settings = {"provided_data": row, "dataset_type": "CommonOJDataset", **config}
    return {"dataset": "mine", "id": row["id"], "completion": completion, "config": settings}


RIGHT = "```python\ndef f(x):\n    return x + 1\n```"
MBPP = {"id": 1, "test_list": ["assert f(1) == 2"], "entry_point": "f", "canonical_solution": "def f(x): return x + 1"}
NO_TEXTS: tuple[Any, ...] = (5, 0.5, True, [], ["x = 1"], {}, {"code": "x = 1"})
