"""A recipe that cannot start is a failed test: all that comes along is resolved, planned and, made small, run."""

from __future__ import annotations

import json

import pytest
from scaled_down import arms_of, content, scaled

from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import files
from rlvrlab.study.settings import words
from rlvrlab.train.plan import phase_plans
from rlvrlab.train.session import start

FILES = files()
RAN: set[str] = set()
OF_FILES = {
    "code_skills", "coding_five_phase", "coding_five_phase/qwen_coder", "interference/qwen_skills", "verl_code_skills",
}  # fmt: skip
"""They train on several prepared files, which test_coding_recipes.py makes and runs them with."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FILES.keys() - OF_FILES))
def test_everything_that_comes_along_runs(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("torch", reason="nano needs torch")
    place = tmp_path_factory.getbasetemp() / "shipped"
    place.mkdir(exist_ok=True)
    for arm, path, settings in arms_of(FILES[name]):
        whole = load_recipe(path, words(settings))
        assert [plan.name for plan in phase_plans(whole)] == whole.recipe.phases
        small = scaled(path, settings, place)
        if content(small) in RAN:
            continue
        ended = start(small, lambda *_: None)
        assert ended.status == "finished", arm
        rows = [json.loads(line) for line in (ended.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
        assert {row["phase"] for row in rows} >= set(whole.recipe.phases), arm
        RAN.add(content(small))
