"""Guards and surgery in real training steps: what is promised about the applied step, bad input, exact resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import faults
import numpy as np
import pytest
import runs
from test_protocols import SKILLS

from rlvrlab.batch import batch_of
from rlvrlab.errors import TrainingDiverged
from rlvrlab.objectives.sft import Sft
from rlvrlab.registry import find, keys_of, names
from rlvrlab.skills.trigger import Trigger
from rlvrlab.train import session
from rlvrlab.train.checks import ready_lab
from rlvrlab.train.guards.skill_safe import SkillSafe
from rlvrlab.train.lab import Lab
from rlvrlab.train.loop import bare_steps
from rlvrlab.train.phases.base import StepOutcome
from rlvrlab.train.state import Kept, Moment

SEQUENTIAL = ["protocol.type=sequential"]
SAFE = [*SEQUENTIAL, "guard.type=skill_safe", "guard.memory_per_skill=10"]


def slow(value: str):
    return pytest.param(value, marks=pytest.mark.slow)


def trained(folder: Path, *words: str, until: int | None = None) -> tuple[Lab, list]:
    """A laboratory after its phases, without a run folder, and the outcomes of the on-line steps."""
    lab = ready_lab(runs.recipe(folder, *words, text=SKILLS))
    outcomes = []
    for phase in map(lab.resolved.phase, lab.recipe.phases):
        lab.engine.fresh_optimizer()
        steps = list(islice(bare_steps(lab, phase, folder), until if phase.online else None))
        outcomes += steps if phase.online else []
    return lab, outcomes


def going_on(lab: Lab, outcomes: list) -> Iterator[StepOutcome]:
    """The on-line steps after those."""
    return bare_steps(lab, lab.resolved.phase("grpo"), Path(), outcomes[-1].memory, first=len(outcomes))


def said(outcomes: list) -> list[str]:
    return [words for outcome in outcomes for kind, words in outcome.events if kind in ("guard", "surgery")]


@pytest.mark.parametrize(
    "tolerance", ["budget", *(pytest.param(t, marks=pytest.mark.slow) for t in ("relative", "absolute"))]
)
def test_the_applied_step_keeps_the_promise_under_adam(tmp_path: Path, tolerance: str) -> None:
    """Checked on the parameters themselves: ⟨∇J, θ_after − θ_before⟩ ≥ −ε, with the gradient at θ_before."""
    lab, outcomes = trained(tmp_path, *SAFE, "grpo.steps=9", f"guard.tolerance={tolerance}", until=5)
    bent, after = 0, lab.engine.theta
    for outcome in going_on(lab, outcomes):
        metrics, before, after = outcome.metrics, after, lab.engine.theta
        if "guard/plus/change" not in metrics:
            continue  # no group had signal, so there was no step
        gradient = -sum(outcome.memory.guard.live["held"]["plus"].vectors)
        change = float(gradient @ (after - before))
        size = np.linalg.norm(gradient) * np.linalg.norm(after - before)
        assert change == pytest.approx(metrics["guard/plus/change"], abs=1e-9 * max(size, 1e-9))
        assert change >= -metrics["guard/plus/epsilon"] - 1e-9 * max(size, 1e-9)
        assert metrics["guard/violation"] < 1e-9
        bent += metrics["guard/active"]
    assert bent, "no step had to be corrected, so nothing was tested"


@pytest.mark.parametrize("protocol", ["mixed", slow("curriculum"), slow("none")])
def test_skills_trained_together_are_protected_from_each_other(tmp_path: Path, protocol: str) -> None:
    """The weighted sum is trained, and no skill loses by the applied step: ⟨∇J_s, θ_after − θ_before⟩ ≥ −ε_s."""
    words = ["guard.type=skill_safe", "guard.memory_per_skill=10", "grpo.steps=8", "grpo.batch_size=10"]
    words += [] if protocol == "none" else [f"protocol.type={protocol}"]
    lab, outcomes = trained(tmp_path, *words, until=4)
    bent, held, after = 0.0, set(), lab.engine.theta
    for outcome in going_on(lab, outcomes):
        metrics, before, after = outcome.metrics, after, lab.engine.theta
        for skill, one in outcome.memory.guard.live.get("held", {}).items():
            if f"guard/{skill}/change" not in metrics:
                continue
            gradient = -sum(one.vectors)
            change, size = float(gradient @ (after - before)), np.linalg.norm(gradient) * np.linalg.norm(after - before)
            assert change >= -metrics[f"guard/{skill}/epsilon"] - 1e-9 * max(size, 1e-9), skill
            held.add(skill)
        bent += metrics.get("guard/active", 0.0)
    assert held == {"plus", "times"} and bent, "both skills are held, and some step had to be corrected"


def test_right_answers_that_end_at_the_length_limit_are_remembered(tmp_path: Path) -> None:
    """Where every answer has as many tokens as it may have, none of them ends by itself."""
    _, outcomes = trained(tmp_path, *SAFE, "rollout.max_tokens=3", "grpo.steps=6")
    assert outcomes[-1].metrics["guard/protected"] == 1


@pytest.mark.slow
def test_the_kl_gradient_is_nothing_but_sampling_noise_at_the_anchor(tmp_path: Path) -> None:
    """Answers count as often as they were drawn; each answer once would be another distribution, which pulls."""
    lab, outcomes = trained(tmp_path, *SAFE, "guard.gradient=kl", "rollout.n=24", "grpo.steps=9", until=4)
    answers = outcomes[-1].memory.guard.memory.get("answers", {})
    while not answers.get("plus"):
        anchor = lab.engine.theta
        outcomes += islice(going_on(lab, outcomes), 1)
        answers = outcomes[-1].memory.guard.memory.get("answers", {})
    drawn = [(row["prompt"], answer) for row in answers["plus"].values() for answer in row["answers"]]
    assert len(drawn) == 10 * 24 and len({str(pair) for pair in drawn}) < len(drawn)
    lab.engine.theta = anchor

    def excess(pairs: list) -> float:
        """|Σ scores|² over what it is expected to be for independent draws, Σ |score|²."""
        rows = [batch_of([prompt], [answer]) for prompt, answer in pairs]
        scores = np.stack([lab.engine.gradient(row, Sft())[0] * row.loss_BT.sum() for row in rows])
        return float((scores.sum(axis=0) ** 2).sum() / (scores**2).sum())

    distinct = list({str(pair): pair for pair in drawn}.values())
    assert excess(drawn) < 2 < excess(distinct)


@pytest.mark.slow
def test_projecting_nothing_changes_nothing(tmp_path: Path) -> None:
    """With a huge tolerance the guarded run is the plain one to the last bit; with none it is not."""
    plain, _ = trained(tmp_path, *SEQUENTIAL)
    loose, _ = trained(tmp_path, *SAFE, "guard.tolerance=absolute", "guard.epsilon=1e9")
    tight, _ = trained(tmp_path, *SAFE, "guard.tolerance=relative")
    np.testing.assert_array_equal(plain.engine.theta, loose.engine.theta)
    assert not np.array_equal(plain.engine.theta, tight.engine.theta)


@pytest.mark.slow
def test_pooling_is_training_without_surgery(tmp_path: Path) -> None:
    many = ["grpo.batch_size=20", "grpo.steps=3"]
    plain, _ = trained(tmp_path, *many)
    words = ["surgery.type=mean", "surgery.group_strategy=task_type", "surgery.noise_every=1", "surgery.scope=module"]
    pooled, outcomes = trained(tmp_path, *many, *words)
    np.testing.assert_allclose(pooled.engine.theta, plain.engine.theta, rtol=1e-7, atol=1e-10)
    metrics = {key for outcome in outcomes for key in outcome.metrics}
    wanted = {"surgery/conflict_rate", "surgery/conflict_rate/copy", "surgery/permutation_z", "surgery/size/plus"}
    assert wanted | {"surgery/self_cosine/times", "surgery/weight/plus", "surgery/entropy/plus"} <= metrics


@pytest.mark.parametrize(
    "strategy",
    ["difficulty", *(pytest.param(s, marks=pytest.mark.slow) for s in ("source", "embedding", "random"))],
)
def test_every_grouping_trains(tmp_path: Path, strategy: str) -> None:
    words = ["surgery.type=pcgrad", f"surgery.group_strategy={strategy}", "surgery.num_groups=3", "grpo.steps=3"]
    lab, outcomes = trained(tmp_path, *words)
    assert np.isfinite(lab.engine.theta).all()
    sizes = [{k: v for k, v in o.metrics.items() if k.startswith("surgery/size/")} for o in outcomes if not o.silent]
    assert sizes and all(sum(size.values()) <= 6 for size in sizes)


def test_the_conflict_threshold_decides_what_is_trained(tmp_path: Path) -> None:
    """Three thresholds, three policies; every pair's cosine, the conflict rate and the noise floor are recorded."""
    words = ["surgery.type=pcgrad", "surgery.group_strategy=random", "surgery.noise_every=1"]
    words += ["grpo.steps=2", "grpo.batch_size=20"]
    after, metrics = {}, {}
    for threshold in (-0.5, 0.0, 0.9):
        lab, outcomes = trained(tmp_path, *words, f"surgery.conflict_threshold={threshold}")
        after[threshold], metrics[threshold] = lab.engine.theta, [o.metrics for o in outcomes if not o.silent]
    assert not np.array_equal(after[-0.5], after[0.0]) and not np.array_equal(after[0.0], after[0.9])
    assert not np.array_equal(after[-0.5], after[0.9])
    told = {key for row in metrics[0.0] for key in row}
    assert {"surgery/cosine/random1/random2", "surgery/conflict_rate", "surgery/noise_floor"} <= told


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        *([f"guard.type={name}"] for name in names("guard")),
        ["guard.type=replay", "guard.share=0.5"],
        ["guard.type=skill_safe", "guard.gradient=kl_full"],
        ["guard.type=gem", "guard.loss=kl_full", "guard.margin=0.5"],
        ["guard.type=skill_safe", "guard.gradient=kl", "guard.solver=dykstra", "guard.epsilon=-0.5"],
        ["guard.type=skill_safe", "guard.gradient=policy", "guard.solver=sequential", "guard.refresh=2"],
        ["guard.type=skill_safe", "guard.trigger=drop", "guard.trigger_every=1"],
    ],
)
def test_every_guard_runs_and_shows(tmp_path: Path, words: list[str]) -> None:
    plain, _ = trained(tmp_path, *SEQUENTIAL)
    guarded, outcomes = trained(tmp_path, *SEQUENTIAL, *words)
    assert np.isfinite(guarded.engine.theta).all()
    if "guard.trigger=drop" not in words:
        assert not np.array_equal(plain.engine.theta, guarded.engine.theta)
    if "guard.share=0.5" in words:
        later = [r.problem.skill for r in outcomes[4].rollouts]
        assert set(later) == {"plus", "times"}


@pytest.mark.slow
def test_l2_holds_the_policy_where_the_stage_began(tmp_path: Path) -> None:
    moved = {}
    for coef in ("1e-9", "1e4"):
        slow = ["optimizer.type=sgd", "grpo.learning_rate=1e-4"]
        lab, outcomes = trained(tmp_path, *SEQUENTIAL, "guard.type=l2", f"guard.coef={coef}", *slow)
        moved[coef] = float(np.linalg.norm(lab.engine.theta - outcomes[-1].memory.guard.live["anchor"]))
    assert moved["1e4"] < 0.7 * moved["1e-9"]


@pytest.mark.slow
def test_one_skill_only_is_no_surgery(tmp_path: Path) -> None:
    one = ["protocol.type=single", "protocol.skill=plus"]
    plain, _ = trained(tmp_path, *one)
    for method in ("pcgrad", "nash"):
        by_skill = (f"surgery.type={method}", "surgery.group_strategy=task_type")
        operated, _ = trained(tmp_path, *one, *by_skill)
        np.testing.assert_allclose(operated.engine.theta, plain.engine.theta, rtol=1e-7, atol=1e-10)


def test_all_groups_dead_leaves_the_policy_alone(tmp_path: Path) -> None:
    words = ["surgery.type=cagrad", "sft.steps=1", "sft.learning_rate=1e-9", *SAFE, "grpo.steps=4"]
    _, outcomes = trained(tmp_path, *words)
    assert all(outcome.silent for outcome in outcomes), "a policy that knows nothing gets nothing right"
    assert any("no verified answer" in words for words in said(outcomes)), "and there is nothing to remember"


@pytest.mark.slow
def test_a_skill_without_room_in_the_memory_is_not_protected_and_that_is_said(tmp_path: Path) -> None:
    for kind in (name for name in names("guard") if "memory_total" in keys_of(find("guard", name))):
        words = [*SEQUENTIAL, f"guard.type={kind}", "guard.memory_total=1", 'protocol.order=["times","plus"]']
        _, outcomes = trained(tmp_path, *words)
        assert any("no room" in words and "'times'" in words for words in said(outcomes)), kind


def test_contradicting_demands_are_relaxed_and_recorded(tmp_path: Path, monkeypatch) -> None:
    """A second protected skill whose gradient is the exact opposite of the first one's."""
    lab, outcomes = trained(tmp_path, *SAFE, "guard.epsilon=-1.0", "guard.cap=0.9", "grpo.steps=9", until=5)
    before_step = SkillSafe.before_step

    def opposed(self, now, kept):
        kept, metrics = before_step(self, now, kept)
        held = kept.live["held"]
        if "plus" in held:
            minus = held["plus"]._replace(vectors=[-vector for vector in held["plus"].vectors])
            anchors = {**kept.memory["anchors"], "plus": 0.0, "minus": 0.0}
            kept = Kept({**kept.memory, "anchors": anchors}, {**kept.live, "held": {**held, "minus": minus}})
        return kept, metrics

    monkeypatch.setattr(SkillSafe, "before_step", opposed)
    outcome = next(one for one in going_on(lab, outcomes) if "guard/relaxed" in one.metrics)
    assert outcome.metrics["guard/relaxed"] == 1
    assert any("contradict" in words for words in said([outcome]))
    assert outcome.metrics["guard/correction"] <= 3.01


def test_a_gradient_that_is_not_finite_is_refused(tmp_path: Path, monkeypatch) -> None:
    lab, before = trained(tmp_path, "surgery.type=pcgrad", until=1)
    theta, gradient = lab.engine.theta, lab.engine.gradient

    def broken(batch, objective):
        vector, value, metrics = gradient(batch, objective)
        return vector * np.nan, value, metrics

    monkeypatch.setattr(lab.engine, "gradient", broken)
    outcomes = list(islice(going_on(lab, before), 3))
    assert any(outcome.skipped for outcome in outcomes)
    np.testing.assert_array_equal(lab.engine.theta, theta)
    assert any("NaN or infinite" in words for words in said(outcomes))


@pytest.mark.slow
def test_three_refused_updates_end_the_run(tmp_path: Path, monkeypatch) -> None:
    from rlvrlab.engines.toy.engine import ToyEngine

    gradient = ToyEngine.gradient

    def broken(self, batch, objective):
        vector, value, metrics = gradient(self, batch, objective)
        return (vector * np.nan if batch.advantage_BT is not None else vector), value, metrics

    monkeypatch.setattr(ToyEngine, "gradient", broken)
    with pytest.raises(TrainingDiverged):
        runs.run(tmp_path, "surgery.type=equal", "grpo.batch_size=12", text=SKILLS)


def test_a_memory_gradient_that_is_not_finite_leaves_the_step(tmp_path: Path, monkeypatch) -> None:
    lab, before = trained(tmp_path, *SAFE, "grpo.steps=8", until=4)
    gradient = lab.engine.gradient

    def broken(batch, objective):
        vector, value, metrics = gradient(batch, objective)
        return (vector if batch.advantage_BT is not None else vector * np.nan), value, metrics

    monkeypatch.setattr(lab.engine, "gradient", broken)
    outcomes = list(going_on(lab, before))
    assert np.isfinite(lab.engine.theta).all()
    assert any("stays as it is" in words for words in said(outcomes))


def by_default(name: str) -> list[str]:
    """A guard with a small memory and otherwise as it is."""
    small = "memory_per_skill" in keys_of(find("guard", name))
    return [*SEQUENTIAL, f"guard.type={name}", *(["guard.memory_per_skill=6"] if small else [])]


RESUMED = {
    **{name: by_default(name) for name in names("guard")},
    "exact KL": [*by_default("penalty"), "guard.loss=kl_full", "guard.fresh=2", "guard.rows=5"],
    "exact KL, constrained": [*by_default("proximal"), "guard.gradient=kl_full", "guard.constraints=2"],
    "averages": [*by_default("average"), "guard.decay=0.7", "guard.every=2"],
    "trigger": [*SAFE, "guard.trigger=drop", "guard.trigger_every=2"],
    "refresh": [*SAFE, "guard.refresh=3"],
    "l2 and surgery": [
        *SEQUENTIAL,
        "guard.type=l2",
        'guard.protected=["plus","times"]',
        "surgery.type=gradvac",
        "surgery.group_strategy=difficulty",
    ],
    "surgery by module": [*SEQUENTIAL, "surgery.type=gradvac", "surgery.scope=module"],
    "surgery alone": ["protocol.type=mixed", "surgery.type=worst_skill", "surgery.noise_every=2"],
}


SHARES = (0.55, 0.8, 0.93)


class Undisturbed(NamedTuple):
    """A run nobody disturbed, and what kill −9 would have left of it after these shares of its changes of files."""

    folder: Path
    left: dict[float, Path]


@pytest.fixture(scope="module", params=RESUMED)
def undisturbed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Undisturbed:
    home = tmp_path_factory.mktemp("undisturbed")

    def ran(name: str, watch: Callable[[], None]) -> Path:
        resolved = runs.recipe(home / name, *RESUMED[request.param], text=SKILLS)
        assert runs.in_child(lambda: (watch(), session.start(resolved, runs.quiet))[1]) == 0
        found = runs.only_run(home / name)
        assert found is not None
        return found

    whole = ran("whole", lambda: faults.count_changes(home / "changes"))
    changes, left = (home / "changes").stat().st_size, {share: home / str(share) for share in SHARES}
    copied = {int(share * changes): target / "out" for share, target in left.items()}
    ran("watched", lambda: faults.copy_at_changes(copied, home / "watched" / "out"))
    return Undisturbed(whole, left)


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
def test_exact_resume(undisturbed: Undisturbed, share: float) -> None:
    """Killed −9 at a change of files, resumed: the same run to the byte."""
    home = undisturbed.left[share]
    found, stderr = runs.only_run(home), home / "stderr"
    assert found is not None and runs.read_info(found)["status"] == "running"
    assert runs.in_child(lambda: session.resume(found, runs.quiet), stderr) == 0, stderr.read_text()
    runs.assert_same(found, undisturbed.folder)
    left, right = (runs.last_checkpoint(run) / "rules.json" for run in (found, undisturbed.folder))
    assert left.read_bytes() == right.read_bytes()


def test_a_trigger_is_checked_once_in_a_step(tmp_path: Path, monkeypatch) -> None:
    """Two updates of one step see the same answers: counted twice, one calm step would end the protection."""
    checks = []
    asked = Moment.asked

    def counted(self, problems, *purpose, greedy=False):
        checks.extend([self.phase_step] if "check" in purpose else [])
        return asked(self, problems, *purpose, greedy=greedy)

    monkeypatch.setattr(Moment, "asked", counted)
    words = [*SAFE, "guard.trigger=drop", "guard.trigger_every=1", "grpo.epochs=2", "sft.steps=60"]
    _, outcomes = trained(tmp_path, *words)
    updated = [o for o in outcomes[3:] if not o.silent]
    assert updated and len(checks) == len(set(checks)) + 1, "one at the anchor, then one in each step with an update"


@pytest.mark.parametrize("still_right", [True, False])
def test_a_trigger_goes_on_when_answers_that_were_right_are_wrong(still_right: bool) -> None:
    names_of_8 = [f"p{i}" for i in range(8)]
    verdict = SimpleNamespace(correct=still_right)
    answers = [SimpleNamespace(problem=SimpleNamespace(id=name), verdict=verdict) for name in names_of_8]
    said: list[str] = []
    now = SimpleNamespace(
        phase="grpo", phase_step=0, protected=["s"], asked=lambda *_, greedy: answers, say=said.append
    )
    kept = Kept({"right": {"s": names_of_8}, "triggers": {"s": Trigger().to_json()}}, {"problems": {}})
    kept, metrics = SkillSafe(trigger="drop")._checked_triggers(now, kept)
    assert metrics == {"guard/s/on": float(not still_right)}
    assert kept.memory["triggers"]["s"]["on"] is not still_right and len(said) == (not still_right)
