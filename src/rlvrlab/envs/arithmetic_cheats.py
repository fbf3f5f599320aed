"""Wrong answers to an arithmetic problem that a careless grader takes for right ones.

Each must be judged not correct for any problem whose solution uses every number: most have the right value and break
the grammar or the numbers, because a grader that only compares values would accept them.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlvrlab.envs.answer_cheats import denied, misspelled


def expression_cheats(numbers: Sequence[int], target: int, solution: str) -> dict[str, str]:
    """Cheats in what stands where the expression belongs."""
    first, second = numbers[0], numbers[1]
    return {
        "nothing": "",
        "spaces": "   ",
        "target alone": str(target),
        "number missing": str(first),
        "number used twice": f"{solution}+{first}-{first}",
        "zero added": f"{solution}+0",
        "times one": f"({solution})*1",
        "digits joined": "".join(map(str, numbers)),
        "digits joined by a point": f"{first}.{second}",
        "decimal value": f"{target}.0",
        "exponent": f"{target}e0",
        "power": f"({solution})**1",
        "power that never ends": "99**99**99",
        "floor division": f"({solution})//1",
        "remainder": f"({solution})%{target + 1}",
        "bits": f"({solution})|0",
        "doubled sign": f"--({solution})",
        "plus sign": f"+{solution}",
        "leading zero": f"0{solution}",
        "implicit multiplication": f"1({solution})",
        "numbers echoed": " ".join(map(str, numbers)),
        "equation": f"{solution}={target}",
        "comparison": f"{solution}=={target}",
        "assignment": f"x={solution}",
        "tuple": f"{solution},{target}",
        "list": f"[{solution}]",
        "comment": f"{solution}#",
        "statement": f"{solution};{solution}",
        "code": "__import__('os').system('true')",
        "code beside the answer": f"{solution}+0*len(__import__('os').environ)",
        "attribute walk": "().__class__.__base__.__subclasses__()",
        "object equal to everything": "type('X',(),{'__eq__':lambda *_:True})()",
        "full-width digits": solution.translate(str.maketrans("0123456789", "０１２３４５６７８９")),
        "Arabic-Indic digits": solution.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
        "operator lookalikes": solution.translate(str.maketrans("+-*/", "＋–∗⁄")),
        "two lines": f"{solution}\n{solution}",
        "NUL": f"{solution}\0",
        "words after it": f"{solution} is right",
        "boxed": f"\\boxed{{{solution}}}",
        "deep nesting": "(" * 1000 + solution + ")" * 1000,
        "endless digits": "9" * 10_000,
    }


def tag_cheats(style: str, prompt: str, solution: str) -> dict[str, str]:
    """Answers whose expression is right but stands in the wrong place: without tags, twice, inside the thinking."""
    tagged = f"<answer>{solution}</answer>"
    everywhere = {"prompt echoed": prompt, "thinking without an end": f"<think>{tagged}"}
    if style == "bare":
        return everywhere | {
            "tags where none belong": tagged,
            "thinking where none belongs": f"<think></think>{solution}",
            "prompt continued": f"{prompt}{solution}",
        }
    return everywhere | {
        "expression without tags": f"<think>.</think>{solution}",
        "no thinking": tagged,
        "answer inside think": f"<think>{tagged}</think>",
        "answer before think": f"{tagged}<think>.</think>",
        "answer in a reopened think": f"<think>.</think><think>{tagged}",
        "two answers, one right": f"<think>.</think><answer>1</answer>{tagged}",
        "the right answer twice": f"<think>.</think>{tagged}{tagged}",
        "nested tags": f"<think>.</think><answer>{tagged}</answer>",
        "unclosed tag": f"<think>.</think><answer>{solution}",
        "tags the wrong way round": f"<think>.</think></answer>{solution}<answer>",
        "upper-case tags": f"<think>.</think><ANSWER>{solution}</ANSWER>",
        "empty answer before the right one": f"<think>.</think><answer></answer>{tagged}",
        **misspelled(tagged),
        **{name: f"<think>.</think>{text}" for name, text in denied(tagged).items()},
    }
