"""The hf engine keeps the contract of every engine, on several architectures."""

from __future__ import annotations

import needs_torch  # noqa: F401
import pytest
from engine_factories import HF_ENGINES

from rlvrlab.engines.contract import CHECKS

QUICK = ("save_and_load", "sampling_is_keyed")


@pytest.mark.parametrize("check", QUICK)
def test_contract_in_short(check: str) -> None:
    CHECKS[check](HF_ENGINES["hf-llama-lora"])


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("engine", HF_ENGINES)
def test_contract(engine: str, check: str) -> None:
    CHECKS[check](HF_ENGINES[engine])
