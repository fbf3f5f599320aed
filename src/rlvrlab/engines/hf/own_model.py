"""A model of the Llama family in modules of our own, so that a training begins without Transformers.

Modules and parameters have the names that Transformers gives them, in its order, and numbers come about by the same
operations: results in float32 on a CPU are equal to the last bit, and checkpoints of either are checkpoints of the
other. What asks for a class by its name reads `stands_for` (weights.class_of).
Suffixes: B rows, T positions, N positions of one row, H heads, K heads of keys, D head size, I any width.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from rlvrlab.engines.hf.attention import active, attend
from rlvrlab.engines.hf.stored import GATES, NORMS, QKV, Stored, config_of
from rlvrlab.engines.hf.weights import KINDS

WIDEST_SHARED = 256
"""Size of heads up to which Transformers lets them share keys without copies."""


class OwnModel(nn.Module):  # type: ignore[misc]
    """A causal language model with the tensors of a folder."""

    base_model_prefix = "model"

    def __init__(self, found: Stored, device: Any, dtype: Any) -> None:
        super().__init__()
        self._facts, self._generation, self.config = found.facts, found.generation, config_of(found.facts)
        self.stands_for = KINDS[self.config.model_type]
        parts = _Parts(found, self.config, device, dtype)
        self.model = _Decoder(parts)
        if self.config.tie_word_embeddings:
            self.lm_head = nn.Linear(self.config.hidden_size, self.config.vocab_size, bias=False, device="meta")
            self.lm_head.weight = self.model.embed_tokens.weight
        else:
            self.lm_head = parts.linear("lm_head")

    def forward(self, input_ids: Tensor, **inputs: Any) -> Any:
        """Scores of the next token at every position, as `.logits`."""
        return SimpleNamespace(logits=self.lm_head(self.model(input_ids, **inputs).last_hidden_state))

    @property
    def dtype(self) -> Any:
        """The precision it computes in."""
        return self.model.embed_tokens.weight.dtype

    def get_input_embeddings(self) -> Any:
        """The module of the first layer."""
        return self.model.embed_tokens

    def get_output_embeddings(self) -> Any:
        """The module of the last."""
        return self.lm_head

    def save_pretrained(self, folder: Path, state_dict: dict[str, Tensor]) -> None:
        """These tensors in a folder, as Transformers and vLLM load it."""
        from safetensors.torch import save_file

        told = ["dtype", *({"torch_dtype"} & self._facts.keys())]
        facts = self._facts | dict.fromkeys(told, str(self.dtype).removeprefix("torch."))
        (folder / "config.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        if self._generation is not None:
            (folder / "generation_config.json").write_bytes(self._generation)
        tied = {"lm_head.weight"} if self.config.tie_word_embeddings else set()
        state = {name: tensor for name, tensor in state_dict.items() if name not in tied}
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


class _Parts:
    """Modules with the tensors of a folder, on the device and in the precision of the training."""

    def __init__(self, found: Stored, config: Any, device: Any, dtype: Any) -> None:
        self.config, self.device, self._tensors, self._dtype = config, device, found.tensors, dtype

    def _tensor(self, name: str) -> Tensor:
        """A copy: the file may be replaced while the model trains."""
        return self._tensors[name].to(self.device, self._dtype, copy=True)

    def linear(self, name: str) -> Any:
        weight, biased = self._tensor(f"{name}.weight"), f"{name}.bias" in self._tensors
        made = nn.Linear(weight.shape[1], weight.shape[0], bias=biased, device="meta")
        made.weight = nn.Parameter(weight)
        if biased:
            made.bias = nn.Parameter(self._tensor(f"{name}.bias"))
        return made

    def norm(self, name: str) -> Any:
        return RMSNorm(nn.Parameter(self._tensor(f"{name}.weight")), self.config.rms_norm_eps)

    def embedding(self, name: str) -> Any:
        # The padding token's row gets no gradient, as in Transformers.
        weight, padding = self._tensor(f"{name}.weight"), self.config.pad_token_id
        return nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=padding)


class _Decoder(nn.Module):  # type: ignore[misc]
    """All but the output layer."""

    def __init__(self, parts: _Parts) -> None:
        super().__init__()
        self.embed_tokens = parts.embedding("model.embed_tokens")
        layers = range(parts.config.num_hidden_layers)
        self.layers = nn.ModuleList([_Block(parts, f"model.layers.{i}") for i in layers])
        self.norm = parts.norm("model.norm")
        self.rotary_emb = _Rotary(parts.config.rope_parameters["rope_theta"], parts.config.head_dim, parts.device)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        use_cache: bool = False,
    ) -> Any:
        """Normalised hidden states, as `.last_hidden_state`."""
        assert not use_cache, "the samplers keep keys and values"
        x_BTI = self.embed_tokens(input_ids)
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        turns, mask = self.rotary_emb(x_BTI, position_ids), _mask(attention_mask)
        for layer in self.layers:
            x_BTI = layer(x_BTI, position_embeddings=turns, attention_mask=mask)
        return SimpleNamespace(last_hidden_state=self.norm(x_BTI))


class _Block(nn.Module):  # type: ignore[misc]
    """Attention and a gated layer, each behind a norm and added to what it read."""

    def __init__(self, parts: _Parts, name: str) -> None:
        super().__init__()
        self.stands_for = KINDS[parts.config.model_type].replace("ForCausalLM", "DecoderLayer")
        self.self_attn = _Attention(parts, f"{name}.self_attn")
        self.mlp = _Gated(parts, f"{name}.mlp")
        self.input_layernorm, self.post_attention_layernorm = (parts.norm(f"{name}.{one}") for one in NORMS)

    def forward(self, x_BTI: Tensor, position_embeddings: tuple[Tensor, Tensor], attention_mask: Tensor | None) -> Any:
        x_BTI = x_BTI + self.self_attn(self.input_layernorm(x_BTI), position_embeddings, attention_mask)
        return x_BTI + self.mlp(self.post_attention_layernorm(x_BTI))


class _Attention(nn.Module):  # type: ignore[misc]
    attention_dropout = 0.0

    def __init__(self, parts: _Parts, name: str) -> None:
        super().__init__()
        self.head_dim = parts.config.head_dim
        self.scaling = self.head_dim**-0.5
        self.q_proj, self.k_proj, self.v_proj = (parts.linear(f"{name}.{one}") for one in QKV)
        self.o_proj = parts.linear(f"{name}.o_proj")
        self.normed = parts.config.model_type == "qwen3"
        if self.normed:
            self.q_norm, self.k_norm = (parts.norm(f"{name}.{one}") for one in ("q_norm", "k_norm"))

    def forward(self, x_BTI: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor | None) -> Any:
        q, k, v = (one(x_BTI).unflatten(-1, (-1, self.head_dim)) for one in (self.q_proj, self.k_proj, self.v_proj))
        if self.normed:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        q, k = (_rotated(one, *turns) for one in (q, k))
        if (indices := active()) is not None:
            assert len(q) == 1, "a packed batch is one row"
            out_BTHD = attend(q, k, v, indices, self.scaling)
        else:
            out_BTHD = _attended(q, k, v, mask, self.scaling)
        return self.o_proj(out_BTHD.reshape(*x_BTI.shape[:-1], -1).contiguous())


class _Gated(nn.Module):  # type: ignore[misc]
    def __init__(self, parts: _Parts, name: str) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (parts.linear(f"{name}.{one}") for one in GATES)
        self.down_proj, self.act_fn = parts.linear(f"{name}.down_proj"), nn.SiLU()

    def forward(self, x: Tensor) -> Any:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class RMSNorm(nn.Module):  # type: ignore[misc]
    """Computed in float32, rounded, multiplied."""

    def __init__(self, weight: Any, eps: float) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = weight, eps

    def forward(self, x: Tensor) -> Tensor:
        """Of the last dimension."""
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


class _Rotary(nn.Module):  # type: ignore[misc]
    def __init__(self, theta: float, size: int, device: Any) -> None:
        super().__init__()
        # Powers of a GPU differ in the last bit, which grows with the position.
        self.pace_D = (1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float) / size)).to(device)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def forward(self, like: Tensor, positions_BT: Tensor) -> tuple[Tensor, Tensor]:
        angle_BTD = positions_BT[..., None].float() * self.pace_D.to(like.device)
        angle_BTD = torch.cat((angle_BTD, angle_BTD), -1)
        return angle_BTD.cos().to(like.dtype), angle_BTD.sin().to(like.dtype)


def _rotated(x_BHTD: Tensor, cos_BTD: Tensor, sin_BTD: Tensor) -> Tensor:
    half = x_BHTD.shape[-1] // 2  # slices, whose slopes lie in memory as Transformers' do: sums of them round alike
    return (x_BHTD * cos_BTD[:, None]) + (torch.cat((-x_BHTD[..., half:], x_BHTD[..., :half]), -1) * sin_BTD[:, None])


def _mask(told_BT: Tensor | None) -> Tensor | None:
    """(B, 1, T, T): who sees whom; None where everybody sees all up to itself."""
    if told_BT is None or bool(told_BT.all()):
        return None
    length = told_BT.shape[1]
    causal_TT = torch.ones(length, length, dtype=torch.bool, device=told_BT.device).tril()
    return causal_TT & told_BT.bool()[:, None, None]


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """(B, T, H, D), of rows that are not packed."""
    share = q.shape[1] // k.shape[1]
    in_place = mask is None and q.shape[-1] <= WIDEST_SHARED
    if share > 1 and not in_place:
        k, v = (x[:, :, None].expand(-1, -1, share, -1, -1).flatten(1, 2) for x in (k, v))
    causal, shared = mask is None and q.shape[2] > 1, {"enable_gqa": True} if share > 1 and in_place else {}
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale, **shared)
    return out.transpose(1, 2).contiguous()
