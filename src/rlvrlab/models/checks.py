"""What a converted model must do before it counts as there: one that is converted subtly wrong talks nonsense."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.extras import install_hf
from rlvrlab.models.conversion import Converted
from rlvrlab.models.quiet import quiet_transformers
from rlvrlab.models.tensors import read_header

QUESTION, ANSWER = "What is the capital of France?", "Paris"
ROUND_TRIPS = ("x = 1234567890 + 42\n\treturn  x", "naïve 🙂 日本語", "", "  two  blanks \r\n", "a\0b")


def verify(name: str, folder: Path, wanted: Converted, *, ask: bool = True) -> None:
    """Count what was written, try its tokenizer, load it, and ask it a question."""
    header = read_header(folder / "model.safetensors")
    _expect(name, "tensors", len(header), wanted.tensors)
    _expect(name, "parameters", sum(math.prod(shape) for _, shape in header.values()), wanted.parameters)
    tokenizer = _try_tokenizer(name, folder, wanted.digits)
    if not ask:
        return
    from transformers import AutoModelForCausalLM

    with quiet_transformers():
        model = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype="float32"
        )
    _expect(name, "parameters", sum(p.numel() for p in model.parameters()), wanted.parameters)
    said = greedy_answer(model, tokenizer, QUESTION)
    if ANSWER not in said:
        raise InfrastructureError(f"{name}: converted, but answers {QUESTION!r} with {said!r}: the conversion is wrong")


def greedy_answer(model: Any, tokenizer: Any, question: str) -> str:
    """What the model says to one question, at temperature 0."""
    import torch

    asked = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with torch.inference_mode():
        answer = model.generate(**prompt, max_new_tokens=16, do_sample=False)
    return str(tokenizer.decode(answer[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True))


def _try_tokenizer(name: str, folder: Path, digits: bool) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise UserError(f"transformers: not installed, and needed to check it; {install_hf()}") from None
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for text in ROUND_TRIPS:
        tokens = tokenizer.encode(text, add_special_tokens=False)
        _expect(name, "round trip", tokenizer.decode(tokens, clean_up_tokenization_spaces=False), text)
    if digits:
        _expect(name, "tokens of 1234", len(tokenizer.encode("1234", add_special_tokens=False)), 4)
    ended = tokenizer.encode(tokenizer.eos_token, add_special_tokens=False)
    _expect(name, "tokens of the end", ended, [tokenizer.eos_token_id])
    asked = [{"role": "user", "content": QUESTION}]
    told = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    _expect(name, "questions in its chat template", told.count(QUESTION), 1)
    return tokenizer


def _expect(name: str, what: str, found: object, wanted: object) -> None:
    """Refuse a converted model of which one fact is not as it should be."""
    if found != wanted:
        raise InfrastructureError(f"{name}: {what} of the converted model: {found!r}, expected {wanted!r}")
