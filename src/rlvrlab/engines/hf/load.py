"""From a folder or a hub name to a model and its tokenizer; refuses pickle, remote code and anything half there."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from rlvrlab.data.hub import go_offline_without_network
from rlvrlab.engines.hf.config import ADAPTER_SEED, ALL_LINEAR, HfConfig, alpha_of
from rlvrlab.engines.hf.folder_files import end_tokens, read_json, refuse_numbers, refuse_odd
from rlvrlab.engines.hf.token_sizes import refuse_long_tokens
from rlvrlab.engines.hf.tokenizer import HfTokenizer
from rlvrlab.errors import ModelUnavailable, UserError, one_line
from rlvrlab.models import resolve
from rlvrlab.models.quiet import quiet_transformers

COMPUTED = ".rotary_emb.inv_freq"
"""A tensor that some files hold and that every model computes."""
LAYER = re.compile(r"(^|\.)(layers|h|blocks)\.\d+\.")
"""How a weight of a numbered layer is called."""
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def load_tokenizer(config: HfConfig, vocab_size: int) -> HfTokenizer:
    """The tokenizer that lies with the model."""
    from transformers import AutoTokenizer

    with quiet_transformers():
        try:
            tokenizer = AutoTokenizer.from_pretrained(resolve(config.model), trust_remote_code=False)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # Transformers raises many kinds, and the library that it uses panics
            raise UserError(f"{config.model}: its tokenizer cannot be read ({one_line(error)})") from error
    return HfTokenizer(tokenizer, vocab_size, config.model, chat=config.chat, ends=ends_of(config.model))


def ends_of(model: str) -> tuple[int, ...]:
    """What ends answers of a model, in a folder or in the place where Transformers keeps it."""
    folder = resolve(model)
    if folder.is_dir():
        return end_tokens(folder)
    from transformers.utils import cached_file

    found = cached_file(str(folder), "generation_config.json", _raise_exceptions_for_missing_entries=False)
    return end_tokens(Path(found).parent) if found else ()


def load_model(config: HfConfig, device: torch.device) -> Any:
    """The model as it is on disk, on the device, without dropout."""
    source = check_source(config.model)
    dtype = dtype_of(config, device)
    extra = _quantization(config, device, dtype)
    wake(device)
    from transformers import AutoModelForCausalLM

    with quiet_transformers():
        try:
            model, facts = AutoModelForCausalLM.from_pretrained(
                source,
                dtype=dtype,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=Path(source).is_dir(),
                output_loading_info=True,
                **extra,
            )
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{config.model}: cannot be loaded ({one_line(error)})") from error
    _refuse_cut(config.model, facts.get("unexpected_keys", ()))
    missing = sorted(facts["missing_keys"]) + sorted(str(k) for k in facts.get("mismatched_keys", ()))
    if missing:
        raise UserError(f"{config.model}: {len(missing)} weights are missing or of another shape, e.g. {missing[0]}")
    if not extra:
        model.to(device)
    return without_dropout(model)


def _refuse_cut(name: str, unexpected: Iterable[str]) -> None:
    """Refuse a model of which config.json leaves out whole layers; of other weights without a place, say so."""
    surplus = sorted(key for key in unexpected if not key.endswith(COMPUTED))
    if not surplus:
        return
    text = f"{name}: {len(surplus)} weights have no place in the model of config.json, e.g. {surplus[0]}"
    if any(LAYER.search(key) for key in surplus):
        raise UserError(f"{text}; fetch the model again, or correct config.json")
    warnings.warn(f"{text}; they are left out", stacklevel=3)


def check_source(model: str) -> str:
    """A folder is examined before anything is read from it; a hub id is left to Transformers."""
    folder = resolve(model)
    if not folder.is_dir():
        alone = go_offline_without_network()  # before Transformers reads the setting
        from transformers import PretrainedConfig

        with quiet_transformers():
            try:
                config, _ = PretrainedConfig.get_config_dict(str(folder))
            except Exception as error:
                where = "stored here, and the hub cannot be reached" if alone else "found on the hub"
                remedy = "give a folder, or check the name and the network"
                text = f"engine.model: {folder} is neither a folder nor {where}; {remedy}"
                raise ModelUnavailable(text) from None if alone else error
        _refuse_remote_code(str(folder), config)
        return str(folder)
    _check_folder(folder)
    return str(folder)


def _check_folder(folder: Path) -> None:
    refuse_odd(folder)
    found: dict[str, Any] = {}
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        try:
            found[path.name] = read_json(path)
            _refuse_remote_code(str(path), found[path.name])
        except FileNotFoundError:
            if path.name == "config.json":
                raise UserError(f"{folder}: {path.name} is missing; this is no model folder") from None
    if (folder / "tokenizer.json").is_file():
        refuse_long_tokens(folder / "tokenizer.json")
    refuse_numbers(folder / "config.json", found["config.json"], _check_weights(folder))


def device_of(config: HfConfig) -> torch.device:
    """The device that the recipe's `device` stands for on this machine."""
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(config.device)
    except RuntimeError:
        raise UserError(f"engine.device: no device {config.device!r}; allowed: auto, cpu, cuda, cuda:N") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"engine.device: {config.device} asked for, but this machine has no usable GPU; use cpu")
    return device


def wake(device: torch.device) -> threading.Thread | None:
    """Begin to set a GPU up, which takes a while, in a thread: weights are read, and perhaps Transformers, meanwhile.

    What goes wrong goes wrong again, and is told, where the device is used.
    """
    if device.type == "cpu":
        return None

    def touch() -> None:
        with suppress(Exception):
            torch.empty(1, device=device)

    thread = threading.Thread(target=touch, name="rlvr-wake", daemon=True)
    thread.start()
    return thread


def dtype_of(config: HfConfig, device: torch.device) -> torch.dtype:
    """The arithmetic that the recipe's `dtype` stands for on this device."""
    if config.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if config.dtype == "float32":
        return torch.float32
    if device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        warnings.warn("this CPU emulates bfloat16, many times slower; set engine.dtype = 'float32'", stacklevel=2)
    return torch.bfloat16


def add_adapter(model: Any, config: HfConfig) -> Any:
    """A PEFT model around (and inside) the model; its first values are the same in every run."""
    from peft import LoraConfig, get_peft_model

    targets = config.lora_targets.split(",") if config.lora_targets != ALL_LINEAR else ALL_LINEAR
    alpha = alpha_of(config.lora_rank, config.lora_alpha)
    settings = LoraConfig(r=config.lora_rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM")
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(ADAPTER_SEED)
        try:
            wrapped = get_peft_model(model, settings, autocast_adapter_dtype=False)
        except ValueError as error:
            raise UserError(f"engine.lora_targets: {one_line(error)}") from error
    for name, parameter in wrapped.named_parameters():
        if "lora_" in name and parameter.dtype != model.dtype:
            parameter.data = parameter.data.to(model.dtype)
    return wrapped


def without_dropout(model: Any) -> Any:
    """Log-probs of the sampler and of the trainer must agree, also while training."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), int | float):
            module.attention_dropout = 0.0
    return model.eval()


def _quantization(config: HfConfig, device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    if config.quantize == "none":
        return {}
    if not config.lora_rank:
        raise UserError("engine.quantize: 4-bit weights are frozen; set engine.lora_rank, e.g. 16")
    if device.type != "cuda":
        raise UserError(f"engine.quantize: 4bit needs a GPU, device is {device.type}; set engine.quantize = 'none'")
    try:
        import bitsandbytes  # noqa: F401
    except ImportError:
        raise UserError("engine.quantize: 4bit needs bitsandbytes; install it with: pip install bitsandbytes") from None
    from transformers import BitsAndBytesConfig

    settings = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )
    return {"quantization_config": settings, "device_map": {"": device}}


def _refuse_remote_code(where: str, config: Any) -> None:
    if isinstance(config, dict) and config.get("auto_map"):
        remedy = "take a model that Transformers knows, or remove auto_map to use the built-in class"
        raise UserError(f"{where}: auto_map asks to run code that comes with the model, which is refused; {remedy}")


def _check_weights(folder: Path) -> int:
    """The number of weights; UserError where they cannot be read."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickled = [path.name for pattern in PICKLED for path in folder.glob(pattern)]
        if pickled:
            remedy = "convert the weights to safetensors on a machine you can lose"
            raise UserError(
                f"{folder}: {pickled[0]} is a pickle, which can run code when read, and is refused; {remedy}"
            )
        raise UserError(f"{folder}: no *.safetensors, so there are no weights; fetch the model again")
    from safetensors import SafetensorError, safe_open

    held = 0
    for path in files:
        try:
            with safe_open(path, "pt") as opened:
                held += len(opened.keys())
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path}: damaged ({one_line(error)}); fetch the model again") from None
    if not held:
        raise UserError(f"{files[0]}: holds no weights; fetch the model again")
    return held
