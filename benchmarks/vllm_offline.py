"""vLLM's `LLM.generate` behind one door, so that it can be asked in turn with others; runs in vLLM's own environment.

    python benchmarks/vllm_offline.py MODEL --adapter FOLDER --port 8101 [--rank 16] [--memory 0.2] [--cache-gb 16]

POST /generate {"prompts": [[1, 2], …], "n": 16, "max_tokens": 128, "end": 2}
is answered by {"seconds", "tokens", "answers", "ended"}.

The seconds are those of `generate` alone, in this process: no HTTP, no JSON, no text made of tokens. Requests have no
seeds: a generator for every row would cost vLLM time that it need not spend.
"""

from __future__ import annotations

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

READY = "/health"


class Offline:
    """The model with its adapter."""

    def __init__(self, options: argparse.Namespace) -> None:
        from vllm import LLM  # type: ignore[import-not-found,unused-ignore]

        more: dict[str, Any] = {"kv_cache_memory_bytes": options.cache_gb << 30} if options.cache_gb else {}
        if options.graph_rows:
            more["cudagraph_capture_sizes"] = options.graph_rows
        self.adapter: Path = options.adapter
        self.model = LLM(
            model=options.model, dtype=options.dtype, enable_lora=True, max_lora_rank=options.rank, max_loras=1,
            gpu_memory_utilization=options.memory, max_model_len=options.longest, max_num_seqs=options.rows,
            logprobs_mode="processed_logprobs", **more,
        )  # fmt: skip

    def generate(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One batch; log-probs of the sampled tokens come with it."""
        from vllm import SamplingParams
        from vllm.lora.request import LoRARequest  # type: ignore[import-not-found,unused-ignore]

        params = SamplingParams(
            n=asked["n"], max_tokens=asked["max_tokens"], temperature=1.0, top_p=1.0, top_k=-1, logprobs=0,
            stop_token_ids=[asked["end"]], detokenize=False,
        )  # fmt: skip
        prompts = [{"prompt_token_ids": tokens} for tokens in asked["prompts"]]
        start = time.perf_counter()
        # The folder is written by whoever asks first; vLLM reads it when it first meets the name.
        given = self.model.generate(
            prompts, params, lora_request=LoRARequest("benchmark", 1, str(self.adapter)), use_tqdm=False
        )
        seconds = time.perf_counter() - start
        rows = [row for one in given for row in one.outputs]
        if any(len(row.logprobs) != len(row.token_ids) for row in rows):
            raise RuntimeError("an answer without log-probs")
        ended = sum(row.finish_reason == "stop" for row in rows)
        return {"seconds": seconds, "tokens": sum(len(r.token_ids) for r in rows), "answers": len(rows), "ended": ended}


def serve(offline: Any, port: int) -> HTTPServer:
    """Answers one request after the other."""

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(200, {})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                self._say(200, offline.generate(asked))
            except Exception as error:
                self._say(500, {"error": repr(error)[:500]})

        def _say(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return HTTPServer(("127.0.0.1", port), Door)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--port", type=int, default=8101)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--memory", type=float, default=0.9)
    parser.add_argument("--cache-gb", type=int, default=0)
    parser.add_argument("--graph-rows", type=int, nargs="+", help="sizes of captured batches; vLLM's own by default")
    parser.add_argument("--longest", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--dtype", default="bfloat16")
    options = parser.parse_args()
    serve(Offline(options), options.port).serve_forever()


if __name__ == "__main__":
    main()
