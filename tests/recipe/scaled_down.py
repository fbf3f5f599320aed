"""Every recipe and every arm of every study that comes along, made small enough to be really run in a test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvrlab.data.rows import write_problems
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.recipe.parse import read_toml
from rlvrlab.registry import find, keys_of
from rlvrlab.study.chain import Chain
from rlvrlab.study.load import load_study
from rlvrlab.study.settings import layered, words
from rlvrlab.train.lab import build_problems

STEPS = 2
LARGEST = {
    "data.train_size": 48, "data.dev_size": 16, "rollout.n": 2, "rollout.max_tokens": 6, "eval.test_size": 4,
    "eval.test_n": 2,
}  # fmt: skip
PHASE = {"batch_size": 6, "references": 12, "problems": 8, "minibatches": 1, "epochs": 1}
"""Keys of phases, where a phase has them."""
SHORT_PROMPTS = {"graph": {"levels": [1, 2], "sizes": []}, "zebra": {"levels": [1]}}
"""nano reads 2,048 tokens and spells unknown words letter by letter: the smallest problems of an environment."""
BY_HEART = 40
"""Steps of SFT after which a policy gives right answers now and then."""
PROGRAMS = [
    ("twice", "n * 2"), ("next_one", "n + 1"), ("square", "n * n"), ("negative", "-n"), ("half", "n // 2"),
    ("before", "n - 1"), ("text", "str(n)"), ("is_even", "n % 2 == 0"),
]  # fmt: skip
WORDS = [("apples", 3), ("pears", 4), ("plums", 5), ("nuts", 6), ("figs", 7), ("dates", 8)]


def arms_of(path: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Arm, recipe file, settings over it; a recipe has one. Later stages start from the first arm of the one before."""
    if "stages" not in read_toml(path)[0]:
        yield "", path, {}
        return
    chain, choices, seen = Chain(load_study(path)), dict[str, str](), set[str]()
    for stage in chain.order():
        # Starts of a study's seeds are made by its reader; here every model is nano.
        assert [one for one in chain.check(stage, choices) if "no folder" not in one] == []
        for arm in chain.arms(stage):
            trial = chain.trials(stage, arm.name, choices)[0]
            if trial.id not in seen:
                yield f"{stage.name}: {arm.name}", chain.file.recipe, trial.settings
            seen.add(trial.id)
        choices[stage.name] = chain.arms(stage)[0].name


def data_for(resolved: Resolved, folder: Path) -> dict[str, Any]:
    """Stand-ins for data that the recipe's first lines tell the user to fetch."""
    env, data = resolved.recipe.env, resolved.recipe.data
    if env["type"] == "code" and (data.train_file or not env["path"]):
        return {f"data.{role}_file": str(_programs(folder, role)) for role in ("train", "dev")} | {
            "data.train_size": len(PROGRAMS), "data.dev_size": len(PROGRAMS),
        }  # fmt: skip
    if env["type"] == "gsm8k":
        return {"env.path": str(_word_problems(folder))}
    return {}


def _programs(folder: Path, role: str) -> Path:
    rows = [
        {
            "task_id": f"{role}/{name}",
            "prompt": f'def {name}(n):\n    """{role}: {body}"""\n',
            "entry_point": name,
            "test": f"def check(candidate):\n    assert candidate({i}) == (lambda n: {body})({i})\n",
            "canonical_solution": f"    return {body}\n",
        }
        for i, (name, body) in enumerate(PROGRAMS, 2)
    ]
    raw = folder / f"{role}_raw.jsonl"
    raw.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = find("env", "code")(path=str(raw), role_of=role)
    path = folder / f"{role}.jsonl"
    write_problems(path, env.problems(role, len(rows), 0))
    return path


def _word_problems(folder: Path) -> Path:
    for split, more in (("train", range(20)), ("test", range(20, 30))):
        rows = [
            {"question": f"Ann has {n} {what} and gets {i}. How many?", "answer": f"{n}+{i}\n#### {n + i}"}
            for i in more
            for what, n in WORDS
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def scaled(path: Path, settings: dict[str, Any], folder: Path) -> Resolved:
    """The same recipe on nano (a toy recipe stays on its toy policy), two steps per phase, by overrides alone."""
    whole = load_recipe(path, words(settings))
    recipe = whole.recipe
    small: dict[str, Any] = {"output_dir": str(folder / "runs"), "eval.every": 0, "checkpoint.every": 1000}
    for key, most in LARGEST.items():
        section, _, leaf = key.partition(".")
        small[key] = min(most, getattr(getattr(recipe, section), leaf))
    if recipe.engine["type"] != "toy":
        small |= {"engine.type": "hf", "engine.model": "nano", "engine.chat": False}
        known = {f"engine.{key}" for key in keys_of(find("engine", "hf"))}
        settings = {key: value for key, value in settings.items() if not key.startswith("engine.") or key in known}
    for phase in recipe.phases:
        table = recipe.phase_tables[phase]
        small |= {f"{phase}.{key}": min(most, table[key]) for key, most in PHASE.items() if key in table}
        small[f"{phase}.steps"] = STEPS
    if "dpo" in recipe.phases:  # it needs answers of both kinds: a few problems, learnt nearly by heart before
        small |= {"sft.steps": BY_HEART, "data.train_size": 12, "rollout.n": 8}
    if recipe.rollout.grows:  # the product of its branches is the number of answers
        small["rollout.n"] = recipe.rollout.n
    small |= {f"env.{key}": value for key, value in _shorter(recipe.env).items()}
    small |= data_for(whole, folder)
    small = layered(settings, small)
    resolved = load_recipe(path, words(small))
    needed = _steps_per_stage(resolved)
    return load_recipe(path, words({**small, **needed})) if needed else resolved


def content(resolved: Resolved) -> str:
    """Equal for recipes that train the same: several sizes of a model become one nano, several volumes one."""
    plain = resolved.plain()
    return json.dumps({key: plain[key] for key in sorted(plain) if key not in ("name", "question", "output_dir")})


def _shorter(env: dict[str, Any]) -> dict[str, Any]:
    """The keys that make an environment, or the members of a mixture, ask short questions."""
    if "members" in env:
        return {"members": [{**member, **_shorter(member)} for member in env["members"]]}
    if env["type"] == "graph" and (env.get("traces") or env.get("style") == "rows"):
        return {"levels": [1], "sizes": [4, 5]}  # traces are long in nano's letters, and rows have few names
    return SHORT_PROMPTS.get(env["type"], {})


def _steps_per_stage(resolved: Resolved) -> dict[str, int]:
    """A protocol cuts an on-line phase into stages, and each wants a step of its own."""
    protocol = resolved.build("protocol")
    online = [name for name in resolved.recipe.phases if resolved.phase(name).online]
    if protocol is None or not online:
        return {}
    count = len(protocol.stages(build_problems(resolved)["train"], 100))
    return {f"{name}.steps": max(STEPS, count) for name in online}
