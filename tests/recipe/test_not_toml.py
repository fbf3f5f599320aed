"""What is said of a file that TOML's parser refuses, where its own words would mislead."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.errors import UserError
from rlvrlab.recipe.parse import parse_toml, read_toml


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[env]\nhigh = 20\n\nhigh = 20\n",
            "f.toml:4: not TOML: env.high is there twice, first on line 2; leave one out",
        ),
        ("seed = 1\nseed = 2", "f.toml:2: not TOML: seed is there twice, first on line 1; leave one out"),
        (
            "[env]\na = 1\n[env]\n",
            "f.toml:3: not TOML: [env] is there twice, first on line 1; put all its keys below one header",
        ),
        ("quiz: what", "f.toml:1: not TOML: expected '=' after a key in a key/value pair; look there"),
    ],
)
def test_what_is_there_twice_is_named_with_both_places(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_toml(text, "f.toml")
    assert str(caught.value) == says


def test_a_python_file_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "quiz.py").write_text("import random\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"quiz.py: is a Python file, not a recipe; .*`rlvr recipes`"):
        read_toml(tmp_path / "quiz.py")
