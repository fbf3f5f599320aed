"""EXPERIMENT.md: the run explained to a reader who was not there, made from the run folder's files alone.

The commands of a run are decided here for every page: a run goes on exactly, after a mend, or not at all, and one that
was changed on its way is not what its first command makes.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.record.files import write_atomically
from rlvrlab.record.headline import ACCEPTED, accuracy_words, began, headline_words, highest
from rlvrlab.record.run import read_config, read_events, read_info, read_metrics
from rlvrlab.record.summary import SHOWN, Summary
from rlvrlab.registry import PYTHON
from rlvrlab.shares import markdown_cell

CARDS_PAGE = Path("analysis") / "cards.md"
"""Test results phase by phase, written by train/card.py."""
REPORT_PAGE = Path("analysis") / "report.html"
"""Where `rlvr report` writes the page of a run."""
FINDINGS = Path("analysis") / "findings.md"
"""What the run found out, in sentences, written by report/story when it has ended."""
ROLES = ("train", "dev", "test")
BARS = "▁▂▃▄▅▆▇█"
UNALARMED = "No warnings: nothing was out of its range for long. `rlvr show` marks values that are outside now."
WITHDRAWN_ALL = "No warning stands at the end: those below were taken back, or belong to a phase that is over."


def write_experiment(folder: Path, so_far: Summary | None = None) -> None:
    """Rewrite EXPERIMENT.md from what is in the folder now; `so_far`, which a writer has, saves reading the logs."""
    so_far = so_far or Summary(read_metrics(folder), read_events(folder))
    config, info = read_config(folder), read_info(folder)
    cards, findings = folder / CARDS_PAGE, folder / FINDINGS
    recipe, status = config["recipe"], info.get("status", "running")
    told = findings.exists() and status != "running"  # while it runs on, they are those of an earlier end
    times = f"started {info.get('started', '?')}" + (f", ended {info['ended']}" if status != "running" else "")
    where = f"on `{recipe['env']['type']}` with the `{recipe['engine']['type']}` engine"
    data = ""
    if facts := info.get("data"):
        rows = [f"| {role} | {facts[role]['size']} | `{facts[role]['sha256']}` |" for role in ROLES if role in facts]
        data = f"## Data\n\n`{facts['environment']}`, scoring version {facts['version']}. No problem is in two roles."
        data = "\n".join([data, "", "| role | problems | content hash |", "|---|---|---|", *rows])
    sections = [
        f"# {recipe['name']}\n\n**{status}** · {' → '.join(recipe['phases'])} {where} · {times}",
        f"## Question\n\n{recipe['question'] or 'Not stated: set `question` in the recipe.'}",
        _result(folder, so_far),
        f"## Answer\n\n{plain_files.read_text(findings).rstrip()}" if told else "",
        _phases(cards, findings if told else None),
        _progress(so_far),
        "\n".join(["## Health", "", *_health(so_far), "", f"Ranges watched: {'; '.join(info.get('watched', []))}."]),
        _recipe(config),
        data,
        _reproduce(folder, info, config),
    ]
    write_atomically(folder / "EXPERIMENT.md", "\n\n".join(s for s in sections if s) + "\n")


def renew_experiment(folder: Path) -> None:
    """EXPERIMENT.md of a run that has ended, with what was examined since; one that is trained writes it itself."""
    if read_info(folder).get("status", "running") != "running" and os.access(folder, os.W_OK):
        write_experiment(folder)


def sparkline(values: list[float], width: int = 40) -> str:
    """Values as a line of block characters from the lowest to the highest."""
    if not values:
        return ""
    picked = [values[i * len(values) // min(width, len(values))] for i in range(min(width, len(values)))]
    low, high = min(picked), max(picked)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[int((v - low) * scale)] for v in picked)


def _phases(cards: Path, findings: Path | None) -> str:
    """The table of cards; what follows from it is left to the answer, where there is one."""
    if not cards.exists():
        return ""
    said = {f"- {line}" for line in plain_files.read_text(findings).splitlines()} if findings else set()
    lines = [line for line in plain_files.read_text(cards).splitlines() if line not in said]
    return "\n".join(["## Phases", "", *lines]).rstrip()


def _health(so_far: Summary) -> list[str]:
    shown = [
        [f"- {e['time']} **{e['kind']}**: {e['text']}" for e in events]
        for events in (so_far.first_events, so_far.last_events)
    ]
    left = so_far.events - len(shown[0]) - len(shown[1])
    between = [f"- … {left} more in `logs/events.jsonl`"] if left else []
    ever = any(event["kind"] == "warning" for event in (*so_far.first_events, *so_far.last_events))
    well = [WITHDRAWN_ALL if ever else UNALARMED] if not (so_far.standing or so_far.failed) else []
    return [*well, *shown[0], *between, *shown[1]]


def _result(folder: Path, so_far: Summary) -> str:
    if not so_far.phases:
        return ""
    lines = [
        "## Result",
        "",
        f"**{headline_words(folder, so_far)}**",
        "",
        "The result is that of the last checkpoint. Dev problems decide early stops and the best checkpoint "
        f"(`RUN@best`). {ACCEPTED}, 95 % intervals; the best of several is partly luck:",
        "",
    ]
    lines += ["| phase | before | best (step) | last |", "|---|---|---|---|"]
    for name, entry in so_far.phases.items():
        best = f"{highest(entry['best'])} ({entry['best']['step']})"
        lines.append(f"| {name} | {began(entry['before'])} | {best} | {accuracy_words(entry['last'])} |")
    return "\n".join(lines)


def _progress(so_far: Summary) -> str:
    if so_far.newest is None:
        return ""
    lines = ["## Progress", "", "| metric | first | last | |", "|---|---|---|---|"]
    told = so_far.evaluations | {key: so_far.series[key] for key in SHOWN if key in so_far.series}
    for key, one in told.items():
        lines.append(f"| `{key}` | {one.values[0]:.4g} | {one.last:.4g} | `{sparkline(one.values)}` |")
    step, phase = so_far.newest
    return "\n".join(lines) + f"\n\n{step} steps done, the last one in phase `{phase}`."


def _recipe(config: dict[str, Any]) -> str:
    lines = ["## Recipe", "", "What differs from the defaults:", ""]
    lines += ["| key | value | default | from |", "|---|---|---|---|"]
    for key, both in config["changed"].items():
        value, default = (markdown_cell(json.dumps(both[side], ensure_ascii=False)) for side in ("value", "default"))
        lines.append(f"| `{key}` | `{value}` | `{default}` | {config['origins'].get(key, 'default')} |")
    return "\n".join([*lines, "", "Every value is in `config.json`."])


def _reproduce(folder: Path, info: dict[str, Any], config: dict[str, Any]) -> str:
    command, limits = made_again(folder, config, info)
    lines = ["## Reproduce", "", "```", command, "```", "", *([limits, ""] if limits else [])]
    packages = ", ".join(f"{name} {version}" for name, version in info.get("packages", {}).items())
    machine = info.get("machine", {})
    facts = f"{machine.get('processor', '?')}, {machine.get('cores', '?')} cores, {machine.get('memory_gb', '?')} GB"
    commit = info.get("code", {}).get("commit")
    code = f"; commit {commit}" if commit else ""
    lines.append(f"{packages}; Python {machine.get('python', '?')}; {facts}{code}.")
    lines.append(going_on(folder, config, info))
    return "\n".join(lines)


def resume_command(folder: Path, config: dict[str, Any], *, accept_code: bool = False) -> str:
    """What to type; functions that are in no file must be given again, and only Python can do that."""
    if _in_memory(config):
        return resume_call(folder, config, accept_code=accept_code)
    return f"rlvr train --resume {folder}{' --accept-code' * accept_code}"


def resume_call(folder: Path, config: dict[str, Any], *, accept_code: bool = False) -> str:
    """What to write in Python; elsewhere than in the process that trained, `…` stands for functions in no file."""
    given = [f"{kind}=…" for kind in _in_memory(config)] + ["accept_code=True"] * accept_code
    return f"rlvrlab.Run({str(folder)!r}).resume({', '.join(given)})"


def _in_memory(config: dict[str, Any]) -> list[str]:
    """Of reward and environment, those that only a Python process knows."""
    tables = {kind: config.get("recipe", {}).get(kind) or {} for kind in ("reward", "env")}
    return [kind for kind, table in tables.items() if str(table.get("type")).startswith(PYTHON)]


def going_on(folder: Path, config: dict[str, Any], info: dict[str, Any]) -> str:
    """One sentence: the command, and what must happen before it."""
    if info.get("status") == "failed" and info.get("failed_in_own_code"):
        command = resume_command(folder, config, accept_code=True)
        return f"A plain resume would fail there again: mend the function, then go on with `{command}`."
    if not info.get("resumable", True):
        return "A resume would fail there again: mend what the reason says, then start a new run."
    return f"An interrupted run goes on exactly with `{resume_command(folder, config)}`."


def made_again(folder: Path, config: dict[str, Any], info: dict[str, Any]) -> tuple[str, str]:
    """The command that makes the same run from the start, and what it cannot do; a longer run is one command, too."""
    command = [str(word) for word in info.get("command") or ["rlvr", "train", "RECIPE"]]
    changes = [item for one in config.get("history", []) for item in one["changed"].items()]
    now = {key: ends["to"] for key, ends in changes if not key.endswith(".code")}
    words = [shlex.quote(f"{key}={json.dumps(value)}") for key, value in now.items()]
    code = "; ".join(f"{key} {ends['from']} → {ends['to']}" for key, ends in changes if key.endswith(".code"))
    limits = f"Its own code changed on the way ({code}), so no one command makes the same run." if code else ""
    if not words or command[:2] == ["rlvr", "train"]:
        kept = [word for word in command if word.lstrip("-").partition("=")[0] not in now or "=" not in word]
        return " ".join([*kept, *words]), limits
    return f"{' '.join(command)}\nrlvr train --resume {folder} {' '.join(words)}", limits
