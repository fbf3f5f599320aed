"""answers: questions and answers of the user's own, from any table; a matcher decides.

    [env]                          {"question": "Capital of France?", "reply": "Paris", "continent": "Europe"}
    type = "answers"
    path = "capitals.jsonl"        prompt      Capital of France?\\nPut the final answer inside <answer> </answer>.
    prompt = "question"            completion  It is <answer>Paris</answer>
    answer = "reply"               reference   "Paris"
    matcher = "exact"              meta        {"question": …, "continent": "Europe"}

`path` is a data file, or a folder with train and perhaps dev and test files. Roles come from the file's name, from the
column `split`, else from the content. A function `my_file.py:right` as matcher is the user's own code and gets the
problem and the answer as it stands at its place.

Traps: equal questions with different answers teach nothing and are refused; what also stands in test is not trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from rlvrlab.envs.answer_cheats import denied, unthought
from rlvrlab.envs.answers import KEPT, same
from rlvrlab.envs.base import Read
from rlvrlab.envs.code.judged import Jobs, JudgedEnvironment
from rlvrlab.envs.code.rows import SPLITS
from rlvrlab.envs.data_files import (
    ENDINGS,
    Row,
    bare_name,
    filled,
    is_data_file,
    located,
    near_files,
    read_row,
    read_rows,
)
from rlvrlab.envs.files_read import kept_with_files
from rlvrlab.envs.function import all_said_by
from rlvrlab.envs.matchers import LONGEST, MATCHERS, Matcher
from rlvrlab.envs.mathematics.shapes import LETTERS
from rlvrlab.envs.split import ROLES, Asked, each_once, role_in_training_set, role_of_question
from rlvrlab.errors import UserError, quoted, refuse_other_arguments, suggestion
from rlvrlab.fingerprint import CHANGED, fingerprint, same_code
from rlvrlab.judge.extract import boxed, hashed, python_block, tagged
from rlvrlab.judge.keys import state_of
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.randomness import problem_name, shuffled
from rlvrlab.recipe.schema import PluginTable
from rlvrlab.registry import file_of, is_own, own_names, own_object, register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

PLAIN = (str, int, float, list, dict, type(None))


class Style(NamedTuple):
    """How an answer is asked for, read and written."""

    ask: str
    read: Callable[[str], str | None]
    write: str


def _last_line(tail: str) -> str | None:
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return lines[-1] if lines else None


STYLES = {
    "tags": Style("Put {asked} inside <answer> </answer>.", tagged, "<answer>{answer}</answer>"),
    "box": Style("Put {asked} in \\boxed{{}}.", boxed, "\\boxed{{{answer}}}"),
    "####": Style("End with a line that holds #### and {asked}.", hashed, "#### {answer}"),
    "last line": Style("Give {asked} on the last line.", _last_line, "{answer}"),
    "bare": Style("", str.strip, "{answer}"),
}


@register("env", "answers")
@dataclass(frozen=True)
class Answers(JudgedEnvironment, PluginTable):
    """Questions and answers from a file of your own."""

    path: str = ""
    """A .jsonl, .json, .csv (also .gz) or .parquet file, or a folder with train, dev and test files. Looked for beside
    the recipe, in $RLVRLAB_DATA, in the working directory."""
    prompt: str = "question"
    """The question: a column, or a template such as "{context}\\n{question}"."""
    answer: str = "answer"
    """The right answer: a column or a template."""
    matcher: str = "exact"
    """exact, text, number, choice, regex, mathematics, json, sql, code, or a function of yours: "my_file.py:right"."""
    style: Literal["", "tags", "box", "####", "last line", "bare"] = ""
    """Where the answer stands; empty: tags, and for sql and code a block. bare: the whole completion, for tiny
    policies."""
    system: str = ""
    """Text before every question."""
    split: str = "split"
    """Column with train, dev or test; where there is none, file names or the content decide."""
    choices: str = ""
    """Column with the list of choices, or a column for each ("a,b,c"), shown as A) … below the question."""
    skill: str = ""
    """Column with the name under which success is reported; empty: answers."""
    code: str = ""
    """The matcher function's fingerprint; given only by a run's own record."""

    version = "3"

    def __post_init__(self) -> None:
        if not is_own(self.matcher) and self.matcher not in MATCHERS:
            known = suggestion(self.matcher, MATCHERS)
            raise UserError(f'answers: matcher = {self.matcher!r}: unknown{known}; or a function: "my_file.py:right"')
        if self.style and (self.style not in STYLES or self.how.block):
            allowed = "leave it out, the answer stands in a block" if self.how.block else ", ".join(STYLES)
            raise UserError(f"answers: style = {self.style!r} with matcher {self.matcher!r}: allowed: {allowed}")

    def beside(self, folder: Path) -> Self:
        """Data and function are looked up beside the recipe first; what the function does is recorded."""
        found = replace(self, path=located(self.path, folder))
        if not is_own(self.matcher):
            return found
        matcher = f"{file_of(self.matcher, folder, Path())}:{self.matcher.rpartition(':')[2]}"
        code = fingerprint(_function(matcher))
        if self.code and not same_code(self.code, code):
            raise UserError(f"matcher {self.matcher!r} is not what it was ({self.code} → {code}); {CHANGED}")
        return replace(found, matcher=matcher, code=code)

    @property
    def how(self) -> Matcher:
        """What the answer column means; a function gets it as it is."""
        return MATCHERS.get(self.matcher, MATCHERS["exact"])

    @property
    def runs_answers(self) -> bool:  # type: ignore[override]
        """Programs and queries are run; other answers are only compared."""
        return bool(self.how.block)

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Those of this role in keyed order: `size` of them, or as many as there are."""
        if not self.path:
            raise UserError('answers: no path; write path = "FILE" under [env], `rlvr data preview FILE` shows how')
        path = Path(self.path)
        if not path.exists():
            where = f"looked beside the recipe, in $RLVRLAB_DATA and in {Path().absolute()}"
            raise UserError(f"{path}: no such file{near_files(path)}; {where}")
        found = self.by_role()
        if not found[role]:
            counts = ", ".join(f"{len(found[one])} {one}" for one in reversed(ROLES))
            remedy = f"add rows, a column {self.split!r} that says so, or a file {role}.jsonl in a folder"
            raise UserError(f"{self.path}: no {role} rows ({counts}); {remedy}")
        return shuffled(list(found[role]), seed, self.name, role)[:size]

    def by_role(self) -> dict[Role, tuple[Problem, ...]]:
        """All problems of the file or folder; a UserError names the first row that cannot be one."""
        return _by_role(self, tuple([(str(one), state_of(one)) for _, one in _files(Path(self.path))]))

    def read_row(self, row: Row) -> Read:
        """A row of the user's table, as prepared by `rlvr data prepare FILE --env answers`."""
        question, made = self.problem_in(row, Path(self.path).parent)
        return Read.by_text(question, lambda role: [replace(made, role=role)])

    def gold(self, problem: Problem) -> str | None:
        """The right answer at its place."""
        right = self.how.gold(problem.reference)
        return None if right is None else self._complete(right)

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge many in one call of the judge, or by the user's function."""
        found = [(problem, self._answer(problem, text)) for problem, text in items]
        if not is_own(self.matcher):
            answers = [answer and answer[:KEPT] for _, answer in found]
            verdicts = super().verify_many(items)
            return [replace(verdict, answer=answer) for verdict, answer in zip(verdicts, answers, strict=True)]
        function = _function(self.matcher)
        given = [(problem, answer) for problem, answer in found if answer is not None]
        said = iter(all_said_by(self.matcher.rpartition("/")[2], function, given) if given else [])
        return [self._no_answer() if answer is None else next(said) for _, answer in found]

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """Find the answer; what is plain is settled at once."""
        answer = self._answer(problem, text)
        if answer is None:
            return self._no_answer()
        settled = self.how.judged(problem.reference, answer)
        return settled if isinstance(settled, Verdict) else (settled,)

    def conclude(self, verdicts: Sequence[Verdict], program: str) -> Verdict:
        """Right or not; there is no partial score."""
        [verdict] = verdicts
        if verdict.correct is None:
            return verdict
        formed = verdict.error not in (ErrorKind.FORMAT, ErrorKind.SYNTAX)
        parts = {"format": float(formed), "correct": float(verdict.correct)}
        return replace(verdict, score=float(verdict.correct), parts=parts)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Ways to ask for the reward without answering."""
        right, wrong = self.how.gold(problem.reference) or "right", self.how.wrong(problem.reference)
        answers = {
            "wrong": wrong, "empty": "", "hedge": f"{right} or {wrong}", "list": f"{wrong}, {right}",
            "denied": f"not {right}", "endless": right + " " + "9" * LONGEST, "placeholder": "...",
        }  # fmt: skip
        if self.how.block:  # words around a program are syntax errors, and a wrong line before a right program is not
            answers = {"wrong": wrong, "empty": "", "denied": f"not {right}"}
        cheats = {name: self._complete(answer) for name, answer in answers.items()}
        if self.style == "bare":
            return cheats | {"prompt echoed": problem.prompt}
        marked = not self.how.block and self.style != "last line"
        taken_back = denied(self._complete(right)) if marked else {}
        return cheats | taken_back | unthought(self._complete(right), problem.prompt)

    def _answer(self, problem: Problem, text: str) -> str | None:
        if self.how.block:
            return self.how.read(problem.reference, text).code
        if self.style == "bare":
            return text.strip()
        tail = after_thinking(text)
        return None if tail is None else STYLES[self.style or "tags"].read(tail)

    def _no_answer(self) -> Verdict:
        where = f"a block in {self.how.block}" if self.how.block else f"style {self.style or 'tags'}"
        return same(False, "", ErrorKind.FORMAT, f"no answer at its place ({where})")

    def _complete(self, answer: str) -> str:
        if self.how.block:
            return python_block(answer) if self.how.block == "python" else f"```{self.how.block}\n{answer}\n```"
        return STYLES[self.style or "tags"].write.format(answer=answer)

    def problem_in(self, row: Row, folder: Path) -> tuple[str, Problem]:
        """The question and the problem of a row; KeyError and ValueError say what is wrong with which column."""
        question, value = str(filled(self.prompt, row)).strip(), filled(self.answer, row)
        if not question:
            raise ValueError(f"column {self.prompt!r} is empty; fill it in or leave out the row")
        if self.choices:
            listed = [str(one) for one in _listed(self.choices, row) if one is not None]
            question += "\n" + "\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, listed, strict=False))
            if isinstance(value, int) and 0 <= value < len(listed):  # a choice is given by its position from 0
                value = LETTERS[value]
            elif str(value) in listed:  # or by its text
                value = LETTERS[listed.index(str(value))]
        if isinstance(value, str) and not value.strip() and not is_own(self.matcher):
            raise ValueError(f"column {self.answer!r} is empty; fill it in or leave out the row")
        try:
            reference = value if is_own(self.matcher) else self.how.expected(value, row, folder)
        except ValueError as error:
            raise ValueError(f"column {self.answer!r}: {error}") from None
        meta = {key: one if isinstance(one, PLAIN) else str(one) for key, one in row.items() if key != self.answer}
        skill = str(filled(self.skill, row)) if self.skill else self.name
        name = problem_name("answers", question)
        blocked = f"Give {self.how.asked} in one ```{self.how.block} block."
        form = blocked if self.how.block else STYLES[self.style or "tags"].ask.format(asked=self.how.asked)
        prompt = (f"{self.system}\n\n" if self.system else "") + f"{question}\n{form}"
        return question, Problem(name, self.name, skill, prompt, reference, meta)


@kept_with_files(8)
def _by_role(env: Answers, stamp: tuple[tuple[str, tuple[int, ...]], ...]) -> dict[Role, tuple[Problem, ...]]:
    """All problems of the file or folder, each question once; `stamp` tells a changed file."""
    rows = list(_rows(env))
    given = {said for _, said in rows}
    placed = [row._replace(problem=replace(row.problem, role=_role(row.question, said, given))) for row, said in rows]
    kept = each_once(placed)
    return {role: tuple(problem for problem in kept if problem.role == role) for role in ROLES}


def _rows(env: Answers) -> Iterator[tuple[Asked, Role | None]]:
    """Every row, with the role that its file or its own column names."""
    for by_name, path in _files(Path(env.path)):

        def read(row: Row, folder: Path = path.parent) -> tuple[str, Problem, Role | None]:
            return (*env.problem_in(row, folder), _said(row, env.split))

        for number, row in read_rows(path):
            question, problem, said = read_row(row, f"{path}:{number}", read)
            yield Asked(f"{path}:{number}", question, problem), by_name or said


def _role(question: str, said: Role | None, given: set[Role | None]) -> Role:
    """As the data says; a training set lends what is missing beside it, by content."""
    by_content = role_of_question(question)
    if said in ("dev", "test"):
        return said
    if said == "train" and "dev" in given:
        return "train"
    if said == "train" and "test" in given:
        return role_in_training_set(by_content)
    return by_content


def _said(row: Row, column: str) -> Role | None:
    """The role that a row's own column names."""
    if row.get(column) in (None, ""):
        return None
    said = str(row[column]).lower()
    if said not in SPLITS:
        raise ValueError(f"column {column!r}: {quoted(said, 40)} is no role; allowed: {', '.join(SPLITS)}")
    return SPLITS[said]


def _files(path: Path) -> Iterator[tuple[Role | None, Path]]:
    """Data files with the role that their names give them."""
    if not path.is_dir():
        yield (SPLITS.get(bare_name(path).rpartition("_")[2].lower()) if path.is_file() else None), path
        return
    there = {one: SPLITS.get(bare_name(one).lower()) for one in sorted(path.iterdir()) if is_data_file(one)}
    if "train" not in there.values():
        raise UserError(f"{path}: a folder needs train.jsonl (or {', '.join(ENDINGS[1:])}), and may have dev and test")
    yield from ((role, one) for one, role in there.items() if role is not None)


def _listed(choices: str, row: Row) -> Sequence[Any]:
    """The choices of a row: the list in a column, or the values of several columns, of which the last may be empty."""
    if choices in row or "," not in choices:
        return filled(choices, row)
    values = [row[name.strip()] for name in choices.split(",")]
    there = [value for value in values if value not in (None, "")]
    if values[: len(there)] != there:
        raise ValueError(f"columns {choices}: an empty choice before one that is not; letters would shift")
    return there


def _function(name: str) -> Callable[[Problem, str], Any]:
    """The function `file.py:NAME`."""
    path, attribute = file_of(name, Path()), name.rpartition(":")[2]
    found = own_object(path, attribute)
    if not callable(found):
        there = ", ".join(own_names(path)) or "none"
        raise UserError(f"matcher {name!r}: no function {attribute!r} in {path}, which has: {there}")
    refuse_other_arguments(f"matcher {name.rpartition('/')[2]!r}", found, "problem", "answer")
    return found
