"""docs/python.md and docs/python.ipynb do what they say."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

import rlvrlab

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_the_snippets_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "python.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(snippets) >= 5
    assert all(f"`{name}" in page for name in rlvrlab.__all__ if name != "__version__")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for snippet in snippets:
        exec(snippet, names)
    told = capsys.readouterr().out
    assert names["comparison"].verdict == "higher" and names["after"].accuracy > 0.5
    assert "finished 0." in told or "finished 1.0" in told
    assert "my_reward.py:halved" in told and "did you mean 'grpo.steps'" in told


@pytest.mark.slow
def test_the_snippet_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", (DOCS.parent / "README.md").read_text(), re.DOTALL)
    recipe = (DOCS.parent / "recipes/toy_countdown.toml").read_text()
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/toy_countdown.toml").write_text(recipe.replace("steps = 200", "steps = 10"))
    monkeypatch.chdir(tmp_path)
    exec(snippet, {"__name__": "__main__"})
    assert "Comparison(countdown · 120 test problems on both sides" in capsys.readouterr().out


@pytest.mark.slow
def test_the_cells_of_the_notebook_run_in_order_and_its_outputs_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Jupyter: each cell is run, and what its last line shows must be of the kind that is stored."""
    notebook = json.loads((DOCS / "python.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        assert cell["execution_count"] == number and not any(o["output_type"] == "error" for o in cell["outputs"])
        tree = ast.parse("".join(cell["source"]))
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        exec(compile(tree, "cell", "exec"), names)
        shown = eval(compile(last, "cell", "eval"), names)
        kept = next(o for o in cell["outputs"] if o["output_type"] == "execute_result")["data"]
        assert ("text/html" in kept) is hasattr(shown, "_repr_html_")
    assert any("█" in "".join(o["data"]["text/plain"]) for o in cells[1]["outputs"] if "data" in o), "the progress bar"
    written = json.dumps(notebook)
    assert not any(str(place) in written for place in (DOCS.parent, Path.home())), "a path of the machine that made it"
