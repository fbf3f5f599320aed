"""What one endless program costs a step: a model samples for real, and a fixed mix of programs is judged in its place.

    python benchmarks/endless.py [--problems 32] [--answers 16] [--steps 6] [--endless 0.01] [--without ARM] [--json]
    python benchmarks/endless.py --model FOLDER --lora 32 --tokens 320 --micro-tokens 16384 --prompts mbpp.jsonl \\
        --without "limit 10 s" "limit 1 s"                                                     (one GPU)

Arms take turns step by step, in one process: no endless programs; some, with a fixed limit of 10 s and of 1 s; the
same with learnt limits; and learnt limits in a pipeline of depth one, whose last step, which draws nothing any more, is
never taken. Each answer is its own program, so nothing comes
from the judge's cache. `ratio` is the median step beside that of the arm without endless programs. With --prompts the
model answers the questions of that file: its answers are as long as they are in training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rlvrlab.envs.code.generation import Code
from rlvrlab.envs.code.judged import Jobs
from rlvrlab.notes import watching
from rlvrlab.recipe import load_recipe
from rlvrlab.record.facts import machine
from rlvrlab.registry import register
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
    prompts: str = ""
    """Lines of JSON whose `prompt` (or `text`, as MBPP's own) is asked in place of a short line."""
    name: ClassVar[str] = "endless_mix"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """`size` functions that differ in a constant."""
        made = []
        first = {"train": 0, "dev": 10**6, "test": 2 * 10**6}[role]
        rows = [json.loads(line) for line in Path(self.prompts).read_text().splitlines()] if self.prompts else []
        questions = [row.get("prompt") or row["text"] for row in rows]
        for k in range(first, first + size):
            tests = [f"assert f({n}, {k}) == {[x * k for x in range(n) if x % 3]}" for n in range(5, 5 + TESTS)]
            reference = {"entry_point": "f", "tests": tests, "setup": "", "begun": "", "inprocess": False}
            solution = f"```python\ndef f(n, k):\n{RIGHT}\n```"
            asked = questions[k % len(questions)] if questions else f"{k} = ?\n"
            made.append(Problem(f"{role}/{k}", self.name, self.name, asked, reference, {"solution": solution}, role))
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
prompts = "{prompts}"
timeout_s = {timeout}
[engine]
type = "hf"
model = "{model}"
lora_rank = {lora}
chat = {chat}
micro_tokens = {micro_tokens}
[data]
train_size = {problems}
dev_size = 2
[rollout]
n = {answers}
max_tokens = {tokens}
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
    parser.add_argument("--model", default="nano")
    parser.add_argument("--lora", type=int, default=0, help="rank; 0 trains every parameter")
    parser.add_argument("--tokens", type=int, default=96, help="longest answer")
    parser.add_argument("--micro-tokens", type=int, default=0)
    parser.add_argument("--prompts", type=Path, help="questions, asked with the model's chat template")
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
            given = {
                "file": Path(__file__).resolve(), "problems": options.problems, "answers": options.answers,
                "steps": options.steps + 2, "endless": options.endless, "model": options.model, "lora": options.lora,
                "tokens": options.tokens, "micro_tokens": options.micro_tokens,
                "chat": "true" if options.prompts else "false",
                "prompts": options.prompts.resolve() if options.prompts else "",
            }  # fmt: skip
            text = RECIPE.format(**{**given, **keys})
            (folder / "recipe.toml").write_text(text)
            resolved = load_recipe(folder / "recipe.toml")
            running[arm] = bare_steps(build_lab(resolved), resolved.phase("grpo"), folder)
        for turn in range(options.steps + 1):
            for arm, steps in running.items():
                started = time.perf_counter()
                with watching() as spent:
                    outcome = next(steps)
                took = time.perf_counter() - started
                print(f"turn {turn}, {arm}: {took:.2f} s {outcome.metrics.get('response_length/mean', 0):.0f} tokens",
                      file=sys.stderr, flush=True)  # fmt: skip
                if turn:
                    seconds[arm].append(took)
                    shown = sum(spent.get(part, 0.0) for part in ("sample", "judge", "score", "update"))
                    tokens = outcome.metrics.get("response_length/mean", 0.0)
                    parts[arm].append({**spent, "rest": took - shown, "tokens": tokens})
    usual = statistics.median(seconds[next(iter(arms))])
    rows = []
    for arm, times in seconds.items():
        named = {"sample_s": "sample", "waited_s": "judge", "score_s": "score", "update_s": "update"}
        named |= {"rest_s": "rest", "tokens_per_answer": "tokens"}
        middles = {name: statistics.median(one.get(part, 0.0) for one in parts[arm]) for name, part in named.items()}
        middle = statistics.median(times)
        rows.append({"arm": arm, "s_per_step": middle, "ratio": middle / usual, "steps_s": times, **middles})
    facts = {
        "programs": options.problems * options.answers, "endless": options.endless, "model": options.model,
        "lora": options.lora, "max_tokens": options.tokens, "micro_tokens": options.micro_tokens, "machine": machine(),
    }  # fmt: skip
    if options.json:
        print(json.dumps({"rows": rows, **facts}, indent=2))
        return
    print(f"{facts['programs']} programs, {options.endless:.0%} endless, {TESTS} tests each; {facts['machine']}")
    for row in rows:
        print("{arm:22} {ratio:5.2f} ×  {s_per_step:6.2f} s a step: sampling {sample_s:.2f}, "
              "then waiting {waited_s:.2f}, scores {score_s:.2f}, update {update_s:.2f}, "
              "the rest {rest_s:.2f}".format(**row))  # fmt: skip


if __name__ == "__main__":
    main()
