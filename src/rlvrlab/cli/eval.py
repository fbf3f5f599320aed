"""rlvr eval: what a policy can do, under a named protocol, into a folder that can be audited and resumed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.names import LATEST
from rlvrlab.cli.options import AS_JSON, FreeWords, examination
from rlvrlab.cli.printing import print_json, printable, say, telling_data
from rlvrlab.cli.waiting import patient
from rlvrlab.errors import UserError
from rlvrlab.notes import ANSWERS, counting
from rlvrlab.own_code import named_by_folder
from rlvrlab.registry import name_own
from rlvrlab.shares import percent
from rlvrlab.types import Environment

if TYPE_CHECKING:
    from rlvrlab.cli.examined import Subject
    from rlvrlab.evals.answering import Answerer
    from rlvrlab.evals.kept import Kept
    from rlvrlab.evals.protocol import Protocol

PLACES = {"judges", "ray", "ray_workers"}
"""Options that say where the work is done, not what it is."""
LATER = {"impossible", "tries", "system_prompt", "plain_sandbox", "deadline"}
"""Options that a folder begun by an older version does not know."""


@click.command("eval", short_help="Evaluate a policy under a named protocol.", cls=FreeWords)
@examination(roles=("train", "dev", "test"), role="test", logprobs=0)
@click.option("--protocol", type=click.Choice(["@1", "@k", "@budget"]), default="@1", show_default=True)
@click.option("--n", type=click.IntRange(1), help="@k: answers per problem [8]; @budget: at most so many.")
@click.option("--k", "ks", metavar="1,8", help="@k: pass@k for these [1 and n].")
@click.option("--budget", metavar="KIND=AMOUNT", help="@budget: tokens=N or judge_s=S per problem, wall_s=S in all.")
@click.option("--temperature", type=click.FloatRange(0), help="@k and @budget [1].")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True)
@click.option("--tries", type=click.IntRange(1, 2), help="2: failed first answers get a second try [1].")
@click.option("--size", type=click.IntRange(1), help="Problems [the recipe's dev_size, all of a file, else 200].")
@click.option("--data", type=click.Path(path_type=Path), help="Problems of this file instead of the environment's own.")
@click.option("--impossible", type=click.Choice(["conflicting", "one_off"]), metavar="MODE",
              help="Tests no honest answer passes: conflicting or one_off.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder; one begun alike is gone on with.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with this folder; takes no other argument.")
@click.option("--sink", "sinks", multiple=True, help="Copy the numbers to wandb, trackio or tensorboard.")
@click.option("--judge", "judges", multiple=True, metavar="URL", help="Judge programs there; several share the work.")
@click.option("--plain-sandbox", is_flag=True,
              help="Let a plain SandboxFusion judge assert code, which answers can forge.")  # fmt: skip
@click.option("--ray", metavar="ADDRESS", help="Spread the work over Ray: local, auto or HOST:PORT.")
@click.option("--ray-workers", type=click.IntRange(1), help="Workers [all GPUs for an engine, else all CPUs].")
@AS_JSON
def command(resume: Path | None, as_json: bool, **request: Any) -> int:
    """Evaluate a policy under a named protocol.

    \b
    rlvr eval --run experiments/my_run_…@best
    rlvr eval recipes/toy_countdown.toml --run experiments/… --protocol @k --n 8
    rlvr eval code path=HumanEval.jsonl.gz role_of=test --server http://127.0.0.1:8000
    rlvr eval code path=HumanEval.jsonl.gz role_of=test --server URL --server URL --judge URL --ray auto
    rlvr eval code path=HumanEval.jsonl.gz role_of=test --server URL --impossible conflicting
    """
    if resume is not None:
        click.get_current_context().with_resource(named_by_folder())
        request = _stored_request(resume, request)
    kept = _evaluate(request, as_json)
    if as_json:
        print_json({"folder": str(kept.folder), **kept.summary})
    else:
        from rlvrlab.cli.tables import metrics_table, split_table
        from rlvrlab.evals.judged import problems_of_roles
        from rlvrlab.record.final import read_looks, split_run

        console, protocol = Console(highlight=False), kept.evaluation.protocol
        asked = problems_of_roles({one.problem.role for one in kept.evaluation.judged})
        about = f"{kept.evaluation.data} · {kept.metrics['problems']} {asked} · {protocol.name} ({protocol.hash})"
        console.print(Text(printable(about), "bold"))
        console.print(metrics_table(kept.metrics))
        for name in ("by_skill", "by_level"):
            if len(kept.summary[name]) > 1:
                console.print(split_table(name.removeprefix("by_"), kept.summary[name]))
        reasons = [f"{count} unjudged: {reason}" for reason, count in kept.summary["unjudged_because"].items()]
        for words in (*kept.summary["findings"], *reasons):
            say(console, words, "yellow")
        if request["run"] and (looks := read_looks(split_run(request["run"])[0])):
            times = "once" if len(looks) == 1 else f"{len(looks)} times"
            console.print(Text(f"Test problems were looked at {times} with this run (looks.jsonl).", "dim"))
        say(console, f"Everything: {kept.folder}", "dim")
    from rlvrlab.evals.kept import track
    from rlvrlab.record.sinks.base import sinks_of

    for trouble in track(kept, sinks_of(request["sinks"], "--sink"), kept.folder.name):
        click.echo(f"warning: {printable(trouble)}", err=True)
    return 0 if any(one.verdict.correct is not None for one in kept.evaluation.judged) else 1


def _evaluate(request: dict[str, Any], as_json: bool) -> Kept:
    from rlvrlab.cli.examined import name_of, problems_of, subject_of
    from rlvrlab.evals.hacks.impossible import impossible_problems
    from rlvrlab.evals.kept import evaluate_into
    from rlvrlab.judge.fusion.addresses import judge_at
    from rlvrlab.record.final import split_run
    from rlvrlab.record.sinks.base import sinks_of

    judge_at(request["judges"], request["plain_sandbox"])
    name_own(request["sinks"])
    sinks_of(request["sinks"], "--sink")
    subject = subject_of(request["what"], request["words"], request["run"], request["engine"])
    env, protocol = _protocol(request, subject).applied(subject.env, subject.chosen)
    with telling_data():
        problems, data, facts = problems_of(subject, request["role"], request["size"], _path(request["data"]))
    if request["impossible"]:
        problems, data = impossible_problems(problems, request["impossible"]), f"{data}_{request['impossible']}"
        if not problems:
            raise UserError("--impossible: no problem here has tests that can be made to contradict; take a code env")
    facts |= {**subject.facts, "request": _plain(request)}
    facts["command"] = ["rlvr", *map(shlex.quote, sys.argv[1:])]
    if subject.resolved and not (request["run"] or request["engine"] or request["servers"]):
        name = subject.resolved.recipe.name
        begins = f"note: the policy that {name} begins with is examined, untrained"
        click.echo(printable(f"{begins}; the one of a run: rlvr eval --run {LATEST}"), err=True)
    with patient("the evaluation", request["deadline"]) as alive, _answerer(subject, request) as answerer:
        name = name_of(answerer.identity())
        folder = _path(request["output"]) or _new_folder(request, data, protocol.name, name)
        with AnswersBar(len(problems) * (1 if protocol.budget else protocol.n), as_json, alive) as bar:
            try:
                return evaluate_into(
                    folder, answerer, env, problems, protocol,
                    seed=request["seed"], data=data, facts=facts, observe=bar.observe, reward=subject.reward,
                    run=split_run(request["run"])[0] if request["run"] else None,
                )  # fmt: skip
            except BaseException as error:
                if not isinstance(error, UserError) and (folder / "samples.jsonl").exists():
                    click.echo(f"what is judged is kept; go on with: rlvr eval --resume {folder}", err=True)
                raise


def _answerer(subject: Subject, request: dict[str, Any]) -> AbstractContextManager[Answerer]:
    """The policy in this process, or behind Ray workers that each have it."""
    from rlvrlab.cli.examined import answerer_of

    if request["ray"] is None:
        if request["ray_workers"]:
            raise UserError("--ray-workers belongs to --ray; add --ray local")
        return answerer_of(subject, request)
    from rlvrlab.judge.fusion.addresses import ADDRESSES, PLAIN, TOKEN, WAIT
    from rlvrlab.scale.fan_out import RayAnswerer

    return RayAnswerer(
        examiner_of, _plain(request), request["ray"], request["ray_workers"],
        gpus=not request["servers"], pass_on=(ADDRESSES, PLAIN, TOKEN, WAIT, request["key_env"]),
    )  # fmt: skip


@contextmanager
def examiner_of(request: dict[str, Any]) -> Iterator[tuple[Answerer, Environment]]:
    """What a worker needs to answer and judge its share of a request."""
    from rlvrlab.cli.examined import answerer_of, subject_of

    subject = subject_of(request["what"], request["words"], request["run"], request["engine"])
    env, _ = _protocol(request, subject).applied(subject.env, subject.chosen)
    with answerer_of(subject, request) as answerer:
        yield answerer, env


def _protocol(request: dict[str, Any], subject: Subject) -> Protocol:
    from rlvrlab.evals.protocol import MAX_NEW_TOKENS, named_protocol

    try:
        ks = [int(part) for part in (request["ks"] or "").split(",") if part]
    except ValueError:
        raise UserError(f"--k {request['ks']}: whole numbers, separated by commas, e.g. 1,8") from None
    return named_protocol(
        request["protocol"],
        max_tokens=request["max_tokens"] or subject.max_tokens or MAX_NEW_TOKENS,
        n=request["n"],
        ks=ks,
        budget=request["budget"] or "",
        temperature=request["temperature"],
        top_p=request["top_p"],
        tries=request["tries"] or 1,
        dashes="--",
    )


def _new_folder(request: dict[str, Any], data: str, protocol: str, who: str) -> Path:
    """`evaluations/<data>_<role>_<protocol>_<who>_<time>`, below the run where there is one."""
    from rlvrlab.plain_files import file_name
    from rlvrlab.record.files import place_in, stamp_now
    from rlvrlab.record.final import split_run

    home = split_run(request["run"])[0] if request["run"] else Path()
    who = f"step_{who.rpartition('@')[2]}" if request["run"] else who
    stamp = stamp_now()
    what = f"{data}_{request['role']}" if request["data"] is None else data
    place = place_in(home, "evaluations") if request["run"] else Path("evaluations")
    return place / f"{file_name(what)}_{protocol}_{file_name(who)}_{stamp}"


def _path(text: str | Path | None) -> Path | None:
    return None if text is None else Path(text)


def _plain(request: dict[str, Any]) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, Path) else value for key, value in request.items()}


def _stored_request(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The request that the folder was begun with, judges and Ray workers as given now."""
    from rlvrlab.record.evaluation import read_evaluation

    if request["what"] or request["run"] or request["servers"] or request["output"] or request["engine"]:
        raise UserError("--resume takes no other argument but --judge and --ray; the folder holds what was asked")
    stored = read_evaluation(folder).info.get("request")
    if not isinstance(stored, dict) or not set(request) - PLACES - LATER <= set(stored):
        raise UserError(f"{folder}: was not made by `rlvr eval`; repeat what made it")
    # Where it is done may change in between: a judge that was lost comes back elsewhere.
    moved = {key: request[key] or stored.get(key) or request[key] for key in PLACES}
    return {**dict.fromkeys(LATER), **stored, **moved, "output": folder, "deadline": request["deadline"]}


class AnswersBar:
    """A progress bar of judged answers on a terminal, which also says how many are drawn; nothing elsewhere."""

    def __init__(self, total: int, quiet: bool, alive: Callable[[], None] = lambda: None) -> None:
        """`alive` is called whenever answers have been drawn or judged."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        console = Console(stderr=True)
        columns = (BarColumn(30), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[facts]}"))
        self._bars = Bars(*columns, console=console, disable=quiet or not console.is_terminal)
        self._task = self._bars.add_task("", total=total, facts="")
        self._solved = self._judged = self._unjudged = 0
        self._alive = alive
        self._counting = counting(self._drawn)

    def __enter__(self) -> AnswersBar:
        self._bars.start()
        self._counting.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._counting.__exit__(None, None, None)
        self._bars.stop()

    def _drawn(self, what: str, count: int, total: int) -> None:
        if what == ANSWERS:
            self._show(f"{count} of the next {total} drawn")
            self._alive()

    def _show(self, drawn: str = "", advance: int = 0) -> None:
        share = f"accepted {percent(self._solved / self._judged)}" if self._judged else ""
        unjudged = f"unjudged {self._unjudged}" if self._unjudged else ""
        facts = "  ".join(part for part in (share, unjudged, drawn) if part)
        self._bars.update(self._task, advance=advance, facts=facts)

    def observe(self, batch: list[Any]) -> None:
        """Move the bar on by a batch of judged answers."""
        known = [one.verdict.correct for one in batch if one.verdict.correct is not None]
        self._judged, self._solved = self._judged + len(known), self._solved + sum(known)
        self._unjudged += len(batch) - len(known)
        self._show(advance=len(batch))
        self._alive()
