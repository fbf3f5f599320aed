"""Real records in a moment, and a real browser where the machine has one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TINY = """name = "tiny"
question = "Does it go up?"
phases = ["sft", "grpo"]
[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"
order = "ascending"  # tests count equal answers, which the few steps make more of in this order
[data]
train_size = 40
dev_size = 12
[rollout]
n = 4
max_tokens = 6
[engine]
type = "toy"
buckets = 8
[eval]
every = 2
test_size = 12
[sft]
steps = 4
batch_size = 8
references = 20
learning_rate = 0.1
[grpo]
steps = 4
batch_size = 4
"""


def trained(folder: Path, *overrides: str) -> Path:
    """A run by the product itself."""
    from rlvrlab.recipe import load_recipe
    from rlvrlab.train.session import start

    recipe = folder / "tiny.toml"
    folder.mkdir(parents=True, exist_ok=True)
    recipe.write_text(TINY)
    return start(load_recipe(recipe, [f"output_dir={folder / 'out'}", *overrides]), lambda *_: None, ["rlvr"]).folder


@pytest.fixture
def train() -> Callable[..., Path]:
    """train(folder, *overrides) -> the run's folder."""
    return trained


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds and a changed recipe, each evaluated; a probe, an audit, credit and a study of them. Read only."""
    from record_makers import make_records

    return make_records(tmp_path_factory.mktemp("records"), trained)


@pytest.fixture
def run_folder(records: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(records / "run", tmp_path / "run"))


@pytest.fixture(scope="module")  # its event loop must not outlive it: other modules run their own
def browser() -> Iterator[Any]:
    """Chromium of the system, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="browser tests need `pip install playwright`")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("browser tests need chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """show(document, width=1280, dark=False, hash="") -> (page, everything wrong with it)."""
    from shown_pages import Shown

    from rlvrlab.report.page import page as make

    opened: list[Shown] = []

    def shown(document: dict[str, Any] | Path, width: int = 1280, dark: bool = False, hash: str = "") -> Shown:
        target = document if isinstance(document, Path) else tmp_path / f"page{len(opened)}.html"
        if not isinstance(document, Path):
            target.write_text(make(document), encoding="utf-8")
        one = Shown(browser, width, dark)
        opened.append(one)
        one.open(f"file://{target}{hash}")
        return one

    yield shown
    for one in opened:
        one.context.close()
