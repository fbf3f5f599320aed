"""Steps that teach nothing: said once in plain words, counted, never an update; unjudged answers are never wrong."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
import runs
from slow_cases import some_slow

from rlvrlab.record.files import read_lines
from rlvrlab.train import session
from rlvrlab.train.batches import Sorted

ODD = Path(__file__).with_name("odd_plugins.py")
WRONG = (f"env.type={ODD}:AlwaysWrong", "checkpoint.every=1", "checkpoint.keep=9")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which no answer is ever right. Read only."""
    return runs.run(tmp_path_factory.mktemp("wrong"), *WRONG, text=runs.ONLINE).folder


def grpo_rows(folder: Path) -> list[dict]:
    return [row for row in runs.read_metrics(folder) if row["phase"] == "grpo" and row["phase_step"]]


def test_all_wrong_means_no_update_and_one_warning(wrong: Path) -> None:
    rows = grpo_rows(wrong)
    assert len(rows) == 6
    assert all(row["groups/zero_variance"] == 1 and row["groups/all_wrong"] == 4 for row in rows)
    assert not any("actor/grad_norm" in row for row in rows)
    warnings = [text for text in runs.events(wrong, "warning") if text.startswith("no signal")]
    assert len(warnings) == 1 and "all wrong" in warnings[0] and "SFT" in warnings[0]
    assert warnings[0] in (wrong / "EXPERIMENT.md").read_text()


def test_the_policy_does_not_move_without_signal(wrong: Path) -> None:
    first, last = (runs.arrays(wrong / "checkpoints" / f"global_step_{n}")["theta"] for n in (6, 11))
    assert (first == last).all()


def test_a_warning_is_not_repeated_by_a_resume(wrong: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(wrong, tmp_path / wrong.name))
    before = runs.events(folder, "warning")
    for path in (folder / "checkpoints").glob("*"):
        (path / "manifest.json").unlink()
    runs.was_killed(folder)
    session.resume(folder, runs.quiet)
    assert runs.events(folder, "warning") == before


def test_no_signal_steps_end_the_phase(tmp_path: Path) -> None:
    folder = runs.run(tmp_path, f"env.type={ODD}:AlwaysWrong", "stop.no_signal_steps=2", text=runs.ONLINE).folder
    assert len(grpo_rows(folder)) == 2
    assert runs.read_info(folder)["status"] == "finished"


@pytest.mark.parametrize(
    "words", [(), ("objective.type=ppo_clip", "objective.aggregation=seq-mean-token-mean"), ("surgery.type=mean",)]
)
def test_groups_that_are_counted_shorten_the_step_as_those_that_are_kept(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    rows = {}
    for dead in ("keep", "count", "drop"):
        asked = (f"filter.dead_groups={dead}", "grpo.minibatches=1", *words)
        folder = runs.run(tmp_path / dead, *asked, text=runs.ONLINE).folder
        rows[dead] = [row for row in grpo_rows(folder) if row["groups/live"]]
    assert any(row["groups/zero_variance"] for row in rows["keep"])
    for name in ("actor/grad_norm", "train/acc"):
        kept, counted, dropped = ([row[name] for row in rows[dead]] for dead in ("keep", "count", "drop"))
        assert counted == pytest.approx(kept, rel=1e-9)
        assert name == "train/acc" or any(a > 1.01 * b for a, b in zip(dropped, counted, strict=True))


@pytest.mark.parametrize("dead", ["keep", "drop", "refill"])
def test_every_answer_unjudged(tmp_path: Path, dead: str) -> None:
    folder = runs.run(
        tmp_path, f"env.type={ODD}:BrokenJudge", f"filter.dead_groups={dead}", "filter.max_refills=1", text=runs.ONLINE
    ).folder
    rows = grpo_rows(folder)
    assert all(row["groups/unjudged"] == row["groups/collected"] for row in rows)
    assert not any("actor/grad_norm" in row for row in rows)
    assert any("not one answer could be judged" in text for text in runs.events(folder, "warning"))
    answers = read_lines(folder / "rollouts" / "step_6.jsonl")
    assert answers and all(a["correct"] is None and a["reward"] is None for a in answers)
    assert all("the judge fell over" in a["detail"] for a in answers)


@pytest.mark.parametrize("phase", some_slow(["grpo", "ppo", "reinforce"], {"grpo"}))
@pytest.mark.parametrize("dead", ["keep", "drop"])
def test_judged_members_of_a_group_still_train(tmp_path: Path, phase: str, dead: str) -> None:
    folder = runs.run(
        tmp_path,
        f"env.type={ODD}:BrokenJudge",
        "env.fails=4",
        "env.order=ascending",
        f"phases=['sft', '{phase}']",
        f"filter.dead_groups={dead}",
        f"{phase}.batch_size=8",
        f"{phase}.steps=3",
        f"{phase}.minibatches=3",
        "sft.learning_rate=0.1",
    ).folder
    rows = [row for row in runs.read_metrics(folder) if row["phase"] == phase and row["phase_step"]]
    unjudged = sum(row["groups/unjudged_rows"] for row in rows)
    assert unjudged > 0 and any(row.get("actor/grad_norm") for row in rows)
    answers = [a for path in (folder / "rollouts").glob("*.jsonl") for a in read_lines(path)]
    assert sum(a["correct"] is None for a in answers) == unjudged
    assert all((a["reward"] is None) == (a["correct"] is None) for a in answers)
    mixed = {a["group"] for a in answers if a["correct"] is None} & {a["group"] for a in answers if a["correct"]}
    assert mixed, "some group has both"
    assert any("could not be judged" in text for text in runs.events(folder, "warning"))
    measured = [row for row in runs.read_metrics(folder) if "val-core/broken_judge/unjudged" in row]
    assert measured, "held-out answers that cannot be judged are counted too"


def test_answers_the_sampler_lost(tmp_path: Path) -> None:
    settings = [f"engine.type={ODD}:UnreliableSampler", "sft.learning_rate=0.1"]
    folder = runs.run(tmp_path, *settings, text=runs.ONLINE).folder
    rows = grpo_rows(folder)
    assert all(row["groups/unjudged_rows"] == 4 for row in rows)
    assert any(row.get("actor/grad_norm") for row in rows)
    answers = read_lines(folder / "rollouts" / "step_6.jsonl")
    lost = [a for a in answers if a["finish"] == "error"]
    assert len(lost) == 4 and all(a["correct"] is None and a["reward"] is None for a in lost)


def test_sft_is_not_advised_after_sft(wrong: Path, tmp_path: Path) -> None:
    alone = runs.run(tmp_path, *WRONG, "phases=['grpo']", "grpo.steps=3", text=runs.ONLINE).folder
    assert "do SFT first" in " ".join(runs.events(alone, "warning"))
    after = " ".join(runs.events(wrong, "warning"))
    assert "do SFT first" not in after and "give SFT more steps" in after


@pytest.mark.parametrize(
    ("kinds", "why", "remedy"),
    [
        ({"all_right": 7, "all_wrong": 1}, "(groups: 7 all right, 1 all wrong)", "rollout.n"),
        ({"all_right": 1, "all_wrong": 7}, "(groups: 1 all right, 7 all wrong)", "filter.dead_groups=refill"),
        ({"singleton": 8}, "(with a single judged answer)", "rollout.n"),
        ({"same_reward": 8}, "(of one partial reward)", "rlvr check reward"),
        ({"all_wrong": 7, "unjudged": 1}, "(groups: 7 all wrong, 1 unjudged)", "do SFT first"),
        ({"all_right": 8}, "(all right)", "harder problems"),
    ],
)
def test_a_mix_of_dead_groups_is_told_as_one(kinds: dict[str, int], why: str, remedy: str) -> None:
    words = Sorted([], [], Counter(kinds)).why_silent()
    assert why in words and remedy in words
    assert ("nothing left to teach" in words) == (kinds.keys() == {"all_right"})


def test_refill_is_not_advised_where_it_ran() -> None:
    mix = Sorted([], [], Counter(all_right=1, all_wrong=1))
    assert "refill" in mix.why_silent() and "refill" not in mix.why_silent(refills=True)


def test_a_policy_that_fell_is_not_told_to_start_more_gently(tmp_path: Path) -> None:
    fallen = ("sft.steps=20", "grpo.learning_rate=500", "grpo.steps=12", "optimizer.max_grad_norm=0")
    folder = runs.run(tmp_path, *fallen, text=runs.ONLINE).folder
    told = [text for text in runs.events(folder, "warning") if text.startswith("no signal")]
    assert told and "lost in grpo what it could do" in told[0] and "grpo.learning_rate" in told[0]
    assert "SFT" not in told[0]
