"""Importing this skips a test file where the hf engine's libraries are missing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the hf engine needs torch")
transformers = pytest.importorskip("transformers", reason="the hf engine needs transformers")
peft = pytest.importorskip("peft", reason="the hf engine needs peft")
