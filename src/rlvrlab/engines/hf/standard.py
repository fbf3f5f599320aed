"""Which config.json our modules compute: a list of all that may stand in it, so that a key nobody here has heard of
leaves the folder to Transformers instead of being passed over.

A key is one of four: a number that the modules take, a setting that has to have the one value that they compute, a
setting without a part in any number, or unknown, and then it may only say nothing (null or false).
"""

from __future__ import annotations

from typing import Any

from rlvrlab.engines.hf.folder_files import MOST, is_positive, is_whole
from rlvrlab.engines.hf.weights import KINDS

Facts = dict[str, Any]
NUMBERS = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
           "max_position_embeddings")  # fmt: skip
"""What a configuration must state; Transformers' defaults differ from class to class."""
MAY_STATE = ("num_key_value_heads", "head_dim")
TAKEN = {*NUMBERS, *MAY_STATE, "model_type", "architectures", "hidden_act", "rms_norm_eps", "pad_token_id",
         "rope_theta", "rope_parameters", "tie_word_embeddings", "attention_bias", "mlp_bias", "layer_types",
         "sliding_window", "use_sliding_window"}  # fmt: skip
"""Looked at below."""
WITHOUT_PART = {
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "attention_dropout",
    "attn_implementation", "bos_token_id", "chunk_size_feed_forward", "decoder_start_token_id", "dtype",
    "eos_token_id", "finetuning_task", "id2label", "initializer_range", "is_llama_config", "label2id",
    "max_window_layers", "name_or_path", "pretraining_tp", "problem_type", "pruned_heads", "return_dict",
    "sep_token_id", "task_specific_params", "tokenizer_class", "torch_dtype", "transformers.js_config",
    "transformers_version", "unsloth_fixed", "unsloth_version", "use_cache",
    # settings of drawing, which older versions wrote here
    "diversity_penalty", "do_sample", "early_stopping", "encoder_no_repeat_ngram_size", "length_penalty", "max_length",
    "max_new_tokens", "min_length", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences",
    "repetition_penalty", "temperature", "top_k", "top_p", "typical_p",
}  # fmt: skip
"""Nothing that is computed here depends on these: dropout is off, and precision and drawing are the recipe's."""
FULL = "full_attention"


def is_standard(facts: Facts) -> bool:
    """Is it a model whose forward pass the modules know from these facts alone?"""
    kind = facts.get("model_type")
    if not isinstance(kind, str) or facts.get("architectures") != [KINDS.get(kind)]:
        return False
    silent = all(key in TAKEN | WITHOUT_PART or value is None or value is False for key, value in facts.items())
    known = silent and facts.get("hidden_act") == "silu" and _is_eps(facts.get("rms_norm_eps"))
    return known and _is_sized(facts, kind) and _is_turned(facts) and _sees_all(facts, kind) and _is_built(facts, kind)


def _is_eps(value: Any) -> bool:
    return isinstance(value, float) and is_positive(value)


def _is_sized(facts: Facts, kind: str) -> bool:
    """Sizes that go together; what is not stated has the same default here and in the class."""
    if not all(is_whole(facts.get(key), MOST[key]) for key in NUMBERS):
        return False
    if not all(facts.get(key) is None or is_whole(facts[key], MOST[key]) for key in MAY_STATE):
        return False
    if kind != "llama" and "num_key_value_heads" not in facts:
        return False
    if facts.get("head_dim") is None and (kind == "qwen3" or (kind == "qwen2" and "head_dim" in facts)):
        return False
    heads, padding = facts["num_attention_heads"], facts.get("pad_token_id")
    padded = padding is None or (type(padding) is int and padding in range(facts["vocab_size"]))
    return heads % kv_heads(facts) == 0 == facts["hidden_size"] % heads and head_dim(facts) % 2 == 0 and padded


def _is_turned(facts: Facts) -> bool:
    """Whole heads by the plain rotation; `type` is what older versions call `rope_type`."""
    rope = facts.get("rope_parameters")
    if not (rope is None or isinstance(rope, dict)):
        return False
    told = rope or {}
    plain = told.keys() <= {"rope_type", "type", "rope_theta"}
    return (
        plain
        and {*(told.get(key, "default") for key in ("rope_type", "type"))} == {"default"}
        and (theta_of(facts) is not None)
    )


def _sees_all(facts: Facts, kind: str) -> bool:
    """Every position sees all before it. Mistral's window is 4096 where none is stated; Qwen's counts only if used."""
    kinds = facts.get("layer_types")
    if not (kinds is None or kinds == [FULL] * facts["num_hidden_layers"]) or facts.get("use_sliding_window"):
        return False
    if kind in ("qwen2", "qwen3"):
        return True
    return facts.get("sliding_window") is None and (kind != "mistral" or "sliding_window" in facts)


def _is_built(facts: Facts, kind: str) -> bool:
    """Settings that say which tensors there are, and are read by this class: qwen2 has its biases in any case."""
    read = {"llama": {"attention_bias", "mlp_bias"}, "qwen3": {"attention_bias"}}.get(kind, set())
    biases = {"attention_bias", "mlp_bias"} & facts.keys()
    told = [facts[key] for key in (biases & read) | ({"tie_word_embeddings"} & facts.keys())]
    return all(isinstance(one, bool) for one in told) and not any(facts[key] for key in biases - read)


def theta_of(facts: Facts) -> float | None:
    """The base of the rotary angles, wherever this configuration states it."""
    theta = (facts.get("rope_parameters") or {}).get("rope_theta", facts.get("rope_theta"))
    return float(theta) if theta is not None and is_positive(theta) else None


def kv_heads(facts: Facts) -> int:
    """Heads of keys."""
    return int(facts.get("num_key_value_heads") or facts["num_attention_heads"])


def head_dim(facts: Facts) -> int:
    """Size of a head."""
    return int(facts.get("head_dim") or facts["hidden_size"] // facts["num_attention_heads"])
