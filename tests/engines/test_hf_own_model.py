"""A training without Transformers and PEFT: the same numbers, the same files, and theirs wherever something is asked
for that our modules do not have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_factories import hf
from needs_torch import torch
from test_hf_reading import COMMAND, changed
from tiny_models import of_kind, tiny, whole, write_model

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf.body import Body
from rlvrlab.engines.hf.engine import HfEngine
from rlvrlab.engines.hf.opening import plain_folder
from rlvrlab.engines.hf.own_model import OwnModel
from rlvrlab.engines.hf.stored import stored
from rlvrlab.engines.hf.token_file import token_file
from rlvrlab.errors import UserError
from rlvrlab.objectives.sft import Sft
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Request, Sampling

BATCH = batch_of([(3, 4, 5)] * 3 + [(7, 8, 9, 3, 2)], [(4, 5, 6, 9), (6, 5), (7, 7, 2), (2,)])
CPU = torch.device("cpu")
ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@pytest.fixture(scope="module", params=["llama", "qwen2", "qwen3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole(request.param, tmp_path_factory.mktemp(request.param))


def pair(folder: Path | str, **keys: Any) -> tuple[Any, Any]:
    """Our engine and that of Transformers, moved from where they began."""
    table = Hf(str(folder), device="cpu", **keys)
    own, theirs = HfEngine(table, Optimizer()), HfEngine(table, Optimizer(), own=False)
    assert isinstance(own.model, OwnModel) and not isinstance(theirs.model, OwnModel)
    return own, theirs


def moved(*engines: Any) -> None:
    for engine in engines:
        engine.weights.add(0.1 * torch.linspace(-1, 1, engine.weights.size).sin())
        engine.publish()


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral", "llama with biases"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_and_slopes_of_every_kind_are_those_of_transformers(kind: str, dtype: Any, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    found = stored(of_kind(kind, tmp_path, pad_token_id=2))
    assert found is not None
    own = OwnModel(found, CPU, dtype).eval()
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=dtype)
    sides = own, theirs
    names = [[(name, one.shape, one.dtype) for name, one in side.named_parameters()] for side in sides]
    assert names[0] == names[1] and own.state_dict().keys() == theirs.state_dict().keys()
    ids = torch.arange(60).view(3, 20) * 7 % 40
    mask = torch.arange(20) < torch.tensor([20, 11, 3])[:, None]
    for told in (None, torch.ones_like(mask), mask):
        logits = [side(input_ids=ids, attention_mask=told, use_cache=False).logits for side in sides]
        assert torch.equal(*logits)
        slopes = [
            torch.autograd.grad(logit.float().square().mean(), list(side.parameters()))
            for logit, side in zip(logits, sides, strict=True)
        ]
        assert all(torch.equal(a, b) for a, b in zip(*slopes, strict=True))


def test_wide_heads_that_share_keys(tmp_path: Path) -> None:
    """Beyond 256 Transformers gives every head its own."""
    from transformers import AutoModelForCausalLM

    found = stored(of_kind("llama", tmp_path, head_dim=260))
    assert found is not None
    ids = torch.arange(9)[None]
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert torch.equal(OwnModel(found, CPU, torch.float32)(ids).logits, theirs(ids).logits)


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("packing", [True, False])
def test_an_engine_of_ours_is_theirs_to_the_last_bit(folder: Path, rank: int, packing: bool) -> None:
    own, theirs = pair(folder, lora_rank=rank, packing=packing)
    assert own.weights.names == theirs.weights.names and own._facts() == theirs._facts()
    assert torch.equal(own.weights.theta, theirs.weights.theta)  # PEFT's first values too
    assert own.body.packs == theirs.body.packs == packing and own.body.split
    moved(own, theirs)
    for mine, other in zip(own.logprobs(BATCH), theirs.logprobs(BATCH), strict=True):
        np.testing.assert_array_equal(mine, other)
    (slope, value, _), (their_slope, their_value, _) = (one.gradient(BATCH, Sft()) for one in (own, theirs))
    assert torch.equal(slope, their_slope) and value == their_value and slope.abs().max() > 0
    assert own.ways == theirs.ways
    asked = [Request((3, 4, 5), 3, ("own",), Sampling(max_tokens=7))]
    assert own.sample(asked) == theirs.sample(asked)
    assert own.untrained(["the<|start|>"]) == theirs.untrained(["the<|start|>"])


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 4])
def test_in_bfloat16_too(folder: Path, rank: int) -> None:
    own, theirs = pair(folder, lora_rank=rank, dtype="bfloat16")
    moved(own, theirs)
    assert own.precision == "bfloat16" and torch.equal(own.weights.theta, theirs.weights.theta)
    assert torch.equal(own.gradient(BATCH, Sft())[0], theirs.gradient(BATCH, Sft())[0])


@pytest.mark.parametrize("targets", ["q_proj,v_proj", "mlp.down_proj", "layers.1.self_attn.o_proj,gate_proj"])
def test_adapters_where_the_recipe_wants_them(targets: str) -> None:
    own, theirs = pair(tiny(), lora_rank=2, lora_targets=targets, lora_alpha=3.0)
    assert own.weights.names == theirs.weights.names
    moved(own, theirs)
    assert torch.equal(own.gradient(BATCH, Sft())[0], theirs.gradient(BATCH, Sft())[0])


@pytest.mark.parametrize("targets", ["nonsense", "self_attn"])
def test_targets_that_are_no_layers_are_refused_in_the_same_words(targets: str) -> None:
    words = []
    for own in (True, False):
        with pytest.raises(UserError, match=r"engine.lora_targets: Target module") as told:
            hf("llama", 4, own=own, lora_targets=targets)(0)
        words.append(str(told.value))
    assert words[0] == words[1]


@pytest.mark.parametrize(
    "keys",
    [
        {"lora_targets": "lm_head"},
        {"lora_targets": "q_proj,embed_tokens"},
        {"lora_targets": "q_proj,nonsense"},
        {"gradient_checkpointing": True},
        {"model": "qwen2"},  # its tokenizer is not Qwen's
        {"model": "gpt2"},
    ],
    ids=lambda keys: "-".join(map(str, keys)),
)
def test_what_is_more_than_ours_is_theirs(keys: dict[str, Any]) -> None:
    chosen = {"device": "cpu", "lora_rank": 2, **keys, "model": tiny(keys.get("model", "llama"))}
    engine: Any = Hf(**chosen).build(Optimizer())
    assert not isinstance(engine.model, OwnModel) and engine.weights.size


def test_quantised_weights_and_names_on_the_hub_are_left_to_transformers() -> None:
    assert plain_folder(Hf(tiny(), device="cpu"), CPU) is not None
    assert plain_folder(Hf(tiny(), device="cpu", quantize="4bit"), CPU) is None
    assert plain_folder(Hf("somebody/some-model", device="cpu"), CPU) is None


def test_a_padding_token_that_the_vocabulary_lacks_is_left_to_transformers(tmp_path: Path) -> None:
    folder = of_kind("llama", tmp_path)
    changed(pad_token_id=-1)(folder)
    assert stored(folder) is None


def test_it_keeps_its_weights_when_the_file_is_replaced(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    engine: Any = Hf(str(model), device="cpu", lora_rank=2).build(Optimizer())
    before = engine.logprobs(BATCH)[0]
    with (model / "model.safetensors").open("r+b") as file:
        file.seek(-400, 2)
        file.write(b"\x11" * 400)
    np.testing.assert_array_equal(engine.logprobs(BATCH)[0], before)


@pytest.mark.parametrize("rank", [0, 4])
def test_either_goes_on_from_a_checkpoint_of_the_other(folder: Path, rank: int, tmp_path: Path) -> None:
    own, theirs = pair(folder, lora_rank=rank)
    for name, one in (("own", own), ("theirs", theirs)):
        one.step([one.gradient(BATCH, Sft())[0]], [1.0], 0.05)
        one.save(tmp_path / name)
    after = own.snapshot()
    others = pair(folder, lora_rank=rank)
    others[0].load(tmp_path / "theirs")
    others[1].load(tmp_path / "own")
    assert all(torch.equal(one.weights.theta, after) for one in others)
    for one in (own, *others):
        one.step([one.gradient(BATCH, Sft())[0]], [1.0], 0.05)
    assert all(torch.equal(one.weights.theta, own.weights.theta) for one in others)


@pytest.fixture(scope="module")
def saved(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, Path]:
    """Our engine after a move, what it wrote, and what the other wrote."""
    own, theirs = pair(folder, lora_rank=4, lora_targets=",".join(ADAPTED))
    moved(own, theirs)
    places = tuple(tmp_path_factory.mktemp("saved") / name for name in ("own", "theirs"))
    for one, place in zip((own, theirs), places, strict=True):
        one.save(place)
    return own, *places


def facts(path: Path) -> Any:
    return json.loads(path.read_text())


def test_files_hold_what_those_of_transformers_and_peft_hold(saved: tuple[Any, Path, Path]) -> None:
    from safetensors.torch import load_file

    engine, own, theirs = saved
    for name in ("huggingface/model.safetensors", "adapter/adapter_model.safetensors"):
        mine, other = load_file(own / name), load_file(theirs / name)
        tied = {"lm_head.weight"} if engine.model.config.tie_word_embeddings else set()  # the embedding, once more
        assert mine.keys() == other.keys() - tied and all(torch.equal(mine[key], other[key]) for key in mine)
    mine, other = (facts(place / "adapter/adapter_config.json") for place in (own, theirs))
    assert sorted(other["target_modules"]) == mine["target_modules"]
    assert {key: other[key] for key in mine.keys() - {"target_modules"}} == {
        key: value for key, value in mine.items() if key != "target_modules"
    }
    mine, other = (facts(place / "huggingface/config.json") for place in (own, theirs))
    assert mine == other and mine["dtype"] == "float32"
    assert facts(own / "huggingface/generation_config.json") == facts(theirs / "huggingface/generation_config.json")


def test_its_folder_is_one_for_transformers_for_peft_and_for_us(
    saved: tuple[Any, Path, Path], folder: Path, tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    engine, own, _ = saved
    ids = torch.arange(24)[None] * 5
    merged = AutoModelForCausalLM.from_pretrained(own / "huggingface")(ids).logits
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, own / "adapter")(ids).logits
    assert torch.equal(adapted, engine.model(ids).logits)
    torch.testing.assert_close(merged, adapted, atol=1e-5, rtol=1e-4)
    before, after = (AutoTokenizer.from_pretrained(place) for place in (folder, own / "huggingface"))
    assert before.get_vocab() == after.get_vocab() and before.chat_template == after.chat_template
    assert before("the <|end|> é 12").input_ids == after("the <|end|> é 12").input_ids
    assert before.special_tokens_map == after.special_tokens_map
    again, tokens = stored(own / "huggingface"), token_file(own / "huggingface")
    assert again is not None and tokens is not None
    torch.testing.assert_close(OwnModel(again, CPU, torch.float32)(ids).logits, merged, atol=0, rtol=0)
    tokens.save_pretrained(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name in {one.name for one in tmp_path.iterdir()}
    }


def test_all_layers_are_named_shortly_for_servers(tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    engine: Any = hf("llama", 4)(0)
    moved(engine)
    engine.save(tmp_path)
    assert facts(tmp_path / "adapter/adapter_config.json")["target_modules"] == sorted(ADAPTED)
    adapted = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny()), tmp_path / "adapter")
    ids = torch.arange(20)[None]
    assert torch.equal(adapted(ids).logits, engine.model(ids).logits)


def test_the_precision_is_told_under_both_of_its_names(tmp_path: Path) -> None:
    """Older versions of Transformers, and what is built on them, read the other one."""
    model = write_model(tmp_path / "model")
    changed(torch_dtype="bfloat16")(model)
    Hf(str(model), device="cpu").build(Optimizer()).save(tmp_path / "saved")
    told = facts(tmp_path / "saved/huggingface/config.json")
    assert (told["dtype"], told["torch_dtype"]) == ("float32", "float32")


def test_a_packed_row_needs_no_place_in_the_registry_of_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlvrlab.engines.hf import attention

    monkeypatch.delitem(sys.modules, "transformers")
    monkeypatch.setattr(attention, "register", lambda: pytest.fail("registered"))
    found = stored(Path(tiny()))
    assert found is not None and Body(OwnModel(found, CPU, torch.float32).eval(), packing=True).packs


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 4])
def test_a_training_imports_neither_transformers_nor_peft(rank: int, tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    changed(max_position_embeddings=512)(model)
    (tmp_path / "short.toml").write_text(
        'name = "short"\nphases = ["sft", "grpo"]\nenv = {type = "countdown"}\ndata = {train_size = 4, dev_size = 2}\n'
        "rollout = {n = 2, max_tokens = 4}\neval = {every = 0, test_size = 2}\n"
        "sft = {steps = 1, batch_size = 2, references = 4}\ngrpo = {steps = 1, batch_size = 2}\n"
    )
    words = ["train", "short.toml", "engine.type=hf", f"engine.model={model}", f"engine.lora_rank={rank}"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False False"
    (run,) = (tmp_path / "experiments").iterdir()
    assert len((run / "logs/metrics.jsonl").read_text().splitlines()) >= 2
