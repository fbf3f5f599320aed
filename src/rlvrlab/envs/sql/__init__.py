"""SQL: answer a question by a query whose result decides. See environment.py for an example row and the traps."""

from rlvrlab.envs.sql.environment import Sql as Sql
