"""Matchers: when does an answer equal the one in the user's own data?

A matcher checks the value of the answer column once, when the file is read, and every answer of a policy later. What is
plain is settled here; programs, queries, mathematics and regular expressions become tasks for the jailed judge.

    exact        the same text, apart from white space around it
    text         the same words: case, spaces and a full stop at the end do not count
    number       the same number, exactly: $1,080 = 1080
    choice       the same letter, or letters
    regex        the answer column holds a regular expression that must match the whole answer
    mathematics  the same value or expression: \\\\frac{1}{2} = 0.5
    json         the same JSON value; the order of keys does not count
    sql          the same result as the query in the answer column, on the database and on its twins
    code         the answer column holds asserts that a Python program must pass

Traps: a policy finds the text on which a regular expression never ends, so expressions run where they can be killed;
JSON with a key twice says two things; a list of all choices is no choice.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvrlab.envs.amounts import amount, equal_amounts
from rlvrlab.envs.answers import same, squeezed
from rlvrlab.envs.data_files import Row, json_fault
from rlvrlab.envs.json_values import strict_value, typed
from rlvrlab.envs.mathematics.environment import compared
from rlvrlab.envs.mathematics.equality import letters
from rlvrlab.envs.mathematics.shapes import LETTERS
from rlvrlab.envs.sql.databases import prepared
from rlvrlab.errors import LabError, cut, quoted
from rlvrlab.judge.extract import Found, program_in, query_in
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.tasks import Call, CallsTask, TestsTask
from rlvrlab.types import ErrorKind, Verdict, bad_task

if TYPE_CHECKING:
    from rlvrlab.judge.judge import Item

LONGEST = 4000
"""Characters of an answer that is compared as a value."""
FULL_MATCH = "import re\n\n\ndef matches(pattern, text):\n    return re.fullmatch(pattern, text) is not None\n"
SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
NOT_THE_TEXTS = (LabError, OSError)
"""Failures of the set-up or the machine; any other exception while a text is read is that text's fault."""


class Matcher(ABC):
    """What the answer column means, and when an answer is right."""

    asked: str = "the final answer"
    """What the prompt asks for."""
    block: str = ""
    """The answer stands in a code block of this language, whatever the style; empty: where the style says."""

    def expected(self, value: Any, row: Row, folder: Path) -> Any:
        """`reference`, with whatever it raises as a ValueError of this row; a KeyError names a missing column."""
        try:
            return self.reference(value, row, folder)
        except (ValueError, KeyError, LabError):
            raise
        except Exception as error:
            raise ValueError(f"cannot be read ({type(error).__name__}: {cut(str(error), 80)})") from None

    def judged(self, reference: Any, answer: str) -> Verdict | Item:
        """`settle`, in which no answer can choose to stay unjudged: one that it raises on is wrong.

        Where it raises on the right answer too, the task is bad.
        """
        try:
            return self.settle(reference, answer)
        except NOT_THE_TEXTS:
            raise
        except Exception as error:
            fault = type(error).__name__
        try:
            self.settle(reference, self.gold(reference) or "")
        except NOT_THE_TEXTS:
            raise
        except Exception as error:
            return bad_task(f"the right answer cannot be read ({type(error).__name__})")
        return same(False, answer, ErrorKind.SYNTAX, f"it cannot be read ({fault})")

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """What the verifier needs, of the answer column's value; a ValueError says why it cannot be judged."""
        text = str(value).strip()
        if not text:
            raise ValueError("is empty; fill it in or leave out the row")
        return text

    @abstractmethod
    def settle(self, reference: Any, answer: str) -> Verdict | Item:
        """A verdict, or a task for the judge."""

    def read(self, reference: Any, text: str) -> Found:
        """Where a program or query stands in a completion, for matchers with a `block`; the others have none."""
        return Found(None, "this matcher reads no program or query")

    def gold(self, reference: Any) -> str | None:
        """An answer that is right, or None where none is known."""
        return str(reference)

    def wrong(self, reference: Any) -> str:
        """An answer that is not right."""
        right = self.gold(reference) or "right"
        return f"{right}x"


class Exact(Matcher):
    """The same text."""

    def settle(self, reference: Any, answer: str) -> Verdict:
        """Equal to the last character."""
        return same(answer == reference, answer)


class Words(Matcher):
    """The same words."""

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """A text of which something is left: an empty answer would equal a full stop."""
        text = str(super().reference(value, row, folder))
        if not squeezed(text).removesuffix("."):
            raise ValueError(f'{text!r} has no words; take matcher = "exact"')
        return text

    def settle(self, reference: Any, answer: str) -> Verdict:
        """Equal after case, spaces and a final full stop are taken away."""
        return same(squeezed(answer).removesuffix(".") == squeezed(reference).removesuffix("."), answer)


class Number(Matcher):
    """The same number."""

    asked = "the final number alone"

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """The number as a text; GSM8K's `#### 72` at the end of a solution counts."""
        text = str(value).rpartition("####")[2].strip()
        if amount(text) is None:
            raise ValueError(f'{text[-40:]!r} is no number; clean the column, or take matcher = "exact"')
        return text

    def settle(self, reference: Any, answer: str) -> Verdict:
        """Compared as fractions."""
        equal = equal_amounts(answer, reference)
        if equal is None:
            return same(False, answer, ErrorKind.SYNTAX, "not one number")
        return same(equal, answer, detail="another number")

    def wrong(self, reference: Any) -> str:
        """The next number."""
        return str((amount(reference) or 0) + 1)


class Choice(Matcher):
    """The same letters."""

    asked = "the letter of the right choice alone"

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """A letter."""
        found = letters(str(value).strip().upper())
        if found is None:
            raise ValueError(f"{quoted(value, 40)} is no letter; name the column of the choices: choices = COLUMN")
        return found

    def settle(self, reference: Any, answer: str) -> Verdict:
        """Letters in any order, each once."""
        chosen = letters(answer)
        if chosen is None:
            return same(False, answer, ErrorKind.SYNTAX, "a letter was expected")
        return same(chosen == reference, answer, detail="another choice")

    def wrong(self, reference: Any) -> str:
        """A letter that is not among the right ones."""
        return next(letter for letter in LETTERS if letter not in reference)


class Regex(Matcher):
    """A regular expression that matches the whole answer; it runs in the jail, where it can be stopped."""

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """The expression, compiled once to see that it can be."""
        pattern = str(super().reference(value, row, folder))
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{quoted(pattern)} is no regular expression ({error})") from None
        return pattern

    def settle(self, reference: Any, answer: str) -> Verdict | Item:
        """A task for the judge."""
        if len(answer) > LONGEST:
            return same(False, answer, ErrorKind.SYNTAX, f"an answer of {len(answer):,} characters")
        call = Call((reference, answer), True)
        return CallsTask("matches", (call,), limits=Limits(cpu_s=0.5, memory_mb=256)), FULL_MATCH

    def gold(self, reference: Any) -> str | None:
        """The expression itself where it has no special sign."""
        return None if SPECIAL.search(reference) else str(reference)

    def wrong(self, reference: Any) -> str:
        """A text that expressions for real answers do not match."""
        return "\x00"


class Mathematics(Matcher):
    """The same value or expression."""

    def settle(self, reference: Any, answer: str) -> Verdict | Item:
        """As the environment `math` compares."""
        return compared(answer, reference)

    def wrong(self, reference: Any) -> str:
        """A sum with one more than the answer."""
        return f"{reference}+1"


class Json(Matcher):
    """The same JSON value."""

    asked = "the final answer as JSON"

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """A value, or a text that holds one, read as strictly as answers are: a right answer must be possible."""
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            read, kept = strict_value(text), json.loads(text)
        except ValueError as error:
            raise ValueError(f"{quoted(text, 40)} is not JSON ({json_fault(error)})") from None
        if isinstance(value, str) and typed(read) != typed(strict_value(json.dumps(kept))):
            raise ValueError(f'{quoted(text, 40)} has more digits than are kept; round it, or take matcher = "exact"')
        return kept

    def settle(self, reference: Any, answer: str) -> Verdict:
        """Parsed strictly: a key twice, NaN and endless nesting are no JSON."""
        try:
            if len(answer) > LONGEST:
                raise ValueError(f"{len(answer):,} characters")
            value = strict_value(answer)
        except ValueError as error:
            return same(False, answer, ErrorKind.SYNTAX, f"not JSON: {cut(str(error), 80)}")
        return same(typed(value) == typed(strict_value(json.dumps(reference))), answer, detail="another value")

    def gold(self, reference: Any) -> str:
        """The value written out."""
        return json.dumps(reference, ensure_ascii=False)

    def wrong(self, reference: Any) -> str:
        """The right value inside a list."""
        return json.dumps([reference])


class Sql(Matcher):
    """The same result as the gold query; the column `database` names an SQLite file beside the data."""

    asked = "the query alone"
    block = "sql"

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """The query and its database; a query that no twin tells from a literal cannot be judged."""
        gold, database = str(value).strip(), (folder / str(row["database"])).absolute()
        if not database.is_file():
            raise ValueError(f"database {database} is not there")
        if refused := prepared(database, gold).refused:
            raise ValueError(f"the query cannot be judged: {refused}")
        return {"gold": gold, "database": str(database)}

    def read(self, reference: Any, text: str) -> Found:
        """The last block in sql."""
        return query_in(text)

    def settle(self, reference: Any, answer: str) -> Verdict | Item:
        """On the database and its twins."""
        database = Path(reference["database"])
        return SqlTask(str(database), reference["gold"], prepared(database, reference["gold"]).twins), answer

    def gold(self, reference: Any) -> str:
        """The query."""
        return str(reference["gold"])

    def wrong(self, reference: Any) -> str:
        """A literal."""
        return "SELECT 'nothing'"


class Code(Matcher):
    """Asserts that a program must pass."""

    asked = "the whole program"
    block = "python"

    def reference(self, value: Any, row: Row, folder: Path) -> Any:
        """The asserts, and the function that they call most."""
        tests = [value] if isinstance(value, str) else list(value)
        if not tests or not all(isinstance(test, str) and test.strip() for test in tests):
            raise ValueError("asserts were expected, one text or a list of texts")
        try:
            trees = [ast.parse(test) for test in tests]
        except SyntaxError as error:
            raise ValueError(f"not Python ({error.msg})") from None
        calls = [node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
        called = [name.id for name in calls if isinstance(name, ast.Name) and name.id not in vars(builtins)]
        if not called:
            raise ValueError("no test calls a function")
        if not any(_runs(node) for tree in trees for node in tree.body):
            raise ValueError("no test runs, since all stand inside functions that nothing calls; write asserts alone")
        solution = row.get("solution") or None  # an empty cell of a table is no program
        return {"entry_point": Counter(called).most_common(1)[0][0], "tests": tests, "solution": solution}

    def read(self, reference: Any, text: str) -> Found:
        """The last block in Python."""
        return program_in(text, reference["entry_point"])

    def settle(self, reference: Any, answer: str) -> Verdict | Item:
        """In the jail, the tests in a process of their own."""
        return TestsTask(reference["entry_point"], tuple(reference["tests"])), answer

    def gold(self, reference: Any) -> str | None:
        """The column `solution`, where there is one."""
        return reference["solution"]

    def wrong(self, reference: Any) -> str:
        """A function that returns nothing."""
        return f"def {reference['entry_point']}(*arguments):\n    return None"


def _runs(node: ast.stmt) -> bool:
    """Whether a statement tests something where it stands: what a function or class holds waits."""
    waits = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return not isinstance(node, waits) and any(isinstance(one, ast.Assert | ast.Call) for one in ast.walk(node))


MATCHERS: dict[str, Matcher] = {
    "exact": Exact(),
    "text": Words(),
    "number": Number(),
    "choice": Choice(),
    "regex": Regex(),
    "mathematics": Mathematics(),
    "json": Json(),
    "sql": Sql(),
    "code": Code(),
}
