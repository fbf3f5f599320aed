"""The tables of measured numbers in the documents, made from the files in benchmarks/results.

    python benchmarks/tables.py docs/PAGE.md

`make claims` runs this for every page and fails where a row of the page is another one. Each result file has the
command that measured it (`python benchmarks/keep.py NAME -- COMMAND` makes it anew), commit, machine and load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from cluster_tables import cluster
from measured import found, table
from speed_tables import speed


def report() -> list[str]:
    """What a page costs to make and to look at."""
    one = found("report")
    rows = [
        (f"page of {one['bytes'] / 1e6:.1f} MB gathered and written", f"{one['write_s']:.2f} s",
         f"{one['write_cpu_s']:.2f} s"),
        ("`rlvr report RUN`, start-up, figures and CSV tables included", "", f"{one['command_cpu_s']:.1f} s"),
        ("opened in Chromium", f"{one['ready_ms'] / 1000:.2f} s", f"{one['ready_cpu_ms'] / 1000:.2f} s"),
        ("slowest filter", f"{one['filter_ms']:.0f} ms", f"{one['filter_cpu_ms']:.0f} ms"),
    ]  # fmt: skip
    return table(("", "wall time", "CPU time"), rows)


def judge() -> list[str]:
    """Speed and CPU time of a check in every mode, and of a bare subprocess, on two kinds of processor."""
    return _checks("judge") + _checks("judge_x86")


def _checks(name: str) -> list[str]:
    figures = found(name)["figures"]
    bare = next(one["cpu_ms"] for one in figures if "subprocess" in one["name"])
    rows = []
    for one in figures:
        p95 = f"{one['p95_ms']:.1f} ms" if one.get("p95_ms") else ""
        rows.append(
            (one["name"], f"{one['per_s']:,.0f}", p95, f"{one['cpu_ms']:.2f} ms", f"{bare / one['cpu_ms']:.1f}")
        )
    return table(("mode", "checks per second", "p95", "CPU per check", "bare subprocess / ours, CPU"), rows)


def judge_promises() -> list[str]:
    """Memory and descriptors of every process while a judge works through many programs."""
    points = [one for one in found("judge_endurance") if isinstance(one, dict)]
    rows = []
    for one in points:
        own, *others = one["resident_mb"]
        spread = f"{min(others):.1f}–{max(others):.1f}"
        rows.append((f"{one['checks']:,}", f"{own:.1f}", spread, f"{sum(others):.0f}", sum(one["descriptors"])))
    head = ("after", "the judge itself", "each worker and keeper", "all of them", "descriptors in all")
    return table(head, rows)


def scale() -> list[str]:
    """A thousand requests at once, and five thousand at one address with a fleet behind it."""
    names = ("judge_server_10_1", "judge_server_1_1", "judge_server_10_2", "judge_fleet_5000")
    runs = [found(name) for name in names]
    lines: dict[str, Callable[[Any], str]] = {
        "lost / wrong": lambda one: f"{one['lost']} / {one['wrong']}",
        "most in the queue (limit 256)": lambda one: str(one["most_in_queue"]),
        "turned away and asked again": lambda one: str(one["turned_away"]),
        "p50 / p95 / p99 of a caller's wait": lambda one: (
            " / ".join(f"{one[f'p{p}_ms'] / 1000:.1f}" for p in (50, 95, 99)) + " s"
        ),
        "requests per second": lambda one: f"{one['requests_per_s']:.0f}",
        "client CPU per request": lambda one: f"{one['client_cpu_ms_each']:.1f} ms",
        "server's peak memory": lambda one: f"{one['server_peak_mb']} MB",
    }
    rows = [(name, *(shown(one) for one in runs)) for name, shown in lines.items()]
    one_address = f"5,000: 10 clients, 1 address, {runs[3]['most_servers_behind_one_address']} servers"
    thousand = ("1,000: 10 clients, 1 server", "1 client, 1 server", "10 clients, 2 servers")
    return table(("requests at once", *thousand, one_address), rows)


def credit() -> list[str]:
    """What step credit costs of a training step."""
    replays, others = found("credit_replays")["hf"], found("credit_kinds")["hf"]
    arms = {name: replays[f"delete + truncate, {name}"] for name in ("all", "earning", "live")}
    rows = [
        (f"`{name}`", f"{one['verifier_calls']:.0f}", f"{100 * one['credit_share']:.0f} %")
        for name, one in arms.items()
    ]
    kinds = [
        (f"`{name}`", f"{one['step_cpu_s']:.2f}", f"{100 * one['credit_share']:.1f} %",
         f"{one['verifier_calls']:.0f}", f"{one['traced']:.0f}")
        for name, one in others.items()
        if name != "grpo"  # credit that changes nothing: what the others are held against
    ]  # fmt: skip
    head = ("`credit.type`", "step, CPU s", "of it credit", "further verdicts per step", "unscored jobs per step")
    return table(("`examined`", "different programs judged per step", "share of the step"), rows) + table(head, kinds)


def sql_math_logic() -> list[str]:
    """Answers judged and problems made per CPU second."""
    rows = [
        (name, f"{one['judged_per_s']:,}", f"{one['made_per_s']:,}")
        for name, one in found("sql_math_logic")["here"].items()
    ]
    return table(("", "answers judged per CPU second", "problems made per CPU second"), rows)


def statistics() -> list[str]:
    """Error rates of intervals and tests: the tables as they were printed."""
    return [line for name in ("seed_statistics", "chosen_statistics") for line in found(name) if line.startswith("|")]


MADE = (speed, report, judge, judge_promises, scale, cluster, credit, sql_math_logic, statistics)
PAGES = {f"docs/{make.__name__}.md": make for make in MADE}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PAGES:
        raise SystemExit(f"{__doc__}\nPages: {', '.join(PAGES)}")
    print("\n".join(PAGES[sys.argv[1]]()))
