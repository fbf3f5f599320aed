"""Trusted data and trusted evaluation: how fast, and how much is found.

    python benchmarks/data_eval.py [audit] [eval] [compare] [--json] [--documents 20000] [--hashing rensa|numpy]

audit       files of --documents prompts, some of them edited copies: CPU seconds from reading to report, recall on the
            planted pairs with Jaccard ≥ 0.6 counted by Python's own sets, and the least similar pair reported
eval        a server that answers at once, evaluated on Countdown, every sample kept (benchmarks/eval_throughput.py)
compare     ten runs against ten on 2,000 problems: CPU seconds from the folders to the table, median of three
Target: 20,000 documents in 10 CPU seconds, recall 0.99, no pair under 0.4; 500 requests per second; 2 CPU seconds for
the comparison. CPU seconds are this process's: a loaded machine stretches wall time, not these.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab import __version__
from rlvrlab.data import near
from rlvrlab.data.audit import audit
from rlvrlab.data.audit_report import write_audit
from rlvrlab.data.rows import write_problems
from rlvrlab.types import Problem

VOCABULARY, LENGTH = 20_000, 118
COPIES = 1000
FORM = "\nSolve it step by step. End with a line that holds #### and the final number alone, e.g. #### 42"


def planted(documents: int, seed: int) -> list[str]:
    """Texts of words drawn by frequency; the last COPIES are edited copies of the first, more or less alike."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, VOCABULARY + 1) ** 0.9
    weights /= weights.sum()
    words = random.choice(VOCABULARY, (documents, LENGTH), p=weights)
    for i in range(COPIES):
        copy = words[i].copy()
        changed = random.choice(LENGTH, random.integers(1, 16), replace=False)
        copy[changed] = random.choice(VOCABULARY, len(changed), p=weights)
        words[documents - COPIES + i] = copy
    return [" ".join(f"w{word}" for word in row) for row in words]


def similarity(left: str, right: str) -> float:
    """Jaccard over runs of three words."""
    one, other = ({tuple(words[i : i + 3]) for i in range(len(words) - 2)} for words in (left.split(), right.split()))
    return len(one & other) / len(one | other)


def auditing(documents: int, hashing: str | None) -> dict[str, Any]:
    """One half is train, the other test; every copy crosses."""
    texts = planted(documents, seed=1)
    half = documents // 2
    if hashing == "numpy":
        near.importlib.util.find_spec = lambda name: None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "train.jsonl", Path(folder) / "test.jsonl"]
        problems = [
            Problem(f"p{i}", "gsm8k", "gsm8k", text + FORM, "1", {}, "train" if i < half else "test")
            for i, text in enumerate(texts)
        ]
        write_problems(paths[0], problems[:half])
        write_problems(paths[1], problems[half:])
        started = time.process_time()
        found = audit(paths)
        compared = time.process_time() - started
        write_audit(found, Path(folder) / "audit")
        used = time.process_time() - started
    wanted = {
        (f"p{i}", f"p{documents - COPIES + i}")
        for i in range(COPIES)
        if similarity(texts[i], texts[documents - COPIES + i]) >= 0.6
    }
    reported = {(hit.left.id, hit.right.id): hit for hit in found.hits if hit.kind != "passage"}
    true = {pair: similarity(texts[int(pair[0][1:])], texts[int(pair[1][1:])]) for pair in reported}
    return {
        "documents": documents,
        "hashing": found.hashing,
        "cpu_s": round(used, 2),
        "of_which_reading_and_comparing": round(compared, 2),
        "planted_at_least_0.6": len(wanted),
        "recall": round(len(wanted & set(reported)) / len(wanted), 4),
        "pairs": len(reported),
        "least_similar_pair": round(min(true.values()), 3),
        "pairs_under_0.4": sum(value < 0.4 for value in true.values()),
    }


def evaluating() -> dict[str, Any]:
    from eval_throughput import OURS, figures_of

    found = figures_of(3000, 3)[OURS]
    return {name: round(value, 2) for name, value in found.items()}


def comparing(runs: int = 20, problems: int = 2000) -> dict[str, Any]:
    """Answers of a policy that is right by chance; half of the runs on either side."""
    from rlvrlab.envs.countdown import Countdown
    from rlvrlab.evals.answering import Answer
    from rlvrlab.evals.compare import compare_folders
    from rlvrlab.evals.judged import Judged, as_row
    from rlvrlab.evals.kept import examined_facts
    from rlvrlab.evals.matching import matching
    from rlvrlab.evals.protocol import eval_at_1
    from rlvrlab.record.evaluation import EvaluationFolder
    from rlvrlab.types import Completion, ErrorKind, Verdict

    env, protocol, random = Countdown(), eval_at_1(), np.random.default_rng(0)
    asked, used = env.problems("test", problems, 0), []
    with tempfile.TemporaryDirectory() as home:
        folders = [Path(home) / f"run{i}" for i in range(runs)]
        for folder in folders:
            facts = examined_facts({"model": folder.name}, env, asked, protocol, 0, env.name)
            with EvaluationFolder.begin(folder, asked, facts, {}) as kept:
                for problem, right in zip(asked, random.random(problems) < 0.5, strict=True):
                    answer = Answer(Completion(str(random.integers(10**6)), (), ()), 4)
                    kind = ErrorKind.NONE if right else ErrorKind.WRONG
                    judged = Judged(problem, 0, answer, Verdict(bool(right), float(right), kind), 0.001, 1.0)
                    kept.append([as_row(judged)])
                kept.finish({}, {}, {}, {})
        for _ in range(3):
            started = time.process_time()
            compare_folders(*matching(folders[: runs // 2], folders[runs // 2 :]))
            used.append(time.process_time() - started)
    return {"runs": runs, "problems": problems, "cpu_s": round(sorted(used)[1], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help="which of: audit, eval, compare; all when none is named")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--hashing", choices=["rensa", "numpy"])
    options = parser.parse_args()
    sections: dict[str, Callable[[], dict[str, Any]]] = {
        "audit": lambda: auditing(options.documents, options.hashing),
        "eval": evaluating,
        "compare": comparing,
    }
    unknown = set(options.sections) - set(sections)
    if unknown:
        sys.exit(f"no section {min(unknown)!r}; there are: {', '.join(sections)}")
    results: dict[str, Any] = {
        "rlvrlab": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    results |= {name: run() for name, run in sections.items() if not options.sections or name in options.sections}
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for name, value in results.items():
        if not isinstance(value, dict):
            print(f"{name:40} {value}")
            continue
        print(name)
        for key, entry in value.items():
            print(f"  {key.replace('_', ' '):38} {entry}")


if __name__ == "__main__":
    main()
