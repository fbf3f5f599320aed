"""The scatter plot of a probe as plain SVG: accuracy across, variance up, one dot per problem, a ring per level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from math import sqrt

from rlvrlab.evals.probe.report import USEFUL_VARIANCE, OfProblem, by_kind
from rlvrlab.evals.probe.verdict import IDEAL

WIDTH, HEIGHT = 640, 420
LEFT, TOP, RIGHT, BOTTOM = 60, 30, 20, 50
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#c17817", "#4a4e69")
BANDS = (
    (-1.0, 0.0, "0 %"),
    (0.0, 0.1, "0–10 %"),
    (0.1, 0.8, "10–80 %"),
    (0.8, 0.999, "80–100 %"),
    (0.999, 1.0, "100 %"),
)


def bands(problems: Sequence[OfProblem]) -> list[tuple[str, int, float]]:
    """The same picture as a small table: band of accuracy, problems in it, their mean variance."""
    rows = []
    for low, high, name in BANDS:
        inside = [p.variance for p in problems if low < p.accuracy <= high]
        rows.append((name, len(inside), sum(inside) / len(inside) if inside else 0.0))
    return rows


def scatter(problems: Sequence[OfProblem], title: str) -> str:
    """A whole SVG document; dots that coincide are one larger dot."""
    top = max([0.3, *(p.variance * 1.1 for p in problems)])
    colour = {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(sorted(by_kind(problems)))}
    places = Counter((_x(p.accuracy), _y(p.variance, top), colour[p.problem.skill, p.level]) for p in problems)
    dots = [
        f'<circle cx="{x}" cy="{y}" r="{min(18.0, 2.5 * sqrt(count)):.1f}" fill="{fill}" fill-opacity="0.45"/>'
        for (x, y, fill), count in sorted(places.items())
    ]
    parts = [*_frame(title, top), *dots, *_rings(problems, colour, top)]
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *parts, "</svg>", ""])


def _x(accuracy: float) -> float:
    return round(LEFT + accuracy * (WIDTH - LEFT - RIGHT), 1)


def _y(variance: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - variance / top * (HEIGHT - TOP - BOTTOM), 1)


def _frame(title: str, top: float) -> list[str]:
    """Title, axes with their ticks, and the useful zone."""
    left, right, floor = _x(0), _x(1), _y(0, top)
    line = _y(USEFUL_VARIANCE, top)
    width, height = _x(IDEAL[1]) - _x(IDEAL[0]), line - TOP
    zone = f'x="{_x(IDEAL[0])}" y="{TOP}" width="{width:.1f}" height="{height:.1f}"'
    ticks = [step * top / 3 for step in range(4)]
    return [
        f"<title>{_words(title)}</title>",
        f'<text x="{left}" y="18" font-weight="bold">{_words(title)}</text>',
        f'<rect {zone} fill="#e8f4ea"/>',
        f'<line x1="{left}" y1="{line}" x2="{right}" y2="{line}" stroke="#2e8b57" stroke-dasharray="4 3"/>',
        f'<path d="M{left} {TOP} V{floor} H{right}" fill="none" stroke="#333333"/>',
        *(f'<text x="{_x(t / 5)}" y="{floor + 16}" text-anchor="middle">{t * 20} %</text>' for t in range(6)),
        *(f'<text x="{left - 14}" y="{_y(tick, top) + 4}" text-anchor="end">{tick:.1f}</text>' for tick in ticks),
        f'<text x="{_x(IDEAL[0]) + 6}" y="{TOP + 14}" fill="#2e8b57">useful zone</text>',
        f'<text x="{(left + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">accuracy per problem</text>',
        f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">variance of its rewards</text>',
    ]


def _rings(problems: Sequence[OfProblem], colour: dict[tuple[str, str], str], top: float) -> list[str]:
    """A ring at the mean of each skill and level, and the first twelve names as a legend."""
    parts = []
    for row, (kind, group) in enumerate(sorted(by_kind(problems).items())):
        x = _x(sum(p.accuracy for p in group) / len(group))
        y = _y(sum(p.variance for p in group) / len(group), top)
        name = _words(f"{kind[0]} level {kind[1]} ({len(group)})")
        parts.append(f'<circle cx="{x}" cy="{y}" r="7" fill="none" stroke="{colour[kind]}" stroke-width="2.5"/>')
        if row < 12:
            place = f'x="{WIDTH - RIGHT - 4}" y="{TOP + 14 + 15 * row}" text-anchor="end"'
            parts.append(f'<text {place} fill="{colour[kind]}">{name}</text>')
    return parts


def _words(text: str) -> str:
    """Names come from data: nothing in them may end the text or break the document."""
    return escape("".join(c for c in text if c.isprintable())[:80])
