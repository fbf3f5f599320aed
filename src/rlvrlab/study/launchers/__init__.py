"""Where a trial's process runs: here, on a Ray cluster, under Slurm."""

from rlvrlab.study.launchers.base import LAUNCHERS, Job, Launcher, Outcome, launcher_of

__all__ = ["LAUNCHERS", "Job", "Launcher", "Outcome", "launcher_of"]
