"""How fast Countdown judges and makes problems, per core, beside the two judges others write.

    python benchmarks/countdown.py [--json]

Those are a regular expression with eval (in wide use, unsafe) and Python's ast with Fractions (safe on short texts).
CPU time of one process; the judges take turns on the same answers, best of the rounds each, ratios first.
"""

from __future__ import annotations

import argparse
import ast
import json
import operator
import os
import platform
import re
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from rlvrlab import __version__
from rlvrlab.envs.countdown import Countdown
from rlvrlab.types import Problem, Role

LEVELS: tuple[tuple[int, ...], ...] = ((2,), (3,), (4,), (3, 4))
ANSWERS = 2000
ROUNDS = 7


def eval_judge_unsafe(problem: Problem, text: str) -> float:
    """The common method: last <answer>, digits by regular expression, then eval. UNSAFE: only fed our own answers."""
    matches = list(re.finditer(r"<answer>(.*?)</answer>", text))
    if not matches:
        return 0.0
    equation = matches[-1].group(1).strip()
    if sorted(int(digits) for digits in re.findall(r"\d+", equation)) != sorted(problem.reference["numbers"]):
        return 0.1
    if not re.match(r"^[\d+\-*/().\s]+$", equation):
        return 0.1
    try:
        result = eval(equation, {"__builtins__": None}, {})
    except Exception:
        return 0.1
    return 1.0 if abs(result - problem.reference["target"]) < 1e-5 else 0.1


OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def ast_judge(problem: Problem, text: str) -> float:
    """The careful method: the same extraction, then Python's parser, a white list of nodes and Fractions."""
    matches = list(re.finditer(r"<answer>(.*?)</answer>", text))
    if not matches:
        return 0.0
    used: list[int] = []

    def value_of(node: ast.AST) -> Fraction:
        if isinstance(node, ast.BinOp):
            return OPERATIONS[type(node.op)](value_of(node.left), value_of(node.right))
        if isinstance(node, ast.Constant) and type(node.value) is int:
            used.append(node.value)
            return Fraction(node.value)
        raise ValueError(node)

    try:
        value = value_of(ast.parse(matches[-1].group(1).strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError):
        return 0.1
    return 1.0 if sorted(used) == sorted(problem.reference["numbers"]) and value == problem.reference["target"] else 0.1


def cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def judging(levels: tuple[int, ...]) -> dict[str, Any]:
    env = Countdown(numbers=levels)
    problems = env.problems("train", ANSWERS // 2, seed=0)
    # Half right, half right for the neighbouring problem, which breaks the number rule: the two cases training meets.
    texts = [str(env.gold(problem)) for problem in problems]
    items = list(zip(problems + problems, texts + texts[1:] + texts[:1], strict=True))
    judges: dict[str, Callable[[], list[bool]]] = {
        "ours": lambda: [bool(verdict.correct) for verdict in env.verify_many(items)],
        "eval_unsafe": lambda: [eval_judge_unsafe(*item) == 1.0 for item in items],
        "ast": lambda: [ast_judge(*item) == 1.0 for item in items],
    }
    best = dict.fromkeys(judges, float("inf"))
    for _ in range(ROUNDS):
        for name, judge in judges.items():
            best[name] = min(best[name], cpu_s(judge))
    return {
        "ratio_to_ast": round(best["ast"] / best["ours"], 2),
        "ratio_to_eval_unsafe": round(best["eval_unsafe"] / best["ours"], 2),
        "scores_per_s": {name: round(len(items) / seconds) for name, seconds in best.items()},
        "verdicts_agree": judges["ours"]() == judges["eval_unsafe"]() == judges["ast"](),
    }


def making(levels: tuple[int, ...], role: Role) -> int:
    env = Countdown(numbers=levels)
    size = 1000
    return round(size / min(cpu_s(partial(env.problems, role, size, seed)) for seed in range(3)))


def slowest_hostile() -> dict[str, Any]:
    """The slowest cheat, best of five each, and a completion of five million characters."""
    env = Countdown()
    problem = env.problems("train", 1, seed=0)[0]
    texts = {
        **env.cheats(problem),
        "five million characters": "<think>" + "9*" * 2_500_000 + "</think><answer>1</answer>",
    }
    costs = {name: min(cpu_s(partial(env.verify, problem, text)) for _ in range(5)) for name, text in texts.items()}
    name = max(costs, key=lambda name: costs[name])
    return {"tried": len(costs), "slowest": name, "ms": round(1000 * costs[name], 3)}


def machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*: (.*)", info.read_text()) if info.is_file() else []
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "rlvrlab": __version__,
    }


def measure() -> dict[str, Any]:
    return {
        "machine": machine(),
        "judging": {str(levels): judging(levels) for levels in LEVELS},
        "made_per_s": {str(levels): {role: making(levels, role) for role in ("train", "test")} for levels in LEVELS},
        "hostile": slowest_hostile(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    found = measure()
    if as_json:
        print(json.dumps(found))
        return
    print(" · ".join(f"{name} {value}" for name, value in found["machine"].items()))
    print("\njudging, answers per CPU second    ours:ast  ours:eval      ours  ast+Fraction  regex+eval (unsafe)")
    for levels, row in found["judging"].items():
        speed = row["scores_per_s"]
        print(
            f"  numbers {levels:<22} {row['ratio_to_ast']:>9} {row['ratio_to_eval_unsafe']:>10} {speed['ours']:>9,} "
            f"{speed['ast']:>13,} {speed['eval_unsafe']:>20,}" + ("" if row["verdicts_agree"] else "  VERDICTS DIFFER")
        )
    print("\nmaking solved problems, per CPU second   train     test")
    for levels, row in found["made_per_s"].items():
        print(f"  numbers {levels:<28} {row['train']:>8,} {row['test']:>8,}")
    hostile = found["hostile"]
    print(f"\nslowest of {hostile['tried']} hostile answers: {hostile['slowest']}, {hostile['ms']} ms of CPU")


if __name__ == "__main__":
    main()
