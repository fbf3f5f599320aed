"""Mathematical answers: exact numbers are compared here, everything else by math-verify in a killable jailed worker.

    "1,000" = "1000"    "0.5" = "1/2"    "\\\\frac{\\\\sqrt{2}}{2}" = "\\\\frac{1}{\\\\sqrt{2}}" (worker)
The extra `rlvrlab[math]` brings math-verify; without it an answer that is no plain number stays unjudged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from rlvrlab.errors import InfrastructureError, quoted
from rlvrlab.judge.finding import Finding, failure_of, records_of, tried
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.modes.characters import as_latex
from rlvrlab.judge.modes.expressions import without_repeating
from rlvrlab.judge.modes.fonts import WRAPPED
from rlvrlab.judge.modes.measures import LONGEST_PRODUCT, WORD, other_units, units
from rlvrlab.judge.modes.quantities import LONGEST_ANSWER, differ, is_stuck, scaled
from rlvrlab.judge.modes.spelling import braced, same
from rlvrlab.judge.modes.units import CENTS, SURE_PAIRS, is_unit
from rlvrlab.judge.modes.words import says_nothing
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.workers.orders import Image, Order
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.types import Verdict, bad_task, unjudged

SCORER_VERSION = "mathematics-16"
IMAGE = Image(preload=("math_verify",), roles=("mathematics",))
IN_WORDS = WRAPPED.pattern.replace("([^{}]*)", r"\s*per\s?cent\s*")
PERCENT = re.compile(rf"(?<!\s)\s*(?:{IN_WORDS}|\bper\s?cent\b)")
"""The sign in words, wherever it stands."""
WHOLE = re.compile(r"(?<=[0-9])\.(?=\s*/)")
"""A decimal point with nothing behind it in a ratio: `1./3`."""
FACTOR = re.compile(r"(?<=[0-9])\s{0,9}\(\s{0,9}([0-9]{1,400})\s{0,9}/\s{0,9}([0-9]{1,400})\s{0,9}\)", re.ASCII)
"""A bracketed ratio behind a number, which it multiplies."""
DECIMAL_POWER = re.compile(r"\^\s{0,9}\{\s{0,9}([+-]?)\s{0,9}([0-9]{0,50}\.[0-9]{1,50})\s{0,9}\}", re.ASCII)
"""An exponent that is a decimal: math-verify does not see a root in `5^{0.5}`."""
LARGEST_ROOT = 100
"""sympy takes seconds to tell the millionth root of a number from another."""
CURRENCIES = dict.fromkeys(map(ord, "€£¥¢"))
"""Signs that math-verify cannot read; quantities.py has seen them by then."""
POWER_IN_WORDS = re.compile(r"(\\(?:text|mathrm|mbox)\s*\{[^{}^]*)\^\s*(?:\{([0-9])\}|([0-9]))\s*\}", re.ASCII)
"""The power of a unit inside its words: `\\text{cm^2}`."""
BARE_UNIT = re.compile(r"(?<=[0-9)}])\s{1,9}([a-zA-Z][a-zA-Z\s/]{1,60}?)(?=\.?\s{0,9}\$?\s{0,9}$)")
"""Words behind a value at the end: `30 miles per hour`, which math-verify takes for a product of letters."""
BEFORE_A_VALUE = re.compile(r"^\s*" + WRAPPED.pattern + r"(?=.*[0-9])")
"""`\\text{The answer is }7`, which it cannot read."""
POINT = re.compile(r"(?:\\left)?\([^()\[\]]*,[^()\[\]]*\)")
NAMED = re.compile(r"\s*([a-zA-Z])\s*=([^=]*)", re.ASCII)
LISTED = re.compile(r"[0-9]\s{0,9},\s{1,9}[0-9]", re.ASCII)
"""Two numbers of a list: `1, 234`, which is no way to write 1234."""
MISSING = "math-verify is not installed: pip install 'rlvrlab[math]'"


@dataclass(frozen=True, slots=True)
class MathTask:
    """A problem with a known final answer, e.g. gold = "\\\\frac{3}{4}"."""

    gold: str
    percent: bool = False
    """Is a percentage asked for? Then `10%` is right where gold says `10`; otherwise it is a tenth."""
    cents: bool = False
    """Are cents asked for? Then `10 cents` is right where gold says `10`; otherwise that is ten dollars."""
    imaginary: bool = False
    """Is `i` the square root of -1? Otherwise it is a variable, and `i^2` is not -1."""
    limits: Limits = field(default_factory=lambda: Limits(cpu_s=5.0, memory_mb=1024))


def exactly_equal(answer: str, gold: str, percent: bool = False, cents: bool = False) -> bool | None:
    """The fast path: True or False for plain numbers, True for equal text, None where it takes more to know."""
    if len(answer) > LONGEST_ANSWER:
        return None
    answer, gold = braced(PERCENT.sub("%", as_latex(answer))), PERCENT.sub("%", as_latex(gold))
    if is_stuck(answer, gold):
        return False
    one, other = _number(answer), _number(gold)
    if one and other and other_units(answer, gold):
        return False
    if one and other:
        (value, in_percent), (expected, expected_in_percent) = one, other
        if in_percent == expected_in_percent:
            return value == expected
        if in_percent:
            return value / 100 == expected or (percent and value == expected)
        return value in (expected, expected / 100)
    if other and LISTED.search(answer):
        return False
    alike = same(answer, gold)
    if alike is not None:
        return alike
    if "%" in answer and "%" not in gold and not percent:
        return False
    if not cents and _is_in_cents(answer) and not units(gold):
        return False
    different = differ(answer, gold)
    return None if different is None else not different


def _number(text: str) -> tuple[Fraction, bool] | None:
    """The exact value of a plain number as it is written, and whether a percent sign stands behind it."""
    text = text.strip().removeprefix("$").removesuffix("$").strip().removeprefix("=").strip()
    for decoration in ("\\!", "\\,", "\\$", "\\ "):
        text = text.replace(decoration, "")
    text = WHOLE.sub("", text.removesuffix(".") if text.endswith("%.") else text)
    value = scaled(text.removesuffix("%").removesuffix("\\"))
    return None if value is None else (value, text.endswith("%"))


def _is_in_cents(text: str) -> bool:
    """`5 \\text{ cents}` and `5¢`, which are hundredths as percent are."""
    named = {unit for unit, _ in units(text)}
    return bool(named) and named <= CENTS


def _readable(text: str) -> str:
    """For math-verify, which reads `2(1/2)` as two and a half, and repeating decimals as if they ended."""
    text = DECIMAL_POWER.sub(_fractional_power, BARE_UNIT.sub(_in_type, text))
    said = BEFORE_A_VALUE.match(text)
    if said and says_nothing(said[1]):
        text = text[said.end() :]
    text = POWER_IN_WORDS.sub(r"\1}^{\2\3}", text.translate(CURRENCIES))
    return FACTOR.sub(r" \\cdot (\1/\2)", without_repeating(text))


def _in_type(found: re.Match[str]) -> str:
    """Units in plain letters as words; the first of them must be sure to be one."""
    first, *others = WORD.findall(found[1])
    sure = (len(first) > LONGEST_PRODUCT or first.lower() in SURE_PAIRS) and is_unit(first)
    return f"\\text{{ {found[1]}}}" if sure and all(one == "per" or is_unit(one) for one in others) else found[0]


def _fractional_power(found: re.Match[str]) -> str:
    value = Fraction(found[2])
    if value.denominator > LARGEST_ROOT:
        return found[0]
    return f"^{{{found[1]}\\frac{{{value.numerator}}}{{{value.denominator}}}}}"


def _as_point(text: str, beside: str) -> str:
    """`y = 2, x = 1` as `(1, 2)` beside a point, of which math-verify compares the values in any order."""
    parts = [NAMED.fullmatch(part) for part in text.strip().strip("$").split(",")]
    values = {part.group(1): part.group(2).strip() for part in parts if part}
    if len(parts) < 2 or len(values) < len(parts) or not POINT.fullmatch(beside.strip().strip("$")):
        return text
    return f"({', '.join(values[name] for name in sorted(values))})"


@dataclass
class MathJudge:
    """Answers against gold answers."""

    pool: Pool = field(default_factory=lambda: Pool(IMAGE))

    async def judge(self, answer: str, task: MathTask) -> Verdict:
        """Compare exactly where both are plain numbers, otherwise in a jailed worker."""
        if not answer.strip() or len(answer) > LONGEST_ANSWER:
            return Finding(Outcome.NO_CODE, "no answer, or one that never ends").verdict("none")
        decided = exactly_equal(answer, task.gold, task.percent, task.cents)
        if decided is None:
            return await self._by_worker(answer, task)
        finding = Finding(total=1, passed=int(decided))
        if not decided:
            finding.fail(Outcome.WRONG_ANSWER, f"{quoted(answer.strip(), 80)} is another number")
        return finding.verdict("none")

    async def _by_worker(self, answer: str, task: MathTask) -> Verdict:
        isolation = self.pool.image.isolation
        if find_spec("math_verify") is None:
            return unjudged(MISSING, isolation=isolation)
        # An answer is what TeX makes of it. A gold answer with `2^10` in it is no LaTeX, and means two to the ten.
        gold, answer = braced(as_latex(task.gold), scripts=False), braced(as_latex(answer))
        gold, answer = _as_point(gold, answer), _as_point(answer, gold)
        job = {"role": "mathematics", "gold": _readable(gold), "answer": _readable(answer), "imaginary": task.imaginary}
        finding = Finding(total=1)

        async def run() -> Sequence[Any]:
            ran = await self.pool.run(Order(job, task.limits, scratch=False))
            records = records_of(ran) or ()
            failure = failure_of(ran, task.limits, records)
            finding.spent(ran)
            return [["failed", *failure]] if failure else records

        try:
            records = await tried(run)
        except InfrastructureError as error:
            return unjudged(f"{Outcome.JUDGE_ERROR}: {error}", isolation=isolation)
        match records:
            case [["failed", outcome, detail, flags]]:
                finding.fail(outcome, detail, *flags)
            case [["equal", True, *_]]:
                finding.passed = 1
            case [["equal", *_]]:
                finding.fail(Outcome.WRONG_ANSWER, "not equal")
            case [["unreadable", *_]]:
                finding.fail(Outcome.COMPILE_ERROR, "the answer is not mathematics")
            case [["bad_gold", *_]]:
                return bad_task("the gold answer cannot be read", isolation=isolation)
            case [["missing", *_]]:
                return unjudged(MISSING, isolation=isolation)
            case _:
                finding.fail(Outcome.RUNTIME_ERROR, "the comparison came to no result")
        return finding.verdict(isolation)
