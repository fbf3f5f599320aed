"""The texts of a folder exported for TRL."""

from __future__ import annotations

REWARD = '''"""The recipe's reward, as TRL's GRPOTrainer calls it: reward_funcs=[reward.rlvr_reward]."""

from pathlib import Path

from rlvrlab.scale.exports.trl_reward import TrlReward

rlvr_reward = TrlReward(Path(__file__).parent)
'''
TRAIN = '''"""Train: python train.py [SETTING=VALUE …], with settings of TRL's GRPOConfig, e.g. max_steps=2."""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.chdir(HERE)

import torch
from datasets import load_dataset
from reward import rlvr_reward
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig

from rlvrlab.scale.exports.trl_reward import trainer_class


def value_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def main():
    settings = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    config = {**settings["config"], **{key: value_of(text) for key, text in given.items()}}
    graphics = torch.cuda.is_available() and settings["device"] != "cpu"
    bf16 = settings["dtype"] == "bfloat16" or (settings["dtype"] == "auto" and graphics)
    args = GRPOConfig(bf16=bf16, use_cpu=not graphics, dataloader_pin_memory=graphics, **config)
    tokenizer = AutoTokenizer.from_pretrained(settings["model"], padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    rlvr_reward.end = tokenizer.eos_token_id
    lora = None
    if settings["lora"]:
        from peft import LoraConfig

        lora = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **settings["lora"])
    trainer = trainer_class(HERE, settings["updates_per_collection"])(
        model=AutoModelForCausalLM.from_pretrained(settings["model"], dtype=torch.float32, use_safetensors=True),
        reward_funcs=[rlvr_reward],
        args=args,
        train_dataset=load_dataset("json", data_files=str(HERE / "train.jsonl"), split="train"),
        processing_class=tokenizer,
        peft_config=lora,
    )
    trainer.train(resume_from_checkpoint=any(HERE.glob("output/checkpoint-*")))
    model = trainer.accelerator.unwrap_model(trainer.model)
    model = model.merge_and_unload() if lora else model  # a whole model, which `rlvr eval` and others can load
    model.save_pretrained(HERE / "output" / "final")
    tokenizer.save_pretrained(HERE / "output" / "final")


if __name__ == "__main__":
    main()
'''
README = """# @NAME@ for TRL

Made by `rlvr export trl` for TRL @VERSION@. It needs `pip install 'rlvrlab[hf]' 'trl==@VERSION@.*' datasets`; on a
machine without a GPU put PyTorch's CPU build of torch in first, or this brings gigabytes of CUDA.

    python train.py                     train; run it again to go on from the last checkpoint
    python train.py max_steps=2         with any setting of TRL's GRPOConfig changed
    accelerate launch train.py          several GPUs: divide per_device_train_batch_size or the accumulation by them
    RLVR_JUDGE=http://HOST:8080 python train.py     have programs judged by `rlvr serve judge`

| file | what |
|---|---|
| train.jsonl, dev.jsonl | @TRAIN@ training problems, and held-out ones: `prompt`, `skill`, the whole problem as JSON |
| reward.py | the recipe's environment, judge and reward behind TRL's reward signature |
| settings.json | GRPOConfig's values, the model and the adapter |
| train.py | the few lines that put them together |
| recipe.json | the recipe they come from |

An answer that could not be judged has reward None: TRL gives it advantage 0. A batch in which none could be judged, and
judge servers that stay away, stop the run; run it again to go on.

What differs from `rlvr train`: the order in which problems are drawn and the random numbers are TRL's own, and it
examines nothing by itself: `rlvr eval … --engine hf engine.model=output/final`, where an adapter is merged in.
"""
