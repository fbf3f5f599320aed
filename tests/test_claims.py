"""docs/claims.md is read by `make claims`: its blocks are complete, and a number that no longer follows is noticed."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
script = runpy.run_path(str(ROOT / "docs" / "check_claims.py"))
sys.path.insert(0, str(ROOT / "benchmarks"))
PAGES = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))["PAGES"]
CLAIMS = script["claims"]((ROOT / "docs" / "claims.md").read_text(encoding="utf-8"))


@pytest.fixture
def claim(tmp_path: Path) -> dict:
    """A repository with one result, one command that computes from it, and one page that tells it."""
    (tmp_path / "result.json").write_text("[1, 2, 3]")
    (tmp_path / "mean.py").write_text(
        "import json\nrow = json.load(open('result.json'))\nprint(f'| mean | {sum(row) / 3} |')\n"
    )
    (tmp_path / "page.md").write_text("| mean | 2.0 |\nIt is 2.0 on average.\n")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return {"files": ["result.json"], "command": "python mean.py", "prints": ["| mean | 2.0 |"], "tables": ["page.md"],
            "states": {"page.md": "2.0 on average"}, "unchanged": ["page.md"]}  # fmt: skip


def test_every_claim_names_files_that_are_there_and_what_its_command_prints() -> None:
    assert len(CLAIMS) >= 10
    for claim in CLAIMS.values():
        assert all((ROOT / name).is_file() for name in (*claim["files"], *claim.get("tables", ())))
        assert claim["prints"] and (ROOT / claim["command"].split()[1]).is_file()


def test_a_claim_that_follows_holds(claim, tmp_path) -> None:
    assert list(script["mismatches"](claim, tmp_path)) == []


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("result.json", "[1, 2, 6]", ["does not print '| mean | 2.0 |'", "page.md lacks the row | mean | 3.0 |"]),
        ("page.md", "| mean | 2.1 |\nIt is 2.0 on average.\n", ["page.md lacks the row | mean | 2.0 |"]),
        ("page.md", "| mean | 2.0 |\nIt is 2.2 on average.\n", ["page.md does not say '2.0 on average'"]),
        ("mean.py", "raise SystemExit('gone')", ["`python mean.py` ended with 1: gone"]),
        ("mean.py", "open('page.md', 'a').write('x')\nprint('| mean | 2.0 |')", ["page.md came out differently"]),
    ],
)
def test_what_does_not_follow_is_named(claim, tmp_path, path: str, text: str, words: list[str]) -> None:
    (tmp_path / path).write_text(text)
    assert list(script["mismatches"](claim, tmp_path)) == words


def test_a_table_of_a_study_that_no_claim_prints_is_named(claim, tmp_path) -> None:
    """Printed word for word, quoted number by number, or named."""
    page = tmp_path / "studies" / "one" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text(
        "| arm | mean |\n|---|---|\n| a | 0.5 |\n| b | **+1.2** | −0.3 [−0.4, −0.2] |\n| c | 1.3 ± 0.1 |\n"
        "```\n| d | 7.7 |\n```\n"
    )
    printed = {"x": "| a | 0.5 |\n", "y": "| other | 1.2 ± 0.4 | -0.3 [-0.4, -0.2] |\n| 1.3 ± 0.2 |\n"}
    name = "studies/one/README.md"
    assert list(script["orphans"]({"x": claim, "y": claim | {"quoted": [name]}}, printed, tmp_path)) == [
        f"{name}: no claim prints 1.3 ± 0.1 of | c | 1.3 ± 0.1 |"
    ]
    unquoted = list(script["orphans"]({"x": claim, "y": claim}, printed, tmp_path))
    assert [line.partition(" of ")[2] for line in unquoted] == [
        "| b | **+1.2** | −0.3 [−0.4, −0.2] |", "| c | 1.3 ± 0.1 |"
    ]  # fmt: skip


def test_a_table_of_a_document_that_nothing_measures_is_named(tmp_path) -> None:
    """A claim prints it, or a test reads the page; tables of settings are none of numbers, a command is no result."""
    page = tmp_path / "docs" / "speed.md"
    page.parent.mkdir()
    settings = "| key | value | why |\n|---|---|---|\n| `n` | 8 | 16 answers cost more |\n"
    table = "| mode | checks/s | p95 |\n|---|---|---|\n| stdio | 594 | 9 ms |\n"
    page.write_text(f"# Speed\nRun `make bench`.\n\n{settings}\n## Figures\nThe arms\nmake their own.\n\n{table}")
    why = "docs/speed.md: no claim prints | stdio | 594 | 9 ms |, and no test that its chapter names reads the page"
    assert list(script["unmeasured"]({}, tmp_path)) == [why]
    assert list(script["unmeasured"]({"x": table}, tmp_path)) == []
    page.write_text(page.read_text() + "\n    python benchmarks/judge.py\n\n`pytest tests/judge`\n")
    assert list(script["unmeasured"]({}, tmp_path)) == [why]
    test = tmp_path / "tests" / "judge" / "test_table.py"
    test.parent.mkdir(parents=True)
    test.write_text('PAGE = "speed.md"\n')
    assert list(script["unmeasured"]({}, tmp_path)) == []


def test_every_table_of_numbers_in_the_documents_has_a_result() -> None:
    """Row by row where result files make it; other pages are named by a claim that computes their tables anew."""
    named = {page for claim in CLAIMS.values() for page in claim.get("tables", ())}
    printed = {page: "\n".join(make()) for page, make in PAGES.items()}
    left = list(script["unmeasured"](printed))
    assert [line for line in left if line.partition(":")[0] not in named] == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_page_with_measured_tables_has_a_claim_that_makes_them_again(page: str) -> None:
    made = [claim for claim in CLAIMS.values() if claim["command"] == f"python benchmarks/tables.py {page}"]
    assert [page in claim["tables"] for claim in made] == [True]
    for file in made[0]["files"]:
        kept = json.loads((ROOT / file).read_text(encoding="utf-8"))
        assert kept["command"] and kept["measured"] and kept["code"]["commit"] and kept["machine"]["cores"], file


def test_a_result_that_is_not_committed_is_no_result(claim, tmp_path) -> None:
    claim["files"] = ["elsewhere.json"]
    assert list(script["mismatches"](claim, tmp_path)) == ["elsewhere.json is not committed"]


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(SystemExit, match="claim x: unknown"):
        script["claims"]('```toml\n[claim.x]\nfiles = ["a"]\ncommand = "b"\nprint = ["c"]\n```\n')


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_claims_follow_from_committed_files(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "docs/check_claims.py", name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_a_name_that_no_claim_has_is_one_line_and_help_is_no_name(capsys) -> None:
    assert script["main"](["quick", "quikc"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert "no claim quikc; names are those of the blocks [claim.NAME] in docs/claims.md" in told.err
    assert script["main"](["--help"]) == 0
    assert "python docs/check_claims.py [NAME …]" in capsys.readouterr().out
