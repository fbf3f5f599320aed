"""The tables of docs/cluster.md; `python benchmarks/tables.py docs/cluster.md` prints them."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from measured import RESULTS, found, table


def cluster() -> list[str]:
    """verl with vLLM on one GPU beside the hf engine, and what else that round measured."""
    round_ = found("h200_verl")
    parts = (curves, made_again, evaluated, guarded, actor, replicas, sampled, ladder, differences)
    return [line for part in parts for line in part(round_)] + come_and_go() + later()


def curves(round_: Any) -> list[str]:
    """Accuracy by stretches of updates."""
    curves = {name: {row["step"]: row for row in round_[name]} for name in ("verl", "hf")}
    looks = sorted(step for step, row in curves["hf"].items() if "val-core/countdown/acc" in row)
    rows = []
    for name, steps in curves.items():
        accuracy = [steps.get(step, {}).get("val-core/countdown/acc") for step in looks]
        label = f"{name}: held-out, % of {round_['held_out_problems']}"
        rows.append((label, *("–" if one is None else f"{100 * one:.1f}" for one in accuracy)))
    for name, steps in curves.items():
        stretches = [
            [steps[i]["train/acc"] for i in range(before + 1, look + 1) if i in steps]
            for before, look in pairwise(looks)
        ]
        means = [f"{100 * sum(some) / len(some):.1f}" if some else "–" for some in stretches]
        rows.append((f"{name}: training answers right, %, mean since the column before", "–", *means))
    return table(("updates", *map(str, looks)), rows)


def made_again(round_: Any) -> list[str]:
    """Updates that were lost by a kill, and what they became after the resume."""
    after = {row["step"]: row for row in round_["verl"]}
    rows = []
    for before in round_["verl_before_kill"]:
        pairs = [(before[key], after[before["step"]][key]) for key in ("train/acc", "actor/entropy", "actor/grad_norm")]
        right, *others = pairs
        shown = [" → ".join(f"{100 * one:.1f}" for one in right)]
        rows.append((before["step"], *shown, *(" → ".join(f"{one:.3f}" for one in pair) for pair in others)))
    return table(
        ("update, before the kill → made again", "training answers right, %", "entropy", "gradient norm"), rows
    )


def evaluated(round_: Any) -> list[str]:
    """`rlvr eval` of three policies on the same test problems."""
    cards = round_["evals"]
    names = {"start": "the start", "verl": "verl, merged checkpoint of update 30", "hf": "hf, update 40"}
    rows = []
    for name, words in names.items():
        one, gained = cards[name], cards["compared"].get(f"start → {name}")
        share = f"{100 * one['accepted_at_1']:.1f} [{100 * one['low']:.1f}, {100 * one['high']:.1f}]"
        by = [f"{100 * right / n:.1f}" for right, n in one["right_of_numbers"].values()]
        more = (
            "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * gained[k] for k in ("mean", "low", "high"))) if gained else ""
        )
        rows.append((words, share, *by, more))
    head = (f"`rlvr eval`, % of {cards['start']['problems']} test problems", "right", "two numbers", "three numbers")
    return table((*head, "beyond the start, points"), rows)


def guarded(round_: Any) -> list[str]:
    """What surgery and the skill-safe step did in verl's actor."""
    rows = [
        (row["step"], f"{row['surgery/cosine/three/two']:.2f}", f"{row['surgery/conflict_rate']:.0f}",
         f"{row['guard/active']:.0f}", f"{100 * row['guard/correction']:.1f}", f"{row['time/step_s']:.0f}")
        for row in round_["guard"]["rows"] if row["step"]
    ]  # fmt: skip
    head = (
        "update",
        "cosine of the two skills",
        "conflicts",
        "active bounds",
        "correction, % of the step",
        "s, busy card",
    )
    return table(head, rows)


def actor(round_: Any) -> list[str]:
    """verl's actor alone; medians of three."""
    rows = [
        (one["name"], f"{one['micro_tokens']:,}", f"{sorted(one['forward_s'])[1]:.2f}",
         f"{sorted(one['update_s'])[1]:.2f}", f"{one['peak_gb']:.2f}")
        for one in round_["actor"]
    ]  # fmt: skip
    head = ("outputs, in this order", "tokens at once", "log-probabilities, s, busy card", "update, s, busy card")
    return table((*head, "peak, GB"), rows)


def replicas(round_: Any) -> list[str]:
    """One and two vLLM servers in turn; medians without the first update."""
    rows, answers = [], 1024
    for name, words in {"one": "one", "two": "two", "twob": "two, again", "oneb": "one, again"}.items():
        later = [row for row in round_["served"][name] if row["step"] > 1]
        sample, step = (median(row[key] for row in later) for key in ("time/sample_s", "time/step_s"))
        rows.append((words, f"{sample:.2f}", f"{step:.2f}", f"{answers / step:.0f}"))
    head = (
        "vLLM servers, in this order",
        "sampling, s, busy card",
        "update in all, s, busy card",
        "answers per second",
    )
    return table(head, rows)


def sampled(round_: Any) -> list[str]:
    """vLLM over HTTP, our own sampler, vLLM again."""
    vllm = [*round_["vllm_tokens_per_s"]["first"], *round_["vllm_tokens_per_s"]["again"]]
    alone = [one for one in round_["ours_tokens_per_s"] if one.get("n") == 1 and not one["lora"]]
    rows = []
    for one in alone:
        asked = [other["tokens_per_s"] for other in vllm if other["batch"] == one["batch"]]
        times = f"{one['tokens_per_s'] / max(asked):.0f}–{one['tokens_per_s'] / min(asked):.0f}"
        rows.append((f"{one['batch']:,}", f"{min(asked):,}–{max(asked):,}", f"{one['tokens_per_s']:,}", times))
    head = ("rows at once", "vLLM server, tokens/s, busy card", "embedded sampler, tokens/s, busy card", "times")
    return table(head, rows)


def ladder(round_: Any) -> list[str]:
    """Rungs against running out of memory under a second limit."""
    limit = f"{round_['ladder']['limit_gb']:.0f}"
    rows = [
        (one["rung"], f"{one['peak_gb']:.1f}" if "peak_gb" in one else "out of memory")
        for one in round_["ladder"]["rungs"]
    ]
    return table((f"rung, {limit} GB allowed", "peak, GB"), rows)


def differences(round_: Any) -> list[str]:
    """What the page says in words; shares as if they were of different problems."""
    n = round_["held_out_problems"]
    ends = {name: (round_[name][0], round_[name][-1]) for name in ("verl", "hf")}
    pairs = {**ends, "verl − hf, last": (ends["hf"][1], ends["verl"][1])}
    lines = []
    for name, rows in pairs.items():
        before, after = (row["val-core/countdown/acc"] for row in rows)
        half = 1.96 * ((before * (1 - before) + after * (1 - after)) / n) ** 0.5
        lines.append(
            "{}: {:+.1f} [{:+.1f}, {:+.1f}]".format(name, *(100 * (after - before + x) for x in (0, -half, half)))
        )
    for key in ("time/sample_s", "time/step_s"):
        one, two = (
            sum(median(row[key] for row in round_["served"][name] if row["step"] > 1) for name in names)
            for names in (("one", "oneb"), ("two", "twob"))
        )
        lines.append(f"{key}, one server / two: {one / two:.2f}")
    return lines


def come_and_go() -> list[str]:
    """vLLM servers of one training, by stretches of steps with as many of them."""
    rows = []
    for servers, some in groupby(found("h200_replicas")["rows"], key=lambda row: row["sampler/servers"]):
        own = list(some)
        first, last = own[0]["step"], own[-1]["step"]
        groups = sorted({(row["groups/collected"], row["groups/unjudged_rows"]) for row in own})
        told = ", ".join(f"{all_:.0f}, {unjudged:.0f} unjudged" for all_, unjudged in groups)
        right = f"{100 * sum(row['train/acc'] for row in own) / len(own):.1f}"
        steps = f"{first}–{last}" if last > first else str(first)
        rows.append((steps, f"{servers:.0f}", told, right, f"{max(row['sampler/mismatch'] for row in own):.3f}"))
    head = ("steps", "vLLM servers in use", "groups in each step", "training answers right, %")
    return table((*head, "largest gap to the trainer's log-probs, nats"), rows)


def episodes(rows: list[dict[str, float]]) -> str:
    """Least and most of a run's updates with tools."""
    ends = {key: (min(row[key] for row in rows), max(row[key] for row in rows))
            for key in ("train/acc", "time/step_s", "time/rollout_s")}  # fmt: skip
    right = "–".join(f"{100 * one:.1f}" for one in ends["train/acc"])
    step, drawn = ("–".join(f"{one:.0f}" for one in ends[key]) for key in ("time/step_s", "time/rollout_s"))
    return f"; training episodes right {right} %; {step} s an update, {drawn} of them drawing"


def later() -> list[str]:
    """Runs of later rounds: which updates each start made, what was merged, and what the merged model scored."""
    kept = json.loads((RESULTS / "h200_verl.json").read_text(encoding="utf-8"))
    lines = []
    for round_ in kept["later"]:
        for name, one in round_["found"].items():
            made = one.get("updates by start", [[row["step"] for row in one["updates"]]])
            starts = ", then ".join(f"{steps[0]}–{steps[-1]}" for steps in made)
            told = f"{name} ({round_['code']['commit']}): updates {starts}; merged {one['merged']}"
            for card in filter(None, (one.get("start"), one["evaluated"])):
                score, low, high = (100 * card[f"accepted_at_1{end}"] for end in ("", "_low", "_high"))
                told += f"; update {card['step']}: {score:.1f} % [{low:.1f}, {high:.1f}] of {card['problems']}"
            if "agent/turns" in one["updates"][0]:
                told += episodes(one["updates"])
            lines.append(told)
    return lines
