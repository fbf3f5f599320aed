"""Recompute the claims of docs/claims.md from committed result files: python docs/check_claims.py [NAME …]

Every claim with a number has a TOML block in docs/claims.md:

    [claim.NAME]
    files = ["studies/…/results.json"]     committed files that the numbers come from
    command = "python studies/…"           recomputes them; run in the root of the repository
    prints = ["…"]                         what its output must contain, word for word
    tables = ["studies/…/README.md"]       every table row that it prints stands in these files
    quoted = ["studies/…/README.md"]       tables of these files take single numbers from what it prints
    unchanged = ["studies/…/tables.md"]    files that it writes anew, and that must come out the same
    states = { "README.md" = "…" }         what these documents say in words because of it

The other way round, every row with numbers in the tables of a study's README and rounds is printed by some claim, or
all its numbers are printed by the claims that name the file under `tables` or `quoted`. A table of numbers in README.md
or docs/ is printed by a claim, or a test that its chapter names reads the page and holds the table against the code.

Exit code 1 and one line per mismatch when anything differs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "claims.md"
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
KEYS = {"files", "command", "prints", "tables", "quoted", "unchanged", "states"}
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
QUANTITY = re.compile(r"-?\d[\d,]*\.\d+(?!\d*(?:e-?\d|[MB]\b))(?: ± \d+\.\d+| \[[^\]]*\])?")
"""A measured number, with what stands behind it: 0.436 ± 0.030, 9.4 [6.0, 12.7]; 1.5e-4 and 1.5B are settings."""

TEST = re.compile(r"`pytest (\S+)`")
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
CHAPTER = re.compile(r"^(?=## )", re.MULTILINE)


def claims(text: str) -> dict[str, dict[str, Any]]:
    """Name -> claim, from the TOML blocks of a document; an unknown key or a claim without a command is an error."""
    found: dict[str, dict[str, Any]] = {}
    for block in BLOCK.findall(text):
        for name, claim in tomllib.loads(block)["claim"].items():
            unknown = set(claim) - KEYS
            if unknown or name in found or not claim.get("command") or not claim.get("files"):
                raise SystemExit(f"docs/claims.md: claim {name}: unknown {sorted(unknown)}, given twice, or incomplete")
            found[name] = claim
    return found


def mismatches(claim: dict[str, Any], root: Path = ROOT, printed: list[str] | None = None) -> Iterator[str]:
    """What does not hold, in words; what the command prints is added to `printed`."""
    committed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    yield from (f"{name} is not committed" for name in claim["files"] if name not in committed)
    before = {name: (root / name).read_bytes() for name in claim.get("unchanged", ())}
    output, why = run(claim["command"], root)
    if printed is not None:
        printed.append(output)
    if why:
        yield why
        return
    yield from (f"{name} came out differently" for name, data in before.items() if (root / name).read_bytes() != data)
    flat = " ".join(output.split())
    yield from (f"does not print {words!r}" for words in claim.get("prints", ()) if " ".join(words.split()) not in flat)
    rows = table_rows(output)
    for name in claim.get("tables", ()):
        lines = set((root / name).read_text(encoding="utf-8").splitlines())
        yield from (f"{name} lacks the row {row}" for row in rows if row not in lines)
    for name, words in claim.get("states", {}).items():
        text = " ".join((root / name).read_text(encoding="utf-8").split())
        for one in [words] if isinstance(words, str) else words:
            if " ".join(one.split()) not in text:
                yield f"{name} does not say {one!r}"


def table_rows(text: str) -> list[str]:
    """Rows of Markdown tables, those of fenced blocks left out."""
    lines = FENCED.sub("", text).splitlines()
    return [line for line in lines if line.startswith("|") and not set(line) <= set("|- ")]


def quantities(text: str) -> set[str]:
    """Measured numbers, in one spelling of their signs."""
    return set(QUANTITY.findall(re.sub(r"[+*]", "", text.replace("−", "-"))))


def orphans(every: dict[str, dict[str, Any]], printed: dict[str, str], root: Path = ROOT) -> Iterator[str]:
    """Rows of studies' tables whose numbers no claim prints."""
    rows = {row for output in printed.values() for row in table_rows(output)}
    for path in sorted([*root.glob("studies/*/README.md"), *root.glob("studies/*/rounds/*.md")]):
        name = path.relative_to(root).as_posix()
        about = [claim for claim, own in every.items() if name in (*own.get("tables", ()), *own.get("quoted", ()))]
        known = set[str]().union(*(quantities(printed[claim]) for claim in about))
        known |= {quantity.split()[0] for quantity in known}  # a mean may be quoted without its interval
        for row in table_rows(path.read_text(encoding="utf-8")):
            missing = quantities(row.split("|", 2)[2]) - known
            if row not in rows and missing:
                yield f"{name}: no claim prints {', '.join(sorted(missing))} of {row}"


def unmeasured(printed: dict[str, str], root: Path = ROOT) -> Iterator[str]:
    """Tables of numbers in README.md and docs/ that no claim prints and no test of their chapter holds."""
    rows = {row for output in printed.values() for row in table_rows(output)}
    for path in (root / "README.md", *sorted(root.glob("docs/*.md"))):
        for chapter in CHAPTER.split(path.read_text(encoding="utf-8")) if path.is_file() else ():
            for table in TABLE.findall(FENCED.sub("", chapter)):
                _, *body = table_rows(table)
                lonely = [row for row in body if row not in rows and of_numbers(row)]
                if 2 * len(lonely) >= max(1, len(body)) and not held_by_a_test(chapter, path.name, root):
                    name = path.relative_to(root).as_posix()
                    yield f"{name}: no claim prints {lonely[0]}, and no test that its chapter names reads the page"


def held_by_a_test(chapter: str, page: str, root: Path) -> bool:
    """Whether the chapter names tests of which one reads this page."""
    named = [root / path for path in TEST.findall(chapter)]
    files = [file for path in named for file in ([path] if path.is_file() else sorted(path.glob("test_*.py")))]
    return any(f'"{page}"' in file.read_text(encoding="utf-8") for file in files)


def of_numbers(row: str) -> bool:
    """Whether two cells or more of a table's row are numbers, with at most one word, such as a unit, beside them."""
    cells = [cell for cell in row.split("|")[2:] if "`" not in cell and re.search(r"\d", cell)]
    return sum(len(re.findall(r"[A-Za-z]{2,}", cell)) < 2 for cell in cells) > 1


def run(command: str, root: Path) -> tuple[str, str]:
    """What a command prints, and why it failed, if it did."""
    words = command.split()
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root / 'tests'}", "OMP_NUM_THREADS": "1"}
    words[0] = sys.executable if words[0] == "python" else words[0]
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)
    last = (done.stderr.strip().splitlines() or ["no words"])[-1]
    return done.stdout, f"`{command}` ended with {done.returncode}: {last}" if done.returncode else ""


def main(names: list[str]) -> int:
    """Check all claims, or those named, two at a time; all of them together also account for every table."""
    every = claims(SOURCE.read_text(encoding="utf-8"))
    if {"-h", "--help"} & set(names):
        print(__doc__)
        return 0
    if unknown := [name for name in names if name not in every]:
        given = "names are those of the blocks [claim.NAME] in docs/claims.md, as words: quick guards; none: all"
        print(f"error: no claim {', '.join(unknown)}; {given}", file=sys.stderr)
        return 2
    wanted = {name: every[name] for name in names or every}
    printed: dict[str, list[str]] = {name: [] for name in wanted}
    with ThreadPoolExecutor(2) as pool:
        wrong = pool.map(lambda name: list(mismatches(wanted[name], printed=printed[name])), wanted)
        found = dict(zip(wanted, wrong, strict=True))
    if len(wanted) == len(every):
        texts = {name: "".join(parts) for name, parts in printed.items()}
        found["tables of studies"] = list(orphans(every, texts))
        found["tables of documents"] = list(unmeasured(texts))
    for name, lines in found.items():
        print(f"{name}: {'holds' if not lines else ''}")
        for one in lines:
            print(f"  {one}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
