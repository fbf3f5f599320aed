"""From Python functions and objects to tables of a recipe, and back to them when a run is resumed.

A function at the top of a file that was imported is recorded as `file.py:function`: whoever has the file can resume the
run, also from the command line. Any other (of a notebook, the main script, a closure) is recorded by a name such as
`python:bonus:9f2c41d0`, known to this process only; a resume elsewhere needs it again. Its fingerprint is recorded in
both cases, and something else under its name is refused.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from rlvrlab.api.short_errors import short_errors
from rlvrlab.envs.function import UNNAMED, FunctionEnvironment, make_environment
from rlvrlab.envs.own_rows import placed_rows
from rlvrlab.errors import UserError, writing_to
from rlvrlab.fingerprint import same_code, without_fingerprints
from rlvrlab.record.files import write_rows
from rlvrlab.record.run import read_config
from rlvrlab.registry import HOMES, PYTHON, adopt, find, keys_of, kind_of, name_own, python_name, remember
from rlvrlab.rewards.function import reward_class
from rlvrlab.types import Environment, Problem


@short_errors
def environment(
    problems: object = None,
    verify: Callable[[Problem, str], Any] | None = None,
    gold: Callable[[Problem], Any] | None = None,
    name: str = UNNAMED,
    columns: Mapping[str, str] | None = None,
) -> Environment:
    """An environment of problems (list of dicts, data frame, data file) and a function `verify(problem, text)`.

    A row has `prompt` and, as wanted, `answer` (or `reference`), `skill`, `id` and `role`; without a role the content
    decides it: one tenth test, one tenth dev, the rest train. Columns of other names are mapped by `columns`, to a
    column or a template: {"prompt": "{note}\\n", "answer": "bay"}. `verify` returns a bool, a score from 0 to 1 or a
    Verdict; `gold(problem)` returns a right answer, which SFT needs. `name` begins the names of the metrics; that of a
    data file is its default.
    """
    if verify is None:
        raise UserError("environment: verify is missing; give a function verify(problem, text) -> bool")
    return _made(name, problems, verify, gold, columns)


def reward_table(reward: Any, folder: Path) -> dict[str, Any]:
    """The recipe's [reward] table, made from a name, a table, a function or a plug-in object."""
    if isinstance(reward, str | Mapping):
        return {"type": reward} if isinstance(reward, str) else dict(reward)
    if kind_of(reward) == "reward":
        return _plugin_table(reward, folder)
    cls = reward_class("", reward) if reward is not None else None
    if cls is None:
        raise UserError(f"reward: a function (problem, completion, verdict), a name or a table, not {reward!r:.60}")
    module = sys.modules.get(str(reward.__module__))
    return {"type": _place(module, reward, folder) or _in_memory("reward", cls)}


def env_table(env: Any, data: Any, folder: Path, output: Path) -> dict[str, Any]:
    """The recipe's [env]: of a name, a table or an object; `data` are the problems it asks."""
    if isinstance(env, FunctionEnvironment):
        cls = type(env)
        if data is not None:
            cls = type(_made(cls.name, data, cls.judge, cls.solution, cls.columns))
        place = None if data is not None else _place(sys.modules.get(str(cls.judge.__module__)), env, folder)
        return {"type": place or _in_memory("env", cls)}
    if isinstance(env, str | Mapping):
        table = {"type": env} if isinstance(env, str) else dict(env)
    elif kind_of(env) == "env":
        table = _plugin_table(env, folder)
    else:
        remedy = "take rlvrlab.environment(…), or a class with @register('env', NAME)"
        raise UserError(f"env: {env!r:.60} is no environment; {remedy}")
    if data is None or not isinstance(table.get("type"), str):
        return table  # a table without a type is complained about with the rest of the recipe
    return table | {"path": str(_data_file(table["type"], data, folder, output))}


def give_again(
    folder: Path, reward: Any = None, env: Any = None, data: Any = None, *, accept_code: bool = False
) -> None:
    """Make the functions of a run known to this process; they and the data must be those that it was started with.

    `accept_code` takes other functions, but no other data.
    """
    if data is not None and isinstance(env, FunctionEnvironment):
        env = make_environment(env.name, data, type(env).judge, type(env).solution, env.columns)
    given = {"reward": None if reward is None else reward_class("", reward)}
    given["env"] = type(env) if isinstance(env, FunctionEnvironment) else None
    for kind, value in (("reward", reward), ("env", env)):
        if value is None:
            continue
        recorded, cls = dict(read_config(folder)["recipe"][kind]), given[kind]
        name = recorded.pop("type")
        if cls is None or "code" not in recorded:
            raise UserError(f"{folder}: its {kind} {name!r} is on record and cannot be another; leave {kind}= out")
        code = cls().code
        if not accept_code and not same_code(recorded["code"], code):
            was, now = f"{kind} {name!r} ({recorded['code']})", f"{cls.name!r} ({code})"
            remedy = f"give the one it was trained with, or go on with this one: resume({kind}=…, accept_code=True)"
            raise UserError(f"{folder}: its {was} is not what it was: {now} does something else; {remedy}")
        # Refuses a function or problems that are not those on record.
        cls(**(without_fingerprints(recorded) if accept_code else recorded))
        if name.startswith(PYTHON):
            remember(kind, cls, name)


def _made(
    name: str, problems: object, verify: Any, gold: Any, columns: Mapping[str, str] | None
) -> FunctionEnvironment:
    """The environment; says how many of its rows were left out."""
    made = make_environment(name, problems, verify, gold, columns)
    if made.left_out:
        rows = f"{made.left_out} of {len(made.asked) + made.left_out} rows"
        print(f"environment {made.name!r}: {rows} ask the same as another one and are left out", file=sys.stderr)
    return made


def _in_memory(kind: str, cls: type[Any]) -> str:
    """The name under which this process knows the class."""
    values = cls()
    name = python_name(cls.name, *(getattr(values, key) for key in keys_of(cls)))
    remember(kind, cls, name)
    return name


def _plugin_table(plugin: Any, folder: Path) -> dict[str, Any]:
    """A plug-in object as the table that makes it again."""
    cls = type(plugin)
    module = sys.modules.get(cls.__module__)
    place = None if cls.__module__.startswith(tuple(HOMES.values())) else _place(module, cls, folder)
    return {"type": place or cls.name, **json.loads(TypeAdapter(cls).dump_json(plugin))}


def _place(module: ModuleType | None, value: object, folder: Path) -> str | None:
    """`file.py:name` of what stands at the top of an imported file; None for the main script and inside packages.

    The main script would run again when it is looked up, and a file of a package may need its package.
    """
    file = getattr(module, "__file__", None)
    if module is None or file is None or not file.endswith(".py"):
        return None
    if module.__name__ == "__main__" or module.__package__:
        return None
    name = next((name for name, one in vars(module).items() if one is value), None)
    path, home = Path(file).resolve(), folder.resolve()
    if name is None or not path.is_file():
        return None
    adopt(module)
    return f"{path.relative_to(home) if path.is_relative_to(home) else path}:{name}"


def _data_file(env: str, data: Any, folder: Path, output: Path) -> Path:
    """The data as a file that the environment reads; rows are written beside the runs, so that these can be resumed."""
    name_own(env, folder)
    if "path" not in keys_of(find("env", env, folder)):
        raise UserError(f"data: environment {env!r} makes its own problems; for yours take rlvrlab.environment(…)")
    if isinstance(data, str | Path):
        return Path(data).resolve()
    rows = [row for _, row in placed_rows(data)]
    digest = hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()[:12]
    path = (output / "data" / f"{digest}.jsonl").resolve()
    with writing_to(path, "choose another output_dir"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_rows(path, rows)
    return path
