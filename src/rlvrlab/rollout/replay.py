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
from rlvrlab.rewards.total import paid
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


Drawn = list[tuple[str, Finish]]
"""Whole answers that the policy wrote from a beginning."""


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
        answers = {(one.rollout.problem.id, one.rollout.completion.text): one for one in trajectories}
        for one in answers.values():
            whole = cut(one.segments, [True] * len(one.segments))
            self._verdicts.setdefault(_key(one, whole), one.rollout.verdict)
        drawn = self._continuations(trajectories)
        versions = {}
        for i, e in sorted(set(first.values())):
            versions[i, e] = _versions(trajectories[i], trajectories[i].edits[e], drawn.get((i, e), []))
        verdicts = self._judge(trajectories, versions)
        worth = {}
        for at, altered in versions.items():
            seen: Counter[str] = Counter()
            one, edit = trajectories[at[0]], trajectories[at[0]].edits[at[1]]
            pairs = zip(altered, verdicts[at], strict=True)
            known = [value for pair in pairs if (value := self._value(one, edit, *pair, seen)) is not None]
            worth[at] = (sum(known) / len(known) if known else float("nan")), seen
        values = [np.full(len(one.edits), np.nan) for one in trajectories]
        for (i, e), same in first.items():
            values[i][e], seen = worth[same]
            self.counts.update(seen)
            if same != (i, e):
                self.counts.update(replays=len(versions[same]), cache_hits=len(versions[same]))
        return values

    def _first(self, trajectories: Sequence[Trajectory]) -> dict[Place, Place]:
        """For each edit, the first equal one: equal answers to a problem are altered, judged and rewarded once."""
        known: dict[object, Place] = {}
        first = {}
        for i, one in enumerate(trajectories):
            answer = one.rollout.problem.id, one.rollout.completion.text, one.rollout.completion.finish
            for e, edit in enumerate(one.edits):
                alone = edit.sampled or not self.cached
                first[i, e] = (i, e) if alone else known.setdefault((answer, edit), (i, e))
        return first

    def _continuations(self, trajectories: Sequence[Trajectory]) -> dict[Place, Drawn]:
        """What the policy writes from before the step of each sampled edit, where there is room for more tokens.

        The beginning is made of the very tokens the policy wrote, whatever the tokenizer.
        """
        beginnings, requests = {}, []
        encode, decode = self.sampler.tokenizer.encode, self.sampler.tokenizer.decode
        for i, one in enumerate(trajectories):
            for e, edit in enumerate(one.edits):
                if not edit.sampled:
                    continue
                later = np.flatnonzero(one.step_T >= edit.step)
                tokens = one.rollout.completion.tokens[: int(later[0]) if len(later) else None]
                if edit.how == "resume_null":
                    tokens = (*tokens, *encode(one.segments.neutral[edit.step]))
                if len(tokens) < self.sampling.max_tokens:
                    beginnings[i, e] = tokens
                    key = ("replay", one.rollout.id, edit.how, edit.step)
                    settings = replace(self.sampling, max_tokens=self.sampling.max_tokens - len(tokens))
                    seen = (*one.rollout.prompt_tokens, *tokens)
                    requests.append(Request(seen, self.samples, key, settings, begun=len(tokens)))
        answers = dict(zip(beginnings, self.sampler.sample(requests) if requests else [], strict=True))
        self.counts["extra_tokens"] += sum(len(c.tokens) for group in answers.values() for c in group)
        return {
            at: [(decode((*beginnings[at], *c.tokens)), c.finish) for c in group if c.finish is not Finish.ERROR]
            for at, group in answers.items()
        }

    def _judge(
        self, trajectories: Sequence[Trajectory], versions: dict[Place, list[_Version]]
    ) -> dict[Place, list[Verdict]]:
        """The verdicts of all versions, each program judged once."""
        keys = {at: [_key(trajectories[at[0]], v.edited) for v in altered] for at, altered in versions.items()}
        wanted: dict[object, tuple[Rollout, str]] = {}
        for at, altered in versions.items():
            for number, (key, version) in enumerate(zip(keys[at], altered, strict=True)):
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
            at: [verdicts[key if self.cached else (key, at, number)] for number, key in enumerate(own)]
            for at, own in keys.items()
        }

    def _value(
        self, one: Trajectory, edit: Edit, version: _Version, verdict: Verdict, seen: Counter[str]
    ) -> float | None:
        """The reward of a version; None where it says nothing about the step. `seen` counts what was met."""
        assert one.rollout.reward is not None
        if verdict.correct is None:
            seen["unjudged"] += 1
            return None
        seen["timeouts"] += verdict.error is ErrorKind.TIMEOUT
        validity = version.edited.validity
        if edit.how in ("resume", "resume_null"):
            validity = "valid"  # what the policy itself wrote is never an invalid alteration
        elif not sound(one.segments, version.edited) or (_breaks(verdict) and not _breaks(one.rollout.verdict)):
            validity = "invalid"
        seen[validity] += 1
        if validity == "invalid" and self.invalid == "skip" and edit.step >= 0:
            return None
        if validity == "invalid" and self.invalid == "zero" and edit.step >= 0:
            return one.rollout.reward.value
        tokens = self.sampler.tokenizer.encode(version.edited.text)
        completion = Completion(version.edited.text, tokens, (), version.finish, one.rollout.completion.policy_version)
        return paid(self.reward, one.rollout.problem, completion, verdict).value


def _versions(one: Trajectory, edit: Edit, drawn: Drawn) -> list[_Version]:
    """The altered answers that an edit means; none where there is nothing to alter."""
    segments, finish = one.segments, one.rollout.completion.finish
    if edit.how == "keep":
        return [_Version(cut(segments, edit.kept_S), finish)]
    if edit.how == "null":
        return [_Version(cut(segments, edit.kept_S, {edit.step: segments.neutral[edit.step]}), finish)]
    if edit.how == "swap":
        other = swapped(segments, edit.step)
        return [] if other is None else [_Version(other, finish)]
    versions = []
    for text, its_finish in drawn:
        fresh = segment(text, segments.kind)
        if edit.how == "substitute":  # only the one step of what the policy wrote, in its place
            new = fresh.piece(edit.step) if edit.step < len(fresh) else ""
            if segments.piece(edit.step).endswith("\n") and new and not new.endswith("\n"):
                new += "\n"
            versions.append(_Version(cut(segments, edit.kept_S, {edit.step: new}), finish))
        else:
            versions.append(_Version(cut(fresh, [True] * len(fresh)), its_finish))
    return versions


def _key(one: Trajectory, edited: Edited) -> object:
    """Equal for programs that no verifier can tell apart."""
    if one.segments.kind == "python" and unseen(edited.code, one.segments.header):
        return one.rollout.problem.id, edited.around
    return one.rollout.problem.id, canonical(one.segments.kind, edited)


def _breaks(verdict: Verdict) -> bool:
    """Does not run at all, or uses what is not there."""
    missing = verdict.error is ErrorKind.RUNTIME and NOT_DEFINED.search(verdict.detail) is not None
    return missing or verdict.error in (ErrorKind.FORMAT, ErrorKind.SYNTAX)
