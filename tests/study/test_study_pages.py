"""Every study's README says what was asked, how it is run again, what it took and on what, and what not to conclude.

A study of several rounds tells each of them in a file of `rounds/` of the same parts, and its README stays short. Any
other page beside them is a declaration: it says what will count, and holds no table of results.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = sorted(path for path in (ROOT / "studies").glob("*/README.md") if path.parent.name != "plans")
"""`plans` are studies that nobody has run."""
ROUNDS = sorted((ROOT / "studies").glob("*/rounds/*.md"))
PAGES = [*READMES, *ROUNDS]
DECLARATIONS = [
    page for page in sorted((ROOT / "studies").glob("*/*.md")) if page not in READMES and page.parent.name != "plans"
]
LONGEST = 12_000
"""Bytes of a README: a reader who has never seen the project reads it in a few minutes."""
PARTS = {
    "a question": r"^(\*\*Question\.\*\*|## Question)",
    "a command": r"(rlvr (train|study|eval)|python studies/)",
    "how long it took": r"\b(minutes?|CPU seconds|seconds on|\d s)\b",
    "on which machine": r"\b(H200|GPU|cores?|threads?)\b",
    "a table of numbers": r"^\|.*\d.*\|$",
    "what not to conclude": r"[Ww]hat not to conclude",
}
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INTERVAL = re.compile(r"\[[-+−]\d+\.\d, [-+−]\d+\.\d\]")
MEASURED = re.compile(r"^\|.*\[[-+−]?\d+\.\d+, .*\|$", re.MULTILINE)
"""A row of a table with an interval in it."""
DECLARED = re.compile(r"^# .*(declare|written before)", re.IGNORECASE)


def named(path: Path) -> str:
    return path.relative_to(ROOT / "studies").as_posix()


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    """Links to a file, or to a heading of one, that is not there."""
    wrong = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_study_has_its_parts(page: Path, part: str) -> None:
    assert re.search(PARTS[part], page.read_text(encoding="utf-8"), re.MULTILINE), f"{named(page)} lacks {part}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_there_are_as_many_limits_as_questions(page: Path) -> None:
    """A chapter with a question of its own says what its answer does not show."""
    text = page.read_text(encoding="utf-8")
    asked = re.findall(r"^(?:\*\*Question|## Question$)", text, re.MULTILINE)
    assert len(re.findall(PARTS["what not to conclude"], text)) >= len(asked)


@pytest.mark.parametrize("page", READMES, ids=named)
def test_a_readme_is_short_and_leads_to_every_round(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) <= LONGEST
    assert [one.name for one in sorted(page.parent.glob("rounds/*")) if f"](rounds/{one.name}" not in text] == []


@pytest.mark.parametrize("page", READMES, ids=named)
def test_a_table_of_files_says_machine_and_minutes(page: Path) -> None:
    heads = re.findall(r"^\| file \|.*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(heads) <= {"| file | machine | minutes | what it is |"}


@pytest.mark.parametrize("page", DECLARATIONS, ids=named)
def test_a_page_beside_the_readme_is_a_declaration_without_results(page: Path) -> None:
    """What came out of it has a round of its own, or stands in the README, where every part is asked for."""
    text = page.read_text(encoding="utf-8")
    assert DECLARED.search(text), f"{named(page)} declares nothing: a page of results belongs to rounds/"
    assert MEASURED.findall(text) == []


def test_no_page_of_a_study_is_left_out() -> None:
    """Files of `results` are printed by commands, and `plans` are studies that nobody has run."""
    every = {page for page in (ROOT / "studies").rglob("*.md") if not {"results", "plans"} & set(page.parts)}
    assert every == {*PAGES, *DECLARATIONS}


@pytest.mark.parametrize("page", [*PAGES, *DECLARATIONS], ids=named)
def test_links_of_a_study_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A 1.5B model\n[a](#a-15b-model) [b](#nowhere) [c](none.md) [d](page.md#nowhere) [e](https://a.b)"
    )
    assert broken(page) == ["#nowhere", "none.md", "page.md#nowhere"]


def intervals_over_seeds() -> dict[str, str]:
    """Student's t over seeds -> what stands beside it in the tables of rounds, for new seeds and problems."""
    found: dict[str, str] = {}
    for page in ROUNDS:
        head: list[str] = []
        for line in page.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            head = head or cells if cells else []
            alone = [INTERVAL.search(cell) for cell, name in zip(cells, head, strict=False) if "t over" in name]
            both = [INTERVAL.search(cell) for cell, name in zip(cells, head, strict=False) if "new seeds and" in name]
            if alone and both and alone[0] and both[0] and alone[0][0] != both[0][0]:
                found[plain(alone[0][0])] = plain(both[0][0])
    return found


def plain(text: str) -> str:
    """Signs and line breaks in one spelling."""
    return " ".join(text.replace("−", "-").split())


@pytest.mark.parametrize("page", [*READMES, ROOT / "docs" / "claims.md", ROOT / "docs" / "coverage.md"], ids=str)
def test_a_headline_over_seeds_is_for_new_problems_too(page: Path) -> None:
    """Student's t over seeds knows these problems only: it stands beside the stricter interval, and is named."""
    known, whole = intervals_over_seeds(), plain(page.read_text(encoding="utf-8"))
    assert len(known) > 50
    for part in FENCED.sub("", page.read_text(encoding="utf-8")).split("\n\n"):
        for interval in set(map(plain, INTERVAL.findall(part))) & set(known):
            told = "t over" in part and known[interval] in whole
            assert told, f"{interval} is for new seeds alone; {known[interval]} is for new problems too:\n{part}"
