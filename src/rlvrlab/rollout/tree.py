"""Answers that grow on a tree: beginnings are drawn once and shared by all answers that go on from them.

    branches = (4, 2), boundary = "lines":      prompt ─┬─ first line ─┬─ rest      8 answers from 4 first lines
                                                        ├─ first line ─┴─ rest
                                                        …

At each level every living branch goes on in so many ways, for one step; at the last one each goes on to its end. A step
ends at the first boundary: after the token that holds a line's end, or after a number of tokens. So the tokens
before a boundary decide where it is, never those after it, and what is drawn from one place is drawn independently.
Where the policy ends before it could branch, the answers that were to grow there are drawn whole from the prompt,
beside the tree: every problem gets as many answers as asked for, and each is judged once.

Which answers there are depends on recipe, policy and key alone, as for answers drawn by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from rlvrlab.types import Branch, Completion, Finish, Request, Sampler

if TYPE_CHECKING:
    from rlvrlab.credit.base import Shape

LINE_END = "\n"


@dataclass(frozen=True)
class Stem:
    """An answer as far as it has grown."""

    request: Request
    """For the whole answer."""
    path: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    branches: tuple[Branch, ...] = ()
    finish: Finish | None = None
    """Why it ended; None while it grows."""
    version: int = 0

    @property
    def left(self) -> int:
        """Tokens it may still have."""
        return self.request.sampling.max_tokens - len(self.tokens)

    def asking(self, ways: int, key: tuple[object, ...], shape: Shape | None) -> Request:
        """The request for its next tokens: up to the next boundary of a shape, or to the end of the answer."""
        settings = replace(self.request.sampling, max_tokens=self.left)
        if shape is not None and shape.boundary == "lines":
            settings = replace(settings, stop=(*settings.stop, LINE_END))
        elif shape is not None:
            settings = replace(settings, max_tokens=min(shape.every, self.left))
        seen = (*self.request.tokens, *self.tokens)
        return Request(seen, ways, (*self.request.key, "tree", *self.path, *key), settings, begun=len(self.tokens))

    def longer(self, drawn: Completion, ended: bool) -> Stem:
        """With the tokens that were drawn after it."""
        tokens, logprobs = (*self.tokens, *drawn.tokens), (*self.logprobs, *drawn.logprobs)
        finish = drawn.finish if ended else None
        return replace(self, tokens=tokens, logprobs=logprobs, finish=finish, version=drawn.policy_version)

    def branch(self, way: int, share: int, before: Stem) -> Stem:
        """The same as one of the ways on from `before`."""
        path = (*before.path, way)
        return replace(self, path=path, branches=(*before.branches, Branch(path, len(self.tokens), share)))


def grow(sampler: Sampler, requests: Sequence[Request], shape: Shape) -> list[list[Completion]]:
    """`n` answers to each request, branch by branch from the first, then those drawn beside the tree."""
    living, ended, share = [Stem(request) for request in requests], list[Stem](), prod(shape.branches)
    for level, ways in enumerate(shape.branches):
        share //= ways
        last = level == len(shape.branches) - 1
        grown = [stem for group in _step(sampler, living, ways, share, shape, last) for stem in group]
        living = [stem for stem in grown if stem.finish is None]
        ended += [stem for stem in grown if stem.finish is not None]
    by_key: dict[tuple[object, ...], list[Stem]] = {request.key: [] for request in requests}
    for stem in sorted(ended, key=lambda stem: stem.path):
        by_key[stem.request.key].append(stem)
    beside = [replace(r, n=r.n - len(by_key[r.key]), key=(*r.key, "beside")) for r in requests]
    drawn = iter(sampler.sample([request for request in beside if request.n]))
    return [
        [_completion(stem, sampler) for stem in by_key[request.key]]
        + [
            replace(one, branches=(Branch((-1 - at,), len(one.tokens), 1),))
            for at, one in enumerate(next(drawn) if more.n else [])
        ]
        for request, more in zip(requests, beside, strict=True)
    ]


def _step(sampler: Sampler, stems: Sequence[Stem], ways: int, share: int, shape: Shape, last: bool) -> list[list[Stem]]:
    """Each stem's ways on: to the end of the answer at the last level, else to the next boundary."""
    first = [stem.asking(ways, (), None if last else shape) for stem in stems]
    parts = [
        [_grown(stem, one, sampler, last) for one in group]
        for stem, group in zip(stems, sampler.sample(first) if first else [], strict=True)
    ]
    for more in range(1, shape.every if shape.boundary == "lines" and not last else 1):
        places = [(i, way) for i, group in enumerate(parts) for way, stem in enumerate(group) if stem.finish is None]
        asked = [parts[i][way].asking(1, (way, "line", more), shape) for i, way in places]
        for (i, way), [one] in zip(places, sampler.sample(asked) if asked else [], strict=True):
            parts[i][way] = _grown(parts[i][way], one, sampler, last)
    return [
        [stem.branch(way, share, before) for way, stem in enumerate(group)]
        for before, group in zip(stems, parts, strict=True)
    ]


def _grown(stem: Stem, one: Completion, sampler: Sampler, last: bool) -> Stem:
    """A stem with a step more; has it come to its end, or only to a boundary?"""
    ended = bool(sampler.tokenizer.ends & {*one.tokens[-1:]})
    over = one.finish is Finish.ERROR or ended or len(one.tokens) >= stem.left
    own_stop = any(text in one.text for text in stem.request.sampling.stop)
    return stem.longer(one, ended=last or over or own_stop)


def _completion(stem: Stem, sampler: Sampler) -> Completion:
    assert stem.finish is not None
    text = sampler.tokenizer.decode(stem.tokens)
    return Completion(text, stem.tokens, stem.logprobs, stem.finish, stem.version, branches=stem.branches)
