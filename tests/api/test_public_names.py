"""What `import rlvrlab` offers, and what it costs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlvrlab
import rlvrlab.api

LIGHT = """
import sys, time
before = time.process_time()
import rlvrlab
print(1000 * (time.process_time() - before))
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "pydantic", "rich", "click", "torch"}))
print(*sorted(name for name in sys.modules if name.startswith("rlvrlab")))
"""


def test_importing_is_light() -> None:
    spent = []
    for _ in range(5):  # a busy machine may spoil some
        done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
        milliseconds, heavy, own = done.stdout.split("\n")[:3]
        assert heavy == "" and own == "rlvrlab"
        spent.append(float(milliseconds))
        if spent[-1] <= 100:
            return
    pytest.fail(f"it took {spent} ms of CPU time, allowed are 100")


def test_every_public_name_is_there_says_what_it_is_and_is_typed() -> None:
    assert rlvrlab.__all__ == [*sorted(set(rlvrlab.__all__) - {"__version__", "train"}), "__version__", "train"]
    for name in set(rlvrlab.__all__) - {"__version__"}:
        value = getattr(rlvrlab, name)
        assert len(inspect.getdoc(value) or "") > 10 and name in dir(rlvrlab), name
    stub = Path(rlvrlab.__file__).with_suffix(".pyi").read_text()
    assert set(re.findall(r"import \w+ as (\w+)", stub)) | {"__version__"} == set(rlvrlab.__all__)
    assert set(rlvrlab.api.__all__) < set(rlvrlab.__all__)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        rlvrlab.trian  # noqa: B018


@pytest.mark.parametrize(
    "first",
    [
        "import rlvrlab.train.session",
        pytest.param("pass", marks=pytest.mark.slow),
        pytest.param("from rlvrlab.api import Run", marks=pytest.mark.slow),
    ],
)
def test_train_is_a_package_and_a_function_whatever_was_imported_first(first: str) -> None:
    text = f"{first}\nimport rlvrlab\nassert callable(rlvrlab.train)\nimport rlvrlab.train.loop as loop\nloop.train"
    subprocess.run([sys.executable, "-c", text], check=True)
    called = inspect.signature(rlvrlab.train).parameters
    assert list(called) == list(inspect.signature(rlvrlab.api.train).parameters)
