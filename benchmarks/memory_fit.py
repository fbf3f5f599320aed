"""Fit the memory formula of rlvrlab.scale.sizing to the updates that were measured on one H200.

    python benchmarks/memory_fit.py        the fitted numbers, their errors, and every case beside the formula

Least squares on relative errors. Which moment is a case's peak depends on the numbers, so cases are assigned and
numbers fitted in turn until nothing changes, from several starts. Errors are told of all cases, and of one model's
when the other's alone are fitted to.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlvrlab.scale.sizing import GB, MODELS, Fitted, Model, Update, moments, peak_gb

FILE = Path(__file__).resolve().parent / "results" / "h200_update_memory.json"
MICRO_TOKENS = 32768
"""What the hf engine computes at once on a GPU where nothing else is set."""
ROUNDS = 50
STARTS = (0.0, 10.0, 20.0, 40.0)
"""Bytes from which all three numbers set out: not every start leads to the best fit."""


class Case(NamedTuple):
    """One update: what it was, and its peak where it had room."""

    name: str
    update: Update
    peak_gb: float | None
    facts: dict[str, Any]

    @property
    def model(self) -> Model:
        """Its shape."""
        return MODELS[self.name]

    def error(self, fitted: Fitted) -> float:
        """Of the formula, relative."""
        assert self.peak_gb is not None
        return peak_gb(self.model, self.update, fitted) / self.peak_gb - 1


def cases() -> list[Case]:
    """All of the file, those that ran out of memory too."""
    found = _found()["updates"]
    sizes = {(one["model"], one["lora_rank"] > 0): one["parameters"] for one in found if "parameters" in one}
    made = []
    for one in found:
        name, lora = one["model"], one["lora_rank"] > 0
        adapter = sizes[name, True] - sizes[name, False] if lora else 0
        update = Update(at_once(one), one["tokens"], adapter, one["checkpointing"])
        made.append(Case(name, update, one.get("peak_gb"), one))
    return made


def _found() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))["found"]


def at_once(case: dict[str, Any]) -> int:
    """Tokens of a forward pass. `micro_tokens` is what was set: out of memory, the engine goes on with half of it.

    Files from before `at_once` tell so by `estimate_gb`, a rule of thumb for the tokens that were in use: 4 bytes per
    parameter with a LoRA or 16, and per token 8 for each word of the vocabulary and 2 for each layer and hidden number.
    """
    if "failed" in case:
        return int(re.findall(r"micro-batches of (\d+) tokens", case["failed"])[0])
    if "at_once" in case:
        return int(case["at_once"])
    model, whole = MODELS[case["model"]], case["micro_tokens"]
    rest = case["estimate_gb"] * GB - (4 if case["lora_rank"] else 16) * case["parameters"]
    told = rest / (8 * model.vocabulary + 2 * model.layers * model.hidden)
    return min((whole, whole // 2, case["rows"] * case["tokens"]), key=lambda tokens: abs(tokens - told))


def fit(some: list[Case]) -> Fitted:
    """The three numbers that leave the smallest sum of squared relative errors, among those that the starts lead to.

    Where the cases cannot tell two of them apart, the smallest numbers are taken."""
    found = [settled for start in STARTS if (settled := _settled(some, Fitted(start, start, start)))]
    return min(found, key=lambda fitted: sum(one.error(fitted) ** 2 for one in some))


def _settled(some: list[Case], fitted: Fitted) -> Fitted | None:
    """From one start; None where it goes round in circles."""
    before = None
    for _ in range(ROUNDS):
        peaks = [max(moments(one.model, one.update), key=lambda moment: moment.bytes(fitted)) for one in some]
        if peaks == before:
            return fitted
        measured = np.array([one.peak_gb for one in some]) * GB
        rows, rest = np.array([peak.times for peak in peaks]), measured - [peak.counted for peak in peaks]
        fitted = Fitted(*np.linalg.lstsq(rows / measured[:, None], rest / measured, rcond=None)[0].tolist())
        before = peaks
    return None


def errors() -> list[tuple[str, Fitted, list[float]]]:
    """(fitted to → told of, the numbers, the relative errors)."""
    measured = [one for one in cases() if one.peak_gb is not None]
    small, large = ([one for one in measured if one.name == name] for name in ("135M", "1.5B"))
    pairs = {"both → both": (measured, measured), "135M → 1.5B": (small, large), "1.5B → 135M": (large, small)}
    found = []
    for name, (seen, unseen) in pairs.items():
        fitted = fit(seen)
        found.append((name, fitted, [one.error(fitted) for one in unseen]))
    return found


def split_errors() -> list[float]:
    """1.5B alone fixes only a sum of `output` and `logit`: its peaks at the logits all have the same number of tokens.

    The largest errors on 135M if all of that sum were logits, and if all of it were output."""
    measured = [one for one in cases() if one.peak_gb is not None]
    found = fit([one for one in measured if one.name == "1.5B"])
    one = next(one for one in measured if one.name == "1.5B" and not one.update.checkpointing)
    times = moments(one.model, one.update)[1].times
    both = found.output * times.output + found.logit * times.logit
    ends = (Fitted(found.block, 0, both / times.logit), Fitted(found.block, both / times.output, 0))
    return [max(abs(one.error(end)) for one in measured if one.name == "135M") for end in ends]


def ladder() -> list[tuple[str, float, float | None]]:
    """(rung, GB by the formula, GB measured or None where it did not fit), of 1.5B; none of these was fitted to."""
    found = _found()["ladder"]
    made = []
    for one in found["rungs"]:
        asked = one["settings"]
        at_once = asked.get("micro_tokens", MICRO_TOKENS // 2)  # the engine goes on with half, and then gives up
        adapter = MODELS["1.5B"].adapter(asked["lora_rank"]) if "lora_rank" in asked else 0.0
        update = Update(at_once, found["tokens"], adapter, "gradient_checkpointing" in asked)
        made.append((one["rung"], peak_gb(MODELS["1.5B"], update), one.get("peak_gb")))
    return made


def reserved_gb() -> float:
    """What torch had reserved beyond the peak, at most."""
    return max(one.facts["reserved_gb"] - one.peak_gb for one in cases() if one.peak_gb is not None)


def tables() -> str:
    """As docs/cluster.md has them."""
    lines = ["| fitted to → told of | block | output | logit | largest error, % | mean error, % |", "|" + "---|" * 6]
    for name, fitted, wrong in errors():
        size = 100 * np.abs(wrong)
        lines.append(f"| {name} | {' | '.join(f'{x:.2f}' for x in fitted)} | {size.max():.1f} | {size.mean():.1f} |")
    head = "| answers × tokens | peak, GB | formula | with checkpointing | formula | s | s with checkpointing |"
    lines += ["", head, "|" + "---|" * 7, *_beside()]
    lines += ["", "| rung, 44 GB allowed | formula, GB | peak, GB |", "|" + "---|" * 3]
    lines += [f"| {name} | {told:.1f} | {f'{peak:.1f}' if peak else 'over 44'} |" for name, told, peak in ladder()]
    return "\n".join(lines)


def _beside() -> list[str]:
    """Every case, without and with checkpointing in one row."""
    rows: dict[str, list[Case]] = {}
    for one in cases():
        trained = "LoRA 16" if one.update.adapter else "all parameters"
        rows.setdefault(f"{one.name}, {trained}, 16 × {one.update.row:,}", []).append(one)
    lines = []
    for name, both in rows.items():
        cells = []
        for one in both:
            cells += ["over 75" if one.peak_gb is None else f"{one.peak_gb:.1f}"]
            cells += [f"{peak_gb(one.model, one.update):.1f}"]
        seconds = [f"{one.facts['update_s']:.1f}" if one.peak_gb is not None else "–" for one in both]
        lines.append(f"| {' | '.join([name, *cells, *seconds])} |")
    return lines


if __name__ == "__main__":
    print(tables())
    print("\n1.5B → 135M, if all were logit or all output: " + " or ".join(f"{x:.1%}" for x in split_errors()))
    print(f"reserved by torch beyond the peak: at most {reserved_gb():.1f} GB")
