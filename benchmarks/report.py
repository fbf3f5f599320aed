"""How long a report takes to write, how large it is, and how quickly a browser shows and filters it.

    python benchmarks/report.py [--json]

A run of 2,000 steps with 32 answers each, of about 900 characters of mixed words; the page shows 5,000 of them. Writing
is measured in CPU and wall seconds, best of the rounds: `write` is the page alone in a warm process, `command` all of
`rlvr report RUN` with the start of Python and the CSV tables, which count all 64,000 answers. What --page-only saves
and --figures adds is told below. Chromium of the system opens the file as a reader would: `ready` is the page's own
clock when everything is drawn, `filter` the slowest of six changes of a filter until the list is drawn again. `…_cpu`
is what was really worked for that: the figures to trust on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rlvrlab import __version__
from rlvrlab.report.figures import available
from rlvrlab.report.gather import gather
from rlvrlab.report.page import page

STEPS, ANSWERS, ROUNDS = 2000, 32, 3
LIMITS = {"bytes": 5_000_000, "write_s": 3.0, "write_cpu_s": 3.0, "command_cpu_s": 3.0, "ready_ms": 1000,
          "ready_cpu_ms": 1000, "filter_ms": 100, "filter_cpu_ms": 100}  # fmt: skip
"""What is promised."""
WORDS = [
    f"{a}{b}{c}" for a in "bcdfglmnprst" for b in ("a", "e", "o", "ain", "our") for c in ("", "t", "ing", "s", "le")
]
METRICS = ("critic/rewards/mean", "train/acc", "response_length/mean", "response_length/clip_ratio", "groups/collected",
           "groups/zero_variance", "groups/live", "groups/all_right", "groups/all_wrong", "actor/entropy", "actor/loss",
           "actor/grad_norm", "actor/pg_clipfrac", "actor/kl", "hack/wrong_reward", "time/step_s")  # fmt: skip


def made_run(folder: Path) -> Path:
    """As training would leave it."""
    rng = random.Random(0)
    for below in ("logs", "rollouts"):
        (folder / below).mkdir(parents=True)
    recipe = {"name": "large", "phases": ["grpo"], "rollout": {"n": 8}, "phase_tables": {"grpo": {"steps": STEPS}}}
    (folder / "config.json").write_text(json.dumps({"schema": 1, "recipe": recipe, "changed": {}, "origins": {}}))
    (folder / "run_info.json").write_text(json.dumps({"status": "finished"}))
    with (folder / "logs/metrics.jsonl").open("w") as file:
        for step in range(1, STEPS + 1):
            row = {"step": step, "phase": "grpo", "phase_step": step} | {name: rng.random() for name in METRICS}
            if step % 10 == 0:
                row |= {"val-core/x/acc": step / STEPS, "val-core/x/acc_low": 0.1, "val-core/x/acc_high": 0.9}
            file.write(json.dumps(row) + "\n")
    for step in range(1, STEPS + 1):
        rows = (json.dumps(answer(rng, step, i)) for i in range(ANSWERS))
        (folder / f"rollouts/step_{step}.jsonl").write_text("\n".join(rows) + "\n")
    return folder


def answer(rng: random.Random, step: int, i: int) -> dict[str, Any]:
    """One stored answer."""
    text = "\n".join(" ".join(rng.choices(WORDS, k=14)) for _ in range(14))
    right = rng.random() < step / STEPS
    return {
        "id": f"0/grpo/{step}/problem{i // 8}/{i}", "group": f"{step}/{i // 8}", "problem": f"problem {step} {i // 8}",
        "skill": ("sums", "words", "graphs")[i % 3], "role": "train", "turn": 0, "previous": "",
        "prompt": f"Problem {step} {i // 8}: " + " ".join(rng.choices(WORDS, k=30)), "reference": {"target": i},
        "completion": text, "tokens": [rng.randrange(50_000) for _ in range(200)], "finish": "stop",
        "correct": right, "score": float(right), "error": "none" if right else rng.choice(["wrong_answer", "format"]),
        "detail": "", "flags": [], "reward": float(right), "parts": {"correct": float(right)},
    }  # fmt: skip


def write(folder: Path, target: Path) -> dict[str, float]:
    """Best of the rounds."""
    best = {"write_s": float("inf"), "write_cpu_s": float("inf")}
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        document = gather(folder)
        target.write_text(page(document), encoding="utf-8")
        best["write_s"] = min(best["write_s"], time.perf_counter() - wall)
        best["write_cpu_s"] = min(best["write_cpu_s"], time.process_time() - cpu)
    shown = next(section for section in document["sections"] if section["id"] == "rollouts")
    return best | {"bytes": target.stat().st_size, "answers": len(shown["data"]["columns"]["id"])}


def commands(folder: Path) -> dict[str, float]:
    """CPU seconds of the whole command, best of the rounds, with what its options change."""
    ways = {"command_cpu_s": [], "page_only_cpu_s": ["--page-only"]}
    if available():
        ways["figures_cpu_s"] = ["--figures"]
    rlvr = [sys.executable, "-c", "from rlvrlab.cli import main; main()", "report", str(folder), "--json"]
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, words in ways.items():
            before = _children_s()
            subprocess.run([*rlvr, *words], check=True, stdout=subprocess.DEVNULL)
            best[name] = min(best[name], _children_s() - before)
    return best


def _children_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


FILTER = """([name, value]) => {
  const node = document.querySelector(name), began = performance.now();
  node.value = value;
  node.dispatchEvent(new Event(node.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
  document.body.getBoundingClientRect();
  return performance.now() - began;
}"""
CHANGES = (
    ("#rollouts input[type=search]", "bain"),
    ("#rollouts input[type=search]", "bain tour"),
    ("#rollouts input[type=search]", ""),
    ("#rollouts label:nth-child(2) select", "sums"),
    ("#rollouts label:nth-child(3) select", "wrong"),
    ("#rollouts label:nth-child(2) select", ""),
)


def look(target: Path) -> dict[str, Any]:
    """In a fresh browser each round; nothing where there is none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return {"browser": "no chromium here"}
    from playwright.sync_api import sync_playwright

    rounds = []
    with sync_playwright() as driver:
        for _ in range(ROUNDS):
            opened = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            rounds.append(_opened(opened.new_page(viewport={"width": 1280, "height": 900}), target))
            version = opened.version
            opened.close()
    best = {name: round(min(one[name] for one in rounds), 1) for name in rounds[0]}
    return best | {"browser": f"Chromium {version}"}


def _opened(at: Any, target: Path) -> dict[str, float]:
    """One look: how long until it is drawn, and the slowest of the filters."""
    inside = at.context.new_cdp_session(at)
    inside.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked_ms() -> float:
        metrics = {one["name"]: one["value"] for one in inside.send("Performance.getMetrics")["metrics"]}
        return 1000 * float(metrics["TaskDuration"])

    at.goto(f"file://{target}")
    at.wait_for_selector("html[data-ready]")
    found = {"ready_ms": float(at.evaluate("document.documentElement.dataset.ready")), "ready_cpu_ms": worked_ms()}
    at.wait_for_timeout(1000)  # a reader looks before filtering
    walls, works = [], []
    for change in CHANGES:
        before = worked_ms()
        walls.append(at.evaluate(FILTER, list(change)))
        works.append(worked_ms() - before)
    return found | {"filter_ms": max(walls), "filter_cpu_ms": max(works)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "report.html"
        run = made_run(Path(place) / "run")
        found = write(run, target) | commands(run) | look(target)
    facts = {"rlvrlab": __version__, "python": platform.python_version(), "cores": os.cpu_count(), "steps": STEPS}
    if as_json:
        print(json.dumps(found | facts))
        return
    for name, limit in LIMITS.items():
        if name in found:
            print(f"{found[name] / limit:>5.0%} of what is allowed   {name:13} {found[name]:>12,.1f} of {limit:,}")
    less = f"--page-only takes {found['page_only_cpu_s']:.1f} s of CPU"
    more = f", --figures {found['figures_cpu_s']:.1f} s" if "figures_cpu_s" in found else ""
    print(f"rlvr report takes {found['command_cpu_s']:.1f} s of CPU, {less}{more}")
    load = os.getloadavg()[0]
    print(f"{found['answers']:,} answers shown; {found['browser']}; {facts}; load {load:.1f}")


if __name__ == "__main__":
    main()
