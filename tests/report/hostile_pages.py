"""A document in which every text is an attack."""

from __future__ import annotations

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<!--<script>",
    "]]></script>",
    "\x1b]0;title\x07\x1b[31mred\x1b[0m",
    "\u202eevil\u202c \u2066x\u2069",
    "javascript:alert(3)",
    "'\"`${alert(4)}&lt;&amp;\u2028\u2029\x00\ud800",
    "x" * 1_000_000,
)


def hostile_document() -> dict:
    """Every text of it is an attack."""
    texts = list(HOSTILE)
    script, image, comment = texts[:3]
    table = {"columns": texts[:3], "rows": [texts[:3], texts[3:6]], "command": script}
    light = {"metric": image, "state": "alarm", "value": 1, "range": script, "meaning": comment, "remedy": texts[5],
             "history": [1, 2], "outside": [1, 2], "was": {"step": script, "value": 1},
             "from": {"file": script, "line": 1}}  # fmt: skip
    progress = {"step": 1, "total": 2, "phase": image, "from": {"file": image}}
    point = {"value": 0.5, "low": 0.4, "high": 0.6, "from": {"file": script}}
    reason = {"why": script, "try": image, "from": {"file": image}}
    answer = {"tone": image, "word": script, "role": image, "before": point, "after": point, "about": comment,
              "difference": {"mean": 0, "low": -1, "high": 1}, "why": [reason], "caution": script,
              "phases": [image]}  # fmt: skip
    overview = {"status": image, "why": script, "question": image, "headline": [], "facts": [], "result": [],
                "progress": progress, "answer": answer}  # fmt: skip
    health = {
        "lights": [light],
        "warnings": [{"time": image, "kind": script, "text": comment, "from": {"file": image}}],
    }
    forest = {"name": script, "metric": image, "share": True, "chosen": script, "words": image, "tone": image,
              "rows": [point | {"name": image, "chosen": True, "seeds": [{"seed": script, "value": 0.5}]}]}  # fmt: skip
    verdict = {"tone": image, "word": script, "sentence": comment, "forests": [forest], "caveats": texts,
               "failures": texts}  # fmt: skip
    columns = ["arm", "run", "seed", "status", "steps", "result", "low", "high", "measured on", script]
    rows = [[script, image, comment, image, 1, value, 0.1, 0.9, script, image] for value in (0.2, 0.4)]
    runs = {"columns": columns, "rows": rows, "keys": [script]}
    step = {"start": 0, "end": 9, "kind": image, "credit": 0.5}
    credited = {
        "id": script,
        "problem": image,
        "correct": True,
        "reward": 1,
        "text": script,
        "most": 1,
        "steps": [step],
    }
    credit = {"estimator": script, "label": image, "answers": [credited | {"from": {"file": image}}]}
    facts = {script: image, texts[5]: texts}
    views = {
        "overview": overview,
        "health": health,
        "verdict": verdict,
        "runs": runs,
        "rollouts": _answers(texts),
        "table": table,
        "facts": facts,
        "credit": credit,
    }
    words = {"title": script, "note": image, "source": comment}
    sections = [{"id": view, "view": view, **words, "data": found} for view, found in views.items()]
    return {"schema": 1, "kind": image, "title": script, "subtitle": image, "status": image, "made": "now",
            "path": script, "missing": [{"what": script, "why": image}], "sections": sections}  # fmt: skip


def _answers(texts: list[str]) -> dict:
    count = len(texts)
    columns = {name: [0] * count for name in ("side", "skill", "error", "finish", "file", "turn", "tokens", "step")}
    shown = ("problem", "prompt", "completion", "reference", "previous", "detail", "change")
    columns |= {name: list(range(count)) for name in shown}
    columns |= {"id": [t[:300] for t in texts], "reward": [0.5] * count, "correct": [1, 0, -1] * 3}
    columns |= {"flags": [[t[:60]] for t in texts], "parts": [-1] * count, "line": list(range(1, count + 1))}
    cut = {str(count - 1): 1_000_000}
    return {"texts": [t[:20_000] for t in texts], "cut": cut, "columns": columns, "notes": texts[:4]}
