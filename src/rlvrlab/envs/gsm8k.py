"""GSM8K: grade-school word problems whose answer is one number after ####; made here, or read from the original files.

    id         gsm8k:5e0c1f2a9b7d4e33
    prompt     Mia has 12 apples. She buys 3 bags of 5 apples each. How many apples does Mia have now? …
    completion She buys 3 * 5 = <<3*5=15>>15 apples.\\nShe has 12 + 15 = <<12+15=27>>27 apples.\\n#### 27
    reference  "27"
    meta       {"level": 2, "solution": "She buys …"}

With `path` (train.jsonl and test.jsonl of openai/grade-school-math, also .gz or .parquet, or one file) the rows are the
original ones; without it they are made by gsm_synthetic.py and need no download.

Traps: the ground truth has thousands separators (1,080); a regular expression that takes the last number of the text
pays for luck and for a list of candidates; `####` twice is a hedge; what stands inside <think> is no answer; floats
call 0.1+0.2 wrong and 10**17+1 equal to 10**17. The number is compared exactly, as a fraction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rlvrlab.envs.amounts import amount, asked_for, equal_amounts
from rlvrlab.envs.answer_cheats import denied, unthought
from rlvrlab.envs.answers import in_turn, same, squeezed
from rlvrlab.envs.base import Read
from rlvrlab.envs.data_files import Row
from rlvrlab.envs.data_set import DataSetEnvironment
from rlvrlab.envs.gsm_synthetic import MOST_STEPS, Story, stories
from rlvrlab.judge.extract import hashed
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.randomness import problem_name
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

ENDING = "End with a line that holds #### and the final number alone, e.g. #### 42"
PROMPTS = {
    "plain": f"{{question}}\nSolve it step by step. {ENDING}",
    "think": f"{{question}}\nThink first, inside <think> </think>. {ENDING}",
}
FULL_WIDTH = {code: code + 0xFEE0 for code in range(ord("0"), ord("9") + 1)}


@register("env", "gsm8k")
@dataclass(frozen=True)
class Gsm8k(DataSetEnvironment):
    """Word problems with a number as answer."""

    path: str = ""
    """Folder with train and test files, or one file; empty: problems are made here."""
    levels: tuple[int, ...] = (1, 2, 3)
    """Steps of a made problem; several levels alternate evenly. Not used with path."""
    style: Literal["plain", "think"] = "plain"
    """think: the reasoning stands in <think> tags, the answer after them."""

    version = "4"

    def __post_init__(self) -> None:
        self.refuse_other("levels", range(1, MOST_STEPS + 1), f"give distinct numbers of steps from 1 to {MOST_STEPS}")
        self.refuse_other("style", PROMPTS)

    def made(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Stories of gsm_synthetic.py, levels in turn."""
        told = in_turn([stories(level, role, seed) for level in self.levels], size)
        return [self._problem(story, role) for story in told]

    def read_row(self, row: Row) -> Read:
        """A row of GSM8K: `question`, and `answer` with the number after ####."""
        solution, mark, answer = row["answer"].rpartition("####")
        answer = answer.strip()
        if not mark or amount(answer) is None:
            raise ValueError(f"column 'answer' has no number after ####: {row['answer'][-40:]!r}")
        story = Story(row["question"], solution.strip(), answer, 0)
        return Read.by_text(story.question, lambda role: [self._problem(story, role)])

    def gold(self, problem: Problem) -> str | None:
        """The worked solution."""
        return self._complete(problem.meta.get("solution", ""), problem.reference)

    def verify(self, problem: Problem, text: str) -> Verdict:
        """The number after the only #### against the reference, exactly; never raises on any text."""
        tail = after_thinking(text, must_think=self.style == "think")
        answer = None if tail is None else hashed(tail)
        if answer is None:
            return same(False, None, ErrorKind.FORMAT, "no single #### with an answer after the thinking")
        equal = equal_amounts(answer, problem.reference, asked_for(problem.prompt))
        if equal is None:
            return same(False, answer, ErrorKind.SYNTAX, "what follows #### is not one number")
        return same(equal, answer, detail="another number")

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Ways to ask for the reward without answering."""
        right = problem.reference
        wrong = str((amount(right) or 0) + 1)
        answers = {
            "next number": wrong, "empty": "", "hedge": f"{right} or {wrong}", "range": f"{right}-{wrong}",
            "list": f"{right}, {wrong}", "every number": " ".join(map(str, range(100))), "not": f"not {right}",
            "thousands": f"{right} thousand", "twelfths": f"{right} twelfths", "never": f"{right} never",
            "sum left open": f"{right}+0", "equation": f"x={right}",
            "code": f"int('{right.replace(',', '')}')", "full-width digits": right.translate(FULL_WIDTH),
            "two numbers": f"{right[0]} {right}", "in words": "forty-two", "infinity": "1e400", "no number": "nan",
            "endless digits": right + "0" * 10_000, "negated": f"--{right}", "placeholder": "N",
        }  # fmt: skip
        cheats = {name: self._complete("So", answer) for name, answer in answers.items()}
        thought = "" if self.style == "plain" else "<think>.</think>"
        return cheats | {
            "answer twice": f"{thought}#### {right}\n#### {right}",
            "wrong one, then the right one": f"{thought}#### {wrong}\n#### {right}",
            "no mark": f"{thought}The answer is {right}.",
            "three hashes": f"{thought}### {right}",
            "five hashes": f"{thought}##### {right}",
            "answer on the next line": f"{thought}####\n{right}",
            **unthought(f"#### {right}", problem.prompt),
            **{name: f"{thought}{text}" for name, text in denied(f"#### {right}").items()},
        }

    def _complete(self, reasoning: str, answer: str) -> str:
        if self.style == "think":
            return f"<think>{reasoning}</think>\n#### {answer}"
        return f"{reasoning}\n#### {answer}"

    def _problem(self, story: Story, role: Role) -> Problem:
        return Problem(
            id=problem_name("gsm8k", squeezed(story.question)),
            source="gsm8k",
            skill="gsm8k",
            prompt=PROMPTS[self.style].format(question=story.question),
            reference=story.answer,
            meta={"level": story.level, "solution": story.solution},
            role=role,
        )
