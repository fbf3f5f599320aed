"""The page in a real browser: everything is drawn, filters and keys work, attacks stay text, news arrive."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest
from hostile_pages import HOSTILE, hostile_document
from live_pages import serving
from shown_pages import Shown

from rlvrlab.record.files import to_json
from rlvrlab.report.gather import gather
from rlvrlab.report.page import Live, page

pytestmark = pytest.mark.slow
KINDS = {
    "run": ["run"],
    "seeds and recipes": ["run", "seed", "changed"],
    "evaluation": ["best"],
    "evaluations": ["base", "best"],
    "probe": ["probe"],
    "audit": ["audit"],
    "credit": ["credit.json"],
    "study": ["study"],
}


def skills_document() -> dict[str, Any]:
    """The views of several skills, with cells that are certain and cells that are not."""
    cells = [[_measured(0.3), _measured(-0.2)], [_measured(0.05), _measured(0.4)]]
    matrix = {"rows": ["a", "b"], "columns": ["a", "b"], "cells": cells, "certain": True}
    curve = {"name": "a", "key": "k", "x": [0, 5, 9], "y": [0.1, 0.8, 0.5], "line": [1, 2, 3], "points": True}
    forgotten = {"curves": [curve | {"peak": [5, 0.8], "lost": _measured(0.3)}], "marks": [], "numbers": []}
    point = {"name": "p", "group": "g", "front": True, "x": _measured(0.5), "y": _measured(0.9), "from": {"file": "a"}}
    views = {
        "matrix": matrix | {"row_title": "trained on", "column_title": "success on"},
        "forgetting": forgotten,
        "pareto": {"points": [point], "x_title": "x", "y_title": "y"},
    }
    sections = [{"id": v, "view": v, "title": v, "note": "", "source": "a", "data": d} for v, d in views.items()]
    return {"kind": "study", "title": "t", "status": "", "made": "", "path": "p", "missing": [], "sections": sections}


def _measured(value: float) -> dict[str, Any]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 3, "from": {"file": "a"}}


def test_a_run_is_drawn_filtered_and_walked_with_keys(records, show) -> None:
    document = gather(records / "run")
    one = show(document)
    at = one.page
    assert one.failed() == [] and at.locator("main > section").count() == len(document["sections"])
    assert at.locator("#curves svg path.line").count() >= 7 and at.locator("#health .light").count() >= 7
    data = next(s["data"] for s in document["sections"] if s["id"] == "rollouts")
    wrong = data["columns"]["correct"].count(0)
    at.locator("#rollouts select").nth(1).select_option("wrong")
    told = at.locator("#rollouts .count").inner_text()
    assert told.startswith(f"{wrong} of {len(data['columns']['id'])} answers, ") and told.endswith(" different")
    different = int(told.split(", ")[1].split()[0])
    assert different < wrong, "equal answers are one row"
    assert at.locator("#rollouts .item .sign.right").count() == 0 and "verdict=wrong" in at.url
    at.locator("#rollouts .list").focus()
    for key, place in (("j", 1), ("j", 2), ("k", 1), ("G", different - 1), ("g", 0)):
        at.keyboard.press(key)
        assert at.locator("#rollouts .item.chosen").get_attribute("id") == f"answer-{place}"
    at.keyboard.press("x")
    assert at.locator("#rollouts .count").inner_text().startswith(f"{len(data['columns']['id'])} of")
    assert one.failed() == []


@pytest.mark.slow
def test_skills_are_drawn_and_uncertain_cells_are_grey(show) -> None:
    one = show(skills_document())
    assert one.failed() == [] and one.page.locator("td.cell.unsure").count() == 1
    assert one.page.locator("circle.ring").count() == 1 and one.page.locator("#pareto .error").count() == 2


CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map((n, i) => (i < 3 && text.startsWith("color") ? 255 * n : Number(n)));
  const curve = (v) => (v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => sum + part * curve(c[i] / 255), 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = rgb(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const poor = [], words = "p, dt, dd, th, td, h1, h2, h3, code, .tick, .status, .pill, .sign, nav a, .second, .range";
  for (const node of document.querySelectorAll(words)) {
    const style = getComputedStyle(node);
    if (!node.textContent.trim() || !node.getClientRects().length || style.opacity !== "1") continue;
    const ink = rgb(node.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(node))].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(`${node.tagName}.${node.className} ${node.textContent.slice(0, 30)} ${ratio}`);
  }
  return poor.slice(0, 5);
}"""
NAMELESS = """() => [...document.querySelectorAll("button, input, select, [role=img]")].filter((one) =>
  !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length)).map((one) => one.outerHTML)"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_fits_every_screen_and_can_be_read(records, show, kind: str) -> None:
    one = show(gather([records / name for name in KINDS[kind]]))
    for width, scheme in ((1280, "light"), (390, "dark")):
        one.page.set_viewport_size({"width": width, "height": 900})
        one.page.emulate_media(color_scheme=scheme)
        until, hangs, poor = time.monotonic() + 30, True, []
        while (hangs or poor) and time.monotonic() < until:  # the page is laid out anew a moment later
            one.page.wait_for_timeout(50)
            hangs = one.page.evaluate("document.documentElement.scrollWidth") > width
            poor = one.page.evaluate(CONTRAST)
        assert not hangs, "nothing hangs over the edge"
        assert poor == [], scheme
    assert one.page.evaluate(NAMELESS) == [] and one.failed() == []


@pytest.mark.slow
def test_on_a_phone_figures_stay_whole_names_are_broken_not_cut_and_stages_go_down(records, show) -> None:
    document = gather([records / "study"])
    [found] = [one for one in document["sections"] if one["id"] == "verdict"]
    found["data"]["forests"][0]["rows"][0]["name"] = "reward.type=ratio_format"
    one = show(document)
    one.page.set_viewport_size({"width": 390, "height": 900})
    one.page.wait_for_function("document.querySelector('#verdict svg').getBoundingClientRect().width < 390")
    one.page.wait_for_timeout(300)
    names = "".join(one.page.locator("#verdict .point-name").all_text_contents()).replace(" ", "")
    assert "reward.type=ratio_format" in names and "…" not in names
    one.page.evaluate("document.querySelector('.stage').after(document.querySelector('.stage').cloneNode(true))")
    assert one.page.evaluate("getComputedStyle(document.querySelector('.stage'), '::after').content") == '"↓"'
    one = show(gather([records / "run", records / "changed"]))
    one.page.set_viewport_size({"width": 390, "height": 900})
    cells = one.page.locator("#paired td").all_inner_texts()
    assert any(re.fullmatch(r"[+−]?\d+\.\d points", cell) for cell in cells), cells
    breaks = "(cell) => getComputedStyle(cell.querySelector('.sourced') || cell).whiteSpace"
    figures = one.page.locator("#paired tr:has(td) >> nth=0").locator("td").all()[:4]
    assert [cell.evaluate(breaks) for cell in figures] == ["nowrap"] * 4 and one.failed() == []


INJECT = """() => {
  const own = document.createElement("script");
  own.textContent = "globalThis.ran = 1";
  document.body.append(own);
}"""


@pytest.mark.slow
def test_attacks_stay_text(show) -> None:
    one = show(hostile_document())
    at = one.page
    assert one.failed() == [] and at.evaluate("document.querySelectorAll('img, iframe, main script').length") == 0
    shown = at.locator("#rollouts").inner_text()
    assert "<img src=x onerror=alert(2)>" in shown and "␛" in at.content() and "\x1b" not in shown
    at.locator("#rollouts label", has_text="order").locator("select").select_option("recorded")
    at.locator("#rollouts .list").focus()
    for _ in HOSTILE:
        at.keyboard.press("c")
        at.keyboard.press("j")
    assert "⟨RLO⟩evil" in at.content() and "\u202e" not in at.locator("#rollouts").inner_text()
    assert "1\u2009000\u2009000 characters" in at.locator("#rollouts .detail").inner_text()
    assert at.evaluate("document.documentElement.scrollWidth") <= 1280 and one.failed() == []
    at.evaluate(INJECT)
    assert at.evaluate("globalThis.ran") is None, "the policy stops a script that is not the page's own"
    assert any("Content Security Policy" in text for text in one.complaints)


@pytest.mark.slow
def test_an_address_leads_to_one_answer_and_numbers_to_their_source(records, show) -> None:
    document = gather([records / "base", records / "best"])
    columns = next(s["data"] for s in document["sections"] if s["id"] == "rollouts")["columns"]
    place = next(i for i, right in enumerate(columns["correct"]) if right == 0)
    from urllib.parse import quote

    one = show(document, hash=f"#rollouts?verdict=wrong&id={quote(columns['id'][place])}")
    at = one.page
    assert at.locator("#rollouts .detail .id").inner_text() == columns["id"][place]
    assert at.locator("#rollouts .answer").count() == 2, "the other side's answer to the same prompt stands beside it"
    at.keyboard.press("n")
    at.locator("#passk .sourced").nth(1).click()
    assert "samples.jsonl" in at.locator(".popover").inner_text()
    at.keyboard.press("Escape")
    assert at.locator(".popover").count() == 0 and one.failed() == []


@pytest.mark.slow
def test_theme_figures_and_print(records, show, tmp_path) -> None:
    one = show(gather(records / "run"))
    at = one.page
    ground = "getComputedStyle(document.body).backgroundColor"
    before = at.evaluate(ground)
    at.locator("header button").click()
    assert at.evaluate(ground) != before
    at.locator("#curves figure").first.hover()
    with at.expect_download() as saving:
        at.locator("#curves .save").first.click()
    saving.value.save_as(tmp_path / "figure.svg")
    svg = (tmp_path / "figure.svg").read_text()
    assert svg.startswith("<svg") and "var(" not in svg and "rgb(" in svg
    at.locator("#curves .area").first.hover()
    assert "step" in at.locator(".tip").inner_text()
    at.locator("#curves .area").first.click()
    assert "logs/metrics.jsonl" in at.locator(".popover").inner_text()
    at.keyboard.press("Escape")
    at.emulate_media(media="print")
    assert at.evaluate(ground) == "rgb(255, 255, 255)", "paper is white, also for readers in the dark"
    assert len(at.pdf()) > 20_000 and one.failed() == []


@pytest.mark.slow
def test_missing_files_are_named_on_the_page(run_folder, show) -> None:
    (run_folder / "logs/metrics.jsonl").unlink()
    (run_folder / "run_info.json").write_text("{")
    one = show(gather(run_folder))
    told = one.page.locator(".missing").inner_text()
    assert "logs/metrics.jsonl: no step has been recorded yet" in told and "run_info.json: cannot be read" in told
    assert one.failed() == [] and one.page.locator("#rollouts .item").count() > 5


@pytest.mark.slow
def test_news_arrive_and_the_place_is_kept(run_folder, browser) -> None:
    path = run_folder / "logs/metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-3]))
    before, line = gather(run_folder), whole.splitlines()[-3].decode()
    path.write_bytes(whole)
    added = f'event: metrics\ndata: {{"rows": [{line}], "rewound": false}}'
    said = 'event: events\ndata: {"rows": [{"time": "now", "kind": "warning", "text": "<b>look</b>"}]}'
    news, asked = [added, said, "event: change\ndata: {}"], threading.Event()
    with serving(page(before, Live("/events", "/document")), to_json(gather(run_folder)), news, asked) as address:
        one = Shown(browser)
        at = one.open(address)
        steps, first = "#overview .progress .sourced", before["sections"][0]["data"]["progress"]["step"]
        assert at.locator(steps).inner_text() == str(first)
        at.locator("#rollouts select").nth(1).select_option("right")
        for step, told in ((first + 1, "body"), (first + 1, "text=<b>look</b> >> nth=0"), (8, "body")):
            asked.set()
            at.locator(steps, has_text=str(step)).wait_for(timeout=60_000)
            at.locator(told).wait_for(timeout=60_000)
        assert at.locator("#rollouts select").nth(1).input_value() == "right", "filters are kept"
        assert "live" in at.locator("#live").inner_text() and one.failed() == []
        one.context.close()


@pytest.mark.slow
def test_a_step_tells_its_credit_its_advantage_and_what_nobody_asked(show) -> None:
    steps = [{"start": 0, "end": 3, "kind": "assign", "credit": 0.5, "advantage": 1.25},
             {"start": 4, "end": 7, "kind": "return", "credit": None, "advantage": -0.5, "examined": False},
             {"start": 8, "end": 11, "kind": "return", "credit": None, "advantage": None}]  # fmt: skip
    answer = {"id": "a", "problem": "p", "correct": True, "reward": 1, "text": "x=1\nx=2\nx=3", "most": 0.5,
              "steps": steps, "from": {"file": "rollouts/step_1.jsonl", "line": 1}}  # fmt: skip
    data = {"estimator": "leave_one_out: delete and truncate", "label": "shaping", "answers": [answer]}
    section = {"id": "credit_training", "view": "credit", "title": "t", "note": "", "source": "rollouts/", "data": data}
    document = {
        "kind": "run",
        "title": "t",
        "status": "",
        "made": "",
        "path": "p",
        "missing": [],
        "sections": [section],
    }
    one = show(document)
    told = [one.page.locator("#credit_training .step").nth(i).get_attribute("title") for i in range(3)]
    assert told[0] == "credit +0.50 (leave_one_out: delete and truncate) · advantage +1.25 · assign"
    assert told[1] == "not examined · advantage −0.50 · return"
    assert told[2].startswith("unknown: without it") and "advantage" not in told[2] and one.failed() == []
