"""A start of its own for every seed: `{seed}` in `engine.model` stands for the seed of a trial.

Arms of one seed then go on from the same weights, made once before the study, so a stage compares what they do with
them and not how well their own start went (`select.paired` compares them in pairs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvrlab.study.schema import Settings

SEED = "{seed}"
MODEL = "engine.model"


def one_per_seed(settings: Mapping[str, Any]) -> bool:
    """Whether each seed has a start of its own."""
    return SEED in str(settings.get(MODEL, ""))


def of_seed(settings: Settings, seed: int) -> Settings:
    """The settings of one trial."""
    return {**settings, MODEL: settings[MODEL].replace(SEED, str(seed))} if one_per_seed(settings) else settings


def missing(settings: Settings, seeds: Sequence[int]) -> list[str]:
    """The folders of starts that are not there."""
    if not one_per_seed(settings):
        return []
    folders = [of_seed(settings, seed)[MODEL] for seed in seeds]
    return [folder for folder in folders if not Path(folder).is_dir()]
