"""What a policy can do between phases, on test problems that nothing was tuned on: one card per phase.

    analysis/cards/0_baseline.json, 1_sft.json, …: metrics with intervals, and the outcome of every problem, so that any
    two cards can be compared problem by problem.
    analysis/cards/0_baseline.answers.jsonl, …: what was answered, to read the same problem before and after a phase.
    analysis/cards/before_extension/2_grpo_step_70.json: the last one of a run that was made longer afterwards.

Held-out `dev` problems decide early stops and RUN@best; these decide nothing. A card is a pure function of policy and
recipe, so one that a killed run left behind is simply made again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlvrlab.envs.base import BaseEnvironment, GivesFeedback
from rlvrlab.evals.answering import BLIND, EngineAnswerer
from rlvrlab.evals.cards import (
    CARDS,
    EARLIER,
    Card,
    change,
    code_words,
    earlier_words,
    gain_lines,
    on_test,
    origin_of,
    read_cards,
)
from rlvrlab.evals.evaluate import Evaluation, evaluate
from rlvrlab.evals.metrics import card_columns, grouped
from rlvrlab.evals.protocol import asked_facts, eval_at_1, eval_at_k
from rlvrlab.record.experiment import CARDS_PAGE
from rlvrlab.record.files import place_in, read_facts, write_atomically, write_rows
from rlvrlab.record.final import note_look
from rlvrlab.record.redact import redact
from rlvrlab.record.shapes import MEND
from rlvrlab.rollout.prompts import prompt_tokens
from rlvrlab.shares import difference, hundredths, signed
from rlvrlab.train.lab import Lab
from rlvrlab.types import Completion, Environment, Problem, Rollout, Verdict

if TYPE_CHECKING:
    from rlvrlab.evals.recovery import Recovery

BASELINE = "baseline"
HEADINGS = {"accepted_at_1": "accepted@1", "pass_ratio_mean": "pass_ratio", "blind_recovery_rate": "blind resample",
            "zero_reward_rate": "verifier gave 0"}  # fmt: skip
"""Metric -> its heading in the table that compares phases, where that is another name."""
PASS_AT_N = re.compile(r"pass@(?!1$)\d+")


class Measured(NamedTuple):
    """A card and the answers behind it."""

    card: Card
    answers: list[dict[str, Any]]
    """The greedy answer to each problem, then second tries (turn 1) and blind ones (turn -1) of failed problems."""


def write_card(lab: Lab, run_folder: Path, index: int, phase: str, step: int, *, control: bool = False) -> Card:
    """Measure the policy as it is now and keep the card."""
    card, answers = measure(lab, phase, step)
    card = card._replace(control=control)
    folder = place_in(run_folder, CARDS)
    folder.mkdir(parents=True, exist_ok=True)
    note_look(run_folder, lab.env.name, lab.test, f"analysis/cards/{index}_{phase}.json@{step}")
    write_rows(folder / f"{index}_{phase}.answers.jsonl", answers)
    write_atomically(folder / f"{index}_{phase}.json", json.dumps(card._asdict(), indent=1) + "\n")
    cards = read_cards(run_folder)
    added = [f"- {line}" for line in gain_lines(on_test(cards))]
    page = [
        markdown(cards),
        *(f"{words}\n" for words in code_words(run_folder, cards)),
        *added,
        *([""] if added else []),
        *earlier_words(run_folder, cards),
    ]
    write_atomically(run_folder / CARDS_PAGE, "\n".join(page))
    return card


def keep_card(run_folder: Path, index: int) -> None:
    """Before a run is made longer: its last card, which the longer run will write anew, is kept beside."""
    for path in (run_folder / CARDS).glob(f"{index}_*.json"):
        step = (read_facts(path, MEND) or {}).get("step")
        kept = place_in(run_folder, CARDS / EARLIER) / f"{path.stem}_step_{step}.json"
        kept.parent.mkdir(exist_ok=True)
        write_atomically(kept, path.read_text(encoding="utf-8"))


def measure(lab: Lab, phase: str, step: int) -> Measured:
    """Greedy answers, second tries where the environment gives feedback, and samples for pass@k where asked."""
    settings, found = lab.recipe.eval, _evaluated(lab, n=1)
    sampled = _evaluated(lab, n=settings.test_n) if settings.test_n > 1 else None
    metrics, mended = _numbers(found, sampled), []
    answers = [_row(one.problem, 0, one.problem.prompt, one.answer.completion, one.verdict) for one in found.judged]
    for name, problems in lab.tests.items():
        ids = {problem.id for problem in problems}
        own = _of(found, ids)
        numbers = _numbers(own, _of(sampled, ids) if sampled else None)
        if can_ask_again := {one.id for one in problems if gives_feedback(lab.env, one)}:
            counts, again, blind = _recovered(lab, phase, _of(own, can_ask_again))
            mended.append(counts)
            numbers |= counts.metrics()
            answers += [_row(r.problem, 1, r.asked, r.completion, r.verdict) for r in again]
            answers += [_row(r.problem, BLIND, r.problem.prompt, r.completion, r.verdict) for r in blind]
        if len(lab.tests) > 1:
            metrics |= {f"{name}/{metric}": value for metric, value in numbers.items()}
    if mended:
        from rlvrlab.evals.recovery import Recovery

        metrics |= Recovery.of_all(mended).metrics()
    outcomes = {one.problem.id: float(one.verdict.correct) for one in found.judged if one.verdict.correct is not None}
    seed = lab.recipe.seed
    facts = redact(asked_facts(lab.env, lab.test, found.protocol, seed, lab.env.name))
    asked = json.loads(json.dumps(facts, default=str))
    return Measured(Card(phase, step, metrics, outcomes, seed=seed, asked=asked), answers)


def gives_feedback(env: Environment, problem: Problem) -> bool:
    """Can the environment ask this problem again? Of a mixture, the member that judges it decides."""
    judge = env.judge_of(problem) if isinstance(env, BaseEnvironment) else None
    return isinstance(judge or env, GivesFeedback)


def _row(problem: Problem, turn: int, prompt: str, completion: Completion, verdict: Verdict) -> dict[str, Any]:
    """One answer as it is kept: what was asked, what was answered, what the judge found."""
    found = {"correct": verdict.correct, "error": str(verdict.error), "detail": verdict.detail}
    tests = {"passed": verdict.passed, "total": verdict.total}
    asked = {"problem": problem.id, "skill": problem.skill, "turn": turn, "prompt": prompt}
    return {**asked, "answer": completion.text, **found, **tests}


def _of(found: Evaluation, ids: Collection[str]) -> Evaluation:
    """The part of an evaluation that is about these problems."""
    return replace(found, judged=tuple(one for one in found.judged if one.problem.id in ids))


def _numbers(found: Evaluation, sampled: Evaluation | None) -> dict[str, Any]:
    """Every number of greedy answers, and pass@k of sampled ones where there are some."""
    metrics = found.metrics()
    if sampled is not None:
        drawn = sampled.metrics()
        metrics |= {name: value for name, value in drawn.items() if name.startswith(("pass@", "pass^", "majority"))}
        from rlvrlab.skills.metrics import diversity

        # Different right answers per problem, of as many as were sampled: what is left of diversity.
        groups = grouped(sampled.judged, lambda one: one.problem.id).values()
        right = [[one.verdict.correct is True for one in group] for group in groups]
        texts = [[one.answer.completion.text for one in group] for group in groups]
        distinct = diversity(right, texts)["distinct_accepted"]
        metrics |= {"mean_at_n": drawn["mean_accuracy"], "distinct_accepted": distinct}
    return metrics


def _recovered(lab: Lab, phase: str, found: Evaluation) -> tuple[Recovery, list[Rollout], list[Rollout]]:
    from rlvrlab.evals.recovery import recovery

    names = [f"card/{one.problem.id}/{one.sample}" for one in found.judged]
    prompts = [prompt_tokens(lab.engine.tokenizer, one.problem.prompt) for one in found.judged]
    firsts = [
        Rollout(name, name, one.problem, prompt, one.answer.completion, one.verdict, None)
        for name, prompt, one in zip(names, prompts, found.judged, strict=True)
    ]
    limit = lab.recipe.rollout.max_tokens
    return recovery(lab.engine, lab.env, firsts, limit, lab.recipe.seed, "card", phase)


def _evaluated(lab: Lab, n: int) -> Evaluation:
    limit = lab.recipe.rollout.max_tokens
    protocol = eval_at_1(limit) if n == 1 else eval_at_k(n, ks=(1, n), max_tokens=limit)
    protocol = replace(protocol, run_timeout_s=None, memory_mb=None)  # the environment's own, as in training
    return evaluate(EngineAnswerer(lab.engine), lab.env, lab.test, protocol, seed=lab.recipe.seed, reward=lab.reward)


def card_table(cards: list[Card]) -> tuple[list[str], list[list[str]]]:
    """Headings (one column per phase) and lines: the goals in per cent, their 95 % intervals, and the change."""
    known = {name for card in cards for name in card.metrics}
    names = [name for name in card_columns(known) if name in known]
    names += sorted(name for name in known if PASS_AT_N.fullmatch(name))
    sets = dict.fromkeys(name.rpartition("/")[0] for name in sorted(known) if name.endswith("/accepted_at_1"))
    names += [f"{one}/{name}" for one in sets for name in names if f"{one}/{name}" in known]
    rows = [[_heading(name), *(_percent(card.metrics, name) for card in cards)] for name in names]
    rows += _reward_rows(cards)
    if "distinct_accepted" in known:
        told = (card.metrics.get("distinct_accepted") for card in cards)
        rows.append(["distinct right answers", *("–" if value is None else f"{value:.2f}" for value in told)])
    changes = []
    for i, card in list(enumerate(cards))[1:]:
        origin = origin_of(cards, i)
        paired = change(origin, card) if origin else None
        if paired is None:
            changes.append("–")
            continue
        bounds = f"{signed(100 * paired.low, 0)}…{signed(100 * paired.high, 0)}"
        changes.append(f"{difference(paired.mean)}\n{bounds}\n{paired.p_told.replace(' ', '')}")
    head = ["", *(f"{card.phase}{chr(10) + '(control)' if card.control else ''}" for card in cards)]
    return head, [*rows, ["change", "", *changes]]


def _reward_rows(cards: list[Card]) -> list[list[str]]:
    """What the recipe's reward pays for the same answers; nothing where it pays 1 for right and 0 for wrong."""
    means = [(card.metrics.get("reward_mean"), card.metrics.get("accepted_at_1")) for card in cards]
    if all(mean is None or mean == accepted for mean, accepted in means):
        return []
    parts = sorted({name for card in cards for name in card.metrics if name.startswith("reward/")})
    headed = {"reward_mean": "mean reward"} | {name: f"… {name.removeprefix('reward/')}" for name in parts}
    rows = []
    for name, heading in headed.items():
        values = [card.metrics.get(name) for card in cards]
        rows.append([heading, *("–" if value is None else f"{value:.3f}" for value in values)])
    return [*rows, ["reward is 0", *(_percent(card.metrics, "reward_zero_rate") for card in cards)]]


def _heading(name: str) -> str:
    """`accepted@1`, or `humaneval_test: accepted@1` for one of several test sets."""
    part, _, metric = name.rpartition("/")
    return f"{part}: {HEADINGS.get(metric, metric)}" if part else HEADINGS.get(metric, metric)


def markdown(cards: list[Card]) -> str:
    """The table as a page of EXPERIMENT.md."""
    head, rows = card_table(cards)
    count, seed = len(cards[0].outcomes), cards[0].seed
    seeded = "" if seed is None else f", seed {seed}"
    lines = [
        f"{count} test problems{seeded}, greedy, in % with 95 % intervals; changes of accepted@1 are paired by "
        "problem, each by itself."
    ]
    lines += ["", f"| {' | '.join(head).replace(chr(10), ' ')} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(cell.replace(chr(10), '<br>') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _percent(metrics: dict[str, Any], name: str) -> str:
    if metrics.get(name) is None:
        return "–"
    low, high = metrics.get(f"{name}_low"), metrics.get(f"{name}_high")
    bounds = "" if low is None or high is None else f"\n{hundredths(low, 0)}–{hundredths(high, 0)}"
    return f"{hundredths(metrics[name])}{bounds}"
