"""Where blame by execution lands in a 1.5B model's programs: python studies/paper_a_credit_assignment/qwen_where.py

    python studies/paper_a_credit_assignment/qwen_where.py keep RAW DATA/mbpp_test.jsonl

`keep` reads the greedy answers of the policies in RAW (what keep_qwen_round.py reads) to MBPP's test problems. Those to
one problem are a group: each failed one is followed in the jail beside the right ones of the other policies, as
`credit.type = "trace"` does with the answers of a training step. Nothing of the data set is kept, and of the programs
some that were chosen by a hash. Without `keep` the tables are printed from what was kept.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "coding_five_phase"))
from exam_tables import markdown
from keep_qwen import ASSERTION, FORMS, SHOWN, in_hash_order, parts_of, set_of

from rlvrlab.credit.trace import Trace
from rlvrlab.data.loading import load
from rlvrlab.envs.code import Code
from rlvrlab.evals.statistics import wilson
from rlvrlab.train.credit.credited import Credited
from rlvrlab.train.credit.trace import trace_credits
from rlvrlab.types import Completion, Reward, Rollout, Verdict

RESULTS = Path(__file__).parent / "results" / "qwen_where.json"
EXAMPLES, LONGEST = 4, 700
"""Programs that are shown, and the most characters of one."""


def groups(raw: Path, data: Path, env: Code) -> list[Rollout]:
    """The policies' answers, those to one problem after each other, the same text once."""
    problems = {problem.id: problem for problem in load(data, "evaluate", env).problems}
    found: dict[str, dict[str, Rollout]] = {}
    for part in (one for one in parts_of(raw) if one.facts["arm"].startswith("credit")):
        for row in part.answers:
            if row["turn"] == 0 and set_of(row["problem"]) == SHOWN and row["correct"] is not None:
                name, text = row["problem"], row["answer"]
                completion = Completion(text, tuple(map(ord, text)), ())
                verdict, reward = Verdict(row["correct"]), Reward(float(row["correct"]))
                rollout = Rollout(f"{part.name}/{name}", name, problems[name], (), completion, verdict, reward)
                found.setdefault(name, {}).setdefault(text, rollout)
    return [rollout for name in sorted(found) for rollout in found[name].values()]


def keep(raw: Path, data: Path) -> None:
    """Follow the programs and write down which statement of each was blamed."""
    env = Code(timeout_s=2.0)
    rollouts = groups(raw, data, env)
    found = trace_credits(Trace(), rollouts, env, lambda tokens: "".join(map(chr, tokens)))
    failed = [one for one in rollouts if not one.verdict.correct]
    right = {one.group_id for one in rollouts if one.verdict.correct}
    blamed = [blame(one) for one in found.answers.values()]
    shown = {one.trajectory.rollout.group_id: example(one) for one in found.answers.values()}
    short = [name for name, facts in shown.items() if may_be_shown(facts)]
    made = {
        "answers": len(rollouts), "failed": len(failed), "compared": sum(one.group_id in right for one in failed),
        "blamed": blamed, "examples": [shown[name] for name in in_hash_order(short)[:EXAMPLES]],
    }  # fmt: skip
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in made.items())
    RESULTS.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def step_of(one: Credited) -> int:
    """The number of the statement that is blamed."""
    return next(i for i, credit in enumerate(one.raw_S) if credit < 0)


def blame(one: Credited) -> list[Any]:
    """The kind of the statement that is blamed, its number, and the kinds of all statements."""
    kinds, step = [own.kind for own in one.trajectory.segments.steps], step_of(one)
    return [kinds[step], step, kinds]


def example(one: Credited) -> dict[str, Any]:
    """The program by lines, without assertions, which are the data set's, and the line that is blamed."""
    segments = one.trajectory.segments
    start, end = segments.region
    step = segments.steps[step_of(one)]
    first = step.span[0] + len(step.text) - len(step.text.lstrip())
    lines = ASSERTION.sub(r"\1assert …", segments.text[start:end]).rstrip("\n").split("\n")
    return {
        "problem": one.trajectory.rollout.group_id, "policy": one.trajectory.rollout.id.partition("/")[0],
        "lines": lines, "blamed": segments.text.count("\n", start, first),
    }  # fmt: skip


def may_be_shown(facts: dict[str, Any]) -> bool:
    """Short, and without a docstring, which repeats the question."""
    program = "\n".join(facts["lines"])
    return len(program) <= LONGEST and not FORMS["docstring"].search(program)


def by_kind(made: dict[str, Any]) -> str:
    """How often each kind is blamed, beside how much of the programs it is."""
    blamed = Counter(kind for kind, _, _ in made["blamed"])
    there = Counter(kind for *_, kinds in made["blamed"] for kind in kinds)
    rows = []
    for kind, count in blamed.most_common():
        low, high = wilson(count, len(made["blamed"]))
        share = f"{100 * count / len(made['blamed']):.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        rows.append([kind, str(count), share, f"{100 * there[kind] / there.total():.1f}"])
    return markdown(["kind of statement", "blamed", "of all that is blamed, %", "of all statements, %"], rows)


def by_place(made: dict[str, Any]) -> str:
    """How much of a blamed program lies before, at and after the statement."""
    total = sum(len(kinds) for *_, kinds in made["blamed"])
    before = sum(step for _, step, _ in made["blamed"])
    at = len(made["blamed"])
    shares = [f"{100 * part / total:.1f}" for part in (before, at, total - before - at)]
    return markdown(["statements of blamed programs", "before, %", "blamed, %", "spared, %"], [[str(total), *shares]])


def examples(made: dict[str, Any]) -> Iterator[str]:
    """Programs with an arrow at the line that is blamed."""
    for facts in made["examples"]:
        arrows = [f"{line}    # <- blamed" if i == facts["blamed"] else line for i, line in enumerate(facts["lines"])]
        yield f"{facts['problem']}, {facts['policy']}:\n\n" + "\n".join(arrows) + "\n"


def main() -> None:
    """Keep, or print."""
    if sys.argv[1:2] == ["keep"]:
        keep(Path(sys.argv[2]), Path(sys.argv[3]))
    made = json.loads(RESULTS.read_text(encoding="utf-8"))
    failed = f"{made['failed']} failed, {made['compared']} of them beside a right one, {len(made['blamed'])} blamed"
    print(f"{made['answers']} different answers, {failed}\n\n{by_kind(made)}\n\n{by_place(made)}\n")
    print("\n".join(examples(made)))


if __name__ == "__main__":
    main()
