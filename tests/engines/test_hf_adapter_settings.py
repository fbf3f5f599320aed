"""Every setting of adapter_config.json: merged as PEFT computes it, or refused in a line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from needs_torch import torch
from safetensors.torch import load_file, save_file
from test_hf_folders_settings import IDS, rewrite, theirs
from tiny_models import tiny

from rlvrlab.engines.hf.merging import Merging
from rlvrlab.errors import UserError

Q, UP = "model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"


def adapter_of(folder: Path, modules: list[str], **settings: Any) -> Path:
    """PEFT's own file of an adapter at these modules, with other settings beside it."""
    from peft import LoraConfig, get_peft_model

    made = get_peft_model(theirs(Path(tiny())), LoraConfig(r=4, target_modules=modules, task_type="CAUSAL_LM"))
    for name, parameter in made.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, 0.0, 0.3)
    made.save_pretrained(folder)
    rewrite(folder / "adapter_config.json", **settings)
    return folder


def by_peft(folder: Path) -> Any:
    from peft import PeftModel

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of what is not in the file and so stays nothing, and of weights that lie right
        return PeftModel.from_pretrained(theirs(Path(tiny())), folder)(IDS).logits


def by_merging(folder: Path) -> Any:
    model = theirs(Path(tiny()))
    merging = Merging(model, 8)
    merging.use(merging.add("a", folder, merging.read(folder)))
    return model(IDS).logits


ADAPTERS_READ: dict[str, dict[str, Any]] = {
    "nothing more": {},
    "another root": {"use_rslora": True},
    "weights the other way round, which these are not": {"fan_in_fan_out": True},
    "a pattern": {"target_modules": r"model\.layers\.\d+\.(self_attn\.q_proj|mlp\.up_proj)"},
    "all layers": {"target_modules": "all-linear"},
    "numbers of layers": {
        "layers_to_transform": [0, 1],
        "layers_pattern": "layers",
        "target_modules": ["q_proj", "up_proj"],
    },
    "others are left out": {"exclude_modules": ["k_proj"], "target_modules": ["q_proj", "up_proj", "k_proj"]},
    "other first values": {"init_lora_weights": "gaussian"},
}


@pytest.mark.parametrize("what", ADAPTERS_READ)
def test_adapters_that_are_merged_as_peft_computes_them(what: str, tmp_path: Path) -> None:
    folder = adapter_of(tmp_path, [Q, UP], **ADAPTERS_READ[what])
    torch.testing.assert_close(by_merging(folder), by_peft(folder), atol=1e-4, rtol=1e-4)


ADAPTERS_REFUSED: dict[str, dict[str, Any]] = {
    "init_lora_weights": {"init_lora_weights": "pissa"},
    "alora_invocation_tokens": {"alora_invocation_tokens": [3, 4]},
    "trainable_token_indices": {"trainable_token_indices": [3]},
    "target_parameters": {"target_parameters": ["experts"]},
    "use_qalora": {"use_qalora": True},
    "arrow_config": {"arrow_config": {"top_k": 1}},
    "kasa_config": {"kasa_config": {"beta": 1.0}},
    "a_setting_of_tomorrow": {"a_setting_of_tomorrow": 0},
    "leaves model.layers.1.mlp.up_proj out": {"target_modules": ["q_proj"]},
    "leaves model.layers.0.self_attn.q_proj out": {"exclude_modules": ["q_proj"]},
    "leaves model.layers.1.mlp": {"layers_to_transform": 0, "target_modules": ["q_proj", "up_proj"]},
    "layers_pattern": {"layers_pattern": ["(a+)+$"], "layers_to_transform": [0]},
    "the pattern": {"target_modules": r"(.|..|...)*[A-Z]"},
    "cannot be used": {"target_modules": "("},
    "No adapter found": {"lora_alpha": "8"},
    "r is a whole number": {"r": 4.5},
}


@pytest.mark.parametrize("words", ADAPTERS_REFUSED)
def test_adapters_that_are_refused(words: str, tmp_path: Path) -> None:
    folder = adapter_of(tmp_path, [Q, UP])
    Merging(theirs(Path(tiny())), 8).read(folder)
    rewrite(folder / "adapter_config.json", **ADAPTERS_REFUSED[words])
    with pytest.raises(UserError, match=words) as told:
        Merging(theirs(Path(tiny())), 8).read(folder)
    assert "\n" not in str(told.value)


def test_names_that_peft_would_not_know(tmp_path: Path) -> None:
    path = adapter_of(tmp_path, [Q]) / "adapter_model.safetensors"
    save_file({name.removeprefix("base_model.model."): one for name, one in load_file(path).items()}, path)
    with pytest.raises(UserError, match="is no name of PEFT's"):
        Merging(theirs(Path(tiny())), 8).read(tmp_path)


@pytest.mark.parametrize("told", [True, False])
def test_layers_of_gpt2_are_the_other_way_round_whatever_the_settings_say(told: bool, tmp_path: Path) -> None:
    from peft import LoraConfig, PeftModel, get_peft_model

    base = Path(tiny("gpt2"))
    made = get_peft_model(theirs(base), LoraConfig(r=4, target_modules=["attn.c_proj"], fan_in_fan_out=True))
    for name, parameter in made.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, 0.0, 0.3)
    made.save_pretrained(tmp_path)
    rewrite(tmp_path / "adapter_config.json", fan_in_fan_out=told, task_type="CAUSAL_LM", auto_mapping=None)
    model = theirs(base)
    merging = Merging(model, 8)
    merging.use(merging.add("a", tmp_path, merging.read(tmp_path)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = PeftModel.from_pretrained(theirs(base), tmp_path)
    torch.testing.assert_close(model(IDS).logits, adapted(IDS).logits, atol=1e-4, rtol=1e-4)
