"""A toy checkpoint that somebody else has made: nothing is unpacked, and only known arrays of known shapes are read."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from engine_factories import toy

from rlvrlab.errors import CheckpointError

LARGE = 50 << 20


def with_zeros(path: Path, name: str) -> None:
    """Put an array of LARGE bytes into the file, packed into a few."""
    with zipfile.ZipFile(path) as archive:
        others = {one: archive.read(one) for one in archive.namelist() if one != f"{name}.npy"}
    content = BytesIO()
    np.save(content, np.zeros(LARGE // 8))
    with zipfile.ZipFile(path, "w") as archive:
        for one, data in others.items():
            archive.writestr(one, data)
        archive.writestr(f"{name}.npy", content.getvalue(), zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize("name", ["bomb", "theta", "optimizer.first", "optimizer.bomb"])
def test_packed_arrays_are_not_unpacked(tmp_path: Path, name: str) -> None:
    engine = toy()(0)
    engine.save(tmp_path)
    with_zeros(tmp_path / "toy.npz", name)
    tracemalloc.start()
    try:
        if name.endswith("bomb"):
            engine.load(tmp_path)
        else:
            with pytest.raises(CheckpointError, match=rf"toy.npz: not the arrays of this engine \({name} is packed"):
                engine.load(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < LARGE / 10
    finally:
        tracemalloc.stop()


def test_arrays_of_other_shapes_are_refused_by_their_headers(tmp_path: Path) -> None:
    engine = toy()(0)
    engine.save(tmp_path)
    with np.load(tmp_path / "toy.npz") as arrays:
        stored = {name: arrays[name] for name in arrays.files}
    for name, other in (("theta", np.zeros((2, 3))), ("critic", np.zeros(3)), ("optimizer.count", np.array("x"))):
        np.savez(tmp_path / "toy.npz", **{**stored, name: other})
        with pytest.raises(CheckpointError, match=f"{name} is .* of shape"):
            engine.load(tmp_path)
    (tmp_path / "toy.npz").write_bytes(b"no archive")
    with pytest.raises(CheckpointError, match="not the arrays of this engine"):
        engine.load(tmp_path)


def test_vectors_are_read_by_their_size(tmp_path: Path) -> None:
    engine = toy()(0)
    engine.save_vectors(tmp_path, {"a skill": engine.theta + 1})
    assert (engine.load_vectors(tmp_path)["a skill"] == engine.theta + 1).all()
    with_zeros(tmp_path / "vectors.npz", "bomb")
    with pytest.raises(CheckpointError, match="bomb is packed"):
        engine.load_vectors(tmp_path)


@pytest.mark.parametrize("facts", [{"size": 10**400, "version": 0}, {"size": "x", "version": 0}, [], {"version": 1}])
def test_facts_that_are_no_numbers_are_one_line(tmp_path: Path, facts: object) -> None:
    engine = toy()(0)
    engine.save(tmp_path)
    (tmp_path / "toy.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match=r"toy\.json"):
        engine.load(tmp_path)
