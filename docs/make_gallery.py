"""Take docs/images/gallery/*.png from real runs of a toy policy and a tiny language model, with Debian's chromium.

    python docs/make_gallery.py [--runs FOLDER]

FOLDER keeps the trainings, so that a second call only takes the pictures. Needs rlvrlab[hf,figures] and playwright.
run_overview.png is not made here: it shows the run of `make quick`, see make_capture.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from rlvrlab.report.figures import draw, figures_of
from rlvrlab.report.gather import gather

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs/images/gallery"
RLVR = str(Path(sys.executable).parent / "rlvr")
CHROMIUM = "/usr/bin/chromium"
LARGEST = 120_000
"""Bytes of one picture."""
COMMON = [
    "data.dev_size=120", "eval.every=5", "eval.test_size=80", "eval.test_n=4", "grpo.steps=60",
    "--json",
]  # fmt: skip
ARMS = {f"rate_0.02_{seed}": (f"seed={seed}",) for seed in range(3)}
ARMS |= {f"rate_0.2_{seed}": (f"seed={seed}", "grpo.learning_rate=0.2") for seed in range(2)}
QUESTION = "question=Does a ten times larger learning rate still learn?"


def rlvr(*words: str) -> str:
    return subprocess.run([RLVR, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def make_runs(folder: Path) -> None:
    """Five trainings, evaluations of a policy before and after, tags."""
    runs = folder / "experiments"
    for name, words in ARMS.items():
        if not list(runs.glob(f"{name}_2*")):
            rlvr("train", "recipes/toy_countdown.toml", f"name={name}", f"output_dir={runs}", QUESTION, *COMMON, *words)
    first = run_of(folder, "rate_0.02_0")
    for side in ("base", "best"):
        target = first / "evaluations" / side
        if not (target / "metrics.json").exists():
            words = ("--protocol", "@k", "--n", "16", "--k", "1,2,4,8,16", "--size", "80", "-o", str(target))
            rlvr("eval", "--run", f"{first}@{side}", *words)
    for name in ARMS:
        rlvr("runs", str(runs), "--add-tag", run_of(folder, name).name, name[:-2].replace("_", "-"))


def run_of(folder: Path, name: str) -> Path:
    return next((folder / "experiments").glob(f"{name}_2*"))


@contextmanager
def dashboard(folder: Path) -> Iterator[str]:
    """The address of a running dashboard; one training goes on while the pictures are taken."""
    running = ["train", "recipes/toy_countdown.toml", "name=live", f"output_dir={folder / 'experiments'}", *COMMON]
    live = subprocess.Popen([RLVR, *running, "grpo.steps=5000"], cwd=ROOT, stdout=subprocess.DEVNULL)
    words = [RLVR, "serve", "report", str(folder / "experiments"), "--json"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield json.loads(server.stdout.readline())["url"]
    finally:
        for process in (server, live):
            process.terminate()
            process.wait(60)


def take(page: Page, name: str, selector: str | None = None, height: int | None = None) -> None:
    """A picture of the window, or of one part of the page, at most `height` high."""
    page.wait_for_timeout(400)
    target = TARGET / f"{name}.png"
    if selector is None:
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=target)
    else:
        page.locator(selector).first.scroll_into_view_if_needed()
        box = page.locator(selector).first.bounding_box()
        assert box is not None, selector
        clip = {**box, "y": box["y"] + page.evaluate("scrollY"), "height": min(box["height"], height or 10_000)}
        page.screenshot(path=target, full_page=True, clip=clip)
    check(target)


def check(target: Path) -> None:
    size = target.stat().st_size
    print(f"{target.relative_to(ROOT)}  {size / 1000:.0f} kB")
    assert size <= LARGEST, f"{target.name}: {size} bytes, {LARGEST} are allowed"


def opened(browser: Any, url: str, dark: bool = False, width: int = 1120, height: int = 700) -> Page:
    page: Page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(url)
    page.wait_for_selector("html[data-ready], tr[data-run]", timeout=60_000, state="attached")
    assert not problems, problems
    return page


def take_pages(folder: Path) -> None:
    first, other = run_of(folder, "rate_0.02_0").name, run_of(folder, "rate_0.2_0").name
    with dashboard(folder) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = opened(browser, url, width=1280, height=605)
        page.wait_for_selector(".status.running", timeout=60_000)
        for name in (first, other):
            page.get_by_label(f"tick {name}").check()
        take(page, "dashboard")
        phone = opened(browser, url, dark=True, width=390, height=700)
        take(phone, "dashboard_phone")
        page = opened(browser, url.replace("/?", f"/run/{first}?"))
        take(page, "learning_curves", "#curves", 760)
        take(page, "pass_at_k", "#passk", 640)
        take(page, "rollouts", "#rollouts", 620)
        page = opened(browser, url.replace("/?", f"/run/{first}?"), dark=True)
        take(page, "signal_dark", "#signal", 700)
        page = opened(browser, url.replace("/?", f"/compare?run={first}&run={other}&"))
        take(page, "comparison", "#curves", 680)
        browser.close()


def take_study(folder: Path) -> None:
    """The stored results of studies/interference, as `rlvr report` shows them."""
    target = folder / "interference.html"
    rlvr("report", str(ROOT / "studies/interference/results"), "-o", str(target))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = opened(browser, target.as_uri())
        take(page, "interference_matrix", ".view-matrix", 520)
        take(page, "pareto", ".view-pareto", 640)
        browser.close()


def take_five_phases(folder: Path) -> None:
    """Programs of a tiny language model: before and after GRPO, mended by a second try, and what statements earn."""
    if not list((folder / "experiments").glob("five_phases_2*")):
        words = ("name=five_phases", f"output_dir={folder / 'experiments'}", "record.rollouts=all", "--json")
        rlvr("train", "studies/coding_five_phase/nano.toml", *words)
    run, target = run_of(folder, "five_phases"), folder / "five_phases.html"
    if not (run / "analysis/credit.json").exists():
        rlvr("credit", str(run))
    rlvr("report", str(run), "-o", str(target))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, filters in {
            "became_right": "change=became+right&side=test,+after+grpo",
            "mended": "change=mended",
        }.items():
            take(opened(browser, f"{target.as_uri()}#rollouts?{filters}"), name, "#rollouts .browser", 620)
        take(opened(browser, target.as_uri()), "phases", "#phases", 620)
        take(opened(browser, target.as_uri()), "credit", "#credit", 620)
        browser.close()


def take_figures(folder: Path) -> None:
    """Paper figures, as they are written."""
    seeds = [run_of(folder, name) for name in ARMS]
    curves = figures_of(gather(seeds))["learning_curve"]
    matrix = figures_of(gather(ROOT / "studies/interference/results"))
    for name, spec in (("figure_learning_curve", curves), ("figure_interference", next(iter(matrix.values())))):
        (TARGET / f"{name}.svg").write_bytes(draw(spec, "svg"))
        check(TARGET / f"{name}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path)
    options = parser.parse_args()
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.runs or Path(temporary)
        make_runs(folder)
        take_pages(folder)
        take_study(folder)
        take_five_phases(folder)
        take_figures(folder)


if __name__ == "__main__":
    main()
