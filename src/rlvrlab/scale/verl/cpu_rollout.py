"""A sampler for verl without an accelerator: Transformers' generate behind verl's server interface.

One request at a time, one thread: slow, and enough to see a run work. verl's own samplers are vLLM and SGLang.
"""

from __future__ import annotations

import asyncio
import os
from functools import cache
from typing import Any

SERVER = "rlvr_cpu_server_{}"


class Server:
    """A Ray actor with a copy of the policy."""

    def __init__(self, path: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)
        self._model = AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
        ).eval()
        self._turn = asyncio.Lock()
        self._step = 0

    async def generate(self, request_id: str, prompt_ids: Any, sampling_params: dict[str, Any], **_: Any) -> Any:
        """One answer, with the log-probability of each of its tokens."""
        from verl.workers.rollout.replica import TokenOutput

        async with self._turn:
            tokens, logprobs = self._answer(list(prompt_ids), sampling_params)
        facts = {"global_steps": self._step, "min_global_steps": self._step, "max_global_steps": self._step}
        return TokenOutput(token_ids=tokens, log_probs=logprobs, stop_reason="completed", extra_fields=facts)

    def _answer(self, prompt: list[int], settings: dict[str, Any]) -> tuple[list[int], list[float]]:
        import torch

        asked = torch.tensor([prompt])
        limit = int(settings.get("max_tokens") or settings.get("max_new_tokens") or 16)
        temperature = float(settings.get("temperature", 1.0))
        options: dict[str, Any] = {"do_sample": temperature > 0}
        if "seed" in settings:  # by itself this process goes on with its own stream, which no checkpoint holds
            torch.manual_seed(int(settings["seed"]))
        if temperature > 0:
            options |= {"temperature": temperature, "top_k": 0, "top_p": float(settings.get("top_p", 1.0))}
        with torch.no_grad():
            found = self._model.generate(
                input_ids=asked,
                attention_mask=torch.ones_like(asked),
                max_new_tokens=limit,
                return_dict_in_generate=True,
                output_logits=True,
                **options,
            )
        tokens = found.sequences[0, asked.shape[1] :]
        logits = torch.stack(found.logits, 1)[0].float() / (temperature or 1.0)
        logprobs = torch.log_softmax(logits, -1).gather(1, tokens[:, None])[:, 0]
        return tokens.tolist(), logprobs.tolist()

    async def load(self, state: dict[str, Any], step: int | None) -> list[str]:
        """New weights; returns the names that did not fit."""
        missing = self._model.load_state_dict(state, strict=False)
        self._step = step or 0
        self._model.tie_weights()
        return [name for name in missing.missing_keys if name != "lm_head.weight"] + list(missing.unexpected_keys)

    async def sleep(self, *_: Any, **__: Any) -> None:
        """There is no memory to give back."""

    wake_up = abort_all_requests = resume_generation = sleep
    clear_kv_cache = release_kv_cache = resume_kv_cache = start_profile = stop_profile = sleep


@cache
def replica() -> Any:
    """The class that verl's registry wants."""
    import ray
    from verl.workers.rollout.replica import RolloutReplica

    async def launch_servers(self: Any) -> None:
        path = getattr(self.model_config, "local_path", None) or self.model_config.path
        settings = {"name": SERVER.format(self.replica_rank), "num_cpus": 0, "max_concurrency": 1000}
        server = ray.remote(Server).options(**settings).remote(path)
        self.servers, self._server_handle = [server], server
        self._server_address = f"rlvr_cpu:{self.replica_rank}"

    return type("CpuReplica", (RolloutReplica,), {"launch_servers": launch_servers})


@cache
def _adapter() -> Any:
    import ray
    from verl.workers.rollout.base import BaseRollout

    class ServerAdapter(BaseRollout):  # type: ignore[misc]
        """The trainer's side: hands the new weights over."""

        def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
            super().__init__(config, model_config, device_mesh)
            self.rank = int(os.environ["RANK"])

        async def resume(self, tags: list[str]) -> None:
            """Nothing was given back."""

        async def release(self) -> None:
            """There is nothing to give back."""

        async def update_weights(self, weights: Any, wire_format: str = "named_tensors", **named: Any) -> None:
            """All of them, to this rank's server."""
            state = {}
            if hasattr(weights, "__aiter__"):
                async for name, tensor in weights:
                    state[name] = tensor.detach().float().clone()
            else:
                for name, tensor in weights:
                    state[name] = tensor.detach().float().clone()
            server = ray.get_actor(SERVER.format(self.rank))
            strange = await server.load.remote(state, named.get("global_steps"))
            if strange:
                raise RuntimeError(f"the sampler does not know weights {strange[:5]}")

    return ServerAdapter


def __getattr__(name: str) -> Any:
    if name == "ServerAdapter":
        return _adapter()
    raise AttributeError(name)
