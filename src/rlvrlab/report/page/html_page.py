"""One self-contained HTML page of a gathered document: no network, nothing executed that is not in its policy.

The document goes in as JSON in a script element that is no script; large sections are packed (gzip, base64), and the
browser unpacks them. The page's own scripts and styles are the files in assets/, allowed by their hashes; whatever a
rollout says is text and stays text.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rlvrlab.record.files import to_json
from rlvrlab.report.gather import Document

SCRIPTS = ("dom", "frame", "save", "lines", "hover", "bars", "overview", "answer", "curves", "measures", "skills",
           "runs", "filters", "rollouts", "answers", "credit", "tables", "study", "live", "main")  # fmt: skip
"""Files of assets/ in the order they are concatenated; they share one scope."""
STYLES = ("theme", "page", "opening", "figures", "tables", "answers", "media")
PACKED = 100_000
"""Sections of at least this many characters are packed."""
LEVEL = 4
"""Compression level; higher ones take twice the time to save a few per cent."""


@dataclass(frozen=True)
class Live:
    """Where a page that keeps itself up to date gets its news; all are paths on the server that sent it."""

    events: str
    """An event stream (SSE): the page fetches `document` again when a message arrives."""
    document: str
    """The document as JSON, sections not packed."""
    files: str = ""
    """Address that shows a file of the record, given `?path=` and `&line=`; empty where files are only named."""


def page(document: Document, live: Live | None = None) -> str:
    """The page; with `live` it keeps itself up to date, and its policy allows connections to its own server."""
    sections, packed = [], []
    for index, section in enumerate(document.get("sections", ())):
        text = _json(section.get("data"))
        if len(text) < PACKED:
            sections.append(section)
            continue
        name = f"packed-{index}"
        packed.append(
            _block(name, "text/plain", base64.b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode())
        )
        sections.append({**section, "data": None, "packed": name})
    blocks = [_block("document", "application/json", _escaped({**document, "sections": sections})), *packed]
    if live is not None:
        blocks.append(_block("news", "application/json", _escaped(asdict(live))))
    title = html.escape(f"{document.get('title', 'report')} · rlvr")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(live is not None), quote=True)}">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style()}</style>
</head>
<body>
<div id="page"><noscript>This page draws its figures with a script of its own; allow it to run.</noscript></div>
{"".join(blocks)}<script>{script()}</script>
</body>
</html>
"""


def policy(live: bool = False) -> str:
    """The Content-Security-Policy: this very script and style, nothing else; a live page may talk to its own server."""
    parts = [
        "default-src 'none'",
        f"script-src '{digest(script())}'",
        f"style-src '{digest(style())}'",
        "base-uri 'none'",
        "form-action 'none'",
        *(["connect-src 'self'"] if live else []),
    ]
    return "; ".join(parts)


@cache
def script() -> str:
    """All scripts as one text, wrapped in a function so that nothing leaks into the global scope."""
    whole = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{whole}\n}})();'


@cache
def style() -> str:
    """All style sheets as one text."""
    return "\n".join(_asset(f"{name}.css") for name in STYLES)


def _asset(name: str) -> str:
    text = files("rlvrlab.report.page").joinpath("assets", name).read_text(encoding="utf-8")
    assert "</" not in text.replace("</s", "<\\/s"), f"{name} would end its own element"
    return text


def digest(text: str) -> str:
    """How a Content-Security-Policy names the one script or style that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(value: Any) -> str:
    """The fast encoder where everything is plain and finite, as in a gathered document; else the careful one."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, TypeError):
        return to_json(value)
    return text


def _escaped(value: Any) -> str:
    """JSON that no HTML parser can take for markup."""
    text = _json(value)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    assert json.loads(text) is not None
    return text


def _block(name: str, kind: str, text: str) -> str:
    return f'<script type="{kind}" id="{name}">{text}</script>\n'
