"""Keep the small part of the five phases of Qwen2.5-Coder: python studies/coding_five_phase/keep_qwen.py RAW [TARGET]

RAW/results has a folder per arm, with a run per part and PART.json beside it, and NAME.sampled.json for samples at
T = 1. Written into TARGET (results/ beside this file): qwen_coder.json, which exam_tables.py and qwen_tables.py read,
gsm8k.json where GSM8K was run, and qwen_answers.jsonl, some answers for docs/make_answers.py, chosen by a hash.
Nothing of the data sets is kept: no prompt, and of an answer no assertion, which a policy copies from its prompt.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Facts = dict[str, Any]
TASKS = ("TSP", "GED", "MCP", "MIS", "MVC", "MCS")
SETS = {
    "MBPP": "mbpp", "HumanEval": "humaneval", "gsm8k": "gsm8k", "sql": "sql", "countdown": "countdown",
    **dict.fromkeys(TASKS, "np"),
}  # fmt: skip
"""How the ids of a set begin, and its name here."""
MEMBER = re.compile(r"^\d+/")
"""What a mixture puts before the ids of its members."""
STAGE = re.compile(r"\d+_(after_\w+)")
"""How the file of a card is named that was made between two stages of one training."""
AGAINST = [
    ("base", "rft"), ("rft", "dpo"), ("dpo", "grpo"), ("dpo", "random"), ("random", "grpo"), ("base", "grpo"),
    ("base", "random"), ("grpo", "repair"), ("base", "repair"), ("no_dpo", "grpo"), ("more_sft", "grpo"),
    ("grpo", "pass_ratio"),
]  # fmt: skip
GSM8K = [("base", "gsm8k_grpo"), ("base", "gsm8k_random"), ("gsm8k_random", "gsm8k_grpo")]
GOALS = (
    "accepted_at_1", "accepted_at_1_low", "accepted_at_1_high", "pass_ratio_mean", "exec_success_rate",
    "syntax_error_rate", "zero_reward_rate", "first_failures", "recovery_rate", "recovery_rate_low",
    "recovery_rate_high", "blind_recovery_rate", "blind_recovery_rate_low", "blind_recovery_rate_high",
    "repeated_answer_rate",
)  # fmt: skip
CURVES = {
    "entropy": "actor/entropy", "dead_groups": "groups/zero_variance", "tokens": "response_length/mean",
    "step_s": "time/step_s", "sample_s": "time/sample_s", "update_s": "time/update_s", "right": "train/acc",
    "grad_norm": "actor/grad_norm",
}  # fmt: skip
CREDIT = {"traced": "credit/traced", "located": "credit/located", "seconds": "time/credit_s"}
"""Of every step of a training with blame by execution."""
APART = {"ess": "rollout_is/ess", "changed": "rollout_is/changed", "least": "rollout_is/min", "most": "rollout_is/max"}
"""Of every step of a training that weighs tokens by how far sampler and trainer are apart."""
FORMS = {"assertion": re.compile(r"^\s*assert\b", re.MULTILINE), "docstring": re.compile(r'"""')}
"""How programs are written beyond what is asked: that they check themselves, and that they are explained."""
LONGEST = 1200
"""Characters of an answer in the gallery."""
WANTED = {"became right": 5, "became wrong": 3, "mended": 4, "not mended": 2}
"""Kinds of pairs in the gallery, and how many of each."""
SHOWN = "mbpp"
"""The set they are of: answers to HumanEval begin with the problem's own text."""
ASSERTION = re.compile(r"^([ \t]*)assert\b.*$", re.MULTILINE)


class Part(NamedTuple):
    """One part of an arm, as it lies in RAW."""

    name: str
    """grpo_s0, or base for what was measured before training."""
    facts: Facts
    card: Facts
    answers: list[Facts]
    steps: list[Facts]


def lines_of(path: Path) -> list[Facts]:
    """The rows of a file of lines; none where it is not there, and a torn last line is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def parts_of(raw: Path) -> Iterator[Part]:
    """Every part that has a card, in the order they began; the card before training comes as `base`."""
    told = [json.loads(path.read_text()) for path in raw.glob("results/*/*.json")]
    for facts in sorted(told, key=lambda one: one["started"]):
        arm, part = raw / "results" / facts["arm"], facts["part"]
        steps = lines_of(arm / f"{part}.metrics.jsonl")
        seed = facts["arm"].rpartition("_s")[2]
        for path in sorted((arm / facts["folder"] / "analysis/cards").glob("*_*.json")):
            first = path.name.startswith("0_")
            card, answers = json.loads(path.read_text()), lines_of(path.with_suffix(".answers.jsonl"))
            stage = STAGE.fullmatch(path.stem)
            known = {**facts, "steps": card["step"], "answers": 0, "cut": ""} if first or stage else facts
            name = "base" if first else f"{part}_{stage[1]}_s{seed}" if stage else f"{part}_s{seed}"
            yield Part(name, known, card, answers, [] if first or stage else steps)


def set_of(problem: str) -> str:
    """Which set a problem's id belongs to."""
    own = MEMBER.sub("", problem)
    return next((name for start, name in SETS.items() if own.startswith(start)), "other")


def task_of(problem: str) -> str:
    """The kind of a problem within its set, where its id says so."""
    own, data = MEMBER.sub("", problem), set_of(problem)
    words = own.split(":")
    return words[0] if data == "np" else f"{words[1]} numbers" if data == "countdown" else data


def goals_of(card: Facts) -> dict[str, Facts]:
    """What phases are for, by set; a card of one set has its numbers without the set's name."""
    sets = {key.rpartition("/")[0] for key in card["metrics"] if key.endswith("/accepted_at_1")}
    named = {one: f"{one}/" for one in sets} or {next(map(set_of, card["outcomes"]), "other"): ""}
    return {
        one.removesuffix("_test"): {
            key: short(card["metrics"][start + key]) for key in GOALS if card["metrics"].get(start + key) is not None
        }
        for one, start in named.items()
    }


def second_tries(answers: Iterable[Facts]) -> dict[str, dict[str, str]]:
    """By set: of each failed problem whether the second try was right, and whether a blind one was, as 0 and 1."""
    found: dict[str, dict[str, dict[int, bool]]] = {}
    for row in answers:
        if row["turn"] and row["correct"] is not None:
            found.setdefault(set_of(row["problem"]), {}).setdefault(row["problem"], {})[row["turn"]] = row["correct"]
    marks = {}
    for name, problems in found.items():
        both = [problems[key] for key in sorted(problems) if len(problems[key]) == 2]
        told, blind = ("".join(str(int(one[turn])) for one in both) for turn in (1, -1))
        marks[name] = {"told": told, "blind": blind}
    return marks


def forms_of(answers: Iterable[Facts]) -> dict[str, int]:
    """How many first answers to MBPP are written in each form."""
    texts = [row["answer"] for row in answers if row["turn"] == 0 and set_of(row["problem"]) == SHOWN]
    return {name: sum(bool(form.search(text)) for text in texts) for name, form in FORMS.items()} if texts else {}


def short(value: Any) -> Any:
    """Four digits are enough."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def arm_facts(part: Part) -> Facts:
    """How a part was trained, and what its card says."""
    rows = [row for row in part.steps if row.get("phase_step") and "time/step_s" in row]
    facts = {key: short(part.facts[key]) for key in ("steps", "answers", "cut", "seconds", "card_s", "memory_gb")}
    facts |= {key: part.facts[key] for key in ("code", "device", "torch")}
    facts |= {"started": round(part.facts["started"]), "train_s": short(facts["seconds"] - facts["card_s"])}
    facts["memory_gb"] = facts["memory_gb"] or 0
    if rows and "groups/zero_variance" in rows[0]:
        facts["curves"] = {name: [short(row.get(key, 0.0)) for row in rows] for name, key in CURVES.items()}
    if rows and CREDIT["traced"] in rows[0]:
        facts["credit"] = {name: [short(row[key]) for row in rows] for name, key in CREDIT.items()}
    if rows and APART["ess"] in rows[0]:
        facts["apart"] = {name: [short(row[key]) for row in rows] for name, key in APART.items()}
    errors = Counter((set_of(row["problem"]), row["error"]) for row in part.answers if row["turn"] == 0)
    facts["errors"] = {f"{data}: {error}": count for (data, error), count in sorted(errors.items())}
    facts["forms"] = forms_of(part.answers)
    return {**facts, "goals": goals_of(part.card), "second": second_tries(part.answers)}


def kept(parts: list[Part], sampled: dict[str, Facts], against: list[tuple[str, str]]) -> Facts:
    """Everything the tables are made of, base first; problems that some arm has no verdict on are left out for all."""
    parts = sorted(parts, key=lambda part: part.name != "base")
    shared = set.intersection(*(set(part.card["outcomes"]) for part in parts))
    every = set.union(*(set(part.card["outcomes"]) for part in parts))
    sets = [*dict.fromkeys(SETS.values()), "other"]
    found = {data: [name for name in sorted(shared) if set_of(name) == data] for data in sets}
    problems = {data: names for data, names in found.items() if names}
    marks = {data: {"greedy": greedy_marks(parts, names)} for data, names in problems.items()}
    for arm, facts in sampled.items():
        right = {i: count for one in facts["sets"].values() for i, count in one["right"].items()}
        for data, names in problems.items():
            if some := [i for i in names if i in right]:
                # Where only some problems were sampled they are a set of their own, with its greedy answers.
                of = data if len(some) == len(names) else f"{data} ({len(some)} problems)"
                marks.setdefault(of, {"greedy": greedy_marks(parts, some)})
                marks[of].setdefault("sampled", {})[arm] = [right[i] for i in some]
    return {
        "samples": max((facts["n"] for facts in sampled.values()), default=16),
        "against": against,
        "left_out": sorted(every - shared),
        "skills": {data: [task_of(name) for name in names] for data, names in problems.items()},
        "arms": {part.name: arm_facts(part) for part in parts},
        "outcomes": marks,
    }


def greedy_marks(parts: list[Part], names: list[str]) -> dict[str, str]:
    """By arm: whether its greedy answer to each problem was right, as 0 and 1."""
    return {part.name: "".join(str(int(part.card["outcomes"][i])) for i in names) for part in parts}


def save(path: Path, made: Facts) -> None:
    """One line per entry, and a word about it."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in made.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + lines + "\n}\n")
    print(f"{path.name}: {', '.join(made['arms'])}; left out: {made['left_out'] or 'nothing'}")


def sampled_of(raw: Path) -> dict[str, Facts]:
    """Samples at T = 1 by the arm whose policy was asked."""
    found = {}
    for path in sorted(raw.glob("results/*.sampled.json")):
        facts = json.loads(path.read_text())
        arm, _, part = (facts["start"] or "").partition("/")
        found[f"{part}_s{arm.rpartition('_s')[2]}" if part else "base"] = facts
    return found


def in_hash_order(problems: Iterable[str]) -> list[str]:
    """An order that nobody chose."""
    return sorted(problems, key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def gallery(parts: dict[str, Part]) -> Iterator[Facts]:
    """Pairs of answers to the same problem: before and after training, and first and second tries after repair."""
    firsts = {name: {row["problem"]: row for row in part.answers if row["turn"] == 0} for name, part in parts.items()}
    seconds = {row["problem"]: row for row in parts["repair_s0"].answers if row["turn"] == 1}
    before, after = firsts["base"], firsts["grpo_s0"]
    kinds = {
        "became right": [(before[i], after[i]) for i in before if not before[i]["correct"] and after[i]["correct"]],
        "became wrong": [(before[i], after[i]) for i in before if before[i]["correct"] and not after[i]["correct"]],
        "mended": [(firsts["repair_s0"][i], row) for i, row in seconds.items() if row["correct"]],
        "not mended": [(firsts["repair_s0"][i], row) for i, row in seconds.items() if row["correct"] is False],
    }
    for kind, pairs in kinds.items():
        some = {a["problem"]: (a, b) for a, b in pairs if set_of(a["problem"]) == SHOWN}
        fit = [name for name, pair in some.items() if max(len(row["answer"]) for row in pair) <= LONGEST]
        for name in in_hash_order(fit)[: WANTED[kind]]:
            yield {"kind": kind, "of": len(some), "problem": name, "answers": [shown(row) for row in some[name]]}


def shown(row: Facts) -> Facts:
    """An answer and its verdict, without the examples that it copied."""
    facts = {key: row[key] for key in ("correct", "error", "passed", "total")}
    return {"answer": ASSERTION.sub(r"\1assert …", row["answer"]), **facts}


def main() -> None:
    """Write the files."""
    raw = Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "results"
    target.mkdir(parents=True, exist_ok=True)
    parts, sampled = list(parts_of(raw)), sampled_of(raw)
    groups = {"qwen_coder": [p for p in parts if "gsm8k" not in p.facts["arm"]],
              "gsm8k": [p for p in parts if "gsm8k" in p.facts["arm"]]}  # fmt: skip
    for name, some in groups.items():
        if some:
            code = name == "qwen_coder"
            save(target / f"{name}.json", kept(some, sampled if code else {}, AGAINST if code else GSM8K))
    by_name = {part.name: part for part in groups["qwen_coder"]}
    if {"base", "grpo_s0", "repair_s0"} <= by_name.keys():
        rows = [json.dumps(row, ensure_ascii=False) for row in gallery(by_name)]
        (target / "qwen_answers.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        print(f"qwen_answers.jsonl: {len(rows)} pairs")


if __name__ == "__main__":
    main()
