"""Models on hand: built or converted locally, found by name, looked at and described without running them.

    resolve("nano")              built on the spot, a fraction of a second, no download
    resolve("smollm2-135m")      where `rlvr model get smollm2-135m` put it
    resolve("./my_model")        a folder
    resolve("org/model")         a hub id, left to Transformers

Everything is an ordinary Hugging Face folder: config.json, model.safetensors, tokenizer.json, a chat template.
"""

from rlvrlab.models.lookup import looked_up
from rlvrlab.models.shelf import locate, parameters_of, resolve

__all__ = ["locate", "looked_up", "parameters_of", "resolve"]
