"""The views that answer, in a real browser: the sentence and its colour, phases, charts, runs, studies, live news."""

from __future__ import annotations

import csv
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from live_pages import serving
from run_folders import lines, made_run, metrics_row
from shown_pages import Shown
from test_answer import card

from rlvrlab.record.files import to_json
from rlvrlab.report.gather import gather
from rlvrlab.report.page import Live, page

pytestmark = pytest.mark.slow
FEWEST_TICKS = """() => Math.min(...[...document.querySelectorAll("#curves svg")].map((chart) =>
  chart.querySelectorAll(".tick[text-anchor=end]").length))"""
D = "lines => lines.map((line) => line.getAttribute('d'))"
TWICE = """(() => { const all = rlvr.answers;
  return all.id[all.grouped([...all.id.keys()]).find((group) => group.rows.length > 1).shown]; })()"""


@pytest.mark.parametrize(("right", "tone", "word"), [(50, "good", "Yes"), (0, "bad", "No")])
def test_the_first_screen_answers_beside_the_curve(tmp_path, show, right: int, tone: str, word: str) -> None:
    folder = made_run(tmp_path, "run")
    card(folder, 0, "baseline", 10)
    card(folder, 1, "grpo", right)
    one = show(gather(folder))
    at = one.page
    box = at.locator("#overview .answer-box")
    told = box.inner_text()
    assert f"{word}: test 16.7 → {100 * right / 60:.1f} %" in told and "60 problems, 1 seed" in told
    assert tone in box.get_attribute("class") and tone in at.locator("header .status").get_attribute("class")
    figure = at.locator("#overview figure").bounding_box()
    assert figure["y"] + figure["height"] < 900 and figure["x"] > box.bounding_box()["x"] + box.bounding_box()["width"]
    assert at.locator("#overview .reasons li").count() == (0 if tone == "good" else 3 if right else 1)
    assert one.failed() == []


def test_phases_branch_and_parts_come_in_the_order_of_questions(tmp_path, show) -> None:
    folder = made_run(tmp_path, "run")
    for index, (phase, right) in enumerate([("baseline", 0), ("sft", 20), ("more_sft", 25), ("grpo", 40)]):
        card(folder, index, phase, right, control=phase == "more_sft")
    one = show(gather(folder))
    at = one.page
    rows = at.locator("#phases table").first.inner_text()
    assert "more_sft (control)\tsft" in rows and "grpo\tsft\t33.3 %\t66.7 %\t+33.3" in rows
    assert at.locator("#phases path.branch").count() == 1
    parts = at.locator("nav a").all_inner_texts()
    wanted = ["Did it learn?", "Phases", "What changed", "What went wrong", "Learning curves", "Cost", "Where it ran"]
    assert [name for name in parts if name in wanted] == wanted and one.failed() == []


def test_charts_change_axis_and_scale_share_the_pointer_and_are_saved(tmp_path, show) -> None:
    folder = made_run(tmp_path, "run", steps=80)
    rows = [metrics_row(s, 0.5 if s % 5 == 0 else None, **{"actor/kl": 10.0 ** (s / 20 - 3)}) for s in range(81)]
    (folder / "logs/metrics.jsonl").write_text(lines(rows))
    one = show(gather(folder))
    at = one.page
    assert at.evaluate(FEWEST_TICKS) >= 3
    assert "actor/kl (nats)" in at.locator("#curves").inner_text()
    for axis, words in (("answers", "answers sampled"), ("tokens", "tokens sampled"), ("seconds", "time")):
        at.locator("#curves select[data-field=axis]").select_option(axis)
        at.locator("#curves svg text.title", has_text=words).first.wait_for()  # charts are drawn anew in the next frame
        assert at.locator("#curves svg text.title", has_text=words).count() == 1
    at.locator("#curves input[data-field=log]").check()
    kl = at.locator("#curves figure", has_text="actor/kl")
    kl.locator(".tick", has_text="0.01").first.wait_for()
    assert {"0.01", "0.1", "1"} & set(kl.locator(".tick").all_text_contents())
    at.locator("#curves select[data-field=smoothing]").select_option("strong")
    kl.locator("path.line").nth(1).wait_for(state="attached")
    assert kl.locator("path.line").count() == 2, "the raw line stays, pale"
    assert [path.count("M") for path in kl.locator("path.line").evaluate_all(D)] == [2, 2], "SFT, then GRPO"
    at.locator("#curves .area").first.hover()
    assert at.locator("#curves .here-value[visibility=visible]").count() >= 3, "all charts mark the place"
    saved: dict[str, Path] = {}
    for kind in ("SVG", "PNG", "CSV"):
        kl.hover()
        with at.expect_download() as saving:
            kl.locator(f".save[data-kind={kind}]").click()
        saved[kind] = tmp_path / saving.value.suggested_filename
        saving.value.save_as(saved[kind])
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG") and saved["PNG"].stat().st_size > 3000
    table = list(csv.DictReader(saved["CSV"].read_text().splitlines()))
    assert len(table) == 81 and table[-1]["step"] == "80" and float(table[-1]["seconds"]) == pytest.approx(8.1)
    assert one.failed() == []


def test_wrong_answers_to_prompts_that_flipped_come_first_and_equal_ones_are_one_row(records, show) -> None:
    document = gather(records / "run")
    one = show(document)
    at = one.page
    signs = at.evaluate("(() => { const a = rlvr.answers; return [...Array(a.size).keys()].map((i) => a.rank(i)); })()")
    first = at.locator("#rollouts .item").first
    assert "✕" in first.inner_text() and ("⇄ flipped" in first.inner_text()) == (0 in signs)
    at.evaluate("(id) => { location.hash = `rollouts?id=${encodeURIComponent(id)}`; }", at.evaluate(TWICE))
    at.locator("#rollouts .item.chosen .second", has_text="× ").wait_for()
    at.locator("#rollouts label", has_text="order").locator("select").select_option("recorded")
    assert "order=recorded" in at.url and one.failed() == []


def test_runs_are_sorted_grouped_and_drawn_and_a_repeated_seed_is_no_second_one(tmp_path, show) -> None:
    for name, seed, rate in (("a0", 0, 0.1), ("a0_again", 0, 0.1), ("a1", 1, 0.1), ("b0", 0, 0.2), ("b1", 1, 0.2)):
        made_run(tmp_path, name, seed=seed, optimizer={"learning_rate": rate})
    one = show(gather(sorted(path for path in tmp_path.iterdir() if path.is_dir())))
    at = one.page
    assert at.locator("#arms tbody tr").count() == 5 and at.locator("#arms svg circle.dot").count() == 5
    at.locator("#arms input[data-field=grouped]").check()
    told = at.locator("#arms tbody tr").all_inner_texts()
    assert len(told) == 3 and sorted(text.count("2 seeds") for text in told) == [0, 1, 1], told
    at.locator("#arms summary").click()
    at.locator("#arms input[data-column=status]").uncheck()
    assert "status" not in at.locator("#arms thead").inner_text()
    at.locator("#arms .sorter", has_text="optimizer.learning_rate").click()
    assert "0.2" in at.locator("#arms tbody tr").first.inner_text() and one.failed() == []


def test_a_study_opens_with_its_winner_and_folds_its_caveats(records, show) -> None:
    document = gather(records / "study")
    document["sections"][0]["data"]["caveats"] = [f"caveat {i}" for i in range(10)]
    one = show(document)
    at = one.page
    assert at.locator("main section").first.get_attribute("id") == "verdict"
    assert "small" in at.locator("#verdict .sentence").inner_text()
    assert at.locator("#verdict .answer-box.good").count() == 0, "undecided is not green"
    assert at.locator("#verdict rect.mean").count() == 2 and at.locator("#verdict svg .point-name.chosen").count() == 1
    assert "10 caveats" in at.locator("#verdict").inner_text() and not at.locator("text=caveat 7").is_visible()
    assert at.locator(".callout.caution").count() == 0 and one.failed() == []


def test_conflict_is_drawn(tmp_path, show) -> None:
    folder = made_run(tmp_path, "run")
    pairs = {"surgery/cosine/mean": 0.1, "surgery/cosine/min": -0.2, "surgery/cosine/a/b": -0.3, "surgery/weight/a": 1}
    (folder / "logs/metrics.jsonl").write_text(lines([metrics_row(s, 0.5, **pairs) for s in range(9)]))
    one = show(gather(folder))
    assert one.page.locator("#conflict td.cell").count() == 4 and one.page.locator("#conflict figure").count() == 3
    assert one.failed() == []


def test_a_change_while_the_document_is_fetched_is_asked_for_too(run_folder: Path, browser: Any) -> None:
    """What is on its way may have been gathered before the second change."""
    document = gather(run_folder) | {"status": "running", "tone": ""}
    news, asked, fetched = ["event: change\ndata: {}"] * 2, threading.Event(), list[str]()
    held_back = """() => { const real = fetch; window.held = [];
      fetch = (...of) => new Promise((on) => held.push(() => on(real(...of)))); }"""
    with serving(page(document, Live("/events", "/document")), to_json(document), news, asked, fetched) as address:
        one = Shown(browser)
        at = one.open(address)
        at.evaluate(held_back)
        before = len(fetched)
        asked.set()
        while at.evaluate("held.length") < 1:
            at.wait_for_timeout(20)
        assert len(fetched) == before and len(news) == 1
        asked.set()
        at.wait_for_timeout(500)  # the second change arrives, and nothing is asked for beside what is on its way
        assert at.evaluate("held.length") == 1
        at.evaluate("held[0]()")
        while at.evaluate("held.length") < 2:
            at.wait_for_timeout(20)
        at.evaluate("held[1]()")
        while len(fetched) < before + 2:
            at.wait_for_timeout(20)
        assert at.evaluate("held.length") == 2 and one.failed() == []
        one.context.close()


def test_a_live_page_never_goes_back(run_folder: Path, tmp_path: Path, browser: Any) -> None:
    """The server hands out a document from before the end: the page has been told better, and keeps it."""
    running = Path(shutil.copytree(run_folder, tmp_path / "copy"))
    path = running / "logs/metrics.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:-2]))
    old = gather(running) | {"status": "running", "tone": ""}
    rows = ", ".join(line.decode().strip() for line in whole[-2:])
    added = f'event: metrics\ndata: {{"rows": [{rows}], "rewound": false}}'
    over = f'event: status\ndata: {{"status": "finished", "time": "{old["made"]}"}}'
    news, asked = [added, over, "event: change\ndata: {}"], threading.Event()
    fetched: list[str] = []
    with serving(page(old, Live("/events", "/document")), to_json(old), news, asked, fetched) as address:
        one = Shown(browser)
        at = one.open(address)
        assert at.locator("header .status").inner_text() == "running"
        asked.set()
        at.locator("#overview .progress .sourced", has_text="8").wait_for()
        asked.set()
        at.locator("header .status", has_text="finished").wait_for()
        before = len(fetched)
        asked.set()
        for _ in range(600):
            if len(fetched) > before:
                break
            at.wait_for_timeout(50)
        assert len(fetched) > before, "the change was not asked for"
        at.wait_for_timeout(1500)  # everything is drawn anew by then
        assert at.locator("header .status").inner_text() == "finished"
        assert at.locator("#overview .progress .sourced").inner_text() == "8" and one.failed() == []
        one.context.close()
