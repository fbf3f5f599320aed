"""Importing this skips a test file where the hf engine's libraries are missing.

Only torch is imported: every worker collects every file, and the other two take seconds that few tests need.
"""

from __future__ import annotations

import importlib.util

import pytest

torch = pytest.importorskip("torch", reason="the hf engine needs torch")
for name in ("transformers", "peft"):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"the hf engine needs {name}", allow_module_level=True)
