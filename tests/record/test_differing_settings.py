"""Runs that are compared say in which settings they differ, and nothing of what always differs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rlvrlab.evals.compare import MOST_SETTINGS
from rlvrlab.evals.compare_runs import compare_named
from rlvrlab.record.settings import between, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from command_line import inside, tiny


def config(origins: dict[str, str] | None = None, **recipe: Any) -> dict[str, Any]:
    return {"recipe": {"name": "a", "seed": 0, "phase_tables": {"grpo": {"steps": 5}}, **recipe}, "origins": origins}


def test_names_and_places_are_no_settings_and_seeds_are_told_where_the_sides_have_others() -> None:
    one, two = config(name="b", output_dir="x", question="?", data={"seed": 3}), config()
    assert between([one], [two]) == ()
    first, second = config(seed=1), config(seed=2)
    assert between([first, second], [second, first]) == ()
    assert [setting.words for setting in between([first], [second])] == ["seed: 1 → 2"]


def test_a_key_of_a_phase_is_told_as_a_recipe_has_it() -> None:
    found = between([config()], [config(phase_tables={"grpo": {"steps": 9}}, rollout={"greedy": True})])
    assert {one.words for one in found} == {"grpo.steps: 5 → 9", "rollout.greedy: – → true"}


def test_what_comes_with_another_plug_in_is_not_counted_unless_somebody_set_it() -> None:
    plain = config(reward={"type": "binary"}, advantage=None)
    other = config({"reward.pay": "default", "reward.cap": "override"}, reward={"type": "own", "pay": 1, "cap": 2})
    assert [one.words for one in between([plain], [other])] == ["reward.type: binary → own", "reward.cap: – → 2"]
    assert "advantage" not in settings(plain["recipe"])


def test_what_differs_among_the_seeds_of_both_sides_alike_is_left_out() -> None:
    few, many = config(rollout={"n": 2}), config(rollout={"n": 4})
    assert between([few, many], [many, few]) == ()
    assert [one.words for one in between([few, few], [few, many])] == ["rollout.n: 2 → 2, 4"]


def test_compare_tells_them(tmp_path, monkeypatch, capsys) -> None:
    recipe = str(tiny(tmp_path, "[eval]\ntest_size = 4\n"))
    runs = []
    for words in (("seed=1",), ("seed=2", "rollout.n=3", "grpo.learning_rate=0.5")):
        done = inside(monkeypatch, capsys, "train", recipe, "--json", *words, folder=tmp_path)
        runs.append(json.loads(done.stdout)["folder"])
    told = inside(monkeypatch, capsys, "compare", *runs, folder=tmp_path).stdout.splitlines()
    place = told.index("settings that differ:")
    assert told[place + 1] == "  rollout.n: 2 → 3" and told[place + 2].startswith("  grpo.learning_rate: ")
    assert told[place + 3] == "  seed: 1 → 2" and not [line for line in told if "name: " in line]
    facts = json.loads(inside(monkeypatch, capsys, "compare", *runs, "--json", folder=tmp_path).stdout)
    assert facts["settings"][0] == {"key": "rollout.n", "before": [2], "after": [3]}
    same = inside(monkeypatch, capsys, "compare", f"{runs[0]}@base", runs[0], folder=tmp_path).stdout
    assert "settings that differ" not in same  # one run has one recipe


def test_very_many_are_counted(tmp_path, monkeypatch, capsys) -> None:
    recipe = str(tiny(tmp_path, "[eval]\ntest_size = 4\n"))
    runs = []
    for name in ("name=one", "name=two"):
        done = inside(monkeypatch, capsys, "train", recipe, "--json", name, folder=tmp_path)
        runs.append(tmp_path / json.loads(done.stdout)["folder"])
    assert compare_named([runs[0]], [runs[1]]).settings_words == ["settings that differ: none, names aside"]
    path = runs[1] / "config.json"
    changed = json.loads(path.read_text())
    changed["recipe"] |= {f"key{number}": number for number in range(MOST_SETTINGS + 3)}
    path.write_text(json.dumps(changed))
    told = compare_named([runs[0]], [runs[1]]).settings_words
    assert len(told) == MOST_SETTINGS + 2 and told[-1] == "  … and 3 more (--json has all)"
    path.write_text("{")
    assert compare_named([runs[0]], [runs[1]]).settings_words == []
