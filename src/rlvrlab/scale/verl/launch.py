"""`rlvr train RECIPE --engine verl`: prepare, launch, follow, and resume. The run folder is like any other; verl's own
files are under artifacts/verl, its output in logs/verl.log.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from rlvrlab import fate
from rlvrlab.errors import InfrastructureError, RunTouched, UserError, cut, remedied
from rlvrlab.own_code import refuse_foreign
from rlvrlab.randomness import plain_seed
from rlvrlab.recipe import Resolved
from rlvrlab.record.files import write_atomically
from rlvrlab.record.headline import summarise
from rlvrlab.record.run import Run, read_metrics
from rlvrlab.record.seal import changed_config
from rlvrlab.record.sinks.base import Sinks, find_sinks
from rlvrlab.scale.code_version import code_version
from rlvrlab.scale.exports.folder import with_model
from rlvrlab.scale.verl import CODE, PLAN
from rlvrlab.scale.verl.checkpoints import complete_steps, mend_tracker
from rlvrlab.scale.verl.data import memory
from rlvrlab.scale.verl.export import OVERRIDES, check, prepare
from rlvrlab.scale.verl.follow import Follower, on_record
from rlvrlab.scale.verl.job import Job
from rlvrlab.scale.verl.keys import ROLLOUT, Settings, settings
from rlvrlab.scale.verl.refusals import online_phase
from rlvrlab.scale.verl.scripts import REWARD
from rlvrlab.scale.verl.spelling import override
from rlvrlab.scale.verl.validate import INSTALL
from rlvrlab.train import run_folder
from rlvrlab.train.checks import ready_lab
from rlvrlab.train.loop import Observer
from rlvrlab.train.session import Ended, resolved_of
from rlvrlab.train.state import State
from rlvrlab.train.stopping import Interrupts

PYTHON = "RLVR_VERL_PYTHON"
"""Names the Python of verl's environment, where that is not the one we run in."""
LOOK_EVERY_S = 1.0
GRACE_S = 30.0
BLAME = re.compile(r"^\S*(?:Error|Exception|Killed|OutOfMemory)\S*: .+")


def start(
    resolved: Resolved,
    observe: Observer,
    command: Sequence[str],
    address: str | None = None,
    judges: Sequence[str] = (),
) -> Ended:
    """A new run; whatever can be wrong is found before its folder is made."""
    resolved, python = with_model(resolved), python_of_verl()
    wanted = _addressed(settings(resolved, str(Path("/nowhere"))), address)
    check(wanted)
    find_sinks(resolved)
    lab = ready_lab(resolved)
    kept = memory(lab, online_phase(resolved))
    with TemporaryDirectory() as folder:
        trial = Job(Path(folder), resolved, tuple(judges), kept)
        prepare(trial, lab, wanted)
        # Is verl's environment complete, does it take the settings, and has it room for the prompts?
        lines = [override(key, value) for key, value in wanted.items()]
        ask_verls_python(python, ["-m", "rlvrlab.scale.verl.validate", "--job", folder, *lines], wanted)
    run = run_folder.create(lab, command)
    with closing(run):
        home = _home(run.folder)
        job = Job(home, resolved, tuple(judges), kept)
        prepare(job, lab, _addressed(settings(resolved, str(home)), address))
        run.event("start", f"run {run.folder.name} starts on verl", address=address or "this machine")
        return _go(job, run, State(), observe, python)


@remedied(run_folder.GO_ON)
def resume(folder: Path, observe: Observer) -> Ended:
    """Go on from verl's last complete checkpoint; without one, from the beginning."""
    python = python_of_verl()
    resolved_of(folder)
    with closing(Run.open(folder)) as run:
        if edited := changed_config(folder, []):
            raise RunTouched(f"{edited}; restore it")
        job = Job.read(_home(folder))
        refuse_foreign(job.folder / OVERRIDES)
        write_atomically(job.folder / "reward.py", REWARD)  # verl imports it
        lab = ready_lab(job.resolved)
        run_folder.check_data(folder, lab)
        mended = mend_tracker(job.folder / "checkpoints", folder / "checkpoints")
        if mended is not None:
            run.event("checkpoint", f"verl's note of its last checkpoint was damaged; the last whole one: {mended}")
        step = max(complete_steps(job.folder / "checkpoints"), default=0)
        moved = run.rewind(lambda _, row: row["step"] <= step and step > 0, step)
        run_folder.set_page_aside(run, step)
        run_folder.note_resume(run, step, moved)
        return _go(job, run, on_record(read_metrics(folder)), observe, python, resumed=step)


def python_of_verl() -> str:
    """The interpreter that has verl."""
    given = os.environ.get(PYTHON, sys.executable)
    found = shutil.which(given)
    if found is None:
        raise UserError(f"{PYTHON}={given}: no such Python; verl lives in an environment of its own: {INSTALL}")
    return found


def ask_verls_python(python: str, arguments: Sequence[str], wanted: Settings) -> None:
    """Run a check in verl's environment; what it finds wrong is raised here."""
    environment = _environment(Path("/nowhere"), wanted)
    done = subprocess.run([python, *arguments], capture_output=True, text=True, env=environment)  # noqa: S603
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        first = next((line for line in said if line.startswith("error: ")), said[-1])
        where = f" ({python}; {PYTHON} names another)" if "not installed" in first or "No module" in first else ""
        raise UserError(first.removeprefix("error: ") + where)


def _go(job: Job, run: Run, state: State, observe: Observer, python: str, *, resumed: int = 0) -> Ended:
    session = len(list(job.folder.glob("metrics_*.jsonl")))
    log = job.folder / f"metrics_{session}.jsonl"
    log.touch()
    with Interrupts() as interrupts, run_folder.recorded(run), Sinks.open(job.resolved, run) as sinks:
        follower = Follower(job, run, sinks, state, observe, python)
        if resumed:
            follower.catch_up(job.folder / f"metrics_{session - 1}.jsonl", resumed)
        with (run.folder / "logs" / "verl.log").open("ab") as output:
            verl = _launched(job, python, log, output, resumed)
            try:
                while verl.poll() is None and not interrupts.received:
                    follower.look(log)
                    time.sleep(LOOK_EVERY_S)
            finally:
                _end(verl)
        follower.look(log)
        return _closed(run, follower, interrupts, verl.returncode, job)


def _launched(job: Job, python: str, log: Path, output: IO[bytes], resumed: int) -> subprocess.Popen[bytes]:
    lines = (job.folder / OVERRIDES).read_text(encoding="utf-8").splitlines()
    variables = "+ray_kwargs.ray_init.runtime_env.env_vars"
    now = {f"{variables}.VERL_FILE_LOGGER_PATH=": log, f"{variables}.{CODE}=": code_version()}  # not as at the start
    lines = [line for line in lines if not line.startswith(tuple(now))]
    lines += [*(f"{name}{value}" for name, value in now.items()), f"hydra.run.dir={job.folder / 'hydra'}"]
    if resumed:
        other = resumed_settings(job.resolved.recipe.seed, resumed)
        lines = [line for line in lines if line.partition("=")[0] not in other]
        lines += [override(key, value) for key, value in other.items()]
    environment = _environment(job.folder, settings(job.resolved, str(job.folder)))
    # A session of its own: Ctrl-C reaches us alone, and we end verl and its Ray together. Should we be killed, the
    # kernel ends verl: a run that is resumed must not find another trainer in its folder.
    command = fate.command([python, "-m", "verl.trainer.main_ppo", *lines])
    return subprocess.Popen(  # noqa: S603
        command, stdout=output, stderr=subprocess.STDOUT, cwd=job.folder, env=environment, start_new_session=True
    )


def resumed_settings(seed: int, step: int) -> Settings:
    """What a run that goes on after a step says differently.

    verl seeds its sampler when it starts, and no checkpoint holds how far that stream of random numbers has come. With
    the seed of the first start, the answers after a resume would be drawn with the numbers of the first updates.
    """
    drawn = plain_seed(seed, "verl", "resumed", step)
    return {"trainer.val_before_train": False, f"{ROLLOUT}.seed": drawn}


def _environment(folder: Path, wanted: Settings) -> dict[str, str]:
    """Environment of verl's driver, which also needs the variables that its workers get through Ray."""
    prefix = "ray_kwargs.ray_init.runtime_env.env_vars."
    given = {key.removeprefix(prefix): str(value) for key, value in wanted.items() if key.startswith(prefix)}
    return {**os.environ, **given, PLAN: str(folder), "HYDRA_FULL_ERROR": "1", "RAY_DEDUP_LOGS": "0"}


def _end(verl: subprocess.Popen[bytes]) -> None:
    """verl and everything it started here."""
    if verl.poll() is None:
        fate.end([verl], GRACE_S, group=True)


def _closed(run: Run, follower: Follower, interrupts: Interrupts, code: int, job: Job) -> Ended:
    if interrupts.received:
        step = max(complete_steps(job.folder / "checkpoints"), default=0)
        run_folder.close(run, interrupts.status, f"asked to stop; --resume goes on after step {step}")
        told = summarise(run.folder)
        return Ended(run.folder, interrupts.status, interrupts.exit_code, told, interrupts.received)
    if code or follower.state.step < job.phase.steps:
        log = run.folder / "logs" / "verl.log"
        remedy = f"the whole output is in {log}; go on with: rlvr train --resume {run.folder}"
        raise InfrastructureError(f"verl ended with code {code}: {blame(log)}; {remedy}")
    run_folder.close(run, "finished", "all phases done")
    return Ended(run.folder, "finished", 0, summarise(run.folder))


def blame(log: Path) -> str:
    """The last line of verl's output that names an error."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    plain = [re.sub(r"\x1b\[[0-9;]*m|^\([^)]*\) ", "", re.sub(r"\x1b\[[0-9;]*m", "", line)).strip() for line in lines]
    named = [line for line in plain if BLAME.match(line)]
    return cut((named or [line for line in plain if line] or ["it said nothing"])[-1], 400)


def _addressed(wanted: Settings, address: str | None) -> Settings:
    """On a cluster Ray is not started, so nothing may be said about its size."""
    if address is None:
        return wanted
    sizes = ("ray_kwargs.ray_init.num_cpus", "ray_kwargs.ray_init.num_gpus", "ray_kwargs.ray_init.include_dashboard")
    kept = {key: value for key, value in wanted.items() if key not in sizes}
    return {**kept, "ray_kwargs.ray_init.address": address}


def _home(folder: Path) -> Path:
    return (folder / "artifacts" / "verl").resolve()
