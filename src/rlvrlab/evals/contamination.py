"""Has the policy seen this data set? Give it the beginning of each problem and see whether it writes the rest.

After arXiv 2507.10532: Qwen2.5-Math-7B rebuilds 54.6 % of MATH-500 from 60 % of its text, and nothing of a benchmark
published later. A high share says that accuracy on this data set measures memory; a low share proves nothing.

    given      "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in"
    rest       "May. How many clips did Natalia sell altogether in April and May?"
    continued  "May. How many clips did she sell altogether?"          exact 0, prefix 0.67, ROUGE-L 0.75

Compared word by word, without case: `exact` (the continuation begins with the whole rest), `prefix` (share of the rest
before the first difference), `rouge_l` (F1 of the longest common subsequence with as many words of the continuation).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rlvrlab.evals.answering import Answerer, Ask
from rlvrlab.evals.statistics import estimate, proportion
from rlvrlab.types import Finish, Problem, Sampling

GIVEN = 0.6
"""Share of a problem's words that is shown."""
FEWEST_WORDS = 5
"""A rest of fewer words than this could be guessed, so such problems are left out."""
TOKENS_PER_WORD = 4
WORDS = re.compile(r"\w+|[^\w\s]")
CONTINUE = "Continue this text exactly where it stops. Write nothing but what comes next.\n\n"


class Rebuilt(NamedTuple):
    """How much of one problem's hidden rest a policy wrote down."""

    problem_id: str
    exact: bool
    prefix: float
    rouge_l: float
    rest: str
    continued: str


@dataclass(frozen=True)
class Contamination:
    """How much of one data set a policy wrote down."""

    data: str
    given: float
    """Share of each problem's words that was shown."""
    problems: tuple[Rebuilt, ...]
    too_short: int
    """Problems left out because their rest is under FEWEST_WORDS words."""
    unanswered: int
    """Problems left out because the sampler failed."""

    def facts(self) -> dict[str, Any]:
        """The shares with their intervals, as plain JSON values."""
        out: dict[str, Any] = {"data": self.data, "given": self.given, "problems": len(self.problems)}
        out |= proportion(sum(one.exact for one in self.problems), len(self.problems)).named("exact")
        out |= estimate([one.prefix for one in self.problems]).named("prefix")
        out |= estimate([one.rouge_l for one in self.problems]).named("rouge_l")
        return out | {"too_short": self.too_short, "unanswered": self.unanswered}


def contamination(answerer: Answerer, problems: Sequence[Problem], data: str, *, chat: bool = False) -> Contamination:
    """Greedy continuations of partial problems; `chat` asks a chat model in words to continue."""
    halves = {p.id: halved(text) for p, text in zip(problems, bare_texts(problems), strict=True)}
    kept = [p for p in problems if len(words(halves[p.id][1])) >= FEWEST_WORDS]
    asks = []
    for p in kept:
        shown, rest = halves[p.id]
        sampling = Sampling(max_tokens=max(16, TOKENS_PER_WORD * len(words(rest))), temperature=0.0)
        asks.append(Ask(replace(p, prompt=(CONTINUE if chat else "") + shown), 0, sampling, (p.id,)))
    rebuilt, failed = [], 0
    for ready in answerer.answers(asks):
        for ask, answer in ready:
            if answer.completion.finish is Finish.ERROR:
                failed += 1
            else:
                rebuilt.append(compared(ask.problem.id, halves[ask.problem.id][1], answer.completion.text))
    rebuilt.sort(key=lambda one: (-one.rouge_l, one.problem_id))
    return Contamination(data, GIVEN, tuple(rebuilt), len(problems) - len(kept), failed)


def bare_texts(problems: Sequence[Problem]) -> list[str]:
    """The problems' own words: lines that all prompts begin or end with are the environment's instructions."""
    prompts = [p.prompt for p in problems]
    if len(set(prompts)) < 2:
        return prompts
    begin = _common_lines(prompts)
    end = _common_lines([prompt[begin:][::-1] for prompt in prompts])
    return [prompt[begin : len(prompt) - end] for prompt in prompts]


def _common_lines(texts: Sequence[str]) -> int:
    """Length of the whole lines that all texts begin with."""
    first, last = min(texts), max(texts)
    common = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first.rfind("\n", 0, common) + 1


def halved(text: str, given: float = GIVEN) -> tuple[str, str]:
    """What is shown and what is to be rebuilt; cut at a word's beginning."""
    matches = list(WORDS.finditer(text))
    cut = int(len(matches) * given)
    if not 0 < cut < len(matches):
        return text, ""
    place = matches[cut].start()
    return text[:place].rstrip(), text[place:]


def words(text: str) -> list[str]:
    """Words and punctuation marks without case, as they are compared."""
    return WORDS.findall(text.casefold())


def compared(problem_id: str, rest: str, continued: str) -> Rebuilt:
    """How much of the rest the continuation holds."""
    wanted, written = words(rest), words(continued)
    pairs = list(zip(wanted, written, strict=False))
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    near = written[: len(wanted)]
    common = longest_common_subsequence(wanted, near)
    rouge = 2 * common / (len(wanted) + len(near)) if wanted else 0.0
    share = same / len(wanted) if wanted else 0.0
    return Rebuilt(problem_id, bool(wanted) and same == len(wanted), share, rouge, rest, continued)


def longest_common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common subsequence of two lists of words."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]
