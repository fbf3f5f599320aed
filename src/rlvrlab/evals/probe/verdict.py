"""What a probe means, in words: train, or do something else first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rlvrlab.evals.probe.report import USEFUL_VARIANCE, Measured, Report
from rlvrlab.shares import about, hundredths, percent

IDEAL = 0.10, 0.80
SFT_BELOW, HARDER_ABOVE = 0.05, 0.95
ENTROPY = 0.2, 0.8
TRUNCATED = 0.3
FORMED = 0.5
UNJUDGED = 0.5

Word = Literal[
    "go", "sft first", "after sft", "easier data", "harder data", "longer answers", "little signal", "mend the judge"
]


@dataclass(frozen=True)
class Advice:
    """The verdict of a probe."""

    word: Word
    text: str
    """Why, with the number that decided and its threshold."""
    notes: tuple[str, ...] = ()
    """What else is not ideal, and what is not settled."""

    def facts(self) -> dict[str, Any]:
        """The verdict as plain JSON values."""
        return {"verdict": self.word, "go": self.go, "why": self.text, "notes": list(self.notes)}

    @property
    def go(self) -> bool:
        """Whether training can start."""
        return self.word == "go"


def advise(report: Report, *, taught: bool = False, sft_steps: int = 0) -> Advice:
    """The first condition in `_decide` that applies is the verdict; what is unsettled or not ideal becomes a note.

    `taught`: the policy has had SFT already, so that is not what it is advised to have. `sft_steps`: the recipe begins
    with so many steps of it, so what was asked here is not what on-line training begins with.
    """
    word, text = _decide(report)
    if word == "sft first" and taught:
        remedy = "SFT has run already: take easier problems or a larger model, or give it more steps and references"
        word, text = "easier data", f"{text.partition(';')[0]}; {remedy}"
    if word == "sft first" and sft_steps:
        now = f"before SFT, with which this recipe begins, {text.partition(' (')[0]}, as is usual"
        return Advice("after sft", f"{now}; train it, then ask again: `rlvr probe --run latest@{sft_steps}`")
    total = report.total
    asked: list[tuple[str, Measured, float]] = [
        ("accuracy", total.accuracy, SFT_BELOW),
        ("accuracy", total.accuracy, HARDER_ABOVE),
        ("variance", total.variance, USEFUL_VARIANCE),
        ("truncation", total.truncated, TRUNCATED),
    ]
    # A threshold that lies inside an interval: more problems would decide.
    unsettled = [
        f"not settled: {name} {_straddling(name, one, limit)}; probe more (--size)"
        for name, one, limit in asked
        if total.problems and one.low < limit < one.high
    ]
    return Advice(word, text, (*unsettled, *_beside(report, word)))


def _straddling(name: str, found: Measured, limit: float) -> str:
    """As `5–20 % straddles 10 %`; a variance is no share."""
    if name == "variance":
        return f"{found.low:.3f}–{found.high:.3f} straddles {limit:.3f}"
    return f"{hundredths(found.low, 0)}–{about(found.high)} straddles {about(limit)}"


def _decide(report: Report) -> tuple[Word, str]:
    total = report.total
    answers = report.n * (total.problems + report.unjudged_problems)
    if not total.problems or total.unjudged > UNJUDGED * answers:
        return "mend the judge", f"{total.unjudged} of {answers} answers could not be judged; look at `rlvr doctor`"
    accuracy, variance = total.accuracy.value, total.variance.value
    guesses = total.entropy is not None and total.entropy.value > ENTROPY[1] and accuracy < SFT_BELOW
    if total.truncated.value > TRUNCATED and not guesses:  # who only guesses, guesses no better at greater length
        text = f"{about(total.truncated.value)} of the answers are cut off (more than {about(TRUNCATED)})"
        return "longer answers", f"{text}: raise max_tokens, or teach the policy to end by SFT"
    if accuracy < SFT_BELOW:
        text = f"{percent(accuracy)} of the answers are right (below {about(SFT_BELOW)})"
        remedy = "do SFT on reference answers, or take easier problems"
        return "sft first", f"{text}: nearly every group would be all wrong; {remedy}"
    if accuracy > HARDER_ABOVE:
        text = f"{percent(accuracy)} of the answers are right (above {about(HARDER_ABOVE)})"
        return "harder data", f"{text}: nearly every group would be all right; take harder problems"
    if variance <= USEFUL_VARIANCE:
        text = f"the variance within a prompt is {variance:.3f} (not above {USEFUL_VARIANCE})"
        return "little signal", f"{text}: take the useful problems alone (-o writes them), or a partial reward"
    text = f"{about(accuracy)} of the answers are right and the variance within a prompt is {variance:.3f}"
    return "go", f"{text} (above {USEFUL_VARIANCE})"


def _beside(report: Report, word: Word) -> list[str]:
    """What else is not ideal, besides what decided the verdict."""
    total, notes = report.total, []
    accuracy, entropy = total.accuracy.value, total.entropy
    if word == "go" and not IDEAL[0] <= accuracy <= IDEAL[1]:
        side = "easier problems or SFT" if accuracy < IDEAL[0] else "harder problems"
        ideal = f"{hundredths(IDEAL[0], 0)}–{about(IDEAL[1])}"
        notes.append(f"accuracy {about(accuracy)} is outside the ideal {ideal}: {side} teach faster")
    if word != "little signal" and word != "go" and total.variance.value > USEFUL_VARIANCE:
        notes.append(
            f"the reward varies within prompts all the same ({total.variance.value:.3f}): partial credit helps"
        )
    if entropy is None:
        notes.append("entropy is not known: the sampler tells no log-probabilities")
    elif entropy.value < ENTROPY[0]:
        notes.append(f"entropy {entropy.value:.2f} is below {ENTROPY[0]}: answers hardly vary; raise the temperature")
    elif entropy.value > ENTROPY[1]:
        notes.append(f"entropy {entropy.value:.2f} is above {ENTROPY[1]}: the policy guesses; more SFT steadies it")
    if total.truncated.value > TRUNCATED and word != "longer answers":
        notes.append(f"{about(total.truncated.value)} of the answers are cut off: SFT also teaches where to end")
    if total.format_rate.value < FORMED:
        share = total.format_rate.value
        notes.append(f"only {about(share)} of the answers have the demanded form: teach it by SFT before paying for it")
    if total.unjudged:
        notes.append(f"{total.unjudged} answers could not be judged; they are left out, not counted wrong")
    return notes
