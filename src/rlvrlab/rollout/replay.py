"""Replay altered answers: alter the text, let the policy write where it must, judge everything in one call.

An answer `S1 S2 S3` under Edit("keep", 1, 1 0 1) is judged as `S1 S3`; under Edit("resume", 1, 1 0 0) the policy goes
on from the tokens of `S1`, `samples` times, and the mean counts. Equal programs for one problem are judged once:
verdicts are kept by (problem, canonical program) for one collection, beginning with those the collection already has.
They are not kept longer, so that a resumed run reports what an uninterrupted one does.

What comes back for an edit is a value or nothing (NaN): nothing where the verifier had no opinion (None), where there
was nothing to alter, or where a step's alteration left a program that no longer runs and `invalid` says skip. The value
of a coalition or of a prefix is its reward, whether it runs or not: those games need a value for everything.
Trap: after deleting a loop's increment the loop never ends; the judge's limits hold, and `timeouts` counts the cost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.edits import Edit, Invalid
from rlvrlab.rollout.segment import canonical, segment, sound
from rlvrlab.rollout.segments import Edited, Segments, Validity, cut, swapped
from rlvrlab.rollout.unseen import unseen
from rlvrlab.types import (
    Completion,
    Environment,
    ErrorKind,
    Finish,
    Request,
    RewardFunction,
    Rollout,
    Sampler,
    Sampling,
    Verdict,
)

NOT_DEFINED = re.compile(r"NameError|UnboundLocalError|no such (?:table|column)|ambiguous column")
VALIDITY: tuple[Validity, ...] = ("valid", "repaired", "invalid")
COUNTED = ("replays", "verifier_calls", "cache_hits", "extra_tokens", *VALIDITY, "unjudged", "timeouts")


Place = tuple[int, int]
"""Number of a trajectory and of an edit in it."""


class Trajectory(NamedTuple):
    """A judged answer and what is to be asked about it."""

    rollout: Rollout
    segments: Segments
    step_T: Ints
    """The step of each token."""
    edits: tuple[Edit, ...]


class _Version(NamedTuple):
    """One altered answer to be judged."""

    edited: Edited
    finish: Finish


@dataclass
class Replayer:
    """What replaying needs; `counts` grows with every call."""

    env: Environment
    reward: RewardFunction
    sampler: Sampler
    sampling: Sampling
    samples: int = 1
    """Continuations of each state."""
    invalid: Invalid = "skip"
    cached: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    _verdicts: dict[object, Verdict] = field(default_factory=dict)

    def values(self, trajectories: Sequence[Trajectory]) -> list[Floats]:
        """The value of each trajectory's edits, NaN where there is none; one call of sampler and verifier each."""
        first = self._first(trajectories)
        self._know(trajectories)
        versions = self._versions(trajectories, set(first.values()))
        verdicts = self._judge(trajectories, versions)
        worth = {}
        for (i, e), found in versions.items():
            one = trajectories[i]
            worth[i, e] = self._mean(one, one.edits[e], found, verdicts[i, e])
        values = [np.full(len(one.edits), np.nan) for one in trajectories]
        for (i, e), same in first.items():
            values[i][e], seen = worth[same]
            self.counts.update(seen)
            if same != (i, e):
                self.counts.update(replays=len(versions[same]), cache_hits=len(versions[same]))
        return values

    def _first(self, trajectories: Sequence[Trajectory]) -> dict[Place, Place]:
        """Where each edit stands first: equal answers to a problem are altered, judged and rewarded once."""
        known: dict[object, Place] = {}
        found = {}
        for i, one in enumerate(trajectories):
            answer = one.rollout.problem.id, one.rollout.completion.text, one.rollout.completion.finish
            for e, edit in enumerate(one.edits):
                alone = edit.sampled or not self.cached
                found[i, e] = (i, e) if alone else known.setdefault((answer, edit), (i, e))
        return found

    def _know(self, trajectories: Sequence[Trajectory]) -> None:
        """The verdicts on the answers as they stand."""
        answers = {(one.rollout.problem.id, one.rollout.completion.text): one for one in trajectories}
        for one in answers.values():
            whole = cut(one.segments, [True] * len(one.segments))
            self._verdicts.setdefault(_key(one, whole), one.rollout.verdict)

    def _versions(self, trajectories: Sequence[Trajectory], places: set[Place]) -> dict[Place, list[_Version]]:
        drawn = self._continuations(trajectories)
        found = {}
        for i, e in sorted(places):
            one, edit = trajectories[i], trajectories[i].edits[e]
            if edit.sampled:
                found[i, e] = [_continued(one, edit, *version) for version in drawn[i, e]]
            else:
                found[i, e] = [_Version(edited, one.rollout.completion.finish) for edited in _altered(one, edit)]
        return found

    def _continuations(self, trajectories: Sequence[Trajectory]) -> dict[Place, list[tuple[str, Finish]]]:
        """What the policy writes after the prefix of each sampled edit, as whole answers."""
        prefixes, requests = {}, []
        for i, one in enumerate(trajectories):
            for e, edit in enumerate(one.edits):
                prefix = _prefix_tokens(one, edit, self.sampler) if edit.sampled else ()
                room = self.sampling.max_tokens - len(prefix)
                if edit.sampled and room > 0:
                    prefixes[i, e] = prefix
                    key = ("replay", one.rollout.id, edit.how, edit.step)
                    settings = replace(self.sampling, max_tokens=room)
                    requests.append(Request((*one.rollout.prompt_tokens, *prefix), self.samples, key, settings))
        answers = dict(zip(prefixes, self.sampler.sample(requests) if requests else [], strict=True))
        self.counts["extra_tokens"] += sum(len(c.tokens) for group in answers.values() for c in group)
        decode = self.sampler.tokenizer.decode
        return {
            (i, e): [
                (decode((*prefixes[i, e], *c.tokens)), c.finish)
                for c in answers.get((i, e), ())
                if c.finish is not Finish.ERROR
            ]
            for i, one in enumerate(trajectories)
            for e, edit in enumerate(one.edits)
            if edit.sampled
        }

    def _judge(
        self, trajectories: Sequence[Trajectory], versions: dict[Place, list[_Version]]
    ) -> dict[Place, list[Verdict]]:
        keys = {at: [_key(trajectories[at[0]], v.edited) for v in found] for at, found in versions.items()}
        wanted: dict[object, tuple[Rollout, str]] = {}
        for at, found in versions.items():
            for number, (key, version) in enumerate(zip(keys[at], found, strict=True)):
                known = self.cached and (key in self._verdicts or key in wanted)
                self.counts["replays"] += 1
                self.counts["cache_hits"] += known
                if not known:
                    wanted[key if self.cached else (key, at, number)] = trajectories[at[0]].rollout, version.edited.text
        items = [(rollout.problem, text) for rollout, text in wanted.values()]
        judged = dict(zip(wanted, self.env.verify_many(items) if items else [], strict=True))
        self.counts["verifier_calls"] += len(items)
        verdicts = {**self._verdicts, **judged} if self.cached else judged
        if self.cached:
            self._verdicts.update(judged)
        return {
            at: [verdicts[key if self.cached else (key, at, number)] for number, key in enumerate(found)]
            for at, found in keys.items()
        }

    def _mean(
        self, one: Trajectory, edit: Edit, versions: list[_Version], verdicts: list[Verdict]
    ) -> tuple[float, Counter[str]]:
        """Over the versions that have a value, and what was seen of them."""
        seen: Counter[str] = Counter()
        pairs = zip(versions, verdicts, strict=True)
        values = [value for pair in pairs if (value := self._value(one, edit, *pair, seen)) is not None]
        return (sum(values) / len(values) if values else float("nan")), seen

    def _value(
        self, one: Trajectory, edit: Edit, version: _Version, verdict: Verdict, seen: Counter[str]
    ) -> float | None:
        assert one.rollout.reward is not None
        if verdict.correct is None:
            seen["unjudged"] += 1
            return None
        seen["timeouts"] += verdict.error is ErrorKind.TIMEOUT
        validity = _validity(one, edit, version.edited, verdict)
        seen[validity] += 1
        if validity == "invalid" and self.invalid == "skip" and edit.step >= 0:
            return None
        if validity == "invalid" and self.invalid == "zero" and edit.step >= 0:
            return one.rollout.reward.value
        tokens = self.sampler.tokenizer.encode(version.edited.text)
        completion = Completion(version.edited.text, tokens, (), version.finish, one.rollout.completion.policy_version)
        return self.reward(one.rollout.problem, completion, verdict).value


def _altered(one: Trajectory, edit: Edit) -> list[Edited]:
    """The answer as a fixed replay has it; empty where there is nothing to alter."""
    segments = one.segments
    if edit.how == "keep":
        return [cut(segments, edit.kept_S)]
    if edit.how == "null":
        return [cut(segments, edit.kept_S, {edit.step: segments.neutral[edit.step]})]
    other = swapped(segments, edit.step)
    return [] if other is None else [other]


def _continued(one: Trajectory, edit: Edit, text: str, finish: Finish) -> _Version:
    """What the policy wrote, as a whole answer; of a substitute only the one step, in its place."""
    fresh = segment(text, one.segments.kind)
    if edit.how != "substitute":
        return _Version(cut(fresh, [True] * len(fresh)), finish)
    new = fresh.piece(edit.step) if edit.step < len(fresh) else ""
    old = one.segments.piece(edit.step)
    if old.endswith("\n") and new and not new.endswith("\n"):
        new += "\n"
    return _Version(cut(one.segments, edit.kept_S, {edit.step: new}), one.rollout.completion.finish)


def _prefix_tokens(one: Trajectory, edit: Edit, sampler: Sampler) -> tuple[int, ...]:
    """The tokens before the step: an exact beginning of what the policy wrote, whatever the tokenizer."""
    tokens = one.rollout.completion.tokens
    inside = np.flatnonzero(one.step_T >= edit.step)
    prefix = tokens[: int(inside[0])] if len(inside) else tokens
    if edit.how == "resume_null":
        return (*prefix, *sampler.tokenizer.encode(one.segments.neutral[edit.step]))
    return prefix


def _key(one: Trajectory, edited: Edited) -> object:
    if one.segments.kind == "python" and unseen(edited.code, one.segments.header):
        return one.rollout.problem.id, edited.around
    return one.rollout.problem.id, canonical(one.segments.kind, edited)


def _validity(one: Trajectory, edit: Edit, edited: Edited, verdict: Verdict) -> Validity:
    """Broken by the alteration, not before it; what the policy itself wrote is never an invalid alteration."""
    if edit.how in ("resume", "resume_null"):
        return "valid"
    if not sound(one.segments, edited) or (_breaks(verdict) and not _breaks(one.rollout.verdict)):
        return "invalid"
    return edited.validity


def _breaks(verdict: Verdict) -> bool:
    """Does not run at all, or uses what is not there."""
    missing = verdict.error is ErrorKind.RUNTIME and NOT_DEFINED.search(verdict.detail) is not None
    return missing or verdict.error in (ErrorKind.FORMAT, ErrorKind.SYNTAX)
