"""A data audit's folder: which rows are in which role, and what two splits have in common."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from rlvrlab.data.audit_report import WORDS
from rlvrlab.report.reading import Fact, Folder, Section, as_table, document, place, rounded, section, words

ACROSS, INSIDE = "duplicates_crosssplit.jsonl", "_duplicates_intrasplit.jsonl"
MOST = 500
"""Pairs on the page."""
CHARACTERS = 4000
"""Longest text of a row that is shown."""


def gather_audit(path: Path) -> dict[str, Any]:
    """The document of one audit folder; pairs across roles come first."""
    folder = Folder(path)
    across = folder.lines(ACROSS, "pairs across splits are not recorded")
    inside = [(file.name, folder.lines(file.name)) for file in sorted(path.glob(f"*{INSIDE}"))]
    hits = [_hit(line.row, True, place(ACROSS, line.number)) for line in across]
    hits += [_hit(line.row, False, place(name, line.number)) for name, lines in inside for line in lines]
    leaks = sum(hit["leak"] for hit in hits)
    leaks_first = sorted(hits, key=lambda hit: (not hit["leak"], not hit["across"]))
    pairs = {"hits": leaks_first[:MOST], "total": len(hits)}
    counts = Counter((h["left"].get("split", "?"), h["right"].get("split", "?"), h["part"], h["kind"]) for h in hits)
    rows = [[*key, str(count)] for key, count in sorted(counts.items())]
    common = {"columns": ["between", "and", "by", "kind", "pairs"], "rows": rows, "command": ""}
    meaning = "; ".join(f"{kind}: {text}" for kind, text in WORDS.items())
    sections = [
        *folder.attempt("roles", lambda: _roles(folder)),
        *([section("counts", "table", "What they have in common", common, ACROSS, meaning)] if rows else []),
        section("pairs", "pairs", "Pairs, side by side", pairs, ACROSS),
    ]
    status = f"{leaks} pairs cross roles" if leaks else "no pair crosses roles"
    told = f"{len(hits)} pairs of rows that have something in common"
    tone = "failed" if leaks else "finished"
    return document(folder, "audit", "Data audit", sections, subtitle=told, status=status, tone=tone)


def _hit(row: Fact, crosses: bool, source: Fact) -> Fact:
    left, right = as_table(row.get("left")), as_table(row.get("right"))
    return {
        "kind": words(row.get("kind") or "?", 20),
        "part": words(row.get("part") or "?", 20),
        "across": crosses,
        "leak": crosses and (left.get("role") is None or left["role"] != right.get("role")),
        "jaccard": rounded(row.get("jaccard"), 3),
        "passages": row.get("passages"),
        "passage": words(row.get("passage") or "", 400),
        "left": _side(left, row.get("left_text")),
        "right": _side(right, row.get("right_text")),
        "from": source,
    }


def _side(where: dict[str, Any], text: Any) -> Fact:
    facts = {key: words(where.get(key), 200) for key in ("split", "row", "id", "role") if where.get(key) is not None}
    return facts | {"text": words(text if text is not None else "", CHARACTERS)}


def _roles(folder: Folder) -> Section | None:
    rows = []
    for path in sorted((folder.root / "manifests").glob("*.jsonl")):
        lines = folder.lines(f"manifests/{path.name}")
        header = lines[0].row if lines else {}
        roles = header.get("roles")
        told = ", ".join(f"{role} {count}" for role, count in roles.items()) if isinstance(roles, dict) else "?"
        rows.append([path.stem, words(header.get("rows"), 20), told, words(str(header.get("sha256", "?"))[:16], 20)])
    if not rows:
        folder.miss("manifests/", "rows and roles are not recorded")
        return None
    data = {"columns": ["split", "rows", "roles", "content hash"], "rows": rows, "command": ""}
    note = "A row that says nothing about its role counts as none."
    return section("roles", "table", "Splits and roles", data, "manifests/", note)
