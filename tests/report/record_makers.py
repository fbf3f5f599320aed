"""One of everything that a report can show, made by the product's own writers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlvrlab.cli.verbs import rlvr

ARMS = ("small", "large")


def command(*words: str) -> None:
    code = rlvr.main([*words], standalone_mode=False)
    assert code in (0, None), words


def make_records(root: Path, trained: Callable[..., Path]) -> Path:
    """run, seed (another one), changed (another recipe), base and best (evaluations), probe, audit, credit, study"""
    for name, words in {"run": [], "seed": ["seed=1"], "changed": ["grpo.learning_rate=0.05"]}.items():
        shutil.move(trained(root / "made" / name, *words), root / name)
    for name, step in (("base", "base"), ("best", "best")):
        run = f"{root / 'run'}@{step}" if step != "base" else f"{root / 'run'}@4"
        command("eval", "--run", run, "--protocol", "@k", "--n", "4", "--size", "12", "-o", str(root / name), "--json")
    for name in ("run", "seed", "changed"):
        command("eval", "--run", str(root / name), "--size", "12", "--json")
    command("probe", "--run", f"{root / 'run'}@4", "--size", "10", "--n", "4", "-o", str(root / "probe"), "--json")
    make_audit(root)
    make_study(root)
    (root / "credit.json").write_text(json.dumps(CREDIT))
    return root


def make_audit(root: Path) -> None:
    from rlvrlab.data.audit import audit
    from rlvrlab.data.audit_report import write_audit

    for name, span in (("train", range(12)), ("test", range(9, 15))):
        rows = [
            {"prompt": f"What is {i} and {i + 7} taken together, and then doubled once more?", "id": f"{name}{i}"}
            for i in span
        ]
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_audit(audit([root / "train.jsonl", root / "test.jsonl"]), root / "audit")


CREDIT: dict[str, Any] = {
    "estimator": "leave_one_out",
    "label": "shaping",
    "answers": [
        {
            "id": "0/grpo/1/sum/0",
            "problem": "sum",
            "correct": True,
            "reward": 1.0,
            "text": "x = 1\nif x:\n    x = 2; y = 3\nreturn x\n",
            "steps": [
                {"start": 0, "end": 6, "kind": "assign", "credit": 0.31},
                {"start": 6, "end": 12, "kind": "if", "credit": None},
                {"start": 16, "end": 22, "kind": "assign", "credit": -0.5},
                {"start": 23, "end": 29, "kind": "assign", "credit": 0.0},
                {"start": 29, "end": 38, "kind": "return", "credit": 1.0},
            ],
        }
    ],
}


def make_study(root: Path) -> None:
    """As docs/studies.md describes it, over the runs made here."""
    folder = root / "study"
    trials: dict[str, Any] = {}
    for name, run in (("t0", "run"), ("t1", "seed"), ("t2", "changed")):
        shutil.copytree(root / run, folder / "trials" / name / "run", ignore=shutil.ignore_patterns("checkpoints"))
        trials[name] = {"id": name, "seed": 0, "status": "finished", "run": f"trials/{name}/run", "seconds": 1.5}
    trials["t3"] = {"id": "t3", "seed": 1, "status": "failed", "run": "../../../../etc", "seconds": None}
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    arms = [
        {"name": ARMS[0], "trials": ["t0", "t1"], "metrics": {"dev.accepted": share}, "chosen": True, "dropped": None},
        {"name": ARMS[1], "trials": ["t2", "t3"], "metrics": {"dev.accepted": share}, "chosen": False, "dropped": None},
    ]
    compared = {"metric": "dev.accepted", "arm": "small", "versus": "large", "mean": 0.1, "low": -0.1, "high": 0.3,
                "p": 0.2, "outcome": "undecided"}  # fmt: skip
    decision = {"id": 1, "stage": "rate", "kind": "choice", "rule": "weighted", "chosen": "small", "by": "rule",
                "outcome": "undecided", "words": "small goes on, undecided", "comparisons": [compared]}  # fmt: skip
    study = {
        "schema": 2, "kind": "study", "name": "two rates", "question": "Which rate?", "status": "finished",
        "stages": [{"name": "rate", "status": "decided", "needs": [], "arms": arms, "decision": 1, "inputs": {}}],
        "trials": trials, "decisions": [decision], "caveats": [{"kind": "seeds", "text": "two seeds only"}],
        "failures": [{"trial": "t3", "why": "out of memory"}],
    }  # fmt: skip
    (folder / "study.json").write_text(json.dumps(study))
