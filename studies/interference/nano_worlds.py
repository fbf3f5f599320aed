"""What nano is trained on, and under which arms: the worlds of nano_runs.py."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
MEMORY = ["guard.memory_per_skill=96", "guard.memory_total=384"]


class World(NamedTuple):
    """Skills, and the order in which some of them are trained."""

    skills: tuple[str, ...]
    order: tuple[str, ...]
    words: tuple[str, ...]
    stage: int = 70
    """GRPO steps per skill."""
    start: str = ""
    """The world whose SFT it begins with; its own unless named."""
    strengths: tuple[str, ...] = ()
    """Further arms: guards at other strengths."""
    surgeries: tuple[str, ...] = ()
    """The arms of a mixture, which has no stages: surgery and how it groups; others are compared with the first."""


SHORT_SQL = f'{{type = "{HERE / "short_sql.py"}:ShortSql", label = "sql", levels = [1]}}'
NUMBERS = (
    '{type = "countdown", label = "numbers", style = "bare", numbers = [3], high = 20, target_high = 99, '
    'order = "ascending"}'
)
"""Listed in ascending order, as when the results were measured."""
GEN = '{type = "minicode", skills = ["gen"], levels = [1, 2]}'
WORLDS = {
    "minicode": World(("gen", "fix", "out", "min"), ("gen", "fix", "out"), ()),
    "long": World(
        ("gen", "fix", "out", "min"),
        ("gen", "fix", "out"),
        ("grpo.learning_rate=1e-3",),
        200,
        "minicode",
        ("skill_safe ε=-0.1", "ewc 10", "l2 0.1"),
    ),
    "mixture": World(
        ("gen", "fix", "out", "min"),
        (),
        ("protocol.type=mixed", "protocol.ratios={gen = 8.0, fix = 4.0, out = 2.0, min = 1.0}", "grpo.batch_size=30"),
        200,
        "minicode",
        surgeries=(
            *("equal task_type", "mean task_type", "pcgrad task_type", "upgrad task_type", "cagrad task_type"),
            *("equal difficulty", "pcgrad difficulty", "pcgrad random"),
        ),
    ),
    "tasks": World(
        ("gen", "numbers", "sql"),
        ("gen", "numbers", "sql"),
        ("env.type=mixture", f"env.members=[{GEN}, {NUMBERS}, {SHORT_SQL}]", "rollout.max_tokens=96"),
    ),
}


def arms(world: World) -> dict[str, list[str]]:
    """Overrides of the recipe."""
    if world.surgeries:
        return {name: _surgery(*name.split()) for name in world.surgeries}
    names = ", ".join(f'"{skill}"' for skill in world.skills)
    all_skills = f"guard.protected=[{names}]"
    order = f"protocol.order=[{', '.join(repr(skill) for skill in world.order)}]".replace("'", '"')
    ratios = f"protocol.ratios={{{', '.join(f'{skill} = 1.0' for skill in world.order)}}}"
    sequential = ["protocol.type=sequential", order]
    guarded = [*sequential, all_skills]
    safe = [*guarded, "guard.type=skill_safe", "guard.refresh=5", *MEMORY]
    strengths = {
        "skill_safe ε=-0.1": [*safe, "guard.epsilon=-0.1"],
        "ewc 10": [*guarded, "guard.type=ewc", "guard.coef=10", *MEMORY],
        "l2 0.1": [*guarded, "guard.type=l2", "guard.coef=0.1"],
    }
    return {
        "sequential": sequential,
        "skill_safe": safe,
        "ewc": [*guarded, "guard.type=ewc", "guard.coef=100", *MEMORY],
        "l2": [*guarded, "guard.type=l2", "guard.coef=0.01"],
        "replay": [*guarded, "guard.type=replay", "guard.share=0.25", *MEMORY],
        **{name: strengths[name] for name in world.strengths},
        "mixed": ["protocol.type=mixed", ratios],
        **{f"alone:{skill}": ["protocol.type=single", f"protocol.skill={skill}"] for skill in world.order[1:]},
    }


def _surgery(method: str, groups: str) -> list[str]:
    return [f"surgery.type={method}", f"surgery.group_strategy={groups}", "surgery.noise_every=10"]
