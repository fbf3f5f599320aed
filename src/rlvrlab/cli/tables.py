"""Tables that evaluation commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from rlvrlab.cli import printing
from rlvrlab.evals.metrics import COSTS
from rlvrlab.shares import difference, percent

if TYPE_CHECKING:
    from rlvrlab.evals.compare import Row

SHARES = (
    ("accepted_at_1", "accepted@1"),
    ("solved_at_budget", "solved within the budget"),
    ("solved_at_budget*0.5", "… within half of it"),
    ("solved_at_budget*0.25", "… within a quarter"),
    ("mean_accuracy", "mean accuracy (partial scores)"),
    ("majority", "majority"),
    ("recovery_rate", "recovery rate"),
    ("blind_recovery_rate", "… of blind second tries"),
    ("format_rate", "answers in the demanded form"),
    ("accuracy_given_format", "accepted@1, of those"),
    ("exec_success_rate", "ran to the end"),
    ("zero_reward_rate", "verifier gave 0"),
    ("truncated_rate", "cut off"),
)
NUMBERS = (
    ("avg_entropy", "mean token entropy (nats)", "{:.3f}"),
    ("avg_gen_tokens", COSTS["avg_gen_tokens"], "{:.1f}"),
    ("cost_per_solved_tokens", COSTS["cost_per_solved_tokens"], "{:.1f}"),
    ("cost_per_solved_judge_time", COSTS["cost_per_solved_judge_time"], "{:.2g}"),
    ("p50_judge_time", COSTS["p50_judge_time"], "{:.2g}"),
    ("p95_judge_time", COSTS["p95_judge_time"], "{:.2g}"),
    ("spent_tokens", "tokens spent", "{:.0f}"),
    ("spent_judge_s", "judge seconds spent", "{:.3g}"),
    ("spent_wall_s", "seconds spent", "{:.3g}"),
    ("throughput", COSTS["throughput"], "{:.1f}"),
)


WRONG, RIGHT = "_if_unjudged_wrong", "_if_unjudged_right"
BOUNDED = (
    ("accepted_at_1", "accepted@1"),
    ("pass@1", "pass@1"),
    ("solved_at_budget", "solved within the budget"),
    ("mean_accuracy", "mean accuracy"),
)


def metrics_table(metrics: Mapping[str, Any]) -> Table:
    """One data set: shares in per cent with 95 % intervals where there is one."""
    table = Table(box=None, show_header=False)
    for key in sorted((k for k in metrics if k.startswith("pass@") and k[5:].isdigit()), key=lambda k: int(k[5:])):
        table.add_row(key, _share(metrics, key))
        table.add_row(f"pass^{key[5:]}", _share(metrics, f"pass^{key[5:]}"))
    several = "pass@1" in metrics  # of all answers; accepted@1 is the same of the first ones alone
    for key, words in SHARES:
        if key == "mean_accuracy" and not several and metrics.get(key) == metrics.get("accepted_at_1"):
            continue  # without partial scores the two are one
        if key in metrics and not (several and key == "accepted_at_1"):
            table.add_row(words, _share(metrics, key))
    for key in (k for k in metrics if k.startswith("rule/")):
        table.add_row(f"right by the rule {key.removeprefix('rule/')}", _share(metrics, key))
    for kind in (k for k in metrics if k.endswith("_error_rate") and metrics[k]):
        table.add_row(f"error: {kind.removesuffix('_error_rate')}", _share(metrics, kind))
    if metrics.get("reward_mean") not in (None, metrics.get("accepted_at_1")):  # else it pays 1 for right, 0 for wrong
        table.add_row("mean reward (the recipe's)", f"{metrics['reward_mean']:.3f}")
        for key in (k for k in metrics if k.startswith("reward/")):
            table.add_row(f"… {key.removeprefix('reward/')}", f"{metrics[key]:.3f}")
        table.add_row("reward is 0", _share(metrics, "reward_zero_rate"))
    for key, words, form in NUMBERS:
        if metrics.get(key) is not None:
            table.add_row(words, form.format(metrics[key]))
    if metrics.get("most_answers"):
        left = f"; {metrics['given_up']} problems had budget left then, see --n" if metrics["given_up"] else ""
        table.add_row("answers to a problem, at most", f"{metrics['most_answers']}{left}")
    if metrics["unjudged"]:
        bad = f", {metrics['bad_tasks']:.0f} of them bad tasks" if metrics.get("bad_tasks") else ""
        bounds = [
            f"{words} between {percent(metrics[key + WRONG])} and {percent(metrics[key + RIGHT])}"
            for key, words in BOUNDED
            if f"{key}{WRONG}" in metrics and not (several and key == "accepted_at_1")
        ]
        text = f"{metrics['unjudged']:.0f}{bad}; with them {' and '.join(bounds)}"
        table.add_row(Text("could not be judged", "yellow"), text)
    if metrics.get("stopped_early"):
        text = f"{metrics['stopped_early']:.0f}; the tests left out count as failed"
        table.add_row(Text("judged by a part of the tests", "yellow"), text)
    if metrics.get("limited_tests"):
        text = f"{metrics['limited_tests']:.0f}; env.most_tests left out the others, so accepted means less"
        table.add_row(Text("judged by the first tests only", "yellow"), text)
    return table


def split_table(kind: str, groups: Mapping[str, Mapping[str, Any]]) -> Table:
    """The main shares of each skill or level, one line each."""
    keys = ("accepted_at_1", "mean_accuracy", "format_rate", "truncated_rate")
    rows = [[name, m["problems"], *(_share(m, key) for key in keys)] for name, m in groups.items()]
    head = (kind, "problems", "accepted@1", "mean accuracy", "in form", "cut off")
    return printing.table(head, rows, padding=(0, 1, 0, 0))


def comparison_table(title: str, rows: Sequence[Row]) -> Table:
    """before, after, their difference with its interval, p, and what could have been seen at all."""
    from rlvrlab.evals.compare import LESS_IS_BETTER, PLAIN

    lines: list[list[object]] = []
    for row in rows:
        scale, digits = (1.0, 2) if row.what in PLAIN else (100.0, 1)
        d = row.difference
        better = (d.mean > 0) != (row.what in LESS_IS_BETTER)
        style = "" if not row.significant or row.what in PLAIN else "green" if better else "red"
        before, after, least = (
            "–" if value is None else f"{scale * value:z.{digits}f}" for value in (row.before, row.after, d.detectable)
        )
        moved = Text(difference(d.mean, d.low, d.high, scale, digits), style)
        lines.append([row.what, before, after, moved, d.p_words, least, row.verdict])
    head = (title, "before", "after", "difference [95 %]", "p", "MDE", "")
    return printing.table(head, lines, padding=(0, 1, 0, 0))


def _share(metrics: Mapping[str, Any], key: str) -> str:
    return percent(metrics[key], metrics.get(f"{key}_low"), metrics.get(f"{key}_high"))
