"""Do splits share what they must not, and does a split hold a thing twice?

Three tests on each of prompt, solution and tests, within every split and between every two:
    exact     equal after normalisation
    near      Jaccard ≥ threshold over distinct runs of three tokens, found by MinHash, confirmed by counting; runs that
              many texts of a file share are form (the words every prompt is wrapped in) and do not count
    passage   thirteen words in a row in common
A leak is a pair of splits with different roles (or of files that name none) whose prompts are exact or near duplicates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rlvrlab.data.documents import PARTS, Document, Documents, Part, read_documents
from rlvrlab.data.near import SHINGLE, near_duplicates
from rlvrlab.data.overlap import LENGTH, overlaps
from rlvrlab.data.texts import Texts, is_word, tokenised
from rlvrlab.envs.answers import as_seen
from rlvrlab.errors import UserError

Kind = Literal["exact", "near", "passage"]
KINDS: tuple[Kind, ...] = ("exact", "near", "passage")
PHRASE = 6
"""Tokens in a row that make a phrase: `. How many` in a fifth of all prompts is language, six tokens are form."""
THRESHOLD = 0.5
LOWEST_THRESHOLD = 0.4
"""Below it MinHash would miss too many to be called a search."""
SHORTEST = {"prompt": 1, "solution": 10, "tests": 10}
"""Tokens below which a text says too little: half the answers of a mathematics set are one small number."""
RANK = {None: 0, "train": 1, "dev": 2, "test": 3}

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Hit:
    """Two rows that have something in common."""

    kind: Kind
    """The strongest of the three tests that says so."""
    part: Part
    left: Document
    right: Document
    """The one to be protected: of the higher role, or of the later file."""
    jaccard: float | None
    """Similarity of the two texts where it reached the threshold; None for a shared passage alone."""
    passages: int
    """Distinct runs of thirteen words in common."""
    passage: str
    """The first of them."""

    @property
    def crosses(self) -> bool:
        """Whether the two rows stand in different splits."""
        return self.left.split != self.right.split

    @property
    def leaks(self) -> bool:
        """Whether the splits differ in role, or name none."""
        return self.crosses and (self.left.role is None or self.left.role != self.right.role)

    def row(self) -> dict[str, Any]:
        """The hit as a line of a duplicates file, with both texts."""
        similarity = None if self.jaccard is None else round(self.jaccard, 4)
        places = {"left": self.left.place, "right": self.right.place}
        shared = {"jaccard": similarity, "passages": self.passages, "passage": self.passage}
        texts = {"left_text": self.left.texts[self.part], "right_text": self.right.texts[self.part]}
        return {"kind": self.kind, "part": self.part} | places | shared | texts


@dataclass(frozen=True)
class Audit:
    """All hits between the rows of some files, and how they were looked for."""

    files: Sequence[Documents]
    hits: Sequence[Hit]
    threshold: float
    fails_on: tuple[Kind, ...]
    crowded: bool
    """Some texts are alike by the hundred (one template): not every pair among them was compared."""
    hashing: str

    @property
    def splits(self) -> dict[str, int]:
        """How many rows each split has."""
        return dict(Counter(document.split for file in self.files for document in file.documents))

    @property
    def leaks(self) -> list[Hit]:
        """What makes the audit fail."""
        return [hit for hit in self.hits if hit.leaks and hit.part == "prompt" and hit.kind in self.fails_on]

    @property
    def leaked_rows(self) -> int:
        """Distinct protected rows with a leak."""
        return len({(hit.right.split, hit.right.row) for hit in self.leaks})

    def counts(self) -> list[dict[str, Any]]:
        """How many pairs of each kind, by splits and part."""
        table: dict[tuple[str, str, Part], dict[str, int]] = defaultdict(lambda: dict.fromkeys(KINDS, 0))
        rows: dict[tuple[str, str, Part], set[int]] = defaultdict(set)
        for hit in self.hits:
            key = (hit.left.split, hit.right.split, hit.part)
            table[key][hit.kind] += 1
            rows[key].add(hit.right.row)
        return [
            {"left": left, "right": right, "part": part, **kinds, "rows": len(rows[left, right, part])}
            for (left, right, part), kinds in table.items()
        ]

    def verdict(self) -> str:
        """One line: clean, or how many protected rows leak and in which way."""
        inside = len([hit for hit in self.hits if not hit.crosses and hit.part == "prompt" and hit.kind != "passage"])
        review = len([hit for hit in self.hits if hit.leaks]) - len(self.leaks)
        rest = f"duplicate prompts inside splits: {inside}, weaker matches across splits: {review}"
        if not self.leaks:
            return f"clean: {sum(self.splits.values())} rows, no prompt of one split in another; {rest}"
        kinds = ", ".join(f"{count} {kind}" for kind in KINDS if (count := sum(h.kind == kind for h in self.leaks)))
        return f"LEAK: {self.leaked_rows} protected rows have their prompt in another split ({kinds}); {rest}"


def audit(
    paths: Sequence[Path], *, columns: Mapping[Part, str] | None = None, threshold: float = THRESHOLD,
    fails_on: tuple[Kind, ...] = ("exact", "near"), progress: Progress = lambda words: None,
) -> Audit:  # fmt: skip
    """Compare all rows of all files."""
    if not LOWEST_THRESHOLD <= threshold <= 1:
        raise UserError(f"threshold = {threshold}: need {LOWEST_THRESHOLD} to 1")
    names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise UserError(f"the same file twice: {max(names, key=names.count)}")
    files = []
    for path in paths:
        progress(f"reading {path.name}")
        files.append(read_documents(path, columns))
    names = [file.name for file in files]
    for index, name in enumerate(names):
        if names.count(name) > 1:  # files of one name are numbered, so that each is a split of its own
            own = f"{name}#{names[: index + 1].count(name)}"
            documents = [replace(one, split=one.split.replace(name, own, 1)) for one in files[index].documents]
            files[index] = replace(files[index], name=own, documents=documents)
    documents = [document for file in files for document in file.documents]
    hits: list[Hit] = []
    crowded = 0
    hashing: set[str] = set()
    for part in PARTS:
        progress(f"comparing {len(documents)} texts by {part}")
        hits_of_part, packed, by = _compare(documents, part, threshold)
        hits += hits_of_part
        crowded += packed
        hashing |= by
    hits.sort(key=lambda hit: (not hit.leaks, hit.part != "prompt", KINDS.index(hit.kind), -(hit.jaccard or 0)))
    return Audit(files, hits, threshold, fails_on, bool(crowded), ", ".join(sorted(hashing)))


def _compare(documents: Sequence[Document], part: Part, threshold: float) -> tuple[list[Hit], int, set[str]]:
    """All hits by one part of the rows, how often a bucket was too crowded, and who hashed the texts."""
    texts = Texts.of([document.texts[part] for document in documents])
    members = np.flatnonzero(np.diff(texts.starts) >= SHORTEST[part])
    chosen = [documents[i] for i in members.tolist()]
    if not chosen:
        return [], 0, set()
    texts = texts.chosen(members)
    names = {split: i for i, split in enumerate(dict.fromkeys(document.split for document in chosen))}
    splits = np.array([names[document.split] for document in chosen])
    grams = texts.grams(SHINGLE)
    near = near_duplicates(grams.without(grams.form(splits)), threshold)
    exact = set(_exact_pairs([as_seen(document.texts[part]) for document in chosen], splits.tolist()))
    alike = {(pair.left, pair.right): pair.jaccard for pair in near.pairs} | dict.fromkeys(exact, 1.0)
    shared = {(pair.left, pair.right): pair for pair in overlaps(texts.gapped(PHRASE, splits))}
    hits = []
    for left, right in sorted({*alike, *shared}):
        common = shared.get((left, right))
        kind: Kind = "exact" if (left, right) in exact else "near" if (left, right) in alike else "passage"
        if kind == "passage" and splits[left] == splits[right]:
            continue  # inside one split it is style
        run = tokenised(chosen[left].texts[part])[common.place[0] :] if common else []
        passage = " ".join(islice(filter(is_word, run), LENGTH))
        pair = sorted((chosen[left], chosen[right]), key=lambda one: RANK[one.role])
        hits.append(
            Hit(kind, part, pair[0], pair[1], alike.get((left, right)), common.shared if common else 0, passage)
        )
    return hits, near.crowded, {near.hashing}


def _exact_pairs(texts: Sequence[str], splits: Sequence[int]) -> list[tuple[int, int]]:
    """Each text with the first equal one of its own split and of every earlier split: chains, not all pairs."""
    groups: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, text in enumerate(texts):
        groups[text][splits[index]].append(index)
    pairs = []
    for by_split in groups.values():
        for same in by_split.values():
            pairs += [(same[0], other) for other in same[1:]]
        for one, other in combinations(sorted(by_split), 2):
            pairs += [(min(by_split[one][0], i), max(by_split[one][0], i)) for i in by_split[other]]
    return pairs
