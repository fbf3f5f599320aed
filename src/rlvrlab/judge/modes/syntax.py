"""Compile and format checks: nothing of the program runs, and it is parsed in the jail."""

from __future__ import annotations

from rlvrlab.judge.finding import Finding, failure_of, records_of
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import SyntaxTask
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.worker import Worker


async def judge_syntax(worker: Worker, code: str, task: SyntaxTask) -> Finding:
    """One test for compiling, one for every rule."""
    rules = len(task.functions) + len(task.forbidden) + task.docstrings + (task.longest_line is not None)
    finding = Finding(total=1 + rules)
    ran = await worker.run(Order({"role": "syntax", "code": code}, task.limits, scratch=False))
    finding.spent(ran)
    records = records_of(ran)
    if failure := failure_of(ran, task.limits, records):
        finding.fail(failure[0], failure[1], *failure[2])
        return finding
    broken = ["the program could not be read"]
    if records:
        facts = records[0][1]
        broken = [f"no function {wanted}" for wanted in task.functions if wanted not in facts["functions"]]
        broken += [f"{name} is not allowed" for name in task.forbidden if name in facts["names"]]
        if task.docstrings and facts["undocumented"]:
            broken.append(f"no docstring: {', '.join(facts['undocumented'])}")
        if task.longest_line is not None and facts["longest_line"] > task.longest_line:
            broken.append(f"a line of {facts['longest_line']} characters, at most {task.longest_line}")
    finding.passed = finding.total - len(broken)
    if broken:
        finding.fail(Outcome.WRONG_ANSWER, "; ".join(broken))
    return finding
