"""At the end of a run of the tests: what was skipped, why, and whether skips.toml lists it."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_name("skips.toml")
STRICT = "RLVR_LISTED_SKIPS"
"""Where this variable is set, a skip that is not listed fails the run."""


def listed() -> list[str]:
    return [row["reason"] for row in tomllib.loads(LIST.read_text("utf-8"))["skip"]]


def unlisted(reasons: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Reasons that no pattern fits, each once."""
    known = [re.compile(pattern) for pattern in patterns]
    return [reason for reason in dict.fromkeys(reasons) if not any(pattern.search(reason) for pattern in known)]


def reasons_of(config: pytest.Config) -> list[str]:
    """Why each test was skipped; xdist's workers report to the process that prints."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    texts = [one.longrepr[2] if isinstance(one.longrepr, tuple) else str(one.longrepr) for one in reports]
    return [text.removeprefix("Skipped: ") for text in texts]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    reasons = Counter(reasons_of(config))
    missing = unlisted(reasons, listed())
    if reasons:
        terminalreporter.section(f"{sum(reasons.values())} skipped")
    for reason, count in reasons.most_common():
        word = "NOT LISTED in tests/skips.toml: " if reason in missing else ""
        terminalreporter.write_line(f"{count:4d}  {word}{reason}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if os.environ.get(STRICT) and exitstatus == 0 and unlisted(reasons_of(session.config), listed()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
