"""Writes a run's story into its folder: made again whenever the logs are newer, from files of the folder alone.

analysis/findings.md           sentences with numbers and intervals; EXPERIMENT.md has them too
analysis/tables/NAME.csv       every number that is drawn; metrics.csv: every step
analysis/figures/NAME.svg      the picture of that table
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from rlvrlab.errors import LabError
from rlvrlab.record.experiment import FINDINGS, write_experiment
from rlvrlab.record.files import place_in, write_atomically
from rlvrlab.report.reading import STRANGE
from rlvrlab.report.run_record import METRICS, RunRecord
from rlvrlab.report.story import learning
from rlvrlab.report.story.part import Part, as_csv, steps_table

ONE_RUN = "Intervals are 95 % and of this one run; what another seed would give, several runs tell (`rlvr compare`)."


def write_story(folder: Path) -> list[Path]:
    """The files written; none where there is nothing to tell, or where the story is newer than the logs."""
    logs, findings = folder / METRICS, folder / FINDINGS
    if not logs.exists() or (findings.exists() and findings.stat().st_mtime_ns >= logs.stat().st_mtime_ns):
        return []
    run, told, files = RunRecord(folder), list[str](), dict[Path, str]()
    for make in _makers(run):
        try:
            part = make(run)
        except (LabError, OSError, *STRANGE) as error:
            told.append(f"{make.__name__.replace('_', ' ')}: could not be told ({type(error).__name__}: {error}).")
            continue
        if part is not None:
            told += part.findings
            files |= {Path("analysis/tables") / f"{name}.csv": as_csv(*table) for name, table in part.tables.items()}
            files |= {Path("analysis/figures") / f"{name}.svg": text for name, text in part.pictures.items()}
    if not told:
        return []
    steps = steps_table([(folder.name, line.row) for line in run.metrics])
    files[Path("analysis/tables/metrics.csv")] = as_csv(*steps)
    files[FINDINGS] = "\n\n".join([*told, ONE_RUN]) + "\n"  # last, because it says that the others are there
    for name, text in files.items():
        place_in(folder, name.parent).mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, text)
    write_experiment(folder)
    return [folder / name for name in files]


def _makers(run: RunRecord) -> Iterator[Callable[[RunRecord], Part | None]]:
    """What tells each part, in their order. A run that has nothing for a part does not import what would tell it."""
    yield learning.phases
    if len(run.skill_keys) > 1:
        from rlvrlab.report.story.skills import skills

        yield skills
    if any(key.startswith("surgery/") for key in run.keys):
        from rlvrlab.report.story.conflict import conflict

        yield conflict
    if any(key.startswith("guard/") for key in run.keys):
        from rlvrlab.report.story.guard import guard

        yield guard
    if run.recipe.get("credit"):
        from rlvrlab.report.story.credit import credit

        yield credit
    if any(key.startswith("agent/") for key in run.keys):
        from rlvrlab.report.story.episodes import episodes

        yield episodes
    yield learning.reward_parts
    yield learning.signal
