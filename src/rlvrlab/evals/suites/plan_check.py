"""What of a plan cannot work, found before a server is started or anybody is asked: all of it at once, one line each.

`refuse_unused` reads the plan alone: a setting that nothing takes would be asked for and not be there.
`refuse_unaskable` looks at the problems and at the model on the disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rlvrlab.errors import LabError, RecipeError, UserError
from rlvrlab.evals.evaluate import refuse_unaskable as refuse_questions
from rlvrlab.evals.suites.base import Ready
from rlvrlab.evals.suites.joint import names_of
from rlvrlab.evals.suites.plan_schema import ModelTable, Plan
from rlvrlab.plain_files import file_name

TAKES = {
    "n": ("@k", "@budget"), "k": ("@k",), "budget": ("@budget",), "temperature": ("@k", "@budget"),
    "top_p": ("@k", "@budget"),
}  # fmt: skip
"""A key of [protocol] -> the protocols that it belongs to."""
BELONGS = {
    "replicas": ("serve",), "backend": ("serve",), "arguments": ("serve",), "wait_s": ("serve",), "name": ("servers",),
    "key_env": ("servers",), "completions": ("serve", "servers"), "concurrency": ("serve", "servers"),
    "timeout_s": ("serve", "servers"),
}  # fmt: skip
"""A key of [model] -> who must answer for it to mean anything."""


def refuse_unused(plan: Plan, name: str) -> None:
    """RecipeError for keys that nothing in the plan takes."""
    asked, model = plan.protocol, plan.model
    told = [
        f"protocol.{key}: none of {', '.join(asked.names)} takes it; allowed with {' and '.join(takes)}; leave it out"
        for key, takes in TAKES.items()
        if key in asked.model_fields_set and getattr(asked, key) not in (None, [], "") and not {*takes} & {*asked.names}
    ]
    if asked.tries > 1 and asked.names == ["@budget"]:
        told.append("protocol.tries: @budget tries again anyway; allowed: 1, or 2 with @1 or @k; leave it out")
    told += [
        f"model.{key}: means nothing here; it is for {' and '.join(f'model.{one}' for one in who)}; leave it out"
        for key, who in BELONGS.items()
        if key in model.model_fields_set and not any(getattr(model, one) for one in who)
    ]
    if told:
        raise RecipeError([f"{name}: {line}" for line in told])


def refuse_unaskable(plan: Plan, members: Sequence[Ready]) -> None:
    """RecipeError for data sets that cannot be asked like this, of whoever is to answer."""
    told = [*_questions(members), *_places(members)]
    if plan.model.run is None:
        told += [
            f"data.{one.member.name}: {problem.id} has tools, and servers answer in one turn here; give model.run"
            for one in members
            for problem in one.problems[:1]
            if "tools" in problem.meta
        ]
    told += _model(plan.model, members)
    if told:
        raise RecipeError(list(dict.fromkeys(told)))


def _questions(members: Sequence[Ready]) -> Iterator[str]:
    """What `evaluate` would refuse."""
    for one in members:
        try:
            refuse_questions(one.env, one.problems, one.protocol)
        except LabError as error:
            yield f"data.{one.member.name}: {error}"


def _places(members: Sequence[Ready]) -> Iterator[str]:
    """Names of data sets that are one and the same as names of folders."""
    places: dict[str, list[str]] = defaultdict(list)
    for name in names_of(members):
        places[file_name(name)].append(name)
    for place, names in places.items():
        if len(names) > 1:
            words = " and ".join(map(repr, names))
            yield f"data: {words} would be one folder, evaluations/{place}; give one of them another name"


def _model(model: ModelTable, members: Sequence[Ready]) -> Iterator[str]:
    """What a model that is started here cannot be asked, as far as its folder tells."""
    from rlvrlab.engines.openai.launch import find_program
    from rlvrlab.http_client import Host
    from rlvrlab.models import resolve
    from rlvrlab.models.inspection import examine

    if model.system_prompt and model.completions:
        yield "model.system_prompt: needs a chat template, which completions = true leaves out; give one of the two"
    key = "servers"
    try:
        for url in model.servers:
            Host(url)
        if model.serve is None:
            return
        key = "backend"
        if model.backend != "auto":
            find_program(model.backend)
        key = "serve"
        folder = resolve(model.serve)
        facts = examine(folder) if folder.is_dir() else {}
    except UserError as error:
        yield f"model.{key}: {error}"
        return
    if facts and facts["template"] is None and not model.completions:
        yield f"model.serve: {folder} has no chat template; add one, or set model.completions = true"
    if isinstance(window := facts.get("context"), int):
        yield from _too_long(folder, window, model.system_prompt, members)


def _too_long(folder: Path, window: int, system: str, members: Sequence[Ready]) -> Iterator[str]:
    """Data sets whose longest prompt leaves no room for an answer; the template's own tokens are not counted."""
    count = _counter(folder)
    for one in members:
        prompt = max((count(f"{system}{problem.prompt}") for problem in one.problems), default=0)
        answer = one.protocol.sampling.max_tokens
        if prompt + answer > window:
            words = f"a prompt of {prompt} tokens and an answer of {answer} do not fit the model's window of {window}"
            yield f"data.{one.member.name}: {words}; allow shorter answers (max_tokens), or leave long problems out"


def _counter(folder: Path) -> Callable[[str], int]:
    """Tokens of a text; where no tokenizer can be read a prompt counts nothing."""
    path = folder / "tokenizer.json"
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(path))
    except Exception:  # no package, no file, or one of another kind: the library raises `Exception` itself
        return lambda text: 0
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
