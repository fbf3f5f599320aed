"""A study file's mistakes: all at once, each with its place and what to do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from study_lab import HEAD, write_study
from texts import any_text

from rlvrlab.errors import RecipeError, UserError
from rlvrlab.recipe import load_recipe, shipped
from rlvrlab.study.load import load_study, parse_best
from rlvrlab.study.plan import plan_study

A = '[[stages]]\nname = "a"\nfactors = { "rollout.n" = [2, 4] }\n'
B = '[[stages]]\nname = "b"\nfactors = { "grpo.steps" = [2, 3] }\n'


def complaints(tmp_path, text: str) -> list[str]:
    with pytest.raises(UserError) as error:
        file = load_study(write_study(tmp_path, text))
        plan_study(file, tmp_path / "none", cost=False)
    return error.value.problems if isinstance(error.value, RecipeError) else [str(error.value)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (A + "[stages.factors]\n", "not TOML"),
        ('[[stages]]\nname = "a"\nfactors = { "rollout.n" = [] }\n', "stages.a.factors.rollout.n: is empty"),
        ('[[stages]]\nname = "a"\nfactors = { "rollout.n" = [2, 2] }\n', "2 is listed twice"),
        (A + A, "two are named 'a'"),
        (A + "base = 'best(\"c\")'\n", "no stage 'c'; allowed: a"),
        (A + "base = 'best(\"a\")'\n", "a → a is a circle"),
        (A + "base = 'best(\"b\")'\n" + B + "base = 'best(\"a\")'\n", "a → b → a is a circle"),
        (A + "inputs = { \"data.seed\" = '__import__(\"os\")' }\n", 'is not of the form best("STAGE").recipe.key'),
        (A + "inputs = { \"data.seed\" = 'best(\"a\")' }\n", "names no recipe key"),
        (A + "base = 'best(\"a\").rollout.n'\n", "takes a whole winner"),
        (A + 'select = { metrics = { "there.accepted" = 1 } }\n', "'there.accepted'; did you mean 'here.accepted'"),
        (A + 'select = { metrics = { "here.pass@8" = 1 } }\n', "needs suites.here.n of 8 or more, it is 1"),
        (A + 'select = { metrics = { "here.accepted" = 0 } }\n', "weight 0.0; above 0"),
        (A + 'select = { metrics = { "cost.tokens" = 1 } }\n', "costs have no share in a weighted sum"),
        ('[[stages]]\nname = "a"\nfactors = { "reward.type" = ["binary", "pass_ratio"] }\n'
         'select = { metrics = { "here.mean_accuracy" = 1 } }\n', "binary and pass_ratio here; use accepted"),
        (A + 'suites = ["her"]\n', "no suite 'her'; did you mean 'here'"),
        (A + "fixed = { seed = 3 }\n", "seed is set by the study; use its own key `seeds`"),
        (A + "sead = [1]\n", "stages.a.sead: unknown key; did you mean 'seeds'?"),
        (A + "seeds = []\n", "stages.a.seeds: is empty"),
        (A + "select = { margin = '0.1' }\n", "stages.a.select.margin: "),
        (A + "[resources]\ngpus = 2\n", "a trial takes 2, gpu_ids has 0"),
        ("[[stages]]\n", "name: is missing"),
        ("[suites.more]\nenv = { type = \"contdown\" }\n" + A, "did you mean 'countdown'"),
        ('[suites.more]\nsuite = "graphs"\nonly = ["nix"]\n' + A, "suites.more.only: no member 'nix'"),
        ('[suites.cost]\nsize = 2\n' + A, "'cost' cannot name a suite"),
        ('[[stages]]\nname = "a"\nfactors = { "rolout.n" = [2] }\n', "arm n=2: override rolout.n: unknown key; did"),
        ('[[stages]]\nname = "a"\nfactors = { "rollout.n" = [2, -1] }\n', "arm n=-1: override rollout.n"),
        ('[[stages]]\nname = "a"\narms = { x = { "rollout.n" = 2 }, y = {} }\n', "x and y are one and the same recipe"),
        (A + 'parity = ["answers"]\n', "equal answers, but: n=2 16, n=4 32"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(tmp_path, text: str, words: str) -> None:
    found = complaints(tmp_path, text)
    assert any(words in one for one in found), found


def test_all_mistakes_come_at_once(tmp_path) -> None:
    text = A + "sead = 1\n" + B + "base = 3\n" + '[select]\nrule = "best"\n'
    assert len(complaints(tmp_path, text)) >= 3
    text = A + "base = 'best(\"x\")'\n" + B + 'suites = ["y"]\nselect = { metrics = { "z.accepted" = 1 } }\n'
    assert len(complaints(tmp_path, text)) == 3


def test_mistakes_have_their_file_and_line_and_a_remedy_as_those_of_recipes(tmp_path) -> None:
    """Lines are those of the stage that is meant, though every stage begins with the same words."""
    stages = '[[stages]]\nname = "a"\n[stages.arms.x]\nrollout.n = 2\n[stages.arms.y]\nrolout.n = 3\n'
    again = stages.replace('"a"', '"b"')
    path = write_study(tmp_path, HEAD + stages + again)
    lines = path.read_text().split("\n")
    with pytest.raises(RecipeError) as refused:
        plan_study(load_study(path), tmp_path / "out", cost=False)
    wrong = [i for i, line in enumerate(lines, 1) if "stages.arms.y" in line or "rolout" in line]
    for name, number in (("a", wrong[0]), ("b", wrong[2])):
        place = f"{path}:{number}: stages.{name}, arm y: override rolout.n: unknown key; did you mean 'rollout.n'?"
        assert place in refused.value.problems
    [single] = complaints(tmp_path, stages.replace("[[stages]]", "[stages]").replace("rolout", "rollout"))
    assert single.endswith(": stages: is a single table; write `[[stages]]` with two brackets, once for each")
    assert single.startswith(f"{path}:")
    path.write_text((HEAD + stages).replace('recipe = "recipe.toml"\n', ""))
    with pytest.raises(RecipeError, match=r"recipe: is missing; add `recipe = …`: base recipe"):
        load_study(path)
    [cut] = complaints(tmp_path, A + "suites = " + json.dumps({}).replace("{}", '"' + "x" * 200 + '"') + "\n")
    assert cut.count("x") < 300 and "…" in cut and "write 'suites=[" in cut


def test_a_recipe_that_comes_along_goes_by_its_name_and_a_file_beside_comes_first(tmp_path) -> None:
    path = write_study(tmp_path, (HEAD + A).replace("recipe.toml", "toy_countdown"))
    file = load_study(path)
    assert file.recipe == shipped.files()["toy_countdown"]
    assert plan_study(file, tmp_path / "out", cost=False).stages[0].new == 2
    (tmp_path / "toy_countdown.toml").write_text((tmp_path / "recipe.toml").read_text())
    assert load_study(path).recipe == tmp_path / "toy_countdown.toml"
    path.write_text((HEAD + A).replace("recipe.toml", "toy_countdow"))
    (tmp_path / "toy_countdown.toml").unlink()
    with pytest.raises(RecipeError, match=r"study.toml:2: recipe: .* is not there; did you mean 'toy_countdown'\?"):
        load_study(path)


def test_missing_files_are_named(tmp_path) -> None:
    with pytest.raises(UserError, match="no such study file"):
        load_study(tmp_path / "none.toml")
    path = write_study(tmp_path, HEAD + A)
    (tmp_path / "recipe.toml").unlink()
    with pytest.raises(RecipeError, match=r"recipe: .*recipe.toml is not there"):
        load_study(path)


@given(any_text(max_size=40))
def test_expressions_are_read_or_refused(text: str) -> None:
    for keyed in (True, False):
        try:
            found = parse_best(text, "here", keyed=keyed)
        except UserError as error:
            assert str(error).startswith("here: ")
        else:
            assert text.strip().startswith("best(") and (found.key is not None) == keyed


def test_expression_forms() -> None:
    assert parse_best(" best( 'a b' ) . data.train_size ", "x", keyed=True) == ("a b", "data.train_size")
    assert parse_best('best("a")', "x", keyed=False) == ("a", None)
    for bad in ('best("a").data..size', 'best("a").', "best(a).x", 'best("a").x + 1', 'best("a").1x', 'best("a").x()'):
        with pytest.raises(UserError):
            parse_best(bad, "x", keyed=True)


def test_a_study_given_to_train_and_a_recipe_given_to_a_study_are_named(tmp_path) -> None:
    """One line with the command instead of every key as an unknown one."""
    study, recipe = tmp_path / "study.toml", tmp_path / "recipe.toml"
    study.write_text('recipe = "recipe.toml"\n[[stages]]\nname = "one"\n')
    recipe.write_text('phases = ["grpo"]\n[env]\ntype = "countdown"\n')
    with pytest.raises(UserError, match=r"is a study, not a recipe; run it with `rlvr study run .*study\.toml`"):
        load_recipe(study)
    with pytest.raises(UserError, match=r"is no study.*`rlvr train .*recipe\.toml`"):
        load_study(recipe)
