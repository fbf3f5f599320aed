"""rlvr study: chains of experiments that choose, explain and resume."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvrlab import plain_files
from rlvrlab.cli.options import ACCEPT_CODE, AS_JSON, together
from rlvrlab.cli.printing import print_json, printable, printable_lines
from rlvrlab.errors import UserError, suggestion
from rlvrlab.own_code import named_by_folder

if TYPE_CHECKING:
    from rlvrlab.study.board import Board
    from rlvrlab.study.load import StudyFile
    from rlvrlab.study.views import StageView, Survey

STUDY = together(click.argument("study", type=click.Path(path_type=Path), metavar="FILE|FOLDER"), ACCEPT_CODE)
FOLDER = click.option("-o", "--output", "--folder", "folder", type=click.Path(path_type=Path),
                      help="Study folder [output/name of the file].")  # fmt: skip


@click.group("study", short_help="Run chains of experiments that choose, explain and resume.")
def command() -> None:
    """Run chains of experiments that choose, explain and resume.

    \b
    rlvr study plan studies/npg_muse/smoke.toml    what would run, what is reused, what it costs
    rlvr study run studies/npg_muse/smoke.toml     run it, or go on with it
    rlvr recipes study                             the studies that come along; with a name, its record
    """


@command.command("plan", short_help="Show what would run, what is reused and what it costs.")
@STUDY
@FOLDER
@click.option("--no-cost", is_flag=True, help="Leave out the estimate, which takes some training steps.")
@AS_JSON
def plan(study: Path, folder: Path | None, no_cost: bool, as_json: bool) -> None:
    """Show what would run, what is reused and what it costs.

    Nothing is written. Where a stage starts from a winner that is not known yet, the costliest arm is assumed.
    """
    from rlvrlab.study.plan import plan_study

    file, home = _found(study, folder)
    planned = plan_study(file, home, cost=not no_cost)
    if as_json:
        print_json(planned.plain())
    else:
        from rlvrlab.cli.study_tables import show_plan

        show_plan(planned)


@command.command("run", short_help="Run a study, or go on with it.")
@STUDY
@FOLDER
@click.option("--launcher", type=click.Choice(["local", "ray", "slurm"]), help="In place of the file's.")
@click.option("--processes", type=click.IntRange(1), help="Trials at once, in place of the file's.")
@click.option("--address", help="Of a Ray cluster that is there; else one is started here.")
@click.option("--retry", is_flag=True, help="Give failed and timed-out trials another chance.")
@click.option("--anyway", is_flag=True, help="Choose on test problems where the file asks for it; it is recorded.")
@AS_JSON
def run(
    study: Path, folder: Path | None, launcher: str | None, processes: int | None, address: str | None, retry: bool,
    anyway: bool, as_json: bool,
) -> int:  # fmt: skip
    """Run a study, or go on with it.

    After an interruption of any kind the same command resumes: finished trials are kept, begun ones go on from their
    last checkpoint. Exit code 3: a stage waits for `rlvr study select`.
    """
    from rlvrlab.cli.study_tables import Live
    from rlvrlab.study.launchers import launcher_of
    from rlvrlab.study.launchers.base import too_many_threads
    from rlvrlab.study.run import Runner

    file, home = _found(study, folder)
    changes: dict[str, Any] = {"processes": processes, "address": address, "launcher": launcher}
    resources = file.study.resources.model_copy(update={k: v for k, v in changes.items() if v is not None})
    for warning in file.placed(too_many_threads(resources)):
        click.secho(printable(f"warning: {warning}"), fg="yellow", err=True)
    where = launcher_of(resources.launcher, resources)
    with Live(file.study.name, as_json) as live:
        runner = Runner(file, home, where, live.observe)
        try:
            if retry:
                runner.retry()
            ended = runner.run(anyway=anyway)
        finally:
            runner.close()
    live.end(ended)
    return ended.exit_code


@command.command("status", short_help="Show where a study stands.")
@STUDY
@FOLDER
@AS_JSON
def status(study: Path, folder: Path | None, as_json: bool) -> None:
    """Show where a study stands.

    Reads only; the study may be running meanwhile.
    """
    board, survey = _surveyed(study, folder)
    if as_json:
        from rlvrlab.report.status import is_held
        from rlvrlab.study.document import document
        from rlvrlab.study.run import status_of

        status = status_of(survey, is_held(board.folder))
        print_json(document(board, survey, status, board.chain.file.study.resources.launcher))
    else:
        from rlvrlab.cli.study_tables import show_status

        show_status(board, survey)


@command.command("select", short_help="Choose a stage's arm by hand, or see what the rule recommends.")
@STUDY
@click.argument("stage")
@click.argument("arm", required=False)
@click.option("--reason", help="Why; goes into the decision log. Needed to choose.")
@click.option("--who", help="Whose decision; else the user's name here.")
@FOLDER
@AS_JSON
def select(
    study: Path, stage: str, arm: str | None, reason: str | None, who: str | None, folder: Path | None, as_json: bool
) -> None:
    """Choose a stage's arm by hand, or see what the rule recommends.

    \b
    rlvr study select experiments/studies/my_study volume
    rlvr study select experiments/studies/my_study volume 60k --reason "cross-domain matters more here"
    """
    from rlvrlab.study import decide
    from rlvrlab.study.folder import StudyFolder

    board, survey = _surveyed(study, folder)
    view = _stage(survey, stage)
    if arm is None:
        made = decide.choice(board, view)
    else:
        if not (reason or "").strip():
            raise UserError(
                '--reason is missing; a choice by hand is recorded with its reason, e.g. --reason "cheaper"'
            )
        if not who:
            try:
                who = getpass.getuser()
            except (OSError, KeyError):
                who = "unknown"
        made = decide.override(board, view, arm, (reason or "").strip(), who)
        opened = StudyFolder(board.folder, board.chain.file)
        try:
            made = opened.decide(made)
            board.decisions.append(made)
            _written(board, going=False)  # the lock is ours: nobody else works on the study
        finally:
            opened.close()
    if as_json:
        print_json(made)
        return
    from rlvrlab.cli.study_tables import show_decision

    show_decision(made)
    if arm is not None:
        click.echo(f"Recorded. Go on with: rlvr study run {printable(study)}")


@command.command("report", short_help="Write the tables and the decision log anew.")
@STUDY
@FOLDER
@AS_JSON
def report(study: Path, folder: Path | None, as_json: bool) -> None:
    """Write the tables and the decision log anew.

    study.json, REPORT.md, DECISIONS.md and the page, analysis/report.html, in the study folder.
    """
    from rlvrlab.report.status import is_held

    board, _ = _surveyed(study, folder)
    made = _written(board, is_held(board.folder))
    if as_json:
        print_json(made)
    else:
        click.echo(printable_lines(plain_files.read_text(board.folder / "REPORT.md")))


@command.command("export", short_help="Write the chain as plain shell scripts.")
@STUDY
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder for the scripts.")
@AS_JSON
def export(study: Path, output: Path, as_json: bool) -> None:
    """Write the chain as plain shell scripts.

    They need `rlvr train`, `rlvr eval` and a shell, not the study runner. Each choice is the highest mean of the
    rule's metrics, without statistics; BEST_STAGE=ARM in the environment overrides it.
    """
    from rlvrlab.study.export import export_study

    file, _ = _found(study, None)
    made = export_study(file, output)
    if as_json:
        print_json({"folder": str(output), "files": [path.name for path in made]})
    else:
        click.echo(f"{len(made)} files in {printable(output)}; run them with: sh {printable(output / 'run_all.sh')}")


def _found(study: Path, folder: Path | None) -> tuple[StudyFile, Path]:
    """The study file, by its path, folder or name, and its folder, or the one that -o names."""
    from rlvrlab.cli.names import study_folder
    from rlvrlab.recipe.shipped import named_file
    from rlvrlab.study.folder import find_study

    path = named_file(study) or study_folder(str(study)) or study
    if path.is_dir():  # its study file is one that the folder names
        click.get_current_context().with_resource(named_by_folder())
    file, home = find_study(path)
    return file, folder or home


def _surveyed(study: Path, folder: Path | None) -> tuple[Board, Survey]:
    """Where a study stands, read from its folder."""
    from rlvrlab.study.board import Board

    file, home = _found(study, folder)
    if not home.is_dir():
        raise UserError(f"{home}: this study has not been run yet; `rlvr study run {study}` does")
    board = Board.read(file, home.resolve())
    return board, board.survey()


def _written(board: Board, going: bool) -> dict[str, Any]:
    """Write study.json, REPORT.md, DECISIONS.md and the page anew."""
    from rlvrlab.study.document import write_document
    from rlvrlab.study.page import try_page
    from rlvrlab.study.run import status_of

    survey = board.survey()
    made = write_document(board, survey, status_of(survey, going), board.chain.file.study.resources.launcher)
    if why := try_page(board.folder):
        click.secho(printable(f"warning: {why}"), fg="yellow", err=True)
    return made


def _stage(survey: Survey, name: str) -> StageView:
    """A stage that can be chosen for: its trials are all over."""
    known = {view.name: view for view in survey.stages}
    if name not in known:
        raise UserError(f"no stage {name!r}{suggestion(name, known)}")
    view = known[name]
    if view.status not in ("waiting", "decided"):
        why = view.note or f"it is {view.status}: its trials are not all over"
        raise UserError(f"stage {name}: nothing can be chosen yet; {why}")
    return view
