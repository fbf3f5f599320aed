"""An audit on disk: manifests, duplicates files, and a report with both texts of each hit side by side.

FOLDER/manifests/NAME.jsonl   FOLDER/NAME_duplicates_intrasplit.jsonl   FOLDER/duplicates_crosssplit.jsonl
FOLDER/reports/data_audit_report.md
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from rlvrlab.data.audit import KINDS, Audit, Hit
from rlvrlab.data.files import write_lines
from rlvrlab.data.manifest import FOLDER, Manifest, write_manifest
from rlvrlab.errors import and_more

REPORT = Path("reports") / "data_audit_report.md"
SHOWN = 200
"""Hits with their texts; all are in the duplicates files."""
CHARACTERS = 1500
MARKDOWN = str.maketrans({sign: f"&#{ord(sign)};" for sign in "|*_`[]\\~$#!"})
WORDS = {
    "exact": "equal after normalisation",
    "near": "Jaccard similarity of token trigrams at or above the threshold",
    "passage": "thirteen words in a row in common, across splits",
}


def write_audit(audit: Audit, folder: Path) -> Path:
    """All files; returns the report's path."""
    for file in audit.files:
        write_manifest(Manifest(file.name, file.entries), folder / FOLDER / f"{file.name}.jsonl")
        splits = {document.split for document in file.documents}
        inside = [hit for hit in audit.hits if not hit.crosses and hit.left.split in splits]
        _write_hits(folder / f"{file.name}_duplicates_intrasplit.jsonl", inside)
    _write_hits(folder / "duplicates_crosssplit.jsonl", [hit for hit in audit.hits if hit.crosses])
    write_lines(folder / REPORT, report_lines(audit))
    return folder / REPORT


def _write_hits(path: Path, hits: Sequence[Hit]) -> None:
    # A lone surrogate in someone's data must not keep a leak from being reported.
    lines = (json.dumps(hit.row(), ensure_ascii=False).encode("utf-8", "backslashreplace").decode() for hit in hits)
    write_lines(path, lines)


def report_lines(audit: Audit) -> list[str]:
    """Markdown; foreign text is inert in it."""
    across = [hit for hit in audit.hits if hit.crosses]
    inside = [hit for hit in audit.hits if not hit.crosses]
    lines = ["# Data audit", "", f"**{audit.verdict()}**", ""]
    lines += ["| split | rows | roles | content hash |", "|---|---:|---|---|"]
    for file in audit.files:
        header = Manifest(file.name, file.entries).header()
        roles = ", ".join(f"{role} {count}" for role, count in header["roles"].items())
        lines.append(f"| {inert(file.name)} | {header['rows']} | {roles} | `{header['sha256'][:16]}` |")
    lines += ["", "| between | and | by | exact | near | passage | rows |", "|---|---|---|---:|---:|---:|---:|"]
    for row in audit.counts():
        numbers = " | ".join(str(row[kind]) for kind in (*KINDS, "rows"))
        lines.append(f"| {inert(row['left'])} | {inert(row['right'])} | {row['part']} | {numbers} |")
    meaning = "; ".join(f"*{kind}*: {words}" for kind, words in WORDS.items())
    lines += ["", f"{meaning} (threshold {audit.threshold:g}). *rows*: distinct rows of the second split."]
    if audit.crowded:
        lines += ["", "Hundreds of texts are made from one template; among those not every pair was compared."]
    for title, hits in (("Across splits", across), ("Inside splits", inside)):
        lines += ["", f"## {title}", ""]
        if not hits:
            lines.append("Nothing found.")
        for number, hit in enumerate(hits[:SHOWN], 1):
            lines += _hit(number, hit)
        if more := and_more(len(hits), SHOWN):
            lines += ["", f"{more} in the duplicates files."]
    return lines


def _hit(number: int, hit: Hit) -> list[str]:
    facts = [f"Jaccard {hit.jaccard:.2f}"] if hit.jaccard is not None else []
    facts += [f"{hit.passages} runs of 13 words, first: “{inert(hit.passage)}”"] if hit.passages else []
    sides, texts = list[str](), list[str]()
    for one in (hit.left, hit.right):
        sides.append(inert(f"{one.split} row {one.row} ({one.id}{', ' + one.role if one.role else ''})"))
        text = one.texts[hit.part]
        shown = inert(text[:CHARACTERS]) + (" …" if len(text) > CHARACTERS else "")
        texts.append(shown.replace("\r", "").replace("\n", "<br>"))
    return [
        f"### {number}. {hit.kind} by {hit.part}",
        "",
        "; ".join(facts),
        "",
        f"| {sides[0]} | {sides[1]} |",
        "|---|---|",
        f"| {texts[0]} | {texts[1]} |",
        "",
    ]


def inert(text: str) -> str:
    """Text that neither HTML nor Markdown nor a terminal takes for a command."""
    whole = text.replace("\n", "").isprintable()  # nearly always, and texts are long
    printable = text if whole else "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    # Spaces at the beginning of a line carry meaning in code.
    return html.escape(printable, quote=False).translate(MARKDOWN).replace("  ", "&nbsp; ")
