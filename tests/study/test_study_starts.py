"""A start for every seed: arms of one seed go on from the same weights, and are compared in pairs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from study_lab import HEAD, write_study

from rlvrlab.errors import UserError
from rlvrlab.evals.statistics import compare_seeds
from rlvrlab.study.chain import Chain
from rlvrlab.study.contest import Candidate
from rlvrlab.study.export import export_study
from rlvrlab.study.load import load_study
from rlvrlab.study.power import planned_reach
from rlvrlab.study.schema import Select
from rlvrlab.study.select import choose

ON_STARTS = """
[[stages]]
name = "a"
fixed = { "engine.type" = "hf", "engine.model" = "STARTS/seed_{seed}" }
arms = { few = { "rollout.n" = 2 }, many = { "rollout.n" = 4 } }
"""


def study(folder: Path, head: str = HEAD, seeds: tuple[int, ...] = (3, 4)) -> Chain:
    for seed in seeds:
        start = folder / "starts" / f"seed_{seed}"
        start.mkdir(parents=True)
        (start / "config.json").write_text(f'{{"seed": {seed}}}')
    text = head.replace("[suites", "seeds = [3, 4]\n[suites") + ON_STARTS.replace("STARTS", str(folder / "starts"))
    return Chain(load_study(write_study(folder, text)))


def test_every_seed_goes_on_from_its_own_start(tmp_path: Path) -> None:
    chain = study(tmp_path)
    stage = chain.file.stage("a")
    assert chain.check(stage, {}) == []
    for arm in ("few", "many"):
        models = [trial.settings["engine.model"] for trial in chain.trials(stage, arm, {})]
        assert models == [str(tmp_path / "starts" / f"seed_{seed}") for seed in (3, 4)]


def test_another_start_is_another_trial(tmp_path: Path) -> None:
    chain = study(tmp_path)
    stage = chain.file.stage("a")
    before = [trial.id for trial in chain.trials(stage, "few", {})]
    (tmp_path / "starts" / "seed_4" / "config.json").write_text('{"seed": 44}')
    after = [trial.id for trial in Chain(chain.file).trials(stage, "few", {})]
    assert after[0] == before[0] and after[1] != before[1]


def test_starts_that_are_not_there_are_named_before_anything_runs(tmp_path: Path) -> None:
    chain = study(tmp_path, seeds=(3,))
    few, many = chain.check(chain.file.stage("a"), {})
    assert few == (
        f"stages.a, arm few: no folder {tmp_path}/starts/seed_4; make them first, or take {{seed}} out of engine.model"
    )
    assert "arm many" in many


def test_exported_scripts_put_the_seed_in_too(tmp_path: Path) -> None:
    export_study(study(tmp_path).file, tmp_path / "scripts")
    (line,) = (
        x for x in (tmp_path / "scripts" / "1_a.sh").read_text().splitlines() if x.strip().startswith("settings_a")
    )
    words = line.strip().replace('"$dir/settings.txt"', "/dev/stdout").replace('"$arm"', "few")
    shell = f". '{tmp_path}/scripts/settings.sh'; seed=4; {words}"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)
    assert f'engine.model="{tmp_path}/starts/seed_4"' in done.stdout.splitlines()


def arm(name: str, score_SP: np.ndarray, seeds: tuple[int, ...]) -> Candidate:
    columns = [{str(i): float(hit) for i, hit in enumerate(row)} for row in score_SP]
    trials = tuple(f"{name}{seed}" for seed in seeds)
    return Candidate(name, trials, {"x.accepted": columns}, {"tokens": 1.0}, seeds)


def scattered(shares: tuple[float, ...], problems: int = 300) -> np.ndarray:
    return (np.arange(problems)[None, :] < np.array(shares)[:, None] * problems).astype(float)


def test_pairs_show_what_starts_that_differ_would_hide() -> None:
    before, after = scattered((0.3, 0.4, 0.5)), scattered((0.35, 0.45, 0.55))
    seeds = (1, 2, 3)
    arms = [arm("before", before, seeds), arm("after", after, seeds)]
    alone = choose(Select(), {"x.accepted": 1.0}, arms)
    paired = choose(Select(paired=True), {"x.accepted": 1.0}, arms)
    assert (alone.outcome, paired.outcome) == ("undecided", "better")
    oracle = compare_seeds(before, after, paired=True)
    (row,) = paired.comparisons
    assert (row.mean, row.low, row.high) == pytest.approx(oracle[:3])


def test_pairs_are_of_one_seed_where_a_trial_is_missing() -> None:
    whole, part = scattered((0.3, 0.4, 0.5)), scattered((0.45, 0.55))
    arms = [arm("whole", whole, (1, 2, 3)), arm("part", part, (2, 3))]
    (row,) = choose(Select(paired=True), {"x.accepted": 1.0}, arms).comparisons
    assert (row.arm, row.mean, row.seeds) == ("part", pytest.approx(0.05), 2)
    with pytest.raises(UserError, match="share no finished seed"):
        choose(Select(paired=True), {"x.accepted": 1.0}, [arm("a", part, (1, 2)), arm("b", part, (3, 4))])


def test_a_plan_counts_pairs_with_half_the_freedom() -> None:
    alone, paired = (planned_reach(3, [(1.0, 10_000)], 0.05, 0.05, pairs) for pairs in (False, True))
    assert paired > alone > 0
