"""SQL for a policy of a million weights: the question alone, and the bare query as the answer.

    prompt      "#sql List the id of all visits whose spent is greater than 86.\\n"
    completion  "SELECT id FROM visit WHERE spent > 86\\n"

Problems, databases and the judge are those of the environment `sql`; the schema is left out of the prompt, because the
question names the columns and nano reads character by character.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlvrlab.envs.sql import Sql
from rlvrlab.types import Problem, Role


@dataclass(frozen=True)
class ShortSql(Sql):
    """Made questions without their schema."""

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """As `sql` makes them."""
        found = super().problems(role, size, seed)
        return [replace(one, prompt=f"#sql {one.meta['question']}\n") for one in found]

    def gold(self, problem: Problem) -> str | None:
        """The query alone."""
        return f"{problem.reference['gold']}\n"
