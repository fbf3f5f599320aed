"""One word per thing: dev and test problems, accepted@1; and what was measured late is not told as from before."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rlvrlab.evals.cards import on_dev
from rlvrlab.evals.compare import NOT_SHOWN
from rlvrlab.record.headline import began
from rlvrlab.record.summary import Summary
from rlvrlab.report.gather import gather
from rlvrlab.report.page import page

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from command_line import inside, tiny

OTHER_WORDS = re.compile(r"held.out|Accuracy|(?<!mean )\baccuracy\b", re.IGNORECASE)


def row(step: int, share: float, phase_step: int) -> dict[str, Any]:
    key = "val-core/countdown/acc"
    bounds = {f"{key}_low": share - 0.1, f"{key}_high": share + 0.1}
    return {"step": step, "phase": "grpo", "phase_step": phase_step, key: share, **bounds}


def test_an_evaluation_after_the_first_step_is_not_from_before() -> None:
    late = Summary([row(8, 0.3, 8), row(16, 0.8, 16)]).phases
    assert began(late["grpo"]["before"]) == "30.0 % [20.0, 40.0] at step 8"
    assert on_dev(late)[0].words.startswith("grpo raised accepted@1: dev 30.0 (step 8) → 80.0 %")
    usual = Summary([row(8, 0.3, 0), row(16, 0.8, 8)]).phases  # the run had other phases before
    assert began(usual["grpo"]["before"]) == "30.0 % [20.0, 40.0]" and "late" not in usual["grpo"]["before"]
    assert on_dev(usual)[0].words.startswith("grpo raised accepted@1: dev 30.0 → 80.0 %")


def test_train_eval_compare_and_report_have_one_word_for_each_thing(tmp_path, monkeypatch, capsys) -> None:
    recipe = str(tiny(tmp_path, "[eval]\ntest_size = 4\n"))
    trained = inside(monkeypatch, capsys, "train", recipe, folder=tmp_path)
    run = next((tmp_path / "experiments").iterdir())
    compared = inside(monkeypatch, capsys, "compare", f"{run}@base", str(run), folder=tmp_path).stdout
    assert compared.count(NOT_SHOWN) == 1
    told = [trained.stdout, trained.stderr, compared]
    told += [
        inside(monkeypatch, capsys, *words, folder=tmp_path).stdout
        for words in (("eval", "--run", "latest"), ("runs",), ("show",))
    ]
    told += [(run / "EXPERIMENT.md").read_text(), (run / "logs/events.jsonl").read_text()]
    assert [match.group() for text in told for match in [OTHER_WORDS.search(text)] if match] == []
    shown = page(gather(run))
    assert re.search("held.out", re.sub(r"hack/held_out_\w+", "", shown), re.IGNORECASE) is None
    assert "dev" in json.dumps(gather(run))
