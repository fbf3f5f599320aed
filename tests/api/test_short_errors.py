"""A mistake in a script shows the script's line and the reason, not the laboratory's inside."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import rlvrlab


def test_a_mistake_has_a_short_traceback(tmp_path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("import rlvrlab\nrlvrlab.train('toy_countdown', overrides='rolout.n=3')\n")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    lines = done.stderr.splitlines()
    assert lines[-1].endswith("override rolout.n: unknown key; did you mean 'rollout.n'?")
    assert done.stderr.count("  File ") <= 3 and "During handling" not in done.stderr


def test_help_of_train_is_the_functions() -> None:
    told = pydoc.plain(pydoc.render_doc(rlvrlab.train))
    assert "train(recipe" in told and "`reward` is a function (problem, completion, verdict)" in told
