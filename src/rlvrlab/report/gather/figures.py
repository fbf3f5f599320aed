"""What the answers and the metrics of a run add up to: errors, signal, cost, and whether the reward is earned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from rlvrlab.evals.probe.report import USEFUL_VARIANCE
from rlvrlab.evals.probe.verdict import IDEAL
from rlvrlab.record.faster import advice
from rlvrlab.record.files import read_time
from rlvrlab.record.profile import profile_of, whole_seconds
from rlvrlab.report.gather.curves import thinned
from rlvrlab.report.gather.evaluation import error_section
from rlvrlab.report.gather.overview import alarms
from rlvrlab.report.gather.rollouts import Answers
from rlvrlab.report.reading import Fact, Section, as_table, place, rounded, section
from rlvrlab.report.run_record import METRICS, RunRecord
from rlvrlab.shares import about, hundredths

NOT_RECORDED = "not recorded"


def errors(run: RunRecord, answers: Answers) -> Section | None:
    """What kept answers from being right: held out at each evaluation, and in the training steps shown."""
    bars: dict[int, Fact] = {}
    for line in run.metrics:
        row, at = line.row, line.row["step"]
        counts = {key.rpartition("/")[2]: int(value) for key, value in row.items()
                  if key.startswith("val-core/") and "/error/" in key and isinstance(value, int | float)}  # fmt: skip
        unjudged = sum(int(v) for k, v in row.items() if k.startswith("val-core/") and k.endswith("/unjudged") and v)
        if counts or any(key.endswith("/acc_low") for key in row):
            counts |= {"unjudged": unjudged} if unjudged else {}
            bars[at] = {"x": at, "counts": counts, "from": place(METRICS, line.number, at)}
    held_out = list(bars.values())
    by_step: dict[int, Counter[str]] = defaultdict(Counter)
    for step, error, correct in zip(*(answers.columns[name] for name in ("step", "error", "correct")), strict=True):
        if step is not None and step not in answers.incomplete:
            wrong = answers.texts[error] if error >= 0 else "wrong"
            by_step[step]["unjudged" if correct < 0 else "right" if correct == 1 else wrong] += 1
    training = [
        {"x": step, "counts": dict(outcomes), "from": place(f"rollouts/step_{step}.jsonl", step=step)}
        for step, outcomes in sorted(by_step.items())
    ]
    if not held_out and not training:
        return None
    groups = [
        {"name": "dev", "unit": "answers to dev problems", "bars": held_out, "source": METRICS},
        {"name": "training", "unit": "sampled answers of the steps shown", "bars": training, "source": "rollouts/"},
    ]
    return error_section([group for group in groups if group["bars"]], METRICS)


def signal(run: RunRecord, answers: Answers) -> Section | None:
    """Each group of answers by its accuracy and the variance of its rewards; and which groups had signal, by step."""
    stack = [
        {"name": name, "key": f"groups/{name}", **thinned(run.series(f"groups/{name}"))}
        for name in ("live", "all_right", "all_wrong", "same_reward", "unjudged")
    ]
    stack = [one for one in stack if any(one["y"])]
    points = _group_points(answers)
    if not points and not stack:
        return None
    opening = "A group teaches when its answers earn different rewards."
    return signal_section(points, "group", opening, "rollouts/", stack)


def signal_section(points: list[Fact], of: str, opening: str, source: str, stack: Sequence[Fact] = ()) -> Section:
    """Points (accuracy across, variance up) over the zone in which a policy learns; `of`: what a point stands for."""
    zone = f"{hundredths(IDEAL[0], 0)} to {about(IDEAL[1])} right"
    note = f"{opening} The useful zone: {zone}, variance above {USEFUL_VARIANCE:g}."
    data = {"points": points, "zone": list(IDEAL), "variance": USEFUL_VARIANCE, "stack": list(stack), "of": of}
    return section("signal", "signal", "Signal", data, source, note)


def _group_points(answers: Answers) -> list[Fact]:
    """One point per group of at least two judged answers: share right across, variance of the rewards up."""
    columns = answers.columns
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, (step, problem) in enumerate(zip(columns["step"], columns["problem"], strict=True)):
        if step is not None and columns["correct"][index] >= 0 and columns["reward"][index] is not None:
            groups[step, problem].append(index)
    points = []
    for (step, problem), rows in groups.items():
        rewards = [columns["reward"][row] for row in rows]
        if len(rewards) < 2:
            continue
        mean = sum(rewards) / len(rewards)
        variance = sum((value - mean) ** 2 for value in rewards) / (len(rewards) - 1)
        right = sum(columns["correct"][row] for row in rows) / len(rows)
        skill = columns["skill"][rows[0]]
        points.append({"x": rounded(right, 4), "y": rounded(variance, 4), "step": step,
                       "name": answers.texts[problem] if problem >= 0 else "?",
                       "group": answers.texts[skill] if skill >= 0 else "", "row": columns["id"][rows[0]]})  # fmt: skip
    return points


def cost(run: RunRecord) -> Section | None:
    """Tokens, seconds and what a right answer costs; derived numbers say from what."""
    if not run.metrics:
        return None
    answers, tokens, right = _sampled(run)
    seconds = sum(whole_seconds(line.row) for line in run.metrics)
    waits = [s for line in run.metrics if isinstance(s := line.row.get("time/judge_s"), int | float)]
    made = "groups/collected × rollout.n" if answers else NOT_RECORDED
    waited = "sum of time/judge_s: what was left when a step's last answer was drawn"
    waited = waited if waits else f"{NOT_RECORDED}: metrics without time/judge_s"
    told = [
        ("wall time of all steps", seconds, "s", "sum of time/step_s and time/record_s; the parts of each phase below"),
        *_beside_steps(run, seconds),
        ("answers sampled in training", answers or None, "", made),
        ("tokens sampled in training", tokens or None, "", f"{made} × response_length/mean"),
        ("tokens per right answer", tokens / right if right else None, "", "tokens ÷ (answers × train/acc)"),
        ("wall seconds per right answer", seconds / right if right else None, "s", "wall time ÷ (answers × train/acc)"),
        ("waiting for verdicts in training", sum(waits) if waits else None, "s", waited),
    ]
    spent = profile_of([line.row for line in run.metrics])
    told += [(f"{one.phase}: {one.words}", one.seconds, "s", f"{about(one.share)} of its steps") for one in spent]
    rows = [
        {"name": name, "value": rounded(value, 9), "unit": unit, "how": how, "from": place(METRICS)}
        for name, value, unit, how in told
    ]
    series = {"name": "seconds per step", **thinned(run.series("time/step_s"))}
    data: dict[str, Any] = {"rows": rows, "advice": advice(spent, run.recipe), "series": series}
    return section("cost", "cost", "Cost", data, METRICS)


def _sampled(run: RunRecord) -> tuple[float, float, float]:
    """How many answers training drew, their tokens, and how many of them were right."""
    n = as_table(run.recipe.get("rollout")).get("n")
    answers = tokens = right = 0.0
    for line in run.metrics:
        groups, length, share = (line.row.get(k) for k in ("groups/collected", "response_length/mean", "train/acc"))
        if isinstance(n, int) and isinstance(groups, int | float):
            answers += n * groups
            tokens += n * groups * (length or 0.0)
            right += n * groups * (share or 0.0)
    return answers, tokens, right


def _beside_steps(run: RunRecord, seconds: float) -> list[tuple[str, float, str, str]]:
    """What a run took besides its steps; unknown while it runs, and after a resume, whose pause is no work."""
    started, ended = (read_time(run.info.get(end)) for end in ("started", "ended"))
    if run.status == "running" or any(line.row.get("kind") == "resume" for line in run.events):
        return []
    if started is None or ended is None:
        return []
    rest = max(0.0, (ended - started).total_seconds() - seconds)
    return [("before, between and after the steps", rest, "s", "from started to ended (whole seconds) − steps")]


HACKS = {
    "hack/wrong_reward": "what wrong answers earn",
    "hack/reward_explains": "how the reward goes with being right: 1 wholly; below 0 wrong answers earn more",
    "hack/mixed_groups": "groups with right and wrong answers",
    "hack/backward_groups": "of these, groups whose wrong answers earn as much or more",
    "hack/backward": "their share in the last steps; high is bad",
    "hack/backward_low": "lower end of that share's interval; above 0.2 is a finding",
    "hack/held_out_fall": "fall on dev problems while the reward rises; below 0 is a finding",
    "hack/reward_trend": "reward: later steps − earlier ones",
    "hack/held_out_trend": "accepted@1 on dev problems: later − earlier",
    "hack/length_trend": "length of answers: later / earlier",
    "hack/entropy_trend": "entropy: later / earlier",
    "hack/top_part": "share of the reward's differences that its largest part makes",
    "hack/top_part_explains": "how that part goes with being right",
    "hack/suspicious": "programs with a suspicious pattern",
    "hack/suspicious_right": "the same, of right programs",
    "hack/programs": "programs read",
    "hack/integrity_weak": "verdicts flagged integrity: weak",
}
"""What the monitors' metrics are, in words; docs/probe.md says from where on each is a finding."""


def hacks(run: RunRecord, answers: Answers) -> Section | None:
    """Is the reward earned? What the monitors found, their metrics, and flagged answers to read."""
    names = [key for key in run.keys if key.startswith("hack/")]
    series = [{"name": HACKS.get(key, key), "key": key, **thinned(run.series(key))} for key in names]
    flags: Counter[str] = Counter(flag for flags in answers.columns["flags"] for flag in flags)
    if not series and not flags:
        return None
    absent = []
    if "hack/proxy_gap" not in names:
        absent = ["proxy against hidden tests: not recorded; verdicts of this environment carry no hidden tests"]
    counted = [{"flag": flag, "count": count} for flag, count in flags.most_common()]
    found = [one["text"] for one in alarms(run) if one["subject"].startswith("hack/")]
    data = {"findings": found, "series": series, "flags": counted, "absent": absent}
    note = "A finding is a reason to read answers; it never changes a reward."
    return section("hacks", "hacks", "Hack monitor", data, METRICS, note)
