"""The tables of measured numbers in the documents, made from the files in benchmarks/results.

    python benchmarks/tables.py docs/PAGE.md

`make claims` runs this for every page and fails where a row of the page is another one. Each result file has the
command that measured it (`python benchmarks/keep.py NAME -- COMMAND` makes it anew), commit, machine and load.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
Rows = Iterable[Iterable[object]]


def found(name: str) -> Any:
    """What the measurement printed."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["found"]


def table(head: Iterable[str], rows: Rows) -> list[str]:
    """As Markdown; the first column of the head may be empty."""
    head = list(head)
    cells = [head, ["---"] * len(head), *(list(map(str, row)) for row in rows)]
    return ["| " + " | ".join(row) + " |" if row[0] != "---" else "|" + "---|" * len(head) for row in cells] + [""]


def speed() -> list[str]:
    """What was measured, in short and then in whole."""
    return in_short() + beside_trl() + eval_starts() + train_starts() + on_h200()


RUNS_OF_10M = ("training_10m_x86_6", "training_10m_x86_7", "training_10m_x86_8")


def in_short() -> list[str]:
    """The newest figure of everything, what stands beside it, what was aimed at, and which command measures it."""
    ten = [found(name)[0] for name in RUNS_OF_10M]
    [large], [busy] = found("training_135m_x86"), found("training_10m_busy_x86")
    start, start_before = found("eval_start")
    [small], [_, learnt, lagging] = found("h200_training_135m_2"), found("h200_endless_2")["rows"]
    commands = [found(f"h200_humaneval_{number}") for number in (6, 7, 8)]
    first, later = ([f"{runs[at]['command_s']:.1f} s" for runs in commands] for at in (0, 1))
    [first_of_all] = found("h200_first_answer_2")
    judged = sorted(one["first_answer_s"] for one in first_of_all["rounds"])
    cores, card, here = "two x86_64 cores", "one H200", "[below](#on-one-h200)"
    rows = [
        ("GRPO step, 10.6M parameters, three runs", cores, ", ".join(f"{one['ours']['wall_s']:.1f} s" for one in ten),
         _times(*ten), "2.5 times", "`benchmarks/training.py --sizes 10m`"),
        ("GRPO step, 135M", cores, f"{large['ours']['wall_s']:.1f} s", _times(large), "2.5 times",
         "`benchmarks/training.py --sizes 135m`"),
        ("GRPO step, 10.6M, beside a busy process", cores, f"{busy['ours']['wall_s']:.1f} s", _times(busy),
         "1.5 times", "`benchmarks/training.py --sizes 10m`"),
        ("first answer of `rlvr eval`, 135M", cores, f"{start['first_answer_s']:.1f} s",
         f"with Transformers: {start_before['first_answer_s']:.1f} s", "–", "`benchmarks/eval_start.py`"),
        ("GRPO step, 135M, 256 answers", card, f"{small['ours']['wall_s']:.3f} s", "–", "0.5 s", here),
        ("GRPO step, 1.5B, 512 programs, 1 % endless", card, f"{learnt['s_per_step']:.2f} s", "–", "4 s", here),
        ("the same with `lag = 1`", card, f"{lagging['s_per_step']:.2f} s", "–", "3 s", here),
        ("HumanEval, 1.5B, first command on a machine", card, ", ".join(first), "–", "20 s: one of three missed", here),
        ("HumanEval, 1.5B, second command", card, ", ".join(later), "–", "20 s", here),
        ("first answer of `rlvr eval`, 1.5B, two problems", card, ", ".join(f"{one:.1f} s" for one in judged), "–",
         "8 s", "`benchmarks/eval_start.py`"),
        *(_drawn(*words, card) for words in (("1.5B", "h200_sampling_vllm"), ("135M", "h200_sampling_vllm_135m"))),
    ]  # fmt: skip
    return table(("what", "machine", "measured", "beside it", "aimed at", "command"), rows)


def _times(*runs: dict[str, Any]) -> str:
    return f"TRL takes {', '.join(_range(one['trl/ours wall_s']).split()[0] for one in runs)} times as long"


def _drawn(size: str, file: str, card: str) -> tuple[str, ...]:
    [one] = [row for row in found(file)["rows"] if row["batch"] == 256]
    over = one["ours_over"]
    return (f"drawing 256 answers at once, {size}", card, f"{one['median']['ours']:,} tokens/s",
            f"{over['offline']:.1f} times vLLM's `LLM.generate`, {over['served']:.1f} times its server", "–",
            "[below](#sampling-beside-vllm)")  # fmt: skip


def beside_trl() -> list[str]:
    """GRPO steps beside TRL's."""
    sizes = {**dict(zip(RUNS_OF_10M, (f"10.6 million, idle, three rounds, {run} run" for run in
                                      ("first", "second", "third")), strict=True)),
             "training_10m_x86_4": "the same, code before, the middle of three runs",
             "training_135m_x86": "135 million, idle, one round",
             "training_135m": "the same, older code, on Arm",
             "training_10m_busy_x86": "10.6 million beside one busy process, one round",
             "training_10m_busy": "the same, older code, on Arm, one round"}  # fmt: skip
    rows = []
    for name, words in sizes.items():
        [one] = found(name)
        ours, trl = one["ours"], one["trl"]
        ratios = [_range(one[f"trl/ours {key}"]) for key in ("wall_s", "cpu_s", "peak_mb")]
        rows.append((words, f"{ours['wall_s']:.1f} s", f"{trl['wall_s']:.1f} s", *ratios))
    return table(("parameters", "a step here", "a step in TRL", "TRL / here, wall time", "CPU time", "memory"), rows)


def eval_starts() -> list[str]:
    """An evaluation of two problems with SmolLM2-135M on two cores: nearly all of it is starting and ending."""
    names = ("without Transformers", "with it, 6ce37ded")
    keys = ("first_answer_s", "command_s", "cpu_s")
    versions = zip(names, found("eval_start"), strict=True)
    rows = [(name, *(f"{one[key]:.1f} s" for key in keys)) for name, one in versions]
    return table(("`rlvr eval`, 135M, two problems", "first answer", "whole command", "CPU time"), rows)


def train_starts() -> list[str]:
    """A training of one update of a LoRA on two cores: nearly all of it is starting and ending."""
    sizes = {"train_start_nano": "nano", "train_start_135m": "SmolLM2-135M"}
    names = ("without Transformers", "with it, 6ce37ded")
    keys = ("first_step_s", "command_s", "cpu_s")
    rows = [
        (f"{size}, {name}", *(f"{one[key]:.1f} s" for key in keys))
        for file, size in sizes.items()
        for name, one in zip(names, found(file), strict=True)
    ]
    return table(("`rlvr train`, one update", "first update is done", "whole command", "CPU time"), rows)


def on_h200() -> list[str]:
    """Steps, whole evaluations, kernels and sampling on one GPU, alone on it."""
    return steps_on_h200() + whole_evaluations() + ways_of_an_update() + sampling()


def steps_on_h200() -> list[str]:
    """GRPO steps of two states of the code."""
    [small], [small_before] = found("h200_training_135m_2"), found("h200_training_135m")
    large, large_before = found("h200_endless_2")["rows"], found("h200_endless")["rows"]
    ours, before = small["ours"], small_before["ours"]
    shown = {"sampling": "sample_s", "waiting": "waited_s", "scores": "score_s", "update": "update_s", "rest": "rest_s"}
    parts = ", ".join(f"{name} {{{key}:.2f}}" for name, key in shown.items())
    step = f"1.5B, LoRA r32, 512 answers of about {large[0]['tokens_per_answer']:.0f} tokens: a GRPO step, "
    names = [step + "no endless program", *(f"the same, 1 % endless, {one['arm']}" for one in large[1:])]
    rows = [
        ("135M shape, LoRA r8, 256 answers of 128 tokens: a GRPO step", f"{ours['wall_s']:.3f} s",
         "sampling {sample_s:.2f}, gradient {gradient_s:.2f}".format(**ours), f"{before['wall_s']:.2f} s"),
        *((name, f"{one['s_per_step']:.2f} s", parts.format(**one), f"{old['s_per_step']:.1f} s")
          for name, one, old in zip(names, large, large_before, strict=True)),
    ]  # fmt: skip
    now, then = (_commit(name) for name in ("h200_endless_2", "h200_endless"))
    return table(("work on one H200", f"seconds, {now}", "of which", f"before, {then}"), rows)


def whole_evaluations() -> list[str]:
    """HumanEval by one command, from its start to its end: two fresh machines, and the code before."""
    rows = []
    names = {"h200_humaneval_8": "", "h200_humaneval_7": "", "h200_humaneval_6": "", "h200_humaneval_5": ", before"}
    for name, word in names.items():
        told = [f"{one['command_s']:.1f} s ({one['asking_and_judging_s']:.1f})" for one in found(name)]
        rows.append((_commit(name) + word, *told))
    head = "1.5B, HumanEval, greedy, 164 problems: the whole command (asking and judging)"
    return table((head, "first time", "second"), rows) + first_answers()


def first_answers() -> list[str]:
    """When the same command has its first judged answers: all 164 are drawn abreast and kept together."""
    rows = [[_commit("h200_first_answer"), *(f"{one['first_answer_s']:.1f} s of {one['command_s']:.1f}"
            for one in found("h200_first_answer"))]]  # fmt: skip
    return table(("HumanEval on 1.5B: first judged answers", *("once", "again", "a third time", "a fourth")), rows)


def ways_of_an_update() -> list[str]:
    """How far a gradient lies from that of the plain ways, and what it takes."""
    names = {"old": "the plain ways", "flash": "the plain ways once more", "adapters": "LoRA in fewer passes",
             "head": "logits by Triton", "layers": "norms and gates by Triton", "all": "these three"}  # fmt: skip
    made, rows = found("h200_update_ways"), []
    for way, words in names.items():
        cells = []
        for model in ("qwen", "smol"):
            one, took = made["agree"][model][way], made["seconds"][model].get(way)
            apart = ("–", "–") if way == "old" else (f"{one['gradient_off']:.3f}", f"{one['cosine']:.5f}")
            cells += [*apart, f"{min(took['s']):.2f}–{max(took['s']):.2f}" if took else "–"]
        rows.append((words, *cells))
    head = ("one gradient", "1.5B: apart, of its norm", "cosine", "s", "135M: apart, of its norm", "cosine", "s")
    return table(head, rows)


def sampling() -> list[str]:
    """The two models that were sampled beside vLLM."""
    return sampling_beside_vllm("h200_sampling_vllm") + sampling_beside_vllm("h200_sampling_vllm_135m")


def sampling_beside_vllm(file: str) -> list[str]:
    """Tokens per second of the embedded sampler, a vLLM server and LLM.generate."""
    columns = ("ours", "offline", "served", "served, base", "served, seeded")
    rows = []
    for one in sorted(found(file)["rows"], key=lambda one: one["batch"]):
        told = [
            f"{one['median'][name]:,}" + (f" ({one['ours_over'][name]:.1f})" if name != "ours" else "")
            if name in one["median"] else "–"
            for name in columns
        ]  # fmt: skip
        rows.append((f"{one['batch']:,}", *told))
    head = ("answers at once", "embedded sampler, tokens/s", "`LLM.generate`, tokens/s (times)", "server (times)")
    return table((*head, "server without the adapter", "server with seeds"), rows)


def _commit(name: str) -> str:
    kept = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return str(kept["code"]["commit"][:8])


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


def _range(three: list[float]) -> str:
    """`2.16 (1.97–2.18)`, or one number where there was one round."""
    middle, low, high = three
    return f"{middle:.2f}" if low == high else f"{middle:.2f} ({low:.2f}–{high:.2f})"


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


def cluster() -> list[str]:
    """verl with vLLM on one GPU beside the hf engine, and what else that round measured."""
    round_ = found("h200_verl")
    parts = (_curves, _made_again, _evaluated, _guarded, _actor, _replicas, _sampled, _ladder, _differences)
    return [line for part in parts for line in part(round_)] + _come_and_go() + _later()


def _curves(round_: Any) -> list[str]:
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


def _made_again(round_: Any) -> list[str]:
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


def _evaluated(round_: Any) -> list[str]:
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


def _guarded(round_: Any) -> list[str]:
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


def _actor(round_: Any) -> list[str]:
    """verl's actor alone; medians of three."""
    rows = [
        (one["name"], f"{one['micro_tokens']:,}", f"{sorted(one['forward_s'])[1]:.2f}",
         f"{sorted(one['update_s'])[1]:.2f}", f"{one['peak_gb']:.2f}")
        for one in round_["actor"]
    ]  # fmt: skip
    head = ("outputs, in this order", "tokens at once", "log-probabilities, s, busy card", "update, s, busy card")
    return table((*head, "peak, GB"), rows)


def _replicas(round_: Any) -> list[str]:
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


def _sampled(round_: Any) -> list[str]:
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


def _ladder(round_: Any) -> list[str]:
    """Rungs against running out of memory under a second limit."""
    limit = f"{round_['ladder']['limit_gb']:.0f}"
    rows = [
        (one["rung"], f"{one['peak_gb']:.1f}" if "peak_gb" in one else "out of memory")
        for one in round_["ladder"]["rungs"]
    ]
    return table((f"rung, {limit} GB allowed", "peak, GB"), rows)


def _differences(round_: Any) -> list[str]:
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


def _come_and_go() -> list[str]:
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


def _episodes(rows: list[dict[str, float]]) -> str:
    """Least and most of a run's updates with tools."""
    ends = {key: (min(row[key] for row in rows), max(row[key] for row in rows))
            for key in ("train/acc", "time/step_s", "time/rollout_s")}  # fmt: skip
    right = "–".join(f"{100 * one:.1f}" for one in ends["train/acc"])
    step, drawn = ("–".join(f"{one:.0f}" for one in ends[key]) for key in ("time/step_s", "time/rollout_s"))
    return f"; training episodes right {right} %; {step} s an update, {drawn} of them drawing"


def _later() -> list[str]:
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
                told += _episodes(one["updates"])
            lines.append(told)
    return lines


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
