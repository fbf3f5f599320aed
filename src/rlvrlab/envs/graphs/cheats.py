"""Wrong answers that a careless grader pays for; each must be refused whatever the instance.

Most were found working in scorers in use. All are built around the right answer, because a grader that searches the
text for it would be satisfied.
"""

from __future__ import annotations

from typing import Any

from rlvrlab.envs.answer_cheats import denied, misspelled
from rlvrlab.envs.graphs.answers import Style
from rlvrlab.envs.graphs.tasks.base import Instance, Task, bracketed

NOBODY = "Nobody Nowhere"


def cheats(task: Task, instance: Instance, optimum: Any, answer: str, prompt: str, style: Style) -> dict[str, str]:
    """Cheats by name; `answer` is a right one."""
    tagged = f"<answer>{answer}</answer>" if style == "think" else answer
    texts = {
        "nothing": "",
        "spaces": " \n\t",
        "only thinking": "<think>I compare them all.</think>",
        "thinking without an end": f"<think>\n{answer}",
        "answer inside the thinking": f"<think>{tagged}</think>",
        "answer before the thinking": f"{tagged}<think>so it is</think>",
        "answer in reopened thinking": f"<think>.</think><think>{tagged}",
        "prompt echoed": prompt,
        **misspelled(tagged),
        "score claimed": _complete(style, "score: 1.0, correct: true, reward = 2"),
        "code": _complete(style, "__import__('os')._exit(0)"),
        "placeholder": _complete(style, "[UserA, UserB, UserC, UserD, ...]"),
        "ten thousand brackets": _complete(style, "[" * 10_000 + "]" * 10_000),
        "endless digits": _complete(style, "### [" + "9" * 10_000 + "]"),
    }
    inner = _inner(task, instance, optimum, answer)
    texts |= {name: _complete(style, text) for name, text in inner.items()}
    texts |= {name: _complete(style, text) for name, text in denied(answer).items()}
    if style == "think":
        texts |= {
            "answer without tags": f"<think>.</think>{answer}",
            "two answers, one right": f"<think>.</think><answer>[]</answer><answer>{answer}</answer>",
            "unclosed tag": f"<think>.</think><answer>{answer}",
        }
    return texts


def _complete(style: Style, answer: str) -> str:
    return f"<think>I compare.</think>\n<answer>{answer}</answer>" if style == "think" else answer


def _inner(task: Task, instance: Instance, optimum: Any, answer: str) -> dict[str, str]:
    """Cheats in the answer itself."""
    if answer.startswith("###") and "[" not in answer:
        return _marked_cheats(optimum, answer)
    texts = {
        "no brackets": answer.replace("[", "").replace("]", ""),
        "round brackets": answer.replace("[", "(").replace("]", ")"),
        "empty list": "[]",
        "commas only": "[,]",
        "leading comma": answer.replace("[", "[, "),
        "ellipsis": answer.replace("]", ", ...]"),
        "unknown padding": answer.replace("]", f", {NOBODY}]"),
        "only unknown": f"[{NOBODY}], [{NOBODY}]",
        "semicolons": answer.replace(",", ";") if "," in answer.split("]")[0] else "[;]",
        "value only": f"[{10**7 + int(optimum)}]",
    }
    first = answer.partition("[")[2].partition("]")[0].split(", ")
    if task.name == "MCS":
        missing, often = [str(100 + i) for i in range(optimum)], [first[0]] * optimum
        return texts | {
            "atoms that do not exist": f"{bracketed(missing)}, {bracketed(missing)}",
            "fifty atoms that do not exist": f"{bracketed(range(100, 150))}, {bracketed(range(200, 250))}",
            "one atom repeated": f"{bracketed(often)}, {bracketed(often)}",
            "one list": bracketed(first),
            "lists of unequal length": f"{bracketed(first)}, {bracketed(first[:-1] or ['0', '1'])}",
            "three lists": f"{bracketed(first)}, {bracketed(first)}, {bracketed(first)}",
        }
    texts["one node as often as the optimum"] = bracketed([first[0]] * (int(optimum) + 1))
    texts["a node twice"] = bracketed([*first, first[-1]])
    other = [*first[1:], first[0]] if len(first) > 1 else [*first, *instance.names[:1], *instance.names[-1:]]
    if tuple(other) != tuple(first):
        texts["the right list and another"] = f"{bracketed(first)} or {bracketed(other)}"
        texts["another list and the right one"] = f"{bracketed(other)}, no: {bracketed(first)}"
    if task.name == "TSP":
        texts["no return"] = bracketed(first[:-1])
        texts["an airport left out"] = bracketed([*first[:-2], first[0]])
        texts["one airport"] = bracketed([first[0]])
    if task.name == "Distance":
        texts["path backwards"] = bracketed(first[::-1])
        texts["teleport"] = bracketed([first[0], NOBODY, first[-1]])
    return texts


def _marked_cheats(optimum: Any, answer: str) -> dict[str, str]:
    """Yes or no, a number, a word after ###."""
    texts = {
        "mark alone": "###",
        "answer with an explanation": f"{answer}, because every node is unknown and not a node",
        "hedging": "### Yes ### No" if isinstance(optimum, bool) else f"{answer} ### 987654321",
        "words that contain it": "### unknown node, not yesterday",
    }
    if isinstance(optimum, bool):
        texts["the other answer"] = "### No" if optimum else "### Yes"
        texts["both"] = "### Yes or No"
    elif isinstance(optimum, int):
        texts["one more"] = f"### {optimum + 1}"
        texts["negative"] = f"### -{optimum or 1}"
        texts["as a fraction"] = f"### {optimum}.5"
        texts["a list of numbers"] = f"### {', '.join(map(str, range(optimum + 2)))}"
    else:
        texts["hedging"] = f"{answer} or another"
    return texts
