"""Recipe → verl: every key is honoured, ours, or refused by name; and the exported folder is what it says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rlvrlab.errors import LabError, RecipeError, UserError
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.schema import core_keys
from rlvrlab.scale.verl import PLAN, keys, lengths, refusals, spelling
from rlvrlab.scale.verl.convert import recipe_for_verl
from rlvrlab.scale.verl.data import in_order
from rlvrlab.scale.verl.export import export
from rlvrlab.scale.verl.job import Job
from rlvrlab.train.lab import build_lab

RECIPE = """
phases = ["grpo"]
[env]
type = "countdown"
numbers = [2]
style = "bare"
[engine]
type = "verl"
model = "owner/model"
gpus = 2
[data]
train_size = 40
dev_size = 8
[rollout]
n = 4
max_tokens = 16
[grpo]
steps = 6
batch_size = 8
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def settings(recipe: Path, *overrides: str) -> keys.Settings:
    return keys.settings(load_recipe(recipe, overrides), "/home")


def test_no_key_of_a_recipe_is_forgotten() -> None:
    lists = [keys.OURS, set(refusals.REFUSED), keys.MAPPED]
    assert set().union(*lists) == set(core_keys())
    assert sum(map(len, lists)) == len(core_keys()), "a key is in two lists"


@pytest.mark.parametrize(
    "override",
    [
        "seed=7", "rollout.n=8", "rollout.max_tokens=32", "optimizer.beta1=0.8", "optimizer.beta2=0.9",
        "optimizer.epsilon=1e-6", "optimizer.weight_decay=0.1", "optimizer.max_grad_norm=0.5", "kl.coef=0.1",
        "entropy.coef=0.01", "correction.level=token", "filter.dead_groups=refill", "eval.every=3",
        "checkpoint.every=3", "grpo.steps=9", "grpo.batch_size=16", "grpo.minibatches=2", "grpo.epochs=2",
        "grpo.learning_rate=1e-5", "objective.type=gspo", "advantage.type=rloo", "engine.lora_rank=8",
        "engine.micro_tokens=999", "engine.nodes=2", "engine.tensor_parallel=2", "engine.prompt_tokens=99",
        "engine.rollout=sglang", "engine.chat=true", "engine.gradient_checkpointing=false",
        'engine.overrides=["trainer.balance_batch=False"]',
    ],
)  # fmt: skip
def test_a_mapped_key_changes_verl(recipe: Path, override: str) -> None:
    assert settings(recipe, override) != settings(recipe)


@pytest.mark.parametrize(("place", "key"), [("loss", "use_kl_loss"), ("reward", "use_kl_in_reward")])
def test_kl_goes_where_it_should(recipe: Path, place: str, key: str) -> None:
    found = settings(recipe, "kl.coef=0.1", f"kl.place={place}", "kl.estimator=k2")
    assert [name for name, value in found.items() if name.endswith(("use_kl_loss", "use_kl_in_reward")) and value] == [
        next(name for name in found if name.endswith(key))
    ]
    assert "k2" in found.values()


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("stop.patience=3", "stop.patience"), ("stop.target=0.5", "stop.target"),
        ("eval.test_size=5", "eval.test_size"),
        ("filter.max_refills=9", "filter.max_refills"), ("optimizer.type=sgd", "optimizer.type"),
        ('phases=["sft","grpo"]', "phases"), ("objective.type=sft", "objective.type"),
        ("grpo.minibatches=3", "grpo.minibatches"), ("engine.gpus=3", "grpo.batch_size"),
        ("engine.micro_tokens=10", "engine.micro_tokens"), ("engine.tensor_parallel=4", "engine.tensor_parallel"),
        ('phases=["grpo_turns"]', "grpo_turns"), ("protocol.type=sequential", "protocol.carry_optimizer"),
        ('engine.overrides=["trainer.savefreq=1"]', "did you mean 'trainer.save_freq'"),
        ('engine.overrides=["nonsense"]', "not `key=value`"),
    ],
)  # fmt: skip
def test_what_verl_cannot_honour_is_refused_by_name(recipe: Path, override: str, named: str) -> None:
    with pytest.raises(LabError) as caught:
        settings(recipe, override)
    problems = caught.value.problems if isinstance(caught.value, RecipeError) else [str(caught.value)]
    assert any(named in problem for problem in problems)


@pytest.mark.parametrize(
    "table",
    [
        '[credit]\ntype = "counterfactual"\nestimator = "vine"\n',
        '[surgery]\ntype = "pcgrad"\nscope = "module"\n',
        '[guard]\ntype = "skill_safe"\nprotected = ["a"]\ngradient = "policy"\n',
        '[guard]\ntype = "skill_safe"\nprotected = ["a"]\ntrigger = "drop"\n',
        '[credit]\ntype = "counterfactual"\nreplay = "resample"\n',
        '[credit]\ntype = "counterfactual"\nintervention_types = ["substitute"]\n',
        '[protocol]\ntype = "sequential"\n',
        '[protocol]\ntype = "curriculum"\nlengths = [8]\n',
        '[filter]\ndead_groups = "refill"\n[protocol]\ntype = "single"\n',
        '[filter]\ndead_groups = "count"\n',
    ],
)
def test_plug_ins_that_need_more_than_verl_has(recipe: Path, table: str) -> None:
    recipe.write_text(RECIPE + table)
    with pytest.raises(RecipeError) as caught:
        settings(recipe)
    assert table.split("]")[0][1:] in caught.value.problems[0]


@pytest.mark.parametrize(
    "more",
    [
        "", "engine.rollout=cpu", "engine.lora_rank=8", "engine.rollout=cpu engine.lora_rank=8",
        'engine.rollout=cpu phases=["ppo"] ppo.batch_size=8',
    ],
)  # fmt: skip
def test_every_setting_is_a_key_of_verls(recipe: Path, more: str) -> None:
    assert [key for key in settings(recipe, *more.split()) if not spelling.is_known(key)] == []


def test_without_flash_attn_no_rows_are_packed(recipe: Path) -> None:
    """verl packs rows for flash-attn alone; with torch's attention they would see each other."""
    plain = settings(recipe, "engine.rollout=cpu", 'phases=["ppo"]', "ppo.batch_size=8")
    for model in ("actor_rollout_ref.model", "critic.model"):
        assert plain[f"{model}.use_remove_padding"] is False
        assert plain[f"{model}.override_config.attn_implementation"] == "sdpa"
    assert not [key for key in settings(recipe) if "attn_implementation" in key or "remove_padding" in key]


@pytest.mark.parametrize(("gpus", "units"), [(1, 1), (2, 2), (16, 8)])
def test_a_small_machine_has_a_core_for_each_part_of_the_queue(recipe: Path, gpus: int, units: int) -> None:
    found = settings(recipe, f"engine.gpus={gpus}")
    assert found["transfer_queue.backend.SimpleStorage.num_data_storage_units"] == units


def test_the_cpu_sampler_gets_merged_weights(recipe: Path) -> None:
    """It knows no adapters; vLLM loads them beside the base."""
    merge = "actor_rollout_ref.model.lora.merge"
    assert settings(recipe, "engine.lora_rank=8", "engine.rollout=cpu")[merge] is True
    assert merge not in settings(recipe, "engine.lora_rank=8")


def test_ppo_sets_the_critic_up(recipe: Path) -> None:
    recipe.write_text(RECIPE.replace("grpo", "ppo"))
    found = settings(recipe, "ppo.value_clip=0.3")
    assert (found["critic.enable"], found["critic.cliprange_value"]) == (True, 0.3)
    assert found["algorithm.adv_estimator"] == "rlvr_gae"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"), (None, "null"), (1e-6, "1e-06"), ([0.9, 0.99], "[0.9,0.99]"), ({"eps": 1.0}, "{eps:1.0}"),
        ("a/b.c", "a/b.c"), ("true", "'true'"), ("12", "'12'"), ("it's", "'it\\'s'"), ("{% x %}", "'{% x %}'"),
    ],
)  # fmt: skip
def test_hydras_spelling(value: object, text: str) -> None:
    assert spelling.written(value) == text


def test_hydra_reads_what_we_write() -> None:
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser", reason="Hydra comes with verl")
    for value in (True, None, 1e-6, [0.9, 0.99], {"eps": 1.0}, "a/b.c", "true", "12", "it's", keys.PLAIN_TEMPLATE):
        read = parser.OverridesParser.create().parse_override(f"a.b={spelling.written(value)}").value()
        assert (read if not hasattr(read, "text") else read.text) == value


def test_the_folder(recipe: Path, tmp_path: Path) -> None:
    made = export(load_recipe(recipe), tmp_path / "out")
    out = made.folder
    assert {path.name for path in out.iterdir()} == {
        "README.md", "dev.parquet", "launch.sh", "launch_cluster.sh", "overrides.txt", "plan.json", "reward.py",
        "train.parquet",
    }  # fmt: skip
    for script in ("launch.sh", "launch_cluster.sh"):
        subprocess.run(["bash", "-n", str(out / script)], check=True)
    dry = (out / "launch.sh").read_text().replace("exec ", "# ").replace('"$PYTHON" -m', 'printf "%s\\n"')
    (out / "dry.sh").write_text(dry)
    shown = subprocess.run(["bash", str(out / "dry.sh")], check=True, capture_output=True, text=True).stdout
    listed = (out / "overrides.txt").read_text().replace("'", "").splitlines()  # paths are quoted in the script only
    assert set(listed) <= set(shown.replace("'", "").splitlines()), "bash changed a setting"
    assert f"+ray_kwargs.ray_init.runtime_env.env_vars.{PLAN}=" in shown
    job = Job.read(out)
    assert len(job.problems) == 48 and job.resolved.recipe == load_recipe(recipe).recipe
    with pytest.raises(UserError, match="not empty"):
        export(load_recipe(recipe), out)


def test_a_secret_is_not_written_for_verl(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2hunter2")
    recipe.write_text('question = "is hunter2hunter2 safe?"\n' + RECIPE)
    with pytest.raises(UserError, match="a secret in it would be stored"):
        export(load_recipe(recipe), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_when_something_is_wrong(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError):
        export(load_recipe(recipe, ["stop.patience=1"]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "table",
    [
        '[surgery]\ntype = "pcgrad"\ngroup_strategy = "difficulty"\n',
        '[guard]\ntype = "l2"\n',
        '[guard]\ntype = "ewc"\n',
        '[guard]\ntype = "replay"\n',
        '[guard]\ntype = "skill_safe"\n',
    ],
)
def test_plug_ins_that_need_no_sampling_are_taken(recipe: Path, table: str) -> None:
    recipe.write_text(RECIPE + table)
    assert settings(recipe)["trainer.v1.trainer_mode"] == "rlvr_sync"


def test_replay_is_laid_out_in_the_data(recipe: Path) -> None:
    """The steps after the first stage hold remembered problems of the skill trained before."""
    text = RECIPE.replace(
        'type = "countdown"\nnumbers = [2]\nstyle = "bare"', 'type = "minicode"\nskills = ["gen", "out"]'
    )
    tables = '[protocol]\ntype = "sequential"\norder = ["out", "gen"]\ncarry_optimizer = true\n'
    recipe.write_text(text + tables + '[guard]\ntype = "replay"\nshare = 0.25\n')
    lab = build_lab(load_recipe(recipe))
    phase = refusals.online_phase(lab.resolved)
    order = [problem.skill for problem in in_order(lab, phase, lab.protocol)]  # type: ignore[arg-type]
    assert order == ["out"] * 24 + (["gen"] * 6 + ["out"] * 2) * 3


def test_a_mixture_keeps_its_ratio_in_every_batch(recipe: Path) -> None:
    """Also where a draw goes over the edge of an epoch and is short: it is filled with the skill that is missing."""
    text = RECIPE.replace(
        'type = "countdown"\nnumbers = [2]\nstyle = "bare"', 'type = "minicode"\nskills = ["gen", "out", "fix"]'
    )
    recipe.write_text(text + '[protocol]\ntype = "mixed"\nratios = {gen = 2, out = 1, fix = 1}\n')
    lab = build_lab(load_recipe(recipe, ["data.train_size=17"]))
    phase = refusals.online_phase(lab.resolved)
    order = [problem.skill for problem in in_order(lab, phase, lab.protocol)]  # type: ignore[arg-type]
    batches = [order[i : i + phase.batch_size] for i in range(0, len(order), phase.batch_size)]
    assert len(batches) == phase.steps
    assert all([batch.count(skill) for skill in ("gen", "out", "fix")] == [4, 2, 2] for batch in batches)


def test_a_protocol_is_written_as_the_order_of_problems(recipe: Path) -> None:
    recipe.write_text(
        RECIPE.replace(
            'type = "countdown"\nnumbers = [2]\nstyle = "bare"', 'type = "minicode"\nskills = ["gen", "out"]'
        )
        + '[protocol]\ntype = "sequential"\norder = ["out", "gen"]\ncarry_optimizer = true\n'
    )
    resolved = load_recipe(recipe)
    lab = build_lab(resolved)
    phase = refusals.online_phase(resolved)
    order = in_order(lab, phase, lab.protocol)  # type: ignore[arg-type]
    assert len(order) == phase.steps * phase.batch_size
    assert [problem.skill for problem in order] == ["out"] * 24 + ["gen"] * 24
    stage = lab.stages(phase.steps)[0]
    first = lab.protocol.problems(lab.train, lab.recipe.seed, stage, "grpo", 0, 8)  # type: ignore[union-attr]
    assert [p.id for p in order[:8]] == [p.id for p in first]
    assert settings(recipe)["data.shuffle"] is False


def test_a_recipe_of_another_engine(recipe: Path) -> None:
    recipe.write_text(RECIPE.replace('"verl"', '"hf"').replace("gpus = 2", "lora_rank = 4"))
    engine = recipe_for_verl(recipe, ["engine.gpus=2"]).recipe.engine
    assert (engine["type"], engine["lora_rank"], engine["gpus"]) == ("verl", 4, 2)
    with pytest.raises(UserError, match="target_modules"):
        recipe_for_verl(recipe, ["engine.lora_targets=q_proj"])
    recipe.write_text(RECIPE.replace('type = "verl"\nmodel = "owner/model"\ngpus = 2', 'type = "toy"'))
    with pytest.raises(UserError, match="'toy' has no model"):
        recipe_for_verl(recipe, [])


@pytest.mark.slow
def test_the_command(recipe: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from rlvrlab.cli.export import command

    done = CliRunner().invoke(command, ["verl", str(recipe), "-o", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["folder"] == str(tmp_path / "out")


PRESETS = sorted((Path(__file__).parents[2] / "recipes").glob("verl_*.toml"))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_presets(path: Path) -> None:
    found = keys.settings(load_recipe(path), "/home")
    assert all(map(spelling.is_known, found)) and found["trainer.n_gpus_per_node"] == 8
    assert "no number is claimed" in path.read_text()


def test_a_prompt_that_would_be_cut_is_refused_before_anything_is_written(recipe: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="prompts are measured with the model's tokenizer")
    small = load_recipe(recipe, ["engine.model=nano", "engine.prompt_tokens=5"])
    with pytest.raises(
        UserError, match=r"prompt_tokens = 5: 48 of 48 prompts are longer.*set engine.prompt_tokens=1\d"
    ):
        export(small, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    made = export(load_recipe(recipe, ["engine.model=nano", "engine.prompt_tokens=64"]), tmp_path / "out")
    assert "prompts of at most 1" in made.prompts
    assert lengths.main([str(made.folder)]) == 0
    (made.folder / "plan.json").write_text((made.folder / "plan.json").read_text().replace("64", "3"))
    assert lengths.main([str(made.folder)]) == 2


def test_without_the_model_the_launch_scripts_measure(recipe: Path, tmp_path: Path) -> None:
    made = export(load_recipe(recipe), tmp_path / "out")
    assert "not measured" in made.prompts
    assert '-m rlvrlab.scale.verl.validate --job "$HERE"' in (made.folder / "launch.sh").read_text()
