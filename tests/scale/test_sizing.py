"""The memory formula: its numbers are those that the result file gives, and it says what happened on the card."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlvrlab.scale import sizing
from rlvrlab.scale.sizing import MODELS, Update, model_of, peak_gb

ROOT = Path(__file__).parents[2]
CONFIG = {"num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49152}


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    found = importlib.util.spec_from_file_location("memory_fit", ROOT / "benchmarks" / "memory_fit.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # a NamedTuple looks its own module up
    found.loader.exec_module(module)
    return module


def test_the_numbers_and_errors_in_the_code_are_those_of_the_result_file(bench: ModuleType) -> None:
    (_, fitted, own), *others = bench.errors()
    assert [round(number, 2) for number in fitted] == list(sizing.FITTED)
    assert round(max(map(abs, own)), 2) == sizing.LARGEST_ERROR
    assert round(max(abs(one) for _, _, wrong in others for one in wrong), 2) == sizing.OTHER_MODEL_ERROR
    assert round(bench.reserved_gb(), 1) == sizing.RESERVED_GB
    assert len(own) == 21 and "1 % off there, 12 % on" in sizing.SAID


def test_another_result_file_gives_other_numbers(bench: ModuleType) -> None:
    measured = [one for one in bench.cases() if one.peak_gb is not None]
    higher = [one._replace(peak_gb=one.peak_gb + 0.5) for one in measured]
    assert max(abs(a - b) for a, b in zip(bench.fit(higher), sizing.FITTED, strict=True)) > 1


def test_halved_micro_batches_are_recognised(bench: ModuleType) -> None:
    halved = {(one.name, one.update.row) for one in bench.cases() if one.facts.get("peak_gb") and _halved(one)}
    assert halved == {("1.5B", 2048), ("1.5B", 4096)}
    assert bench.at_once({"at_once": 512}) == 512


def _halved(one: Any) -> bool:
    return bool(one.update.at_once < min(one.facts["micro_tokens"], one.facts["rows"] * one.facts["tokens"]))


def test_what_did_not_fit_does_not_fit_by_the_formula_and_the_other_way_round(bench: ModuleType) -> None:
    assert all(peak_gb(one.model, one.update) > 75 for one in bench.cases() if one.peak_gb is None)
    rungs = bench.ladder()
    assert [told > 44 for _, told, _ in rungs] == [measured is None for _, _, measured in rungs]
    [(told, measured)] = [(told, measured) for _, told, measured in rungs if measured is not None]
    assert told == pytest.approx(measured, rel=0.02)


def test_adapters_are_counted_from_above(bench: ModuleType) -> None:
    counted = {one.name: one.update.adapter for one in bench.cases() if one.update.adapter}
    for name, exact in counted.items():
        assert exact <= MODELS[name].adapter(16) <= 1.2 * exact


def test_the_limits_of_the_head_are_those_of_the_engine() -> None:
    head = pytest.importorskip("rlvrlab.engines.hf.head")
    assert (head.CHUNK["cuda"], head.KEPT["cuda"]) == (sizing.LOGITS_AT_A_TIME, sizing.LOGITS_KEPT)


def test_a_config_that_the_formula_is_not_for() -> None:
    assert model_of(CONFIG, 134515008) == MODELS["135M"]
    for other in ({"num_experts": 8}, {"quantization_config": {}}, {"hidden_size": "576"}, {"vocab_size": True}):
        assert model_of(CONFIG | other, 134515008) is None
    assert model_of(CONFIG, 0) is None and model_of({}, 1) is None


def test_less_at_once_never_takes_more_apart_from_logits_that_are_kept() -> None:
    model = MODELS["7B"]
    sizes = [peak_gb(model, Update(tokens, 1024, 0.0)) for tokens in (8192, 16384, 32768)]
    assert sizes == sorted(sizes)
    assert peak_gb(model, Update(8192, 1024, 1e7, checkpointing=True)) < peak_gb(model, Update(8192, 1024, 1e7))


def test_the_page_has_the_table() -> None:
    assert sizing.table() in (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
