"""What a stage and a study are called: the same word on the page, in REPORT.md, in tables and in the list of runs."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from study_lab import HEAD, Pretend, run_study, stage, write_study

from rlvrlab.cli.names import study_folder
from rlvrlab.cli.study_tables import Live
from rlvrlab.cli.verbs import rlvr
from rlvrlab.errors import UserError
from rlvrlab.report.gather import gather
from rlvrlab.report.gather.stages import stage_state
from rlvrlab.report.runs import summarise_run
from rlvrlab.study.folder import StudyFolder
from rlvrlab.study.load import load_study
from rlvrlab.study.run import Ended, Runner

ASKED = "Which length of training?"
STAGE = f'[[stages]]\nname = "steps"\nquestion = "{ASKED}"\nfactors = {{ "grpo.steps" = [2, 4] }}\n'
THREE = HEAD.replace("[suites", "seeds = [0, 1, 2]\n[suites") + STAGE


class OneAtATime(Pretend):
    """Interrupted from outside while the second trial runs."""

    @property
    def free(self) -> bool:  # type: ignore[override]
        return not self._ended

    def start(self, job) -> None:
        super().start(job)
        if len(self.jobs) == 2:
            signal.raise_signal(signal.SIGINT)


def told(folder: Path) -> str:
    """What `rlvr study status` prints."""
    found = CliRunner().invoke(rlvr, ["study", "status", str(folder)])
    assert found.exit_code == 0, found.output
    return found.output


def boxes(folder: Path) -> dict[str, dict]:
    """Stage -> its card on the page."""
    chain = next(one for one in gather(folder)["sections"] if one["id"] == "chain")
    return {one["name"]: one for one in chain["data"]["stages"]}


@pytest.fixture
def interrupted(tmp_path: Path) -> Ended:
    file = load_study(write_study(tmp_path, THREE))
    runner = Runner(file, tmp_path / "out" / "tried", OneAtATime(lambda job: 0.5), lambda *_: None)
    try:
        return runner.run()
    finally:
        runner.close()


@pytest.mark.parametrize(
    ("kind", "status", "decision", "going", "state"),
    [
        ("compare", "decided", {"outcome": "better", "by": "rule"}, False, "decided"),
        ("compare", "decided", {"outcome": "equivalent", "by": "rule"}, False, "decided"),
        ("compare", "decided", {"outcome": "undecided", "by": "rule"}, False, "undecided"),
        ("compare", "decided", {"outcome": "undecided", "by": "person"}, False, "decided"),
        ("compare", "decided", {"outcome": "alone", "by": "rule"}, False, "measured"),
        ("final", "decided", None, False, "measured"),
        ("compare", "running", None, True, "running"),
        ("compare", "running", None, False, "interrupted"),
        ("compare", "blocked", None, False, "blocked"),
    ],
)
def test_a_stage_has_one_name(kind, status, decision, going, state) -> None:
    assert stage_state(kind, status, decision, going) == state


def test_a_study_that_decided_nothing_is_nowhere_called_decided(tmp_path: Path) -> None:
    ended, _, made = run_study(write_study(tmp_path, STAGE), lambda job: 0.5)
    cards = boxes(ended.folder)
    assert {name: one["status"] for name, one in cards.items()} == {"steps": "undecided", "final_steps": "measured"}
    assert (cards["steps"]["question"], cards["final_steps"]["question"]) == (ASKED, "")
    rows = {
        line.split()[0]: line.split()[1] for line in told(ended.folder).splitlines() if "1/1" in line or "2/2" in line
    }
    assert rows == {"steps": "undecided", "final_steps": "measured"}
    page = (ended.folder / "REPORT.md").read_text(encoding="utf-8")
    assert page.count(ASKED) == 1 and "## final_steps — measured on test problems" in page
    assert stage(made, "final_steps")["status"] == "decided", "the file keeps the word it always had"


def test_arms_that_did_the_same_are_named_wherever_the_decision_is_told(tmp_path: Path) -> None:
    ended, _, made = run_study(write_study(tmp_path, STAGE), lambda job: 0.5)
    same = "steps=2 and steps=4 scored the same on every problem in every trial"
    assert made["decisions"][0]["alike"] == [["steps=2", "steps=4"]]
    assert [one["text"].startswith(f"steps: {same}") for one in made["caveats"] if one["kind"] == "alike"] == [True]
    assert same in boxes(ended.folder)["steps"]["decision"]
    for page in ("REPORT.md", "DECISIONS.md"):
        assert same in (ended.folder / page).read_text(encoding="utf-8")
    assert same in " ".join(CliRunner().invoke(rlvr, ["study", "select", str(ended.folder), "steps"]).output.split())


def test_a_finished_trial_that_is_only_examined_does_not_start_again(tmp_path: Path) -> None:
    file, told = load_study(write_study(tmp_path, STAGE)), list[str]()
    runner = Runner(file, tmp_path / "out" / "tried", Pretend(lambda job: 0.5), lambda words, *_: told.append(words))
    try:
        runner.run()
    finally:
        runner.close()
    begun = [line.partition(": ")[2] for line in told if "seed 0" in line]
    assert begun == ["starts (steps, steps=2, seed 0)", "starts (steps, steps=4, seed 0)",
                     "evaluates on test problems (final_steps, steps=2, seed 0)"]  # fmt: skip


def test_a_study_that_is_not_there_is_answered_with_the_one_that_was_meant(tmp_path: Path) -> None:
    write_study(tmp_path, STAGE)
    for word, meant in (("npg_muse/smok", "npg_muse/smoke"), (str(tmp_path / "stud"), str(tmp_path / "study"))):
        found = CliRunner().invoke(rlvr, ["study", "run", word])
        assert isinstance(found.exception, UserError) and f"(did you mean '{meant}'?)" in str(found.exception)
    assert "toy_countdown" not in str(CliRunner().invoke(rlvr, ["study", "run", "toy_countdow"]).exception), "a recipe"


def test_a_study_that_has_run_goes_by_its_name_or_a_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_study(tmp_path, STAGE)
    text = path.read_text()
    path.write_text(text.replace('output = "out"\n', ""))
    monkeypatch.chdir(tmp_path)
    for name in ("tried", "tested"):
        file = load_study(path)
        runner = Runner(file, Path("experiments/studies") / name, Pretend(lambda job: 0.5), lambda *_: None)
        runner.run()
        runner.close()
    assert study_folder("tried") == study_folder("trie") == Path("experiments/studies/tried")
    found = CliRunner().invoke(rlvr, ["study", "status", "tried", "--json"])
    assert json.loads(found.output)["status"] == "finished"
    with pytest.raises(UserError, match="fits 2 studies"):
        study_folder("t")
    told = str(CliRunner().invoke(rlvr, ["study", "status", "nosuch"]).exception)
    assert "its file (FILE.toml), its folder, or a part of its name below experiments/" in told


def test_an_interrupted_study_counts_what_is_finished_and_says_so(interrupted: Ended, capsys) -> None:
    made = json.loads((interrupted.folder / "study.json").read_text())
    assert made["status"] == interrupted.status == "interrupted"
    page = (interrupted.folder / "REPORT.md").read_text(encoding="utf-8")
    assert "interrupted · 2 of 6 trials finished" in page and "## steps — interrupted" in page
    assert page.count("| 1 of 3 |") == 2
    printed = told(interrupted.folder)
    assert printed.count("1 of 3") == 2 and "running" not in printed.replace("running  failed", "")
    assert f"rlvr study run {interrupted.folder}" in printed.replace("\n", "")
    [card] = boxes(interrupted.folder).values()
    assert card["status"] == "interrupted" and [arm["trials"] for arm in card["arms"]] == ["1 of 3", "1 of 3"]
    Live("tried", as_json=False).end(interrupted)
    assert "go on with the same command" in " ".join(capsys.readouterr().out.split())


def test_a_study_is_running_while_its_lock_is_held_and_interrupted_when_it_was_killed(interrupted: Ended) -> None:
    folder = interrupted.folder
    made = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(made | {"status": "running"}))
    for held, state in ((True, "running"), (False, "interrupted")):
        opened = StudyFolder(folder, load_study(folder.parents[1] / "study.toml")) if held else None
        shown = CliRunner().invoke(rlvr, ["study", "status", str(folder), "--json"])
        assert json.loads(shown.stdout)["status"] == gather(folder)["status"] == summarise_run(folder).status == state
        assert boxes(folder)["steps"]["status"] == state
        if opened:
            opened.close()
