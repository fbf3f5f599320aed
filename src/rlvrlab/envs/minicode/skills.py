"""One problem of one skill: drawn, refused when it teaches nothing, and written down as plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from rlvrlab.envs.minicode import prompts
from rlvrlab.envs.minicode.grammar import Program, body, results, show, shown
from rlvrlab.envs.minicode.levels import draw_arguments, draw_program
from rlvrlab.envs.minicode.programs import behaviour, role_of, with_idle_work, with_mistake
from rlvrlab.envs.python_trees import size
from rlvrlab.randomness import key_bits
from rlvrlab.types import Problem, Role

PUBLIC_CASES = 6
FEWEST_RESULTS = 3
"""A function with fewer different results on the hidden tests is nearly constant."""

Case = list[Any]
"""[arguments, result]."""


@dataclass(frozen=True)
class Draft:
    """What the four skills start from."""

    program: Program
    level: int
    spec: str
    hidden: list[Case]
    public: list[Case]
    """Other inputs: examples and feedback are taken from these, shown ones last."""


Made = tuple[str, dict[str, Any], str]
"""Prompt, what the reference holds beside the hidden tests, solution."""


def draw_problem(
    skill: str, level: int, role: Role, random: Random, tests: int, examples: int, style: str
) -> Problem | None:
    """One attempt; None when the draw belongs to another role or is no good."""
    program = draw_program(level, random)
    if role_of(program) != role:
        return None
    seen: set[str] = set()
    hidden = _cases(program, random, tests, 3, 8, seen)
    if len(set(shown([want for _, want in hidden]))) < FEWEST_RESULTS or all(x[0] == want for x, want in hidden):
        return None
    public = _cases(program, random, PUBLIC_CASES, 4, 6, seen)
    atoms = [*program.atoms, program.end]
    spec = ";".join(atom.words[random.randrange(len(atom.words))] for atom in atoms if atom.words)
    made = MAKERS[skill](Draft(program, level, spec, hidden, public), random, examples)
    if made is None:
        return None
    prompt, reference, solution = made
    judged = {} if skill == "out" else {"header": program.header, "hidden": hidden}
    return Problem(
        id=f"minicode:{skill}:{level}:{key_bits(prompt, judged) & 0xFFFFFFFFFFFF:012x}",
        source="minicode",
        skill=skill,
        prompt=prompts.chat(skill, prompt) if style == "chat" else prompt,
        reference={"skill": skill, **judged, **reference},
        meta={
            "level": level,
            "spec": spec,
            "solution": solution,
            "public": public,
            "behaviour": f"{behaviour(program):032x}",
        },
        role=role,
    )


def _cases(program: Program, random: Random, count: int, shortest: int, longest: int, seen: set[str]) -> list[Case]:
    """Cases on inputs not seen before: no public input is ever a hidden one."""
    drawn: list[list[Any]] = []
    while len(drawn) < count:
        arguments = draw_arguments(program.arguments, random, shortest, longest)
        key = repr(arguments)
        if key not in seen:
            seen.add(key)
            drawn.append(arguments)
    first = [arguments[0] for arguments in drawn]
    second = [arguments[1] for arguments in drawn] if len(program.arguments) > 1 else [None] * count
    return [list(case) for case in zip(drawn, results((*program.atoms, program.end), first, second), strict=True)]


def _generation(draft: Draft, random: Random, examples: int) -> Made:
    shown = [(arguments, want) for arguments, want in draft.public[PUBLIC_CASES - examples :]]
    return prompts.generation(draft.spec, shown, draft.program.header), {}, draft.program.body


def _repair(draft: Draft, random: Random, examples: int) -> Made | None:
    wrong = with_mistake(draft.program, draft.level, random)
    failing = [case for case in draft.public if wrong(case[0]) != case[1]]
    if not failing or all(wrong(arguments) == want for arguments, want in draft.hidden):
        return None
    arguments, want = failing[-1]
    feedback = prompts.example_line(arguments, want, show(wrong(arguments)))
    given = wrong.body
    header = draft.program.header
    return prompts.repair(draft.spec, header + given, feedback, header), {"given": given}, draft.program.body


def _simplification(draft: Draft, random: Random, examples: int) -> Made:
    header = draft.program.header
    given = body(with_idle_work(draft.program, random))
    return prompts.simplification(header + given, header), {"given": given, "below": size(given)}, draft.program.body


def _prediction(draft: Draft, random: Random, examples: int) -> Made | None:
    arguments = draw_arguments(draft.program.arguments, random, 3, 4)
    result = draft.program(arguments)
    if result in ([], "", {}):
        return None
    program = draft.program.header + draft.program.body
    reference = {"given": program, "arguments": arguments, "result": show(result)}
    return prompts.prediction(program, arguments), reference, f"{show(result)}\n"


MAKERS: dict[str, Callable[[Draft, Random, int], Made | None]] = {
    "gen": _generation,
    "fix": _repair,
    "min": _simplification,
    "out": _prediction,
}
