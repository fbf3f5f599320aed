"""Keep the small part of a suite before and after a training: python studies/npg_muse/keep_suite.py RAW FILE.json

RAW has the folders base, sft and grpo, one for each policy, with the file COMMIT and, anywhere below, the evaluation
folders that `rlvr suite graphs -o …` made; and train, the training's metrics.jsonl, run_info.json, config.json and,
anywhere below, its folder cards. A policy that was not examined is left out. FILE is what exam_tables.py reads, with
the training's own test problems as one more set; suite_tables.py prints the tables. Nothing of the problems is kept
but their number, and no answer.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from keep_exams import NOT_TRAINED, commit_of, training_of, without_place
from keep_qwen import Facts, lines_of, save, short, task_of

from rlvrlab.evals.compare import first_turns
from rlvrlab.evals.suites import members_of
from rlvrlab.recipe.schema import instantiate
from rlvrlab.record.evaluation import METRICS, Stored, read_evaluations

ARMS = {"base": "baseline", "sft": "sft", "grpo": "grpo"}
"""Policy -> the training's card of it."""
OWN = "own test problems"
MARK = "###"
MARK_BEHIND = re.compile(rf"([^\n]*[^\s#])\s*{MARK}\s*\Z")
"""The last line that says something, where nothing but the mark stands behind it."""
Marks = dict[str, dict[str, bool | None]]
"""By policy and problem whether the answer is right; None: no verdict."""


def suite_of(folder: Path) -> dict[str, Stored]:
    """A policy's finished evaluations by set."""
    found = read_evaluations(sorted(path.parent for path in folder.rglob(METRICS)))
    by_set = {one.examined["data"]: one for one in found}
    if len(by_set) < len(found):
        raise SystemExit(f"{folder}: a set was examined twice; leave the evaluation that is to be kept")
    return by_set


def marks_of(by_arm: dict[str, Stored]) -> Marks:
    """What was right of one set of the suite."""
    first, *others = (one.examined for one in by_arm.values())
    for key in ("data_hash", "protocol_hash"):
        if any(other[key] != first[key] for other in others):
            raise SystemExit(f"{first['data']}: the policies were not asked alike ({key})")
    return {arm: {key: one.accepted for key, [one] in first_turns(stored).items()} for arm, stored in by_arm.items()}


def mark_behind(stored: Stored) -> Facts:
    """How many answers have their mark behind what they say and not before it, and how many of these say the right
    thing: the judge is asked of the same words with the mark before them."""
    scorer, problems = stored.examined["scorer"], {problem.id: problem for problem in stored.problems}
    env = instantiate("env", {"type": stored.info["scorer_type"], **scorer["keys"]}, Path())
    found = [(problems[row["problem"]], MARK_BEHIND.search(row["completion"])) for row in stored.rows]
    turned = [(problem, f"{MARK} {said[1]}") for problem, said in found if said]
    return {"answers": len(turned), "right": sum(verdict.correct is True for verdict in env.verify_many(turned))}


def facts_of(stored: Stored) -> Facts:
    """How one set was asked and answered."""
    answers = [one for answers in first_turns(stored).values() for one in answers]
    scorer, told = stored.examined["scorer"], stored.info
    return {
        "step": stored.examined["who"].get("step"),
        "errors": dict(sorted(Counter(one.error_type for one in answers).items())),
        "truncated": sum(one.truncated for one in answers),
        "mark_behind": mark_behind(stored),
        "tokens": short(sum(one.gen_tokens for one in answers) / len(answers)),
        "tokens_at_most": stored.examined["protocol"]["sampling"]["max_tokens"],
        "env": [without_place(f"{key}={value}") for key, value in scorer["keys"].items()],
        "version": scorer["version"],
        "device": ", ".join(told["machine"].get("gpus", ())),
        "torch": told["packages"].get("torch"),
    }


def own_of(train: Path) -> tuple[Marks, dict[str, Facts]]:
    """Of the training's own test problems what was right after each phase, and what errors the others were."""
    marks: Marks = {}
    told: dict[str, Facts] = {}
    for path in sorted(train.rglob("cards/?_*.json")):
        card = json.loads(path.read_text(encoding="utf-8"))
        for arm in (arm for arm, phase in ARMS.items() if phase == card["phase"]):
            rows = [row for row in lines_of(path.with_suffix(".answers.jsonl")) if row["turn"] == 0]
            metrics, protocol = card["metrics"], card["asked"]["protocol"]
            marks[arm] = {name: bool(right) for name, right in card["outcomes"].items()}
            told[arm] = {
                "step": card["step"],
                "errors": dict(sorted(Counter(row["error"] for row in rows).items())),
                "truncated": round(metrics["truncated_rate"] * metrics["samples"]),
                "tokens": short(metrics["avg_gen_tokens"]),
                "tokens_at_most": protocol["sampling"]["max_tokens"],
            }
    return marks, told


def outcomes_of(sets: dict[str, Marks]) -> Facts:
    """Of every set 0 and 1 in the same order for all; problems without a verdict in some policy are out, and named."""
    skills, outcomes, left_out = {}, {}, list[str]()
    for data, by_arm in sets.items():
        every = next(iter(by_arm.values()))
        known = [key for key in every if all(one.get(key) is not None for one in by_arm.values())]
        left_out += [f"{data}: {index}" for index, key in enumerate(every) if key not in known]
        skills[data] = [task_of(key) if data == OWN else data for key in known]
        outcomes[data] = {
            "greedy": {arm: "".join(str(int(bool(one[key]))) for key in known) for arm, one in by_arm.items()}
        }
    return {"left_out": left_out, "skills": skills, "outcomes": outcomes}


def kept(raw: Path) -> Facts:
    """Everything the tables are made of."""
    suites = {arm: suite_of(raw / arm) for arm in ARMS if (raw / arm).is_dir()}
    names = [one.name for one in members_of("graphs") if any(one.name in found for found in suites.values())]
    sets = {data: marks_of({arm: one[data] for arm, one in suites.items() if data in one}) for data in names}
    own, told = own_of(raw / "train")
    arms = {}
    for arm, one in suites.items():
        trained = training_of(raw / "train") if arm == "grpo" else NOT_TRAINED
        examined = {data: facts_of(one[data]) for data in names if data in one}
        if arm in told:
            examined[OWN] = told[arm]
        arms[arm] = {**trained, "code": commit_of(raw / arm), "examined": examined}
    against = [["base", "sft"], ["base", "grpo"], ["sft", "grpo"]]
    return {"samples": 1, "against": against, **outcomes_of(sets | ({OWN: own} if own else {})), "arms": arms}


def main() -> None:
    """Write the file."""
    save(Path(sys.argv[2]), kept(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
