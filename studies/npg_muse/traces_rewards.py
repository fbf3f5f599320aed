"""Five rewards and a curriculum from one start on solver traces, as DECLARATION.md declares them.

    python studies/npg_muse/traces_rewards.py run WORK [--model FOLDER] [--processes 3] [--seconds 1200]
    python studies/npg_muse/traces_rewards.py keep WORK          # -> results/qwen_traces_rewards.json
    python studies/exam_tables.py studies/npg_muse/results/qwen_traces_rewards.json

`run` makes the start and then the arms, in the order of the declaration, every run a process of its own in a folder of
WORK; what is there already is not run again. Nothing is begun that would not end in time. `--words` are further words
of the recipe, for a trial on another model.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "coding_five_phase")]
from job_processes import Job, Queue  # noqa: E402
from keep_exams import part_of  # noqa: E402
from keep_qwen import kept, save  # noqa: E402

RECIPE = HERE / "qwen_traces_rewards.toml"
RESULTS = HERE / "results/qwen_traces_rewards.json"
START = "sft"
ARMS = {
    "binary": ["reward.type=binary"],
    "curriculum": ["reward.type=binary", "protocol.type=curriculum"],
    **{name: [f"reward.type={name}"] for name in (
        "ratio_quality_format_repeat", "binary_format", "complicated", "binary_format_repeat")},
}  # fmt: skip
"""In the order of the declaration."""
FILES = ("run_info.json", "config.json", "logs/metrics.jsonl", "analysis")
"""What of a run is kept beside its weights, for `keep`."""
LIMIT_S = 900
"""Seconds after which a run is taken for one that hangs."""


def ended(folder: Path) -> bool:
    """Did the run in this folder come to its end?"""
    return (folder / "COMMIT").exists()


def train(work: Path, name: str, words: list[str]) -> None:
    """One run, and then what of it is small; the start keeps its weights, from which the arms go on."""
    folder, runs = work / f"{name}_s0", work / "runs" / name
    shutil.rmtree(runs, ignore_errors=True)
    rlvr = [sys.executable, "-m", "rlvrlab", "train", str(RECIPE), "seed=0", f"output_dir={runs}", *words]
    subprocess.run(rlvr, check=True)  # noqa: S603 - our own words
    [run] = (path for path in runs.iterdir() if path.is_dir())
    for file in FILES:
        target = folder / Path(file).name
        (shutil.copytree if (run / file).is_dir() else shutil.copy)(run / file, _made_room(target))
    if name == START:
        [weights] = run.glob("checkpoints/*/actor/huggingface")
        shutil.copytree(weights, _made_room(work / "start"))
    shutil.rmtree(runs)
    code = json.loads((folder / "run_info.json").read_text(encoding="utf-8"))["code"]
    (folder / "COMMIT").write_text(f"{code['commit']}{' with changes' if code['dirty'] else ''}")


def _made_room(target: Path) -> Path:
    """The same place, empty, in a folder that is there."""
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def jobs(work: Path, model: str, words: list[str]) -> list[Job]:
    """The start, and the arms as soon as it is there."""

    def job(name: str, phase: str, *own: str) -> Job:
        told = ["one", str(work), name, "--words", f'phases=["{phase}"]', *own, *words]
        ready = (lambda: True) if name == START else (lambda: ended(work / f"{START}_s0"))
        done = work / f"{name}_s0"
        return Job(name, phase, [sys.executable, __file__, *told], ready, lambda: ended(done), LIMIT_S)

    begin = [f"engine.model={model}"] if model else []
    begun = f"engine.model={work / 'start'}"
    return [job(START, "sft", *begin), *(job(name, "grpo", begun, *own) for name, own in ARMS.items())]


def keep(work: Path) -> None:
    """The small part of all runs that came to their end, the start first."""
    names = [name for name in (START, *ARMS) if ended(work / f"{name}_s0")]
    cards = {name: "1_sft.json" if name == START else "1_grpo.json" for name in names}
    parts = [part_of(f"{name}_s0", work / f"{name}_s0", card) for name, card in cards.items()]
    against = [(START, "binary"), *(("binary", name) for name in ARMS if name != "binary")]
    save(RESULTS, kept(parts, {}, against))


def main() -> None:
    """Run, keep, or one run by itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "keep", "one"])
    parser.add_argument("work", type=Path)
    parser.add_argument("name", nargs="?", choices=[START, *ARMS], help="of one run")
    parser.add_argument("--model", default="", help="a folder in place of the recipe's model")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("--words", nargs="*", default=[])
    asked = parser.parse_args()
    work = asked.work.resolve()
    if asked.verb == "keep":
        keep(work)
    elif asked.verb == "one":
        train(work, asked.name, asked.words)
    else:
        queue = Queue(work / "logs", asked.processes, time.monotonic() + asked.seconds)
        left = queue.run(jobs(work, asked.model, asked.words))
        print(f"left: {', '.join(left)}" if left else "all ran to their end")


if __name__ == "__main__":
    main()
