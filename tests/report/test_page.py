"""The page: self-contained, nothing in it runs but its own script, whatever the record says."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from command_line import errors, inside
from hostile_pages import hostile_document

from rlvrlab.report.gather import gather
from rlvrlab.report.page import Live, page, policy, script, style
from rlvrlab.report.page.html_page import SCRIPTS

ASSETS = Path(__import__("rlvrlab").__file__).parent / "report/page/assets"


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/", {}))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style"):
            name = self.found[-1][1].get("id", self.found[-1][0])
            self.texts[name] = self.texts.get(name, "") + data


def test_hostile_text_adds_no_element_and_comes_back_whole() -> None:
    document = hostile_document()
    parsed = Elements(page(document))
    tags = [tag for tag, _ in parsed.found if tag != "/"]
    packed = [name for name in parsed.texts if name.startswith("packed")]
    head = ["html", "head", "meta", "meta", "meta", "meta", "title", "style", "body", "div", "noscript"]
    assert tags == [*head, "script", *["script"] * len(packed), "script"]
    inside = json.loads(parsed.texts["document"])
    for section in inside["sections"]:
        if "packed" in section:
            section["data"] = json.loads(gzip.decompress(base64.b64decode(parsed.texts[section.pop("packed")])))
    lone = json.loads(json.dumps(document).replace("\\ud800", "\\\\ud800"))
    assert inside == lone, "and a lone surrogate, which no file can hold, is written out"


def test_the_policy_allows_exactly_what_is_in_the_page(records) -> None:
    text = page(gather(records / "probe"))
    parsed = Elements(text)
    rules = dict(rule.split(" ", 1) for rule in policy().split("; "))
    assert (
        rules["default-src"] == "'none'" and "unsafe" not in policy() and "http" not in policy() and "*" not in policy()
    )
    for kind, name in (("script-src", "script"), ("style-src", "style")):
        digest = base64.b64encode(hashlib.sha256(parsed.texts[name].encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    told = next(one for tag, one in parsed.found if one.get("http-equiv"))
    assert told["content"] == policy() and policy(live=True) == f"{policy()}; connect-src 'self'"
    live = page(gather(records / "probe"), Live("/events/a", "/document/a"))
    assert json.loads(Elements(live).texts["news"])["events"] == "/events/a" and "news" not in parsed.texts
    assert set(re.findall(r"(?:https?:)?//[a-z][\w.]+", text)) == {"http://www.w3.org"}, "only the name space of SVG"


def test_scripts_only_ever_make_text() -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|DOMParser|createContextualFragment"
        r"|srcdoc|setTimeout\(\s*[\"'`]"
    )
    assert sorted(path.stem for path in ASSETS.glob("*.js")) == sorted(SCRIPTS)
    assert re.findall(forbidden, script()) == [] and "@import" not in style() and "url(" not in style()
    assert "</script" not in script().lower() and "</style" not in style().lower() and "<!--" not in script()


def test_the_page_does_not_repeat_itself(records) -> None:
    document = gather(records / "run")
    assert page(document) == page(document) and len(page(document)) < 400_000


def test_the_command_writes_beside_the_record_and_says_where(run_folder, tmp_path, monkeypatch, capsys) -> None:
    done = inside(monkeypatch, capsys, "report", str(run_folder), "--page-only", folder=tmp_path)
    assert done.returncode == 0 and str(run_folder / "analysis/report.html") in done.stdout
    text = (run_folder / "analysis/report.html").read_text()
    assert json.loads(Elements(text).texts["document"])["base"] == ".."
    assert not (run_folder / "analysis/tables").exists()


@pytest.mark.slow
def test_tables_and_figures_lie_beside_the_page(records, tmp_path, monkeypatch, capsys) -> None:
    pytest.importorskip("vl_convert", reason="figures need `pip install 'rlvrlab[figures]'`")
    both = [str(records / "base"), str(records / "best"), "--figures"]
    facts = json.loads(inside(monkeypatch, capsys, "report", *both, "--json", folder=tmp_path).stdout)
    assert facts["kind"] == "comparison" and facts["bytes"] == (tmp_path / "comparison.html").stat().st_size
    names = {Path(file).name for file in facts["files"]}
    assert "evaluations.csv" in names and all((tmp_path / file).stat().st_size for file in facts["files"])
    assert {"pass_at_k.svg", "pass_at_k.pdf"} <= names


def test_a_figure_that_cannot_be_drawn_does_not_cost_the_page(run_folder, tmp_path, monkeypatch, capsys) -> None:
    def broken(*_: object) -> list[Path]:
        raise ValueError("no ink")

    monkeypatch.setattr("rlvrlab.report.csv_tables.write_tables", broken)
    monkeypatch.setattr("rlvrlab.report.figures.write_figures", broken)
    monkeypatch.setattr("rlvrlab.report.figures.available", lambda: True)
    done = inside(monkeypatch, capsys, "report", str(run_folder), "--figures", folder=tmp_path)
    assert done.returncode == 0 and (run_folder / "analysis/report.html").exists()
    for what in ("tables", "figures"):
        assert f"missing {what}: could not be written (ValueError: no ink)" in done.stdout


def test_figures_are_drawn_when_asked_for_only(run_folder, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("rlvrlab.report.figures.write_figures", lambda *_: pytest.fail("nobody asked"))
    facts = json.loads(inside(monkeypatch, capsys, "report", str(run_folder), "--json", folder=tmp_path).stdout)
    assert {Path(file).suffix for file in facts["files"]} == {".csv"}
    monkeypatch.setattr("rlvrlab.report.figures.available", lambda: False)
    [line] = errors(inside(monkeypatch, capsys, "report", str(run_folder), "--figures", folder=tmp_path))
    assert "pip install 'rlvrlab[figures]'" in line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{tmp}/nowhere"], "no run 'nowhere'"),
        (["{run}", "-o", "{tmp}"], "a folder; name the file"),
        (["{run}", "-o", "{run}/config.json/x.html"], "cannot be written"),
        (["{run}", "{tmp}/nowhere"], "no run 'nowhere'"),
    ],
)
def test_mistakes_are_one_line(run_folder, tmp_path, monkeypatch, capsys, words: list[str], told: str) -> None:
    given = [word.format(tmp=tmp_path, run=run_folder) for word in words]
    [line] = errors(inside(monkeypatch, capsys, "report", *given, folder=tmp_path))
    assert told in line
