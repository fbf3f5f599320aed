"""A finished run made longer equals one that was long from the start."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from slow_cases import some_slow

from rlvrlab.errors import UserError
from rlvrlab.evals.cards import earlier_words, gain_lines, gains, read_cards
from rlvrlab.evals.hacks.signals import TRENDS, Trend
from rlvrlab.recipe import load_recipe
from rlvrlab.record.final import read_looks
from rlvrlab.record.run import read_config, read_events, read_info, read_metrics
from rlvrlab.train.extension import extend
from rlvrlab.train.policy import policy_of
from rlvrlab.train.session import resume, start

TINY = """name = "tiny"
phases = ["sft", "grpo"]
[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"
[data]
train_size = 40
dev_size = 8
[rollout]
n = 2
max_tokens = 6
[engine]
type = "toy"
buckets = 8
[sft]
steps = 3
batch_size = 4
[grpo]
steps = 5
batch_size = 2
[eval]
every = 4
[checkpoint]
every = 2
"""


def quiet(*_: object) -> None:
    pass


def finished(folder: Path, *overrides: str) -> Path:
    path = folder / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    said = ["rlvr", "train", "tiny.toml", "seed=0", "grpo.steps=5"]
    return start(load_recipe(path, [f"output_dir={folder}", *overrides]), quiet, said).folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that nobody changes."""
    return finished(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that was long from the start."""
    return finished(tmp_path_factory.mktemp("long"), "grpo.steps=9")


def lines(run: Path) -> list[str]:
    """metrics.jsonl without wall-clock times."""
    rows = [{key: value for key, value in row.items() if not key.startswith("time/")} for row in read_metrics(run)]
    return [json.dumps(row) for row in rows]


@pytest.mark.parametrize("words", [["grpo.steps=9"], ["grpo.steps=+4"]])
def test_an_extended_run_equals_one_that_was_long_from_the_start(plain, long, tmp_path, words: list[str]) -> None:
    short = Path(shutil.copytree(plain, tmp_path / plain.name))
    extend(short, words)
    assert resume(short, quiet).status == "finished"
    assert lines(short) == lines(long) and len(lines(long)) == 3 + 9 + 2
    for name in ("global_step_12/actor", "global_step_12/trainer.json"):
        place = Path("checkpoints") / name
        files = [p for p in [long / place, *(long / place).rglob("*")] if p.is_file()]
        assert files and all(p.read_bytes() == (short / p.relative_to(long)).read_bytes() for p in files)
    config = read_config(short)
    assert config["recipe"]["phase_tables"]["grpo"]["steps"] == 9
    assert config["history"][0]["changed"] == {"grpo.steps": {"from": 5, "to": 9}}
    assert [e["changed"] for e in read_events(short) if e["kind"] == "extended"] == [config["history"][0]["changed"]]
    assert read_info(short)["status"] == "finished"
    told = (short / "EXPERIMENT.md").read_text(encoding="utf-8")
    assert "rlvr train tiny.toml seed=0 grpo.steps=9\n" in told


@pytest.mark.parametrize("settings", some_slow([(), ("eval.every=5",), ("checkpoint.every=100",)], {("eval.every=5",)}))
def test_a_lengthened_run_repeats_no_step(tmp_path, settings: tuple[str, ...]) -> None:
    short, long = finished(tmp_path, *settings), finished(tmp_path, *settings, "grpo.steps=9")
    extend(short, ["grpo.steps=+4"])
    taken: list[int] = []
    resume(short, lambda phase, state, row: taken.append(row["step"]))
    assert taken == [9, 10, 11, 12] and lines(short) == lines(long)


def test_with_a_protocol_it_goes_back_to_a_checkpoint_before_the_end_and_is_exact_too(tmp_path) -> None:
    settings = ("protocol.type=mixed", "env.numbers=[2, 3]")
    short, long = finished(tmp_path, *settings), finished(tmp_path, *settings, "grpo.steps=9")
    extend(short, ["grpo.steps=+4"])
    taken: list[int] = []
    resume(short, lambda phase, state, row: taken.append(row["step"]))
    assert taken[0] <= 8 and lines(short) == lines(long)


def test_a_run_that_stopped_early_goes_on_without_the_stop(tmp_path) -> None:
    run = finished(tmp_path, "stop.target=0.0")
    assert len(lines(run)) < 3 + 5 + 2
    extend(run, ["stop.patience=50", "stop.target=1.0"])
    resume(run, quiet)
    assert read_metrics(run)[-1]["phase_step"] == 5


def contents(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", [["grpo.steps=+0"], ["grpo.steps=5"], ["eval.every=4", "stop.target=null"]])
def test_what_a_run_has_already_changes_nothing(plain, words: list[str]) -> None:
    before = contents(plain)
    assert not extend(plain, words)
    assert resume(plain, quiet).status == "finished" and contents(plain) == before


def test_an_evaluation_that_a_longer_run_would_not_have_made_ends_no_run(tmp_path) -> None:
    run = finished(tmp_path, "stop.patience=1", "eval.every=3")
    assert read_metrics(run)[-1]["phase_step"] == 3
    with pytest.raises(UserError, match="has ended grpo after 3 steps"):
        extend(run, ["grpo.steps=+4"])
    assert extend(run, ["eval.every=2"])


def test_a_run_whose_last_phase_was_skipped_cannot_be_made_longer(plain, tmp_path) -> None:
    run = Path(shutil.copytree(plain, tmp_path / plain.name))
    info = json.loads((run / "run_info.json").read_text())
    (run / "run_info.json").write_text(json.dumps({**info, "skipped": {"grpo": "nothing was wrong"}}))
    with pytest.raises(UserError, match=r"grpo was skipped \(nothing was wrong\)"):
        extend(run, ["grpo.steps=+4"])


@pytest.mark.parametrize(
    ("settings", "words", "says"),
    [
        ((), ["grpo.steps=4"], "only be made longer"),
        ((), ["eval.every=2"], "all 5 steps of grpo, .* only be made longer"),
        ((), ["grpo.steps=+0", "stop.patience=3"], "all 5 steps of grpo"),
        (("protocol.type=mixed", "env.numbers=[2, 3]"), ["checkpoint.every=1"], "all 5 steps of grpo"),
        (("stop.target=0.0",), ["grpo.steps=+4"], "stop: has ended grpo after 1 steps and would again"),
        (("stop.target=0.0",), ["eval.every=2"], "and would again; switch off what has ended it: stop.target=null"),
        ((), ["rollout.n=8"], "rollout.n: --resume can change grpo.steps"),
        ((), ["sft.steps=+4"], "sft.steps: --resume can change grpo.steps"),
        ((), ["grpo.steps=many"], "only be made longer"),
        (("optimizer.decay=cosine",), ["grpo.steps=+4"], "optimizer.decay = 'cosine' follows the length"),
        (("protocol.type=curriculum", "env.numbers=[2, 3]"), ["grpo.steps=+4"], "protocol.type = 'curriculum' cuts"),
    ],
)
def test_what_would_not_be_the_same_run_is_refused(plain, tmp_path, settings, words: list[str], says: str) -> None:
    run = finished(tmp_path, *settings) if settings else plain
    before = (run / "config.json").read_bytes()
    with pytest.raises(UserError, match=says):
        extend(run, words)
    assert (run / "config.json").read_bytes() == before and not list(run.glob("checkpoints/before_*"))


def test_every_card_of_a_lengthened_run_is_a_look_at_test_problems(tmp_path: Path) -> None:
    run = finished(tmp_path, "eval.test_size=8")
    before = len(read_looks(run))
    extend(run, ["grpo.steps=+2"])
    resume(run, quiet)
    assert len(read_looks(run)) == before + 1


def test_what_a_run_was_before_it_was_made_longer_stays_on_record(tmp_path: Path) -> None:
    """Its last policy can be named by its step, its test result is told beside the new one, its page is set aside."""
    run = finished(tmp_path, "eval.test_size=6", "checkpoint.keep=1")
    card = json.loads((run / "analysis/cards/2_grpo.json").read_text())
    (run / "analysis/report.html").write_text("of step 8")
    extend(run, ["grpo.steps=+4"])
    resume(run, quiet)
    assert not (run / "checkpoints/global_step_8").exists(), "training has gone on and needs it no more"
    policy = policy_of(run, "8")
    assert policy.facts["step"] == 8 and policy.facts["checkpoint"] == "before_extension_global_step_8"
    with pytest.raises(UserError, match=r"no checkpoint of step 5; there are \[.*8, .*12\]"):
        policy_of(run, "5")
    assert json.loads((run / "analysis/cards/before_extension/2_grpo_step_8.json").read_text()) == card
    before = f"Before it was made longer (grpo, step 8): accepted@1 {100 * card['metrics']['accepted_at_1']:.1f} %"
    page = (run / "EXPERIMENT.md").read_text(encoding="utf-8")
    for gain in gain_lines(gains(run)):
        assert page.count(gain) == 1 and gain in (run / "analysis/cards.md").read_text(encoding="utf-8")
    assert before in page and f"| test | 6 | `{read_info(run)['data']['test']['sha256']}` |" in page
    assert (run / "analysis/report_until_step_8.html").read_text() == "of step 8"
    assert not (run / "analysis/report.html").exists()
    [words] = earlier_words(run, read_cards(run))
    assert words.startswith(before) and "; change until step 12: " in words


def test_a_control_arm_that_is_made_longer_gets_no_trends(tmp_path: Path) -> None:
    """Its last line is written anew, for a longer run would not have been evaluated there."""
    run = finished(tmp_path, "reward.type=inverted", "grpo.steps=42", "eval.every=0", "checkpoint.every=50")
    extend(run, ["grpo.steps=+1"])
    rows = read_metrics(run)
    assert Trend(rows[:-1]).metrics(rows[-1]).keys() & set(TRENDS), "with any other reward there would be some"
    assert not [key for row in rows for key in row if key in TRENDS]
