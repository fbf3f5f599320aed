"""An evaluation folder: everything that was asked, answered and judged, and what follows from it.

run_info.json    what was examined, how, by which scorer, which model really answered; status, machine, versions
problems.jsonl   the problems in verl's row shape: with samples.jsonl, all that rescoring needs
samples.jsonl    one line per judged answer, appended at once; of several lines for one answer the last one counts
metrics.json     {data set: every number}          summary.json   the same by skill and level, with the errors
qa_logs/         <data set>_qa.jsonl, answers to read, drawn from every stratum; qa_summary.json, how many there were
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, Strict

from rlvrlab import plain_files
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.plain_files import file_name
from rlvrlab.record.facts import code_state, machine, package_versions
from rlvrlab.record.files import (
    Lines,
    Lock,
    make_output,
    place_in,
    read_facts,
    refuse_schema,
    utc_now,
    write_json,
    write_rows,
)
from rlvrlab.record.redact import redact
from rlvrlab.record.shapes import Record, read_records
from rlvrlab.types import ErrorKind, Finish, Problem

SCHEMA = 1
INFO, SAMPLES, PROBLEMS, METRICS = "run_info.json", "samples.jsonl", "problems.jsonl", "metrics.json"
LEFTOVERS = {".lock", SAMPLES, PROBLEMS}
"""What a kill before the first answer may leave."""


class StoredAnswer(Record):
    """One line of samples.jsonl, as far as metrics and rescoring rely on it."""

    problem: str
    sample: int
    turn: int
    completion: str
    finish: Annotated[Finish, Strict(False)]
    gen_tokens: int
    correct: bool | None
    score: float
    error: Annotated[ErrorKind, Strict(False)]
    parts: dict[str, float]
    passed: int
    total: int
    answer: str | None
    detail: str
    isolation: str
    flags: list[str]
    judge_s: float
    at_s: float
    entropy: float | None = None
    tokens: list[int] = Field(default_factory=list)
    logprobs: list[float] = Field(default_factory=list)
    attempts: int = 1
    server: str = ""
    sampler_error: str = ""
    credit: float | None = None


class EvaluationFolder(AbstractContextManager["EvaluationFolder"]):
    """An open evaluation folder; the only writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock(folder)
        try:
            self._samples = Lines(folder / SAMPLES)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def begin(
        cls, folder: Path, problems: Sequence[Problem], examined: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> EvaluationFolder:
        """A new folder, or one to go on with: then `examined` must be what it was begun with.

        `examined` decides the result (data, protocol, scorer, model, seed); `facts` only explain it.
        """
        wanted: dict[str, Any] = json.loads(json.dumps(redact(dict(examined)), default=str))
        make_output(folder)
        before = _info_if_any(folder)
        if before is None:
            if any(path.name not in LEFTOVERS and not path.name.endswith(".tmp") for path in folder.iterdir()):
                raise UserError(f"{folder}: is there and is no evaluation; choose another --output or move it away")
        elif not isinstance(was := before.get("examined"), dict):
            raise UserError(f"{folder}: holds another kind of run; choose another --output")
        elif changed := sorted(key for key in {*was, *wanted} if was.get(key) != wanted.get(key)):
            what = "; ".join(f"{key}: {was.get(key)} → {wanted.get(key)}" for key in changed)
            raise UserError(f"{folder}: was begun with something else ({what}); choose another --output")
        opened = cls(folder)
        if before is None:
            from rlvrlab.data.rows import write_problems

            write_problems(folder / PROBLEMS, problems)
        started = before["started"] if before else utc_now()
        now = {"packages": package_versions(), "machine": machine(), "code": code_state()}
        opened.info(schema=SCHEMA, status="running", started=started, examined=wanted, **facts, **now)
        return opened

    def rows(self) -> list[dict[str, Any]]:
        """The newest line of each answer; those taken back are left out."""
        return newest(read_records(self.folder / SAMPLES, StoredAnswer))

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append judged answers; the kernel has them when this returns, so kill −9 loses none."""
        for row in rows:
            self._samples.append(row)

    def info(self, **facts: Any) -> None:
        """Merge facts into run_info.json; secrets are left out."""
        write_json(self.folder / INFO, {**(_info_if_any(self.folder) or {}), **redact(facts)})

    def finish(
        self, metrics: Mapping[str, Any], summary: Mapping[str, Any], qa: Mapping[str, Sequence[dict[str, Any]]],
        qa_summary: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Write what follows from the samples, and say that it is complete."""
        self._samples.sync()
        logs = place_in(self.folder, "qa_logs")
        logs.mkdir(exist_ok=True)
        for data, rows in qa.items():
            write_rows(logs / f"{file_name(data)}_qa.jsonl", rows)
        write_json(logs / "qa_summary.json", qa_summary)
        write_json(self.folder / "summary.json", summary)
        write_json(self.folder / METRICS, metrics)
        self.info(status="finished", ended=utc_now())

    def close(self) -> None:
        """Close the samples and release the lock."""
        self._samples.close()
        self._lock.release()

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Stored:
    """The contents of an evaluation folder."""

    folder: Path
    info: dict[str, Any]
    problems: tuple[Problem, ...]
    rows: tuple[dict[str, Any], ...]
    keys: Mapping[str, str]
    """Problem id -> the hash of its content, by which problems of different folders are paired."""

    @property
    def examined(self) -> dict[str, Any]:
        """What decides the result: data, protocol, scorer, seed and who answered."""
        return self.info["examined"]


def read_evaluation(folder: Path) -> Stored:
    """Everything in an evaluation folder; finished or not."""
    return read_evaluations([folder])[0]


def read_evaluations(folders: Sequence[Path]) -> list[Stored]:
    """Everything in several of them; problems that all were asked are read once."""
    from rlvrlab.data.rows import read_problems

    asked: dict[bytes, tuple[tuple[Problem, ...], dict[str, str]]] = {}
    read = []
    for folder in folders:
        info = evaluation_facts(folder)
        content = plain_files.read_bytes(folder / PROBLEMS) if (folder / PROBLEMS).is_file() else b""
        if content not in asked:
            problems = tuple(read_problems(folder / PROBLEMS))
            asked[content] = problems, {problem.id: problem.key for problem in problems}
        problems, keys = asked[content]
        rows = newest(read_records(folder / SAMPLES, StoredAnswer))
        strange = [row["problem"] for row in rows if row["problem"] not in keys]
        if strange:
            told = f"{len(strange)} samples of problems it does not hold, e.g. {strange[0]}"
            raise InfrastructureError(f"{folder}: {told}")
        read.append(Stored(folder, info, problems, tuple(rows), keys))
    return read


def evaluation_facts(folder: Path) -> dict[str, Any]:
    """run_info.json of an evaluation folder: what was asked, of whom, and how it ended; without the answers."""
    info = _info_if_any(folder)
    if info is None or "examined" not in info:
        raise UserError(f"{folder}: no evaluation folder (no {INFO} of one); `rlvr eval … --output DIR` makes one")
    refuse_schema(info, SCHEMA, folder / INFO)
    return info


def evaluations_of(folder: Path) -> list[Path]:
    """The finished evaluations below a folder, a run's for instance; newest last."""

    def ended(evaluation: Path) -> tuple[str, int]:
        # The record's time is in seconds, in which a script may evaluate twice.
        return str((_info_if_any(evaluation) or {}).get("ended", "")), (evaluation / METRICS).stat().st_mtime_ns

    return sorted((path.parent for path in folder.glob(f"evaluations/*/{METRICS}")), key=ended)


def newest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last line of each answer; one that was taken back is left out."""
    last = {(row["problem"], row["sample"], row.get("turn", 0)): row for row in rows}
    return [row for row in last.values() if not row.get("void")]


def _info_if_any(folder: Path) -> dict[str, Any] | None:
    return read_facts(folder / INFO, "restore it or choose another --output")
