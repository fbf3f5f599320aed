"""Several evaluations of one model as one folder.

    plan.toml         what was asked for, word for word
    run_info.json     the plan resolved, command, servers and the model really served, judge, machine, status
    metrics.json      {data set: every number}; further protocols as <data set>@k, <data set>@budget
    summary.json      the same by skill and level, retries, reasons of what could not be judged, and a table of all
    qa_logs/          <data set>_qa.jsonl and qa_summary.json
    evaluations/      one folder per data set and protocol, complete in itself and resumable

An interrupted one is gone on with: what is judged stays judged (record/evaluation.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, UserError
from rlvrlab.evals.answering import Answerer
from rlvrlab.evals.evaluate import Observer
from rlvrlab.evals.kept import Kept, evaluate_into, integrity_of
from rlvrlab.evals.qa import qa_log
from rlvrlab.evals.suites.base import Ready
from rlvrlab.plain_files import file_name
from rlvrlab.record.facts import code_state, machine, package_versions
from rlvrlab.record.files import make_output, place_in, read_facts, utc_now, write_atomically, write_json, write_rows
from rlvrlab.record.redact import redact

PLAN, INFO = "plan.toml", "run_info.json"
HEADLINE = (
    "accepted_at_1", "pass_ratio_mean", "exec_success_rate", "recovery_rate", "avg_gen_tokens", "throughput",
    "unjudged",
)  # fmt: skip
"""Numbers in the table of all data sets."""


@dataclass(frozen=True)
class Joint:
    """All evaluations of a plan, finished."""

    folder: Path
    kept: Mapping[str, Kept]
    """By data set, or data set and protocol."""

    @property
    def numbers(self) -> dict[str, float]:
        """Every number as a tracker takes it: eval/<data set>/<metric>."""
        return {key: value for name, one in self.kept.items() for key, value in one.numbers(name).items()}


def begin(folder: Path, text: str, facts: Mapping[str, Any]) -> None:
    """Make the folder, or find that it was begun with the same plan."""
    before = read_facts(folder / INFO, "restore it or choose another --output")
    if before is None and folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: is there and is no folder of `rlvr phase0`; choose another --output")
    if before is not None and (not (folder / PLAN).is_file() or (folder / PLAN).read_text("utf-8") != text):
        raise UserError(f"{folder}: was begun with another plan; choose another --output, or --resume {folder}")
    make_output(folder)
    write_atomically(folder / PLAN, text)
    started = (before or {}).get("started") or utc_now()
    now = {"packages": package_versions(), "machine": machine(), "code": code_state()}
    _note(folder, schema=1, kind="phase0", status="running", started=started, **facts, **now)


def examine_all(
    folder: Path, answerer: Answerer, members: Sequence[Ready], *, seed: int, facts: Mapping[str, Any],
    watch: Callable[[str, Ready], AbstractContextManager[Observer]], run: Path | None = None,
) -> Joint:  # fmt: skip
    """Every data set under every protocol into `folder`, which `begin` has made; `watch` shows how far each is."""
    names = names_of(members)
    kept: dict[str, Kept] = {}
    try:
        for name, one in zip(names, members, strict=True):
            given = {"scorer_type": one.member.env, "scorer_folder": str(Path().resolve()), "data_file": one.file}
            with watch(name, one) as observe:
                kept[name] = evaluate_into(
                    place_in(folder, f"evaluations/{file_name(name)}"), answerer, one.env, one.problems, one.protocol,
                    seed=seed, data=name, facts=given | dict(facts), observe=observe, run=run,
                )  # fmt: skip
            _write(folder, kept, seed)
    except KeyboardInterrupt:
        _note(folder, status="interrupted")
        raise
    except LabError as error:
        _note(folder, status="failed", why=str(error))
        raise
    weak = {name: words for name, one in kept.items() for words in integrity_of(one.metrics).values()}
    facts_of_judge = {"integrity": weak} if weak else {}
    _note(folder, status="finished", ended=utc_now(), answered_by=answerer.identity(), **facts_of_judge)
    return Joint(folder, kept)


def names_of(members: Sequence[Ready]) -> list[str]:
    """The data set's name under the first protocol it is asked with; with the others, the protocol's beside it."""
    names: list[str] = []
    for one in members:
        plain = one.member.name
        names.append(plain if plain not in names else f"{plain}{one.protocol.name.removeprefix('EVAL')}")
    return names


def _write(folder: Path, kept: Mapping[str, Kept], seed: int) -> None:
    """The joint files, from what there is so far: a killed run leaves them as of its last finished data set."""
    logs = place_in(folder, "qa_logs")
    logs.mkdir(exist_ok=True)
    counts = {}
    for name, one in kept.items():
        rows, counts[name] = qa_log(one.evaluation.judged, seed, name)
        write_rows(logs / f"{file_name(name)}_qa.jsonl", rows)
    write_json(logs / "qa_summary.json", counts)
    table = {name: {key: one.metrics.get(key) for key in HEADLINE} for name, one in kept.items()}
    write_json(folder / "summary.json", {"table": table, "data": {name: one.summary for name, one in kept.items()}})
    write_json(folder / "metrics.json", {name: one.metrics for name, one in kept.items()})


def _note(folder: Path, **facts: Any) -> None:
    before = read_facts(folder / INFO, "restore it or choose another --output") or {}
    write_json(folder / INFO, {**before, **redact(facts)})
