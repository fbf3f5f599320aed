"""The tables of docs/speed.md; `python benchmarks/tables.py docs/speed.md` prints them."""

from __future__ import annotations

import json
import statistics
from typing import Any

from measured import RESULTS, found, middle_of, table


def speed() -> list[str]:
    """What was measured, in short and then in whole."""
    starts = eval_starts() + train_starts() + train_starts_on_h200()
    return in_short() + endless_on_cores() + beside_trl() + beside_older() + starts + on_h200()


def beside_older() -> list[str]:
    """CPU time of commands beside an older version."""
    rows = []
    for one in found("beside_older"):
        middle, low, high = one["this version / the other"]["cpu_s"]
        told = f"{middle:.2f} ({low:.2f}–{high:.2f})"
        rows.append((f"`{one['command']}`", len(one["rounds"]), told, f"{one['this version']['cpu_s']:.1f}"))
    return table(("command", "rounds", "times the CPU time: median, least and most", "seconds now"), rows)


def endless_rows(name: str) -> list[dict[str, Any]]:
    """Arms of benchmarks/endless.py; a pipeline's without the last step of old files, which draws nothing."""
    rows = found(name)["rows"]
    old = name in ("h200_endless", "h200_endless_2")
    return [
        {**row, "s_per_step": statistics.median(row["steps_s"][:-1])} if old and "lag 1" in row["arm"] else row
        for row in rows
    ]


BUSY = "training_10m_busy_x86_2"
RAN_BEFORE = "others had run on the machine just before; not measured as its first command"


def in_short() -> list[str]:
    """The newest figure of everything, what stands beside it, what was aimed at, and which command measures it."""
    ten, large, busy = (found(name)[0] for name in ("training_10m_x86_9", "training_135m_x86_2", BUSY))
    start, start_before = found("eval_start")
    [small], [_, learnt, lagging] = found("h200_training_135m_3"), endless_rows("h200_endless_3")
    [_, mixed, _] = found("endless_nano")["rows"]
    commands = [found(f"h200_humaneval_{number}") for number in (6, 7, 8)]
    first, later = ([f"{runs[at]['command_s']:.1f} s" for runs in commands] for at in (0, 1))
    [first_of_all] = found("h200_first_answer_2")
    judged = sorted(one["first_answer_s"] for one in first_of_all["rounds"])
    [examined] = found("h200_first_verdict")
    verdicts, kept = (
        ", ".join(f"{one[key]:.1f} s" for one in examined["rounds"]) for key in ("first_verdict_s", "first_answer_s")
    )
    started = found("h200_train_start")
    updated = {one["kept"].split(",")[0]: [f"{row['first_step_s']:.1f} s" for row in one["rounds"]] for one in started}
    [very_first], again, [compiled] = (
        updated[words] for words in ("nothing kept", "a command like it came before", "bytecode kept")
    )
    cores, card, here = "two x86_64 cores", "one H200", "[below](#on-one-h200)"
    rows = [
        ("GRPO step, 10.6M parameters", cores, f"{ten['ours']['wall_s']:.1f} s", _times(ten), "2.5 times",
         "`benchmarks/training.py --sizes 10m`"),
        ("GRPO step, 135M", cores, f"{large['ours']['wall_s']:.1f} s", _times(large), "2.5 times",
         "`benchmarks/training.py --sizes 135m`"),
        ("GRPO step, 10.6M, beside a busy process", cores, f"{busy['ours']['wall_s']:.1f} s", _times(busy),
         "1.5 times", "`benchmarks/training.py --sizes 10m --beside 1`"),
        ("GRPO step, nano, 512 programs, 1 % endless, learnt limits", cores, f"{mixed['s_per_step']:.1f} s",
         f"{mixed['ratio']:.2f} times a step without endless ones", "1.3 times", "`benchmarks/endless.py`"),
        ("first answer of `rlvr eval`, 135M", cores, f"{start['first_answer_s']:.1f} s",
         f"with Transformers: {start_before['first_answer_s']:.1f} s", "–", "`benchmarks/eval_start.py`"),
        ("GRPO step, 135M, 256 answers", card, f"{small['ours']['wall_s']:.3f} s", "–", "0.5 s", here),
        ("GRPO step, 1.5B, 512 programs, 1 % endless, learnt limits", card, f"{learnt['s_per_step']:.2f} s", "–", "4 s",
         here),
        ("the same with `lag = 1`", card, f"{lagging['s_per_step']:.2f} s", "–", "3 s", here),
        ("HumanEval, 1.5B, first command on a machine", card, ", ".join(first), "–", "20 s: one of three missed", here),
        ("HumanEval, 1.5B, second command", card, ", ".join(later), "–", "20 s", here),
        ("first answer of `rlvr eval`, 1.5B, two problems", card, ", ".join(f"{one:.1f} s" for one in judged), "–",
         "8 s", "`benchmarks/eval_start.py`"),
        ("first verdict of `rlvr eval`, 1.5B, HumanEval", card, verdicts,
         f"first answer kept: {kept}; {RAN_BEFORE}", "8 s",
         "[below](#humaneval-by-one-command)"),
        ("first update of `rlvr train`, 1.5B", card, ", ".join(sorted(again)),
         f"{compiled} where kernels are compiled, {very_first} where Python's bytecode is too",
         "8 s: missed by a machine's first command", "`benchmarks/eval_start.py MODEL --train`"),
        *(_drawn(*words, card) for words in (("1.5B", "h200_sampling_vllm"), ("135M", "h200_sampling_vllm_135m"))),
    ]  # fmt: skip
    return table(("what", "machine", "measured", "beside it", "aimed at", "command"), rows)


def endless_on_cores() -> list[str]:
    """Steps of nano beside endless programs on two cores, and how many times a step without them each takes."""
    shown = {"sampling": "sample_s", "waiting": "waited_s", "update": "update_s"}
    _, fixed = found("endless_nano_fixed")["rows"]
    rows = [
        (words, f"{one['s_per_step']:.1f} s", f"{one['ratio']:.2f}",
         ", ".join(f"{name} {one[key]:.1f}" for name, key in shown.items()))
        for words, one in zip(("no endless programs", "1 % endless, learnt limits", "the same, `lag = 1`",
                               "1 % endless, the fixed limit of 10 s"),
                              [*found("endless_nano")["rows"], fixed], strict=True)
    ]  # fmt: skip
    return table(("nano, 512 programs, two cores", "a step", "times", "of which, s"), rows)


def _times(*runs: dict[str, Any]) -> str:
    return f"TRL takes {', '.join(middle_of(one['trl/ours wall_s']).split()[0] for one in runs)} times as long"


def _drawn(size: str, file: str, card: str) -> tuple[str, ...]:
    [one] = [row for row in found(file)["rows"] if row["batch"] == 256]
    over = one["ours_over"]
    return (f"drawing 256 answers at once, {size}", card, f"{one['median']['ours']:,} tokens/s",
            f"{over['offline']:.1f} times vLLM's `LLM.generate`, {over['served']:.1f} times its server", "–",
            "[below](#sampling-beside-vllm)")  # fmt: skip


def beside_trl() -> list[str]:
    """GRPO steps beside TRL's."""
    sizes = {"training_10m_x86_9": "10.6 million, idle, three rounds",
             "training_10m_x86_7": "the same a day before, the middle of three runs",
             "training_10m_x86_4": "the same, older code, the middle of three runs",
             "training_135m_x86_2": "135 million, idle, one round",
             "training_135m_x86": "the same, older code",
             "training_135m": "the same, still older code, on Arm",
             BUSY: "10.6 million beside one busy process, two rounds",
             "training_10m_busy_x86": "the same, older code, one round",
             "training_10m_busy": "the same, still older code, on Arm, one round"}  # fmt: skip
    rows = []
    for name, words in sizes.items():
        one, *_ = found(name)
        ours, trl = one["ours"], one["trl"]
        ratios = [middle_of(one[f"trl/ours {key}"]) for key in ("wall_s", "cpu_s", "peak_mb")]
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


def train_starts_on_h200() -> list[str]:
    """The same with a 1.5B model on one GPU, by what earlier commands left; kernels compiled at once or in turn."""
    keys = ("first_step_s", "command_s", "cpu_s")
    rows = [(one["kept"], *(f"{one[key]:.1f} s" for key in keys)) for one in found("h200_train_start")]
    [now, before] = found("h200_train_start_kernels")
    names = {"kernels forgotten, compiled at once, 1511b61f": now, "kernels forgotten, one after the other": before}
    each = [(name, ", ".join(f"{row['first_step_s']:.1f} s" for row in one["rounds"])) for name, one in names.items()]
    return table(("`rlvr train`, 1.5B, one update", "first update is done", "whole command", "CPU time"), rows) + table(
        ("1.5B, weights drawn at random", "first update is done"), each
    )


def on_h200() -> list[str]:
    """Steps, whole evaluations, kernels and sampling on one GPU, alone on it."""
    return steps_on_h200() + whole_evaluations() + ways_of_an_update() + sampling()


def steps_on_h200() -> list[str]:
    """GRPO steps of three states of the code, and how much of a step the card was at work."""
    small = [found(f"h200_training_135m{number}")[0]["ours"] for number in ("_3", "_2", "")]
    large, middle, first = (endless_rows(f"h200_endless{number}") for number in ("_3", "_2", ""))
    shown = {"sampling": "sample_s", "waiting": "waited_s", "scores": "score_s", "update": "update_s", "rest": "rest_s"}
    parts = ", ".join(f"{name} {{{key}:.2f}}" for name, key in shown.items())
    step = f"1.5B, LoRA r32, 512 answers of about {large[0]['tokens_per_answer']:.0f} tokens: a GRPO step, "
    names = [step + "no endless program", *(f"the same, 1 % endless, {one['arm']}" for one in large[1:])]
    rows = [
        ("135M shape, LoRA r8, 256 answers of 128 tokens: a GRPO step", f"{small[0]['wall_s']:.3f} s", "–",
         *(f"{one['wall_s']:.3f} s" for one in small[1:])),
        *((name, f"{one['s_per_step']:.2f} s", parts.format(**one), *(f"{old['s_per_step']:.2f} s" for old in before))
          for name, one, *before in zip(names, large, middle, first, strict=True)),
    ]  # fmt: skip
    now, *then = (_commit(name) for name in ("h200_endless_3", "h200_endless_2", "h200_endless"))
    return table(("work on one H200", f"seconds, {now}", "of which", *then), rows) + at_work()


def at_work() -> list[str]:
    """How long kernels ran in a step: the rest, in which the host starts them, is the most that CUDA graphs could save.

    Phases of these files are not told: the page says why.
    """
    names = {"h200_training_135m_3": "135M, LoRA r8, 256 × 128 tokens",
             "h200_training_1500m": "1.5B, LoRA r8, 512 × 128 tokens"}  # fmt: skip
    rows = []
    for file, words in names.items():
        ours = found(file)[0]["ours"]
        sampling, gradient = ours["kernels_sample_s"], ours["kernels_gradient_s"]
        share = (sampling + gradient) / ours["wall_s"]
        left = ours["wall_s"] - sampling - gradient
        rows.append((words, f"{ours['wall_s']:.3f} s", f"{sampling:.3f} s", f"{gradient:.3f} s", f"{100 * share:.0f} %",
                     f"{left:.3f} s"))  # fmt: skip
    head = ("one step", "wall time", "kernels of sampling", "kernels of the gradient", "the card at work", "the rest")
    return table(head, rows)


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
    [now] = found("h200_first_verdict")
    judged = [
        (f"{_commit('h200_first_verdict')}: {words}", *(f"{one[key]:.1f} s of {one['command_s']:.1f}"
         for one in now["rounds"]), "–")
        for words, key in (("first verdict", "first_verdict_s"), ("first answers kept", "first_answer_s"))
    ]  # fmt: skip
    rows[0][0] += ": first answers kept"
    return table(("HumanEval on 1.5B", *("once", "again", "a third time", "a fourth")), [*judged, *rows])


def refilling() -> list[str]:
    """What it is worth that rows which wait take the places of ended ones."""
    rows = []
    for one in found("h200_refill"):
        [row] = one["rows"]
        rate, (low, high) = row["tokens_per_s"], row["range"]
        asked = f"{'with' if one['chat'] else 'without'} `--chat`, at most {one['max_tokens']} tokens"
        rows.append((f"{row['answers']:,} answers in {row['places']:,} places, {asked}", f"{100 * row['ended']:.0f} %",
                     f"{row['tokens_per_answer']:.0f}", f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})",
                     f"{rate['refilled']:,} tokens/s", f"{rate['waves']:,} tokens/s"))  # fmt: skip
    return table(("1.5B, questions of MBPP", "end by themselves", "tokens an answer", "refilled / waves", "refilled",
                  "waves"), rows)  # fmt: skip


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
    """Rows that take places of ended ones, and the two models that were sampled beside vLLM."""
    return refilling() + sampling_beside_vllm("h200_sampling_vllm") + sampling_beside_vllm("h200_sampling_vllm_135m")


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
