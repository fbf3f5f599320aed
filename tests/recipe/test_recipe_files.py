"""From files and overrides to a resolved recipe: what is read, from where, and how far a hostile file gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from recipe_cases import SMALL, load, problem
from texts import any_text

from rlvrlab.errors import LabError, UserError
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.explain import settings as explained
from rlvrlab.recipe.parse import MAX_BYTES, line_of, parse_overrides
from rlvrlab.recipe.schema import core_keys
from rlvrlab.record.run import Run
from rlvrlab.train.plan import phase_plans
from rlvrlab.train.session import resolved_of

ENV = """
from __future__ import annotations
from dataclasses import dataclass
from rlvrlab.envs.countdown import Countdown
from rlvrlab.registry import register

@register("env", "mine")
@dataclass(frozen=True, kw_only=True)
class Mine(Countdown):
    path: str
"""


@pytest.mark.parametrize("words", [["rollout.n=16"], ["--rollout.n=16"], ["--rollout.n", "16"]])
def test_three_spellings_of_an_override(tmp_path, words: list[str]) -> None:
    resolved = load(tmp_path, SMALL, *words)
    assert resolved.recipe.rollout.n == 16 and resolved.origins["rollout.n"] == "override"


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("name=abc", "name", "abc"),
        ("name='abc'", "name", "abc"),
        ("question=a = b # c", "question", "a = b # c"),
        ("question=1\nseed = 3", "question", "1\nseed = 3"),
        ("phases=['sft']", "phases", ["sft"]),
        ("stop.target=0.5", "stop.target", 0.5),
        ("name=", "name", ""),
        ("rollout={n = 3}", "rollout.n", 3),
        ("question=[[[", "question", "[[["),
        ("seed=" + "9" * 5000, "seed", "9" * 5000),
    ],
)
def test_override_values_are_toml_or_text(word: str, key: str, value: object) -> None:
    assert parse_overrides([word]) == {key: value}


def test_a_negative_number_is_a_value() -> None:
    assert parse_overrides(["--seed", "-3"]) == {"seed": -3}


@pytest.mark.parametrize(
    "words",
    [["rollout.n"], ["--rollout.n"], ["--rollout.n", "--seed", "3"], ["=3"], ["a..b=3"], ["a-b=3"], ["-n", "3"],
     [".=1"], ["--", "3"], ["a b=1"], ["\udcff=1"], ["question=\udcff"], [".".join("a" * 10_000) + "=1"],
     ["seed=" + "[" * 50 + "]" * 50]],
)  # fmt: skip
def test_bad_overrides_are_user_errors(words: list[str]) -> None:
    with pytest.raises(UserError, match="override"):
        parse_overrides(words)


ANY_KEY = st.one_of(
    st.sampled_from([*core_keys(), "env", "grpo", "grpo.steps", "env.type", "phase_tables", "rollout", "extends"]),
    any_text(max_size=12),
    st.lists(st.sampled_from(["env", "type", "grpo", "n", "rollout", "x"]), min_size=1, max_size=3).map(".".join),
)
ANY_VALUE = st.one_of(
    any_text(max_size=12), st.integers().map(str), st.floats().map(str),
    st.sampled_from(["true", "[]", "{}", "{a={b=1}}", "'x'", "1979-05-27", "07:32:00", "nan", "[1, 'a']", "my.py:X"]),
)  # fmt: skip
FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.slow
@settings(suppress_health_check=FIXTURES)
@given(st.lists(st.tuples(ANY_KEY, ANY_VALUE), min_size=1, max_size=4))
@example([("grpo", "5")])
@example([("phase_tables", "5")])
@example([("env.type.x", "1"), ("env", "{}")])
@example([("\r", "")])
@example([("seed ", "")])
def test_random_overrides_never_crash(tmp_path, pairs: list[tuple[str, str]]) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(SMALL)
    try:
        resolved = load_recipe(path, [f"{key}={value}" for key, value in pairs])
        resolved.config(), phase_plans(resolved), explained(resolved)
    except LabError as error:
        assert str(error)


def test_extends_takes_a_base_and_the_nearer_file_wins(tmp_path) -> None:
    (tmp_path / "base.toml").write_text("seed = 1\n[rollout]\nn = 4\nmax_tokens = 9")
    resolved = load(tmp_path, "extends = 'base.toml'\n[rollout]\nn = 6")
    assert (resolved.recipe.seed, resolved.recipe.rollout.n, resolved.recipe.rollout.max_tokens) == (1, 6, 9)
    origins = [resolved.origins[key] for key in ("seed", "rollout.n", "rollout.max_tokens", "rollout.top_p")]
    assert origins == ["base.toml", "recipe.toml", "base.toml", "default"]


def test_a_mistake_in_the_base_names_the_base(tmp_path) -> None:
    (tmp_path / "base.toml").write_text("seed = 1\n\n[rollout]\nn = 0")
    assert problem(tmp_path, "extends = 'base.toml'\nname = 'x'").startswith("base.toml:4: rollout.n: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("'gone.toml'", "no such recipe"), ("5", "file name"), ("['a']", "file name"), ("{a = 1}", "file name"),
     ("'recipe.toml'", "one level"), ("'middle.toml'", "one level")],
)  # fmt: skip
def test_extends_is_one_level_of_existing_files(tmp_path, text: str, expected: str) -> None:
    (tmp_path / "middle.toml").write_text("extends = 'base.toml'")
    (tmp_path / "base.toml").write_text("")
    with pytest.raises(UserError, match=expected):
        load(tmp_path, f"extends = {text}")


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbfseed = 3\n", b"seed = 3\r\n[rollout]\r\nn = 4\r\n", b"# \xe2\x80\xa8\nseed = 3"]
)
def test_bom_crlf_and_line_separators_are_read(tmp_path, data: bytes) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(data)
    assert load_recipe(path).recipe.seed == 3


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"name = '\xff'", "not UTF-8 at byte 8"),
        (b"#" * (MAX_BYTES + 1), "at most"),
        (b"a = " + b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b"a = " + b"[" * 50 + b"]" * 50, "nested too deeply"),
        (b"a." * 100_000 + b"a = 1", "nested too deeply"),
        (b"[" + b"a." * 100_000 + b"a]", "nested too deeply"),
        (b"[" + b"a." * 100 + b"a]", "nested too deeply"),
        (b"a = " + b"{a=" * 40_000 + b"1" + b"}" * 40_000, "nested too deeply"),
        (b"seed = " + b"9" * 10_000, "not TOML"),
        (b"seed = 1\nseed = 2", "not TOML"),
        (b"\x00", "not TOML"),
        (b"a: !!python/object/apply:os.system ['exit 1']\n", "not TOML"),
        (b"[phase_tables.grpo]\nsteps = 1", "unknown key"),
    ],
)
def test_hostile_files_end_quickly_with_one_line(quickly, tmp_path, data: bytes, expected: str) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(data)

    def refused() -> str:
        with pytest.raises(UserError, match=expected) as caught:
            load_recipe(path)
        return str(caught.value)

    assert "\n" not in quickly(3, refused)


def test_no_file_a_folder_and_an_endless_device(tmp_path) -> None:
    for path, expected in ((tmp_path / "x", "no such"), (tmp_path, "folder"), (Path("/dev/zero"), "device")):
        with pytest.raises(UserError, match=expected):
            load_recipe(path)


def test_lines_are_found_under_headers_comments_and_dots() -> None:
    text = "a = 1\n[b] # comment\n  c = 2\nd.e = 3\nlong = [\n  1,\n]\n[b.f]\ng=4"
    assert [line_of(text, key) for key in ("a", "b.c", "b.d.e", "b.f.g", "b.f", "b.nowhere", "x")] == [
        1,
        3,
        4,
        9,
        8,
        2,
        None,
    ]


def test_changed_is_what_differs_from_the_defaults(tmp_path) -> None:
    assert load(tmp_path).changed() == {}
    text = SMALL + "learning_rate = 0.01\n"  # its default
    found = load(tmp_path, text, "objective.type='gspo'").changed()
    assert {key: (both["value"], both["default"]) for key, both in found.items()} == {
        "name": ("small", "run"),
        "phases": (["sft", "grpo"], ["grpo"]),
        "env.numbers": ([2], [3, 4]),
        "rollout.n": (4, 8),
        "grpo.steps": (3, 200),
        "objective.type": ("gspo", None),
    }


def test_a_plugin_beside_the_recipe_may_demand_keys(tmp_path) -> None:
    (tmp_path / "mine.py").write_text(ENV)
    text = "[env]\ntype = 'mine.py:Mine'\npath = 'here'\nnumbers = [2]"
    resolved = load(tmp_path, text)
    assert resolved.build("env").path == "here" and resolved.build("env").numbers == (2,)
    assert resolved.changed()["env.path"] == {"value": "here", "default": None}
    assert "env.path" in problem(tmp_path, text.replace("path = 'here'", ""))
    assert "no file" in problem(tmp_path, text.replace("mine.py", "other.py"))
    assert "mine.py has no 'Other'; its functions and classes: Mine" in problem(
        tmp_path, text.replace(":Mine", ":Other")
    )


@pytest.mark.parametrize(
    "words",
    [(), ("advantage.type='rloo'", "phases=['sft','ppo']", "ppo.value_clip=0.2", "stop.target=0.5", "kl.coef=1")],
)
def test_a_recipe_survives_config_json_exactly(tmp_path, words: tuple[str, ...]) -> None:
    resolved = load(tmp_path, SMALL, *words)
    run = Run.create(tmp_path / "runs", resolved.recipe.name, resolved.config())
    run.close()
    again = resolved_of(run.folder)
    assert again.recipe == resolved.recipe and again.origins == resolved.origins
    assert again.changed() == resolved.changed()
    assert json.dumps(again.config()["recipe"]) == json.dumps(resolved.config()["recipe"])


SUBCLASS = """
from dataclasses import dataclass
from rlvrlab.envs.countdown import Countdown
from rlvrlab.registry import register

@register("env", "sub_countdown")
@dataclass(frozen=True)
class Sub(Countdown):
    "Countdown under another name."
"""


def test_a_plug_in_whose_type_changes_keeps_the_keys_it_knows(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('[env]\ntype = "countdown"\nnumbers = [2]\n[data]\ntrain_size = 70\n')
    (tmp_path / "child.toml").write_text('extends = "base.toml"\n[env]\ntype = "gsm8k"\n')
    child = load_recipe(tmp_path / "child.toml")
    assert child.recipe.env["type"] == "gsm8k" and "numbers" not in child.recipe.env
    assert child.recipe.data.train_size == 70 and not any("numbers" in key for key in child.origins)
    overridden = load_recipe(tmp_path / "base.toml", ["env.type=gsm8k", "env.levels=[2]"])
    assert overridden.recipe.env["levels"] == [2] and "numbers" not in overridden.recipe.env
    (tmp_path / "sub.py").write_text(SUBCLASS)
    local = load_recipe(tmp_path / "base.toml", ["env.type=sub.py:Sub"])
    assert local.recipe.env["numbers"] == [2], "a subclass has the same keys"
    same = load_recipe(tmp_path / "base.toml", ["env.type=countdown"])
    assert same.recipe.env["numbers"] == [2], "the same type keeps its keys"
