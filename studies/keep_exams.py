"""Keep the small part of arms that were trained and examined: python studies/keep_exams.py RAW FILE.json FORM

RAW has a folder per arm, named KIND_sSEED or `base`, with the file COMMIT, the folders of its examinations by `rlvr
eval` (or exam.json: by examination which problems were asked, and how many answers to each were right and were judged)
and, of a training, metrics.jsonl, config.json, run_info.json and cards. FORM is one of `FORMS` below: which arms and
sets the file holds, and which are compared; or `rates` or `shown`, which read cards. Arms that FILE has already and
RAW has not stay in it. `python studies/exam_tables.py FILE.json` prints the tables. Nothing of the data sets is kept,
and no answer.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent / "coding_five_phase"))
from keep_qwen import CURVES, Facts, Part, kept, save, short

from rlvrlab.record.files import read_lines

MBPP_TEST = range(11, 511)
"""Numbers of MBPP's test split; problems of MBPP+ with other numbers may have been trained on."""
CODE_SETS = {
    "mbpp": ("mbpp", "mbpp16"), "humaneval": ("he", "he16"), "humaneval+": ("heplus", ""),
    "mbpp+ of the test split": ("mbppplus", ""), "mbpp+, others": ("mbppplus", ""),
}  # fmt: skip
PLUS_SETS = {data: (greedy, "") for data, (greedy, _) in CODE_SETS.items()} | {
    "mbpp+, whole": ("mbppplus", ""), "mbpp+ of the test split, base inputs": ("mbppplus_base", ""),
    "mbpp+, others, base inputs": ("mbppplus_base", ""), "mbpp+, whole, base inputs": ("mbppplus_base", ""),
}  # fmt: skip
"""Greedy answers alone, and MBPP+ also by the inputs that MBPP itself has."""

BEFORE = "0_baseline.json"
BETWEEN = "1_after_sql.json"
"""The card of a policy between its second and its third stage."""
LOSSES = {"nll": "sft/nll", "entropy": "actor/entropy", "grad_norm": "actor/grad_norm", "step_s": "time/step_s"}
"""Of every step of SFT, which draws no answers."""
NOT_TRAINED: Facts = {"steps": 0, "answers": 0, "cut": "", "memory_gb": 0, "train_s": 0.0}


class Form(NamedTuple):
    """What a file holds."""

    arms: str
    """A pattern of their names."""
    sets: dict[str, tuple[str, str]]
    """Set -> its greedy examination and, where there is one, the sampled one."""
    samples: int
    against: list[tuple[str, str]]
    prefix: str = ""
    """Of the folders' names, and not of the arms'."""


FORMS = {
    "floor": Form(
        r"base|(floor|grpo)_s\d", CODE_SETS, 16, [("grpo", "floor"), ("base", "grpo"), ("base", "floor")]
    ),
    "plus": Form(r"base|(floor|grpo)_s\d", PLUS_SETS, 1, [("base", "grpo"), ("base", "floor")]),
    "countdown": Form(
        r"base|cd_(grpo|random)_s\d", {"countdown": ("cd", ""), "countdown (100 problems)": ("cd", "cd64")}, 64,
        [("base", "grpo"), ("base", "random"), ("random", "grpo")], "cd_",
    ),
    "mbppplus_old": Form(
        r"base", {"MBPP+ v0.1.0": ("mbppplus_old", ""), "its base inputs": ("mbppbase_old", "")}, 1, []
    ),
}  # fmt: skip
Counts = dict[str, int]
"""By problem."""


def counts_of(exam: Facts, data: str) -> Counts:
    """How many answers were right, of problems of this set whose answers all have a verdict."""
    rows = zip(exam["problems"], exam["right"], exam["judged"], strict=True)
    return {name: right for name, right, judged in rows if judged == exam["n"] and belongs(data, name)}


def belongs(data: str, problem: str) -> bool:
    """MBPP+ is told in two parts, and whole."""
    if not data.startswith("mbpp+, whole") and data.startswith("mbpp+"):
        return (int(problem.split("/")[1]) in MBPP_TEST) == ("test split" in data)
    return True


def marks_of(exams: dict[str, Facts], form: Form) -> Facts:
    """By set the kinds of its problems and by arm what was right; problems that some arm has no verdict on are out.

    An arm that was not examined on a set is left out of it alone, and so is a set that no arm was examined on.
    """
    skills, outcomes, left_out = {}, {}, set[str]()
    for data, pair in form.sets.items():
        known = {name: {arm: one[name] for arm, one in exams.items() if name in one} for name in pair if name}
        if not known[pair[0]]:
            continue
        counts = {name: {arm: counts_of(one, data) for arm, one in arms.items()} for name, arms in known.items()}
        every = [set(one) for of_arm in counts.values() for one in of_arm.values()]
        problems = sorted(set.intersection(*every))
        asked = [{p for one in arms.values() for p in one["problems"] if belongs(data, p)} for arms in known.values()]
        left_out |= set.intersection(*asked) - set(problems)
        skills[data] = [f"{p.split(':')[1]} numbers" if ":" in p else data for p in problems]
        greedy, sampled = counts[pair[0]], counts.get(pair[1])
        outcomes[data] = {"greedy": {arm: "".join(str(one[p]) for p in problems) for arm, one in greedy.items()}}
        if sampled:
            outcomes[data]["sampled"] = {arm: [one[p] for p in problems] for arm, one in sampled.items()}
    return {"left_out": sorted(left_out), "skills": skills, "outcomes": outcomes}


def commit_of(folder: Path) -> str:
    """The code that an arm ran with."""
    return (folder / "COMMIT").read_text(encoding="utf-8").strip()


def with_earlier(path: Path, made: Facts) -> Facts:
    """The same with the arms that were kept before; they must have been asked the same problems, in the same order."""
    if not path.exists():
        return made
    before: Facts = json.loads(path.read_text(encoding="utf-8"))
    if before["skills"] != made["skills"] or before["left_out"] or made["left_out"]:
        raise SystemExit(f"{path}: its arms were asked other problems; keep these in a file of their own")
    outcomes = {
        data: {how: dict(sorted((before["outcomes"][data][how] | arms).items())) for how, arms in measured.items()}
        for data, measured in made["outcomes"].items()
    }
    return made | {"outcomes": outcomes, "arms": dict(sorted((before["arms"] | made["arms"]).items()))}


def exam_of(folder: Path) -> Facts:
    """What an arm was asked and what it knew: its exam.json, or the evaluations in its folders, by their names."""
    if (folder / "exam.json").exists():
        found: Facts = json.loads((folder / "exam.json").read_text(encoding="utf-8"))
        return found
    info = json.loads((folder / "run_info.json").read_text(encoding="utf-8"))
    return device_of(info) | {"exams": {path.parent.name: examined(path.parent) for path in evaluations(folder)}}


def device_of(info: Facts) -> Facts:
    """What it ran on: the cards, or else the processor."""
    machine = info["machine"]
    return {"device": ", ".join(machine.get("gpus") or [machine["processor"]]), "torch": info["packages"]["torch"]}


def evaluations(folder: Path) -> list[Path]:
    """The answers of each."""
    return sorted(folder.glob("*/samples.jsonl"))


def examined(folder: Path) -> Facts:
    """One evaluation, problem by problem."""
    info = json.loads((folder / "run_info.json").read_text(encoding="utf-8"))["examined"]
    rows: dict[str, list[Facts]] = {}
    for row in read_lines(folder / "samples.jsonl"):
        rows.setdefault(row["problem"], []).append(row)
    every, keys = [row for one in rows.values() for row in one], info["scorer"]["keys"]
    return {
        "problems": list(rows), "n": info["protocol"]["n"],
        "right": [sum(row["correct"] is True for row in one) for one in rows.values()],
        "judged": [sum(row["correct"] is not None for row in one) for one in rows.values()],
        "errors": dict(Counter(row["error"] for row in every)),
        "truncated": sum(row["finish"] == "length" for row in every),
        "tokens": sum(row["gen_tokens"] for row in every) / len(every),
        "seconds": max(row["at_s"] for row in every),
        "env": [f"{key}={one if isinstance(one, str) else json.dumps(one)}" for key, one in keys.items()],
        "version": info["scorer"]["version"],
    }  # fmt: skip


def facts_of(folder: Path) -> Facts:
    """How an arm was trained and examined."""
    exam = exam_of(folder)
    told = {
        name: {key: short(one[key]) for key in ("errors", "truncated", "tokens", "seconds", "env", "version")}
        for name, one in exam["exams"].items()
    }
    for one in told.values():
        one["env"] = [without_place(word) for word in one["env"]]
    facts = training_of(folder) | {key: exam[key] for key in ("device", "torch")}
    facts |= {"code": commit_of(folder), "examined": told}
    return facts | ({"forms": sums_of(folder)} if "cd" in exam["exams"] else {})


def without_place(word: str) -> str:
    """An environment's word without where a file lies: path=/a/b/c.jsonl -> path=c.jsonl."""
    return re.sub(r"(^|=)/.*/", r"\1", word)


def training_of(folder: Path) -> Facts:
    """Steps of GRPO or SFT, their answers, seconds and curves, and what cut it; zeros where nothing was trained."""
    if not (folder / "metrics.jsonl").exists():
        return NOT_TRAINED
    rows = [row for row in read_lines(folder / "metrics.jsonl") if {"groups/collected", LOSSES["nll"]} & row.keys()]
    info = json.loads((folder / "run_info.json").read_text(encoding="utf-8"))
    n = json.loads((folder / "config.json").read_text(encoding="utf-8"))["recipe"]["rollout"]["n"]
    words = [word for word in info["command"][3:] if not re.match(r"engine\.model=|output_dir=", word)]
    status = info.get("status", "finished")
    return NOT_TRAINED | {
        "cut": "" if status == "finished" else status,
        "overrides": words, "started": info["started"], "packages": info["packages"], "steps": len(rows),
        "answers": int(sum(row.get("groups/collected", 0) for row in rows)) * n,
        "train_s": short(sum(row["time/step_s"] for row in rows)),
        "curves": {name: [short(row.get(key, 0.0)) for row in rows] for name, key in CURVES.items()},
    }  # fmt: skip


def sums_of(folder: Path) -> dict[str, int]:
    """How greedy answers to Countdown are formed, with n for each number, the most frequent first."""
    if (folder / "cd/samples.jsonl").exists():
        rows = list(read_lines(folder / "cd/samples.jsonl"))
    else:
        with gzip.open(folder / "answers.jsonl.gz", "rt") as file:
            rows = [row for row in map(json.loads, file) if row["exam"] == "cd"]
    found = Counter(
        "not in form" if row["error"] == "format" else re.sub(r"\d+", "n", row["answer"] or "").replace(" ", "")
        for row in rows
    )
    return dict(found.most_common(12))


def rates(raw: Path) -> Facts:
    """Cards of trainings in turn: before and after the first stage, between the other two, and at every arm's end."""
    cards = [("base", raw / "code_s0", BEFORE)]
    for path in sorted(raw.glob("*_s[0-9]")):
        kind, seed = path.name.rsplit("_", 1)
        if (path / "analysis/cards" / BETWEEN).exists():
            cards.append((f"{kind}_after_sql_{seed}", path, BETWEEN))
        cards.append((path.name, path, "1_grpo.json"))
    return kept([part_of(*card) for card in cards], {}, [])


def shown(raw: Path) -> Facts:
    """Cards of trainings by SFT: before the first of them, and after each; with what was set and every step's loss."""
    arms = sorted(raw.glob("shown_*_s[0-9]"))
    cards = [("base", arms[0], BEFORE), *((path.name, path, "1_sft.json") for path in arms)]
    made = kept([part_of(*card) for card in cards], {}, [])
    for path in arms:
        settings = json.loads((path / "config.json").read_text(encoding="utf-8"))["recipe"]["phase_tables"]["sft"]
        rows = [row for row in read_lines(path / "metrics.jsonl") if LOSSES["nll"] in row]
        losses = {name: [short(row[key]) for row in rows] for name, key in LOSSES.items()}
        made["arms"][path.name] |= {"settings": settings, "losses": losses}
    return made


def part_of(name: str, folder: Path, card: str) -> Part:
    """One card of a training; those from before its end have no steps."""
    path, before = folder / "analysis/cards" / card, name == "base" or card == BETWEEN
    info = json.loads((folder / "run_info.json").read_text(encoding="utf-8"))
    facts = NOT_TRAINED if before else training_of(folder)
    known = {**facts, "seconds": facts["train_s"], "card_s": 0.0, "code": commit_of(folder)}
    known |= {"started": datetime.fromisoformat(info["started"]).timestamp()}
    known |= device_of(info)
    answers = list(read_lines(path.with_suffix(".answers.jsonl")))
    return Part(
        name, known, json.loads(path.read_text()), answers, [] if before else list(read_lines(folder / "metrics.jsonl"))
    )


def main() -> None:
    """Write the file."""
    raw, target = Path(sys.argv[1]), Path(sys.argv[2])
    if of_cards := {"rates": rates, "shown": shown}.get(sys.argv[3]):
        save(target, of_cards(raw))
        return
    form = FORMS[sys.argv[3]]
    found = {at.name: at for at in sorted(raw.iterdir()) if (at / "exam.json").exists() or evaluations(at)}
    folders = {name.removeprefix(form.prefix): at for name, at in found.items() if re.fullmatch(form.arms, name)}
    exams = {arm: exam_of(at)["exams"] for arm, at in folders.items()}
    made = {"samples": form.samples, "against": form.against, **marks_of(exams, form)}
    if not made["outcomes"]:
        raise SystemExit(f"{raw}: no arm of this form was examined on a set of it")
    made["arms"] = {arm: facts_of(at) for arm, at in folders.items()}
    save(target, with_earlier(target, made))


if __name__ == "__main__":
    main()
