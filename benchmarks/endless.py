"""What one endless program costs a step: nano samples for real, and a fixed mix of programs is judged in its place.

    python benchmarks/endless.py [--problems 32] [--answers 16] [--steps 6] [--endless 0.01] [--without ARM] [--json]

Arms take turns step by step, in one process: no endless programs; some, with a fixed limit of 10 s and of 1 s; the
same with learnt limits; and learnt limits in a pipeline of depth one. Each answer is its own program, so nothing comes
from the judge's cache. `ratio` is the median step beside that of the mix without endless programs, in the same turn.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rlvrlab.envs.code.generation import Code
from rlvrlab.envs.code.judged import Jobs
from rlvrlab.recipe import load_recipe
from rlvrlab.record.facts import machine
from rlvrlab.registry import register
from rlvrlab.stopwatch import watching
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps
from rlvrlab.types import Problem, Role, Verdict

RIGHT = "    return [x * k for x in range(n) if x % 3]"
WRONG = "    return [x + k for x in range(n)]"
ENDLESS = "    while True:\n        n += 1"
TESTS = 3


@register("env", "endless_mix")
@dataclass(frozen=True)
class EndlessMix(Code):
    """Three tests per problem; which program an answer stands for follows from its text."""

    endless: float = 0.01
    name: ClassVar[str] = "endless_mix"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """`size` functions that differ in a constant."""
        made = []
        first = {"train": 0, "dev": 10**6, "test": 2 * 10**6}[role]
        for k in range(first, first + size):
            tests = [f"assert f({n}, {k}) == {[x * k for x in range(n) if x % 3]}" for n in range(5, 5 + TESTS)]
            reference = {"entry_point": "f", "tests": tests, "setup": "", "begun": "", "inprocess": False}
            solution = f"```python\ndef f(n, k):\n{RIGHT}\n```"
            made.append(Problem(f"{role}/{k}", self.name, self.name, f"{k} = ?\n", reference, {"solution": solution},
                                role))  # fmt: skip
        return made

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """The program that this text stands for, with a comment that keeps it apart from all others."""
        if text == problem.meta["solution"]:
            return super().prepare(problem, text)
        name = hashlib.sha256(f"{problem.id} {text}".encode()).hexdigest()
        place = int(name[:8], 16) / 16**8
        body = ENDLESS if place < self.endless else RIGHT if place < 0.5 else WRONG
        return super().prepare(problem, f"```python\n# {name}\ndef f(n, k):\n{body}\n```")


RECIPE = """
name = "endless"
phases = ["grpo"]
[env]
type = "{file}:EndlessMix"
endless = {endless}
timeout_s = {timeout}
[engine]
type = "hf"
model = "nano"
[data]
train_size = {problems}
dev_size = 2
[rollout]
n = {answers}
max_tokens = 96
[pipeline]
lag = {lag}
limits = "{limits}"
[grpo]
steps = {steps}
batch_size = {problems}
"""
ARMS: dict[str, dict[str, Any]] = {
    "no endless programs": {"endless": 0.0, "timeout": 10.0, "limits": "fixed", "lag": 0},
    "limit 10 s": {"timeout": 10.0, "limits": "fixed", "lag": 0},
    "limit 1 s": {"timeout": 1.0, "limits": "fixed", "lag": 0},
    "learnt limits": {"timeout": 10.0, "limits": "learnt", "lag": 0},
    "learnt limits, lag 1": {"timeout": 10.0, "limits": "learnt", "lag": 1},
}


def main() -> None:
    """Every arm takes one step in turn; the first turn is not counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=32)
    parser.add_argument("--answers", type=int, default=16)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--endless", type=float, default=0.01)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--without", nargs="*", default=[], choices=[*ARMS][1:], help="arms to leave out")
    options = parser.parse_args()
    arms = {arm: keys for arm, keys in ARMS.items() if arm not in options.without}
    seconds: dict[str, list[float]] = {arm: [] for arm in arms}
    parts: dict[str, list[dict[str, float]]] = {arm: [] for arm in arms}
    with tempfile.TemporaryDirectory() as home:
        running = {}
        for arm, keys in arms.items():
            folder = Path(home) / arm.replace(" ", "_").replace(",", "")
            folder.mkdir()
            sizes = {"problems": options.problems, "answers": options.answers, "steps": options.steps + 1}
            text = RECIPE.format(file=Path(__file__).resolve(), **{"endless": options.endless, **sizes, **keys})
            (folder / "recipe.toml").write_text(text)
            resolved = load_recipe(folder / "recipe.toml")
            running[arm] = bare_steps(build_lab(resolved), resolved.phase("grpo"), folder)
        for turn in range(options.steps + 1):
            for arm, steps in running.items():
                started = time.perf_counter()
                with watching() as spent:
                    next(steps)
                if turn:
                    seconds[arm].append(time.perf_counter() - started)
                    parts[arm].append(dict(spent))
    usual = statistics.median(seconds["no endless programs"])
    rows = []
    for arm, times in seconds.items():
        waited = statistics.median(one.get("judge", 0.0) for one in parts[arm])
        drawn = statistics.median(one.get("sample", 0.0) for one in parts[arm])
        middle = statistics.median(times)
        rows.append({"arm": arm, "s_per_step": middle, "ratio": middle / usual, "sample_s": drawn, "waited_s": waited})
    facts = {"programs": options.problems * options.answers, "endless": options.endless, "machine": machine()}
    if options.json:
        print(json.dumps({"rows": rows, **facts}, indent=2))
        return
    print(f"{facts['programs']} programs, {options.endless:.0%} endless, {TESTS} tests each; {facts['machine']}")
    for row in rows:
        print("{arm:22} {ratio:5.2f} ×  {s_per_step:6.2f} s a step: sampling {sample_s:.2f}, "
              "then waiting {waited_s:.2f}".format(**row))  # fmt: skip


if __name__ == "__main__":
    main()
