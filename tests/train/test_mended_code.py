"""A reward of the user's own that fails in the middle of a run: said with its place, mended, accepted, gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs
from click.testing import CliRunner

from rlvrlab.cli.show import command as show
from rlvrlab.errors import OwnCodeError, RunTouched, UserError
from rlvrlab.evals.cards import code_words, read_cards
from rlvrlab.record.run import read_config
from rlvrlab.report.gather import gather
from rlvrlab.train import session
from rlvrlab.train.extension import extend
from rlvrlab.train.session import accept_code

BROKEN = """
def reward(problem, completion, verdict):
    if any(completion.logprobs) and completion.policy_version > 8:
        return {"correct": float(verdict.correct), "length": 1 / 0}
    return {"correct": float(verdict.correct), "length": 0.0}
"""
MENDED = BROKEN.replace("1 / 0", "0.0")


def failed_run(folder: Path) -> tuple[Path, str]:
    (folder / "mine.py").write_text(BROKEN, encoding="utf-8")
    with pytest.raises(OwnCodeError) as error:
        runs.run(folder, "reward.type=mine.py:reward", text=runs.ONLINE)
    return runs.only_run(folder), str(error.value)


def test_a_reward_that_fails_in_the_middle_says_where_and_how_to_go_on(tmp_path: Path) -> None:
    folder, said = failed_run(tmp_path)
    checkpoint = max((folder / "checkpoints").glob("global_step_*"), key=lambda path: int(path.name.split("_")[-1]))
    for words in ("mine.py:4 (problem countdown:", ", grpo; checkpoint", checkpoint.name, f"{folder} --accept-code"):
        assert words in said
    assert f"(step {runs.read_metrics(folder)[-1]['step'] + 1}, grpo" in said
    page = (folder / "EXPERIMENT.md").read_text(encoding="utf-8")
    assert "mend the function" in page and "--accept-code" in page
    assert "No warnings" not in page and "goes on exactly" not in page


def test_a_mended_reward_is_refused_until_it_is_accepted_and_then_recorded(tmp_path: Path) -> None:
    folder, _ = failed_run(tmp_path)
    (tmp_path / "mine.py").write_text(MENDED, encoding="utf-8")
    before = read_config(folder)["recipe"]["reward"]["code"]
    with pytest.raises(UserError, match=r"is not what it was .*--accept-code"):
        session.resume(folder, runs.quiet)
    assert accept_code(folder).keys() == {"reward.code"}
    assert session.resume(folder, runs.quiet).status == "finished"
    after = read_config(folder)["recipe"]["reward"]["code"]
    (event,) = [event for event in runs.read_events(folder) if event["kind"] == "code_accepted"]
    assert event["changed"] == {"reward.code": {"from": before, "to": after}} and before != after
    assert f"{before} → {after}" in (folder / "EXPERIMENT.md").read_text(encoding="utf-8")
    assert accept_code(folder) == {}  # nothing is left to accept, and nothing is written
    assert session.resume(folder, runs.quiet).status == "finished"


def test_every_table_of_cards_says_which_of_them_other_code_paid(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MENDED, encoding="utf-8")
    runs.run(tmp_path, "reward.type=mine.py:reward", "eval.test_size=6", text=runs.ONLINE)
    folder = runs.only_run(tmp_path)
    assert code_words(folder, read_cards(folder)) == []
    (tmp_path / "mine.py").write_text(MENDED.replace("float(", "0.5 * float("), encoding="utf-8")
    accept_code(folder)
    assert code_words(folder, read_cards(folder)) == [], "nothing was measured since"
    extend(folder, ["grpo.steps=+2"])
    assert session.resume(folder, runs.quiet).status == "finished"
    [words] = code_words(folder, read_cards(folder))
    step = read_cards(folder)[-1].step - 2
    assert words == (
        f"Own code changed after step {step} (reward.code): baseline, sft measured by the code before, "
        "grpo by the code since; their rewards do not compare."
    )
    for page in ("analysis/cards.md", "EXPERIMENT.md"):
        assert f"\n{words}\n" in (folder / page).read_text(encoding="utf-8")
    [phases] = [one for one in gather(folder)["sections"] if one["view"] == "phases"]
    assert phases["data"]["code"] == [words]
    assert words in CliRunner().invoke(show, [str(folder)]).output


def test_a_fork_takes_the_mended_reward_and_leaves_the_failed_run_alone(tmp_path: Path) -> None:
    folder, _ = failed_run(tmp_path)
    (tmp_path / "mine.py").write_text(MENDED, encoding="utf-8")
    before = (folder / "config.json").read_bytes()
    ended = session.fork(folder, runs.quiet, accept_code=True)
    assert ended.status == "finished" and (folder / "config.json").read_bytes() == before
    assert any("reward.code" in text for text in runs.read_info(ended.folder)["parent"]["differs"])


def test_other_edits_are_not_accepted_with_the_code(tmp_path: Path) -> None:
    folder, _ = failed_run(tmp_path)
    (tmp_path / "mine.py").write_text(MENDED, encoding="utf-8")
    text = (folder / "config.json").read_text(encoding="utf-8")
    (folder / "config.json").write_text(text.replace('"max_tokens": 8', '"max_tokens": 9'), encoding="utf-8")
    with pytest.raises(RunTouched, match=r"rollout.max_tokens 8 → 9; restore it before its code is accepted"):
        accept_code(folder)
