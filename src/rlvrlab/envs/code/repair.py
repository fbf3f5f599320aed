"""code_repair: repair a program with a bug; hidden tests decide. HumanEvalFix, QuixBugs and files like them.

`rlvr data prepare mbpp --env code_repair` makes training data of right programs: each gets `bugs` bugs (bugs.py), and
only those that a test notices, in the jail, become problems. They keep the role of the program they are made from.

    id         Python/0
    prompt     This Python function has a bug. Repair it. … ```python\\ndef has_close_elements(…): …```
    completion the whole function in a ```python block
    reference  {"entry_point": …, "tests": […], …, "given": the buggy program}
    meta       {"solution": …, "examples": [asserts from the docstring]}

Traps. HumanEvalFix is often prompted with its tests, which hands out what decides: here only the program and its
docstring are shown. The unchanged program is refused without running, so it farms no share of passed tests; layout,
comments and docstrings are no change.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlvrlab.envs.base import Read
from rlvrlab.envs.code.bugs import bugs
from rlvrlab.envs.code.cheats import function_cheats
from rlvrlab.envs.code.from_file import ANSWER_FUNCTION, FileEnvironment
from rlvrlab.envs.code.judged import Jobs, refused
from rlvrlab.envs.code.rewriting import same_program
from rlvrlab.envs.code.rows import CodeRow
from rlvrlab.envs.code.samples import REPAIR_ROWS
from rlvrlab.envs.code.shapes import REPAIR
from rlvrlab.envs.code.shared_judge import settled
from rlvrlab.envs.data_files import Row
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import program_in, python_block
from rlvrlab.registry import register
from rlvrlab.types import Count, ErrorKind, Problem, Role, Verdict

TRIAL_S = 0.5
"""CPU seconds for a program that is tried while data is prepared."""
MADE = ":bug"
"""In the id of a bug that was made: between the origin's id and the bug's number."""


@register("env", "code_repair")
@dataclass(frozen=True)
class CodeRepair(FileEnvironment):
    """Repair a program with a bug; hidden tests decide."""

    bugs: Count = 2
    """Bugs made of one right program, where data without bugs is prepared."""

    version = "2"
    shapes = REPAIR
    samples = REPAIR_ROWS

    def problems_of(self, row: CodeRow, role: Role) -> list[Problem]:
        """The buggy program, with what it should do where the row says so; none of a row without a bug."""
        if row.buggy is None:
            return []
        described = "" if row.begun or not row.text else f"\n\n{row.text}"
        given = row.buggy.strip("\n")
        asked = f"This Python function has a bug. Repair it. {ANSWER_FUNCTION}{described}\n\n```python\n{given}\n```\n"
        prompt = f"{given}\n\n# The same without the bug:\n" if self.style == "bare" else asked
        return [self.problem_of(row, role, prompt, given=row.buggy)]

    def rows(self) -> list[CodeRow]:
        """Rows with a bug; a file of right programs has to be prepared first, where its bugs are tried."""
        found = super().rows()
        if found and all(row.buggy is None for row in found):
            remedy = "make verified bugs of them: `rlvr data prepare mbpp --env code_repair --from FILE`"
            raise UserError(f"{self.path}: holds right programs, nothing to repair; {remedy}")
        return found

    def read_row(self, row: Row) -> Read | None:
        """A row with a bug as it is; of a right program the bugs that could be made, each of them to be tried."""
        read = self.shaped_row(row)
        if read is None or read.buggy is not None:
            return super().read_row(row)
        if read.solution is None or not read.entry_point:
            return None
        made = [
            replace(read, id=f"{read.id}{MADE}{i}", buggy=text)
            for i, text in enumerate(bugs(read.solution, "bugs", read.id))
        ]
        # By the words of the origin alone: its bugs are split, and dropped as duplicates, as it is.
        return Read.by_text(read.text, lambda role: [p for one in made for p in self.problems_of(one, role)])

    def bad_tasks(self, problems: Sequence[Problem]) -> dict[str, str]:
        """As for every code data set; of bugs that were made, also those that no test notices and those in excess."""
        made: dict[str, list[Problem]] = defaultdict(list)
        for problem in problems:
            if MADE in problem.id:
                made[problem.id.rpartition(MADE)[0]].append(problem)
        bad = super().bad_tasks([problem for problem in problems if MADE not in problem.id])
        quick = replace(self, timeout_s=min(self.timeout_s, TRIAL_S), every_test=False)
        firsts = [group[0] for group in made.values()]
        golds = quick.verify_many([(problem, str(self.gold(problem))) for problem in firsts])
        for group, verdict in zip(list(made.values()), golds, strict=True):
            if not settled(verdict, group[0].id).correct:
                bad |= {problem.id: f"its own solution is refused: {verdict.detail}" for problem in group}
                group.clear()
        return bad | quick.unnoticed(made)

    def unnoticed(self, made: Mapping[str, list[Problem]]) -> dict[str, str]:
        """Of each origin's bugs all but the first `bugs` that a test notices, tried in rounds."""
        waiting, bad = {origin: deque(group) for origin, group in made.items()}, {}
        kept: Counter[str] = Counter()
        while batch := [
            (origin, queue.popleft())
            for origin, queue in waiting.items()
            for _ in range(min(len(queue), self.bugs - kept[origin]))
        ]:
            jobs = [(self.task(p.reference, p.reference["tests"]), str(p.reference["given"])) for _, p in batch]
            for (origin, problem), verdict in zip(batch, self.judge(jobs, [p.id for _, p in batch]), strict=True):
                if settled(verdict, problem.id).correct is False and verdict.error is not ErrorKind.TIMEOUT:
                    kept[origin] += 1
                    continue
                endless = verdict.error is ErrorKind.TIMEOUT
                unjudged = f"could not be tried: {verdict.detail}" if verdict.correct is None else "no test notices it"
                bad[problem.id] = "it makes the program run for ever" if endless else unjudged
        return bad | {problem.id: f"{self.bugs} others are enough" for queue in waiting.values() for problem in queue}

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """The unchanged program needs no judge."""
        reference = problem.reference
        found = program_in(text, reference["entry_point"], reference["begun"])
        if found.code is not None and same_program(found.code, reference["given"]):
            return refused(ErrorKind.RULE, "the program is unchanged", found.code, compiled=True)
        return super().prepare(problem, text)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """As for writing a function, and doing nothing."""
        given = str(problem.reference["given"])
        return {
            **function_cheats(problem),
            "unchanged": python_block(given),
            "unchanged with a comment": python_block(f"{given}\n# repaired"),
            "unchanged after the right one": f"{problem.meta['solution']}\n{python_block(given + ' ')}",
        }
