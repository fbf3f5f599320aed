"""How a problem is put: `bare` for policies of a few million parameters, `chat` for language models.

    #gen take 3;biggest       #fix above 6;increase 4              #min                     #out
    #[9,7,5,5,2]>9            def f(x):                            def f(x):                def f(x):
    def f(x):                  x=[v for v in x if v>2]              x=x[::-1]                x=sorted(set(x))
                               x=[v+4 for v in x]                   x=x[::-1]                return x
                               return x                             return sum(x)           #[5,4,2]=
                              #[9,3]>[13] not [13,7]               def f(x):
                              def f(x):
The completion continues the last line. `fix` is also the form of a second turn, so repairing is practised from the
first step on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlvrlab.envs.minicode.grammar import show

LONGEST_SHOWN = 24
"""Characters of a wrong result."""
FAILED = "ERR"
"""Stands for a result that never came."""

CHAT = {
    "gen": "Write the Python function that does these steps in this order.",
    "fix": "This Python function should do the steps named after #fix, and does not. Repair it.",
    "min": "Make this Python function shorter without changing what it returns.",
    "out": "What does this function return for the arguments in the last line?",
}
CHAT_CODE = "Answer with the whole function in one ```python block."
CHAT_VALUE = "Answer with the value alone in one ``` block."


def arguments_text(arguments: Sequence[Any]) -> str:
    """Arguments as they are shown, e.g. `[9,7,5],3`."""
    return ",".join(show(argument) for argument in arguments)


def example_line(arguments: Sequence[Any], want: Any, got: str | None = None) -> str:
    """`#[9,7]>9`, and what came instead."""
    wrong = "" if got is None else f" not {got[:LONGEST_SHOWN]}"
    return f"#{arguments_text(arguments)}>{show(want)}{wrong}\n"


def generation(spec: str, examples: Sequence[tuple[Sequence[Any], Any]], header: str) -> str:
    """Write it from its description."""
    return f"#gen {spec}\n{''.join(example_line(*example) for example in examples)}{header}"


def repair(spec: str, program: str, feedback: str, header: str) -> str:
    """Repair it; also the second turn of a first attempt."""
    return f"#fix {spec}\n{program}{feedback}{header}"


def simplification(program: str, header: str, feedback: str = "") -> str:
    """Write the same function in fewer characters."""
    return f"#min\n{program}{feedback}{header}"


def prediction(program: str, arguments: Sequence[Any], feedback: str = "") -> str:
    """Predict what the program returns for these arguments."""
    return f"#out\n{program}{feedback}#{arguments_text(arguments)}="


def chat(skill: str, bare: str) -> str:
    """The same for a language model."""
    how = CHAT_VALUE if skill == "out" else CHAT_CODE
    return f"{CHAT[skill]} {how}\n\n{bare.rstrip()}\n"
