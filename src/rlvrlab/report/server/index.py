"""The list of runs as a page: one file, its script and style allowed by their hashes and nothing else."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from rlvrlab.report.page import digest
from rlvrlab.report.page import style as shared_style

BODY = """<header class="top"><div><p class="kind">Dashboard</p><h1>Runs in {root}</h1></div>
<div class="state"><span class="made" id="count" role="status"></span></div></header>
<div id="board">
<form id="tools" role="search">
<label>Search <input id="search" type="search" autocomplete="off" placeholder="name, tag, status, question"></label>
<label>Status <select id="status"><option value="">all</option></select></label>
<label>Kind <select id="kind"><option value="">all</option></select></label>
<button id="compare" type="submit" disabled>Compare: tick two</button>
</form>
<div id="tags" role="group" aria-label="Tags"></div>
<main class="sheet"><table id="runs"><thead><tr></tr></thead><tbody></tbody></table>
<p id="empty" class="empty" hidden></p>
<noscript><p>The list needs its script; <code>rlvr runs</code> prints the same.</p></noscript></main>
</div>
<footer>accepted@1 in % with its 95&nbsp;% interval: on test problems, and beside it on dev problems, which decide
early stops and the best checkpoint; all curves are of dev and have the same scale.
<kbd>/</kbd> searches, a heading sorts, two ticked runs can be compared. This page reads; it changes
nothing.</footer>
"""


@cache
def index_page(root: str) -> tuple[str, str]:
    """The page and its policy."""
    script, style = _asset("index.js"), shared_style() + _asset("index.css")
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>Runs in {escape(root)}</title><style>{style}</style></head><body>'
        f"{BODY.format(root=escape(root))}<script>{script}</script></body></html>"
    )
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html, policy


def _asset(name: str) -> str:
    return files("rlvrlab.report.server").joinpath("assets", name).read_text(encoding="utf-8")
