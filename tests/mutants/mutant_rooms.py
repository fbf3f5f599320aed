"""How many bugs each room gets, what is left out, and which tests concern a file."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mutant_names import names_for, speaking_tests
from mutant_plants import Plant

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SOURCE = ROOT / "src" / "rlvrlab"

QUOTA = {
    "advantages": 8, "credit": 8, "objectives": 9, "surgery": 8, "skills": 6, "rewards": 7, "batch": 4, "types": 4,
    "registry": 3, "randomness": 1, "student": 2, "http_messages": 5, "http_access": 3, "http_client": 4,
    "http_server": 4, "replicas": 4, "fingerprint": 2, "notes": 2, "fate": 1, "recipe": 8,
    "judge": 24, "envs": 26, "rollout": 9, "data": 12, "models": 6, "engines": 16, "record": 9, "evals": 14,
    "train": 22, "report": 12, "scale": 10, "study": 12, "cli": 12, "api": 5,
}  # fmt: skip
"""Bugs by room, more where more is decided."""

LEFT_OUT = {
    "engines/hf/decode_cuda.py": "needs a GPU",
    "engines/hf/kernels.py": "needs a GPU",
    "engines/verl.py": "is exercised by verl-test",
    "scale/verl/actor.py": "is exercised by verl-test",
    "scale/verl/cpu": "is exercised by verl-test",
    "scale/verl/trainer.py": "is exercised by verl-test",
    "scale/verl/collection.py": "is exercised by verl-test",
    "scale/verl/guarding.py": "is exercised by verl-test",
    "study/launchers/ray.py": "needs a Ray cluster, in slow tests",
    "models/smollm2.py": "needs a download",
}
"""Beginnings of paths in which nothing is planted, and why."""

CONCERNS = {
    "envs/code": ["envs/code"],
    "envs/graphs": ["envs/graphs", "rewards/test_graph_rewards.py"],
    "envs/clrs": ["envs/logic"],
    "envs/zebra": ["envs/logic"],
    "envs/reasoning_gym.py": ["envs/logic"],
    "envs/mathematics": ["envs/mathematics"],
    "envs/gsm": ["envs/mathematics"],
    "envs/minicode": ["envs/minicode"],
    "envs/sql": ["envs/sql"],
    "envs/": ["envs/test_*.py", "envs/mathematics", "api"],
    "engines/hf": ["engines/test_hf_*.py", "engines/test_serving_process.py"],
    "engines/openai": ["engines/test_openai_*.py", "scale/test_model_replicas.py"],
    "engines/toy": ["engines/test_toy_*.py", "engines/test_engine_contract.py"],
    "engines/": ["engines"],
    "judge/fusion": ["judge/test_fusion_*.py"],
    "judge/modes/sql": ["judge/test_sql*.py", "envs/sql"],
    "judge/jail": ["judge"],
    "judge/": ["judge"],
    "cli/study": ["study", "cli"],
    "cli/suite": ["evals", "cli"],
    "cli/eval.py": ["evals/test_eval_commands.py", "cli"],
    "cli/probe.py": ["evals", "cli"],
    "cli/data": ["data", "cli"],
    "cli/model": ["models", "cli"],
    "cli/judge.py": ["judge/test_cli.py", "cli"],
    "cli/report.py": ["report", "cli"],
    "cli/": ["cli", "report/test_terminal_verbs.py", "evals/test_eval_commands.py"],
    "advantages/": ["advantages", "test_plugin_declarations.py"],
    "objectives/": ["objectives", "test_plugin_declarations.py"],
    "surgery/": ["surgery", "test_plugin_declarations.py"],
    "credit/": ["credit", "test_plugin_declarations.py"],
    "record/": ["record", "train/test_exact_resume.py", "train/test_touched_folders.py"],
    "skills/": ["skills"],
    "train/credit": ["credit"],
    "types.py": ["test_types.py", "rollout", "engines/test_collect.py", "evals/test_metrics.py"],
    "batch.py": ["test_batch.py", "objectives", "advantages"],
    "registry.py": ["test_registry.py", "test_plugin_declarations.py", "recipe/test_recipe_errors.py"],
    "randomness.py": ["test_batch.py", "train/test_determinism.py", "envs/test_countdown.py"],
    "student.py": ["evals/test_statistics.py", "study/test_study_power.py"],
    "http_access.py": ["test_http_server.py", "report/test_server_pages.py"],
    "http_client.py": ["engines/test_openai_servers.py", "judge/test_fusion_client.py"],
    "replicas.py": [
        "test_replicas.py",
        "scale/test_judge_replicas.py",
        "scale/test_model_replicas.py",
        "engines/test_openai_servers.py",
    ],
    "fingerprint.py": ["api/test_fingerprints.py"],
    "notes.py": ["cli/test_notes.py", "engines/test_hf_state.py"],
}
"""Tests by the beginning of a file's path, the longest that fits; otherwise the folder of the room's name."""


def tests_for(plant: Plant) -> list[list[str]]:
    """Tests in the order they are tried: those that speak of the function, in the room and elsewhere, then the files of
    the room that have the module's name, those that import it, the others of the room, others.

    Paths below tests/. Most bugs are noticed by the first few, and collecting the others would take longer.
    """
    fitting = [start for start in CONCERNS if plant.file.startswith(start)]
    patterns = CONCERNS[max(fitting, key=len)] if fitting else _of_the_room(plant.file)
    room = list(dict.fromkeys(found for pattern in patterns for found in _files(pattern)))
    module = "rlvrlab." + plant.file.removesuffix(".py").replace("/", ".")
    parent, _, name = module.rpartition(".")
    named = re.compile(rf"{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{name}\b")
    direct = [path for path, text in _texts().items() if named.search(text)]
    alike = [path for path in room if name in Path(path).stem]
    first = [path for path in room if path in direct and path not in alike]
    rest = [path for path in room if path not in first and path not in alike]
    names = names_for((SOURCE / plant.file).read_text("utf-8"), plant.start)
    telling = {name for name in names if len(name) >= TELLING}
    speaking = [path for path, text in _texts().items() if speaking_tests(path, text, telling)]
    importing = [path for path in direct if path not in room]
    others = [path for path in speaking if path not in room and path not in importing]
    close = _close([*alike, *first, *rest], names) + _close(importing, names) + _close(others, telling)
    return [part for part in (close, alike, first, rest, [*importing, *others][:MOST_OTHERS]) if part]


MOST_CLOSE = 12
"""Tests of the room, and of others, that are tried before whole files."""
TELLING = 8
"""Letters of a function's name that is not used for much else."""
MOST_OTHERS = 8
"""Test files of other rooms that are tried: what everything imports is named in nearly all of them."""


def _close(paths: list[str], names: set[str]) -> list[str]:
    return [test for path in paths for test in speaking_tests(path, _texts()[path], names)][:MOST_CLOSE]


def _of_the_room(file: str) -> list[str]:
    room = file.partition("/")[0].removesuffix(".py")
    return [room] if (TESTS / room).is_dir() else [f"test_{room}.py"]


def _files(pattern: str) -> list[str]:
    found = TESTS.glob(f"{pattern}/**/test_*.py" if (TESTS / pattern).is_dir() else pattern)
    return sorted({path.relative_to(TESTS).as_posix() for path in found} & _texts().keys())


@cache
def _texts() -> dict[str, str]:
    """Every test file that is run here."""
    return {
        path.relative_to(TESTS).as_posix(): path.read_text("utf-8")
        for path in sorted(TESTS.rglob("test_*.py"))
        if not path.relative_to(TESTS).as_posix().startswith(("oracles/", "mutants/"))
    }
