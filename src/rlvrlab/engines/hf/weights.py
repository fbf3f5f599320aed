"""The sampler's own copy of a Llama-shaped model: projections fused, LoRA merged, refreshed in place.

In place matters twice: a published policy must not move while the trainer steps, and CUDA graphs replay over fixed
addresses. On a CPU a batch is stored by features, (I, N) behind its shape of (N, I): a matrix times that takes three
quarters of the time. Suffixes: N tokens, R rows, I and O any width, D head size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, rms_norm

KINDS = {
    "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}  # fmt: skip
"""model_type -> class whose forward is RMSNorm, rotary attention with grouped heads, SwiGLU."""
FAMILY = set(KINDS.values())
FIXED_ROPE = {"default", "linear", "llama3", "yarn"}
"""Rotary scalings whose angle depends on the position alone, not on the length of the sequence."""

TURNED_FIRST = 1 << 17
"""Positions whose angles are there from the beginning; others are added where a longer text comes."""
MOST_TURNED = 1 << 27
"""Window times size of a head, beyond which the sampler cuts the window: a million positions of usual heads."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers a decoder needs."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    window: int
    """Longest prompt plus answer."""
    eps: float
    scale: float
    """Factor on attention scores, usually 1/√D."""

    @property
    def repeat(self) -> int:
        """Query heads that share one key head."""
        return self.heads // self.kv_heads

    @property
    def cache_values(self) -> int:
        """Numbers the key/value cache holds per token, all layers together."""
        return 2 * self.layers * self.kv_heads * self.head_dim


@dataclass(slots=True)
class Layer:
    """One block's tensors."""

    norm1: Tensor
    qkv: Tensor
    out: Tensor
    norm2: Tensor
    gate_up: Tensor
    down: Tensor
    qkv_bias: Tensor | None = None
    out_bias: Tensor | None = None
    gate_up_bias: Tensor | None = None
    down_bias: Tensor | None = None
    q_norm: Tensor | None = None
    k_norm: Tensor | None = None


@dataclass(slots=True)
class Fused:
    """A target tensor and the parts that are copied into it, one below the other."""

    target: Tensor
    parts: Sequence[Any]
    attribute: str = "weight"
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Address and version of each frozen part when it was last copied."""


def obstacle(model: Any) -> str | None:
    """Why the hand-written decoder cannot sample this model, or None when it can."""
    base = _base_model(model)
    name = class_of(base)
    if name not in FAMILY:
        return f"{name} is not one of {', '.join(sorted(FAMILY))}"
    config = base.config
    if (rope := (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")) not in FIXED_ROPE:
        return f"rotary scaling {rope!r} depends on the length"
    if config.hidden_act != "silu":
        return f"activation {config.hidden_act!r}, not silu"
    used = name == KINDS["mistral"] or getattr(config, "use_sliding_window", True)  # Mistral's class has no such switch
    sliding = getattr(config, "sliding_window", None) if used else None
    kinds = getattr(config, "layer_types", None) or (["sliding_attention"] if sliding else [])
    if sliding is not None and "sliding_attention" in kinds and sliding < config.max_position_embeddings:
        return "a sliding window shorter than the model's window"
    return _odd_projection(base)


def class_of(module: Any) -> str:
    """The class of Transformers whose arithmetic a module has: its own, or the one that it says it stands for."""
    return str(getattr(module, "stands_for", type(module).__name__))


def _base_model(model: Any) -> Any:
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _odd_projection(base: Any) -> str | None:
    """Only plain linear layers and plain LoRA on them can be merged."""
    for name, module in base.named_modules():
        if "base_layer" in name or "lora_" in name:
            continue
        if (plain := getattr(module, "base_layer", None)) is not None:
            if type(plain) is not nn.Linear:
                return f"{name}: adapter on a {type(plain).__name__}"
            dora = any(getattr(module, "use_dora", {}).values()) or bool(getattr(module, "lora_variant", {}))
            if dora or any(getattr(module, "lora_bias", {}).values()) or not hasattr(module, "get_delta_weight"):
                return f"{name}: only plain LoRA is merged"
        elif name.endswith(("_proj", "lm_head")) and type(_active(module)) is not nn.Linear:
            return f"{name}: a {type(module).__name__}, not a plain linear layer"
    return None


def _active(module: Any) -> Any:
    """The module that really computes: PEFT keeps fully trained copies beside the original."""
    if hasattr(module, "modules_to_save"):
        return module.modules_to_save[module.active_adapters[0]]
    return module


class Weights:
    """Fused, merged tensors of one model."""

    def __init__(self, model: Any, device: Any, dtype: Any = None, *, lasting: bool = True) -> None:
        """`lasting` remembers the model, so that `refresh` can take over what its training changes."""
        base = _base_model(model)
        self.device = torch.device(device)
        embedding = _active(base.model.embed_tokens).weight
        self.dtype = dtype or sampling_dtype(embedding.dtype, self.device)
        self.by_features = self.device.type == "cpu"
        self._fused: list[Fused] = []
        with torch.inference_mode():
            self.shape = _shape(base)
            self._eps = torch.tensor(self.shape.eps, device=self.device)
            self.embedding = self._own([base.model.embed_tokens])
            same = _plain(base.lm_head).weight is _plain(base.model.embed_tokens).weight
            tied = same and not hasattr(base.lm_head, "base_layer")
            self.head = self.embedding if tied else self._own([base.lm_head])
            self.norm = self._own([base.model.norm])
            self.layers = [self._layer(block) for block in base.model.layers]
            self._turn, self._turned = base.model.rotary_emb, 0
            size = (self.shape.window, self._angles(0, 1)[0].shape[-1])
            self.cos_TD, self.sin_TD = (torch.empty(size, device=self.device, dtype=self.dtype) for _ in range(2))
            self.reach(min(self.shape.window, TURNED_FIRST))
        self.parameters = sum(fused.target.numel() for fused in self._fused)
        self.refresh()
        if not lasting:
            self._fused.clear()

    def refresh(self) -> None:
        """Take over the model's current weights."""
        with torch.inference_mode():
            for fused in self._fused:
                _copy(fused)

    def reach(self, length: int) -> None:
        """Fill the tables of angles up to so many positions, in place, in doubling steps: what is not filled takes no
        memory on a CPU. The sine's first half is negated, so that a rotation is x·cos + roll(x, D/2)·sin."""
        while self._turned < min(length, self.shape.window):
            end = min(max(2 * self._turned, TURNED_FIRST), self.shape.window)
            cos_TD, sin_TD = self._angles(self._turned, end)
            with torch.inference_mode():
                self.cos_TD[self._turned : end], self.sin_TD[self._turned : end] = cos_TD, sin_TD
                self.sin_TD[self._turned : end, : sin_TD.shape[-1] // 2].neg_()
            self._turned = end

    def _angles(self, start: int, end: int) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            like = torch.empty(0, device=self.device, dtype=self.dtype)
            cos, sin = self._turn(like, torch.arange(start, end, device=self.device)[None])
        return cos[0], sin[0]

    def _layer(self, block: Any) -> Layer:
        attention, mlp = block.self_attn, block.mlp
        qkv = [attention.q_proj, attention.k_proj, attention.v_proj]
        gate_up = [mlp.gate_proj, mlp.up_proj]
        return Layer(
            norm1=self._own([block.input_layernorm]),
            norm2=self._own([block.post_attention_layernorm]),
            qkv=self._own(qkv),
            out=self._own([attention.o_proj]),
            gate_up=self._own(gate_up),
            down=self._own([mlp.down_proj]),
            qkv_bias=self._bias(qkv),
            out_bias=self._bias([attention.o_proj]),
            gate_up_bias=self._bias(gate_up),
            down_bias=self._bias([mlp.down_proj]),
            q_norm=self._own([attention.q_norm]) if hasattr(attention, "q_norm") else None,
            k_norm=self._own([attention.k_norm]) if hasattr(attention, "k_norm") else None,
        )

    def _own(self, parts: Sequence[Any], attribute: str = "weight") -> Tensor:
        tensors = [getattr(_plain(part), attribute) for part in parts]
        shape = (sum(t.shape[0] for t in tensors), *tensors[0].shape[1:])
        target = torch.empty(shape, device=self.device, dtype=self.dtype)
        self._fused.append(Fused(target, parts, attribute))
        return target

    def _bias(self, parts: Sequence[Any]) -> Tensor | None:
        return self._own(parts, "bias") if _plain(parts[0]).bias is not None else None

    def project(self, x_NI: Tensor, matrix_OI: Tensor, bias: Tensor | None) -> Tensor:
        """A linear map, in the order of storage that this device wants."""
        if not self.by_features:
            return linear(x_NI, matrix_OI, bias)
        out_ON = torch.mm(matrix_OI, x_NI.t())
        return (out_ON if bias is None else out_ON.add_(bias[:, None])).t()

    def add_projection(self, residual_NO: Tensor, x_NI: Tensor, matrix_OI: Tensor, bias: Tensor | None) -> Tensor:
        """Residual plus a linear map; on a CPU the product is summed into the residual."""
        if not self.by_features:
            return residual_NO + linear(x_NI, matrix_OI, bias)
        out_ON = torch.addmm(residual_NO.t(), matrix_OI, x_NI.t())
        return (out_ON if bias is None else out_ON.add_(bias[:, None])).t()

    def normalise(self, x_ND: Tensor, weight: Tensor) -> Tensor:
        """RMSNorm, rounded where Transformers rounds."""
        size = (weight.shape[0],)
        if self.by_features and x_ND.dtype == torch.float32:  # torch takes ten small steps there
            scale_N1 = torch.add(self._eps, x_ND.square().sum(-1, keepdim=True), alpha=1 / size[0]).rsqrt_()
            return (x_ND * scale_N1).mul_(weight)
        if x_ND.dtype == torch.float32:
            return rms_norm(x_ND, size, weight, self.shape.eps)
        return rms_norm(x_ND.float(), size, None, self.shape.eps).to(x_ND.dtype) * weight

    def logits(self, x_RD: Tensor) -> Tensor:
        """Scores of the next token after the last block."""
        return self.score(self.normalise(x_RD, self.norm))

    def score(self, x_RD: Tensor) -> Tensor:
        """Scores from hidden states that are normalised already."""
        return self.project(x_RD, self.head, None)


def sampling_dtype(dtype: Any, device: Any) -> Any:
    """The model's own, but float32 on a CPU that would emulate half precision a hundred times slower."""
    return torch.float32 if device.type == "cpu" and dtype != torch.float32 and not has_bfloat16() else dtype


def has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 itself."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _plain(part: Any) -> Any:
    return getattr(_active(part), "base_layer", None) or _active(part)


def _copy(fused: Fused) -> None:
    """Bring a target up to date; frozen parts are copied only when they have changed."""
    start = 0
    for i, part in enumerate(fused.parts):
        source = getattr(_plain(part), fused.attribute)
        rows = fused.target[start : start + source.shape[0]]
        start += source.shape[0]
        adapters = []
        if fused.attribute == "weight" and hasattr(part, "lora_A") and not getattr(part, "merged", False):
            adapters = [name for name in part.active_adapters if name in part.lora_A]
        version = None if source.is_inference() else (source.data_ptr(), source._version)
        if adapters:
            # W + Σ s·B·A in float32, rounded once: a small update should not be rounded away on the way.
            merged = source.float()
            for name in adapters:
                b, a = part.lora_B[name].weight.float(), part.lora_A[name].weight.float()
                into = rows if (rows.dtype, rows.device) == (merged.dtype, merged.device) else None
                merged = torch.addmm(merged, b, a, alpha=part.scaling[name], out=into)
            if merged is not rows:
                rows.copy_(merged)
        elif version is None or fused.seen.get(i) != version:
            rows.copy_(source)
        if version and not adapters:
            fused.seen[i] = version


def _shape(base: Any) -> Shape:
    config = base.config
    attention = base.model.layers[0].self_attn
    return Shape(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=attention.head_dim,
        vocab=config.vocab_size,
        window=min(config.max_position_embeddings, max(1, MOST_TURNED // attention.head_dim)),
        eps=config.rms_norm_eps,
        scale=float(attention.scaling),
    )
