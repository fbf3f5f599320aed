"""What a probe means, in words: train, or do something else first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rlvrlab.evals.probe.report import USEFUL_VARIANCE, Measured, Report

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
        when = "whether training can work shows once SFT has run, with which this recipe begins"
        now = f"before it {text.partition(' (')[0]}, as is usual"
        return Advice("after sft", f"{when}; {now}: train it, then `rlvr probe --run latest@{sft_steps}`")
    total = report.total
    asked: list[tuple[str, Measured, float, str]] = [
        ("accuracy", total.accuracy, SFT_BELOW, ".0%"),
        ("accuracy", total.accuracy, HARDER_ABOVE, ".0%"),
        ("variance", total.variance, USEFUL_VARIANCE, ".3f"),
        ("truncation", total.truncated, TRUNCATED, ".0%"),
    ]
    # A threshold that lies inside an interval: more problems would decide.
    unsettled = [
        f"not settled: {name} {one.low:{form}}–{one.high:{form}} straddles {limit:{form}}; probe more (--size)"
        for name, one, limit, form in asked
        if total.problems and one.low < limit < one.high
    ]
    return Advice(word, text, (*unsettled, *_beside(report, word)))


def _decide(report: Report) -> tuple[Word, str]:
    total = report.total
    answers = report.n * (total.problems + report.unjudged_problems)
    if not total.problems or total.unjudged > UNJUDGED * answers:
        return "mend the judge", f"{total.unjudged} of {answers} answers could not be judged; look at `rlvr doctor`"
    accuracy, variance = total.accuracy.value, total.variance.value
    guesses = total.entropy is not None and total.entropy.value > ENTROPY[1] and accuracy < SFT_BELOW
    if total.truncated.value > TRUNCATED and not guesses:  # who only guesses, guesses no better at greater length
        text = f"{total.truncated.value:.0%} of the answers are cut off (more than {TRUNCATED:.0%}): raise max_tokens"
        return "longer answers", f"{text}, or teach the policy to end by SFT"
    if accuracy < SFT_BELOW:
        text = f"{accuracy:.1%} of the answers are right (below {SFT_BELOW:.0%}): nearly every group would be all wrong"
        return "sft first", f"{text}; do SFT on reference answers, or take easier problems"
    if accuracy > HARDER_ABOVE:
        text = f"{accuracy:.1%} of the answers are right (above {HARDER_ABOVE:.0%})"
        return "harder data", f"{text}: nearly every group would be all right; take harder problems"
    if variance <= USEFUL_VARIANCE:
        text = f"the variance within a prompt is {variance:.3f} (not above {USEFUL_VARIANCE})"
        return "little signal", f"{text}: take the useful problems alone (-o writes them), or a partial reward"
    text = f"{accuracy:.0%} of the answers are right and the variance within a prompt is {variance:.3f}"
    return "go", f"{text} (above {USEFUL_VARIANCE})"


def _beside(report: Report, word: Word) -> list[str]:
    """What else is not ideal, besides what decided the verdict."""
    total, notes = report.total, []
    accuracy, entropy = total.accuracy.value, total.entropy
    if word == "go" and not IDEAL[0] <= accuracy <= IDEAL[1]:
        side = "easier problems or SFT" if accuracy < IDEAL[0] else "harder problems"
        notes.append(f"accuracy {accuracy:.0%} is outside the ideal {IDEAL[0]:.0%}–{IDEAL[1]:.0%}: {side} teach faster")
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
        notes.append(f"{total.truncated.value:.0%} of the answers are cut off: SFT also teaches where to end")
    if total.format_rate.value < FORMED:
        share = total.format_rate.value
        notes.append(f"only {share:.0%} of the answers have the demanded form: teach it by SFT before paying for it")
    if total.unjudged:
        notes.append(f"{total.unjudged} answers could not be judged; they are left out, not counted wrong")
    return notes
