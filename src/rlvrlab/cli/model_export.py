"""From a run's checkpoint to a model folder with its card, re-scored before it counts as exported."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvrlab.errors import CheckpointError, UserError
from rlvrlab.models import cache, resolve, smollm2
from rlvrlab.models.card import Facts, Result, card
from rlvrlab.models.inspection import PICKLES, licence
from rlvrlab.models.shelf import BUILT_IN, HUB_ID, split_seed
from rlvrlab.recipe import Resolved
from rlvrlab.record.final import BEST, LAST, split_run
from rlvrlab.record.headline import accuracy_words, began, highest, summarise
from rlvrlab.record.run import read_config, read_info, read_metrics
from rlvrlab.record.summary import accuracy_of
from rlvrlab.types import Request, Sampling

if TYPE_CHECKING:
    from rlvrlab.engines.base import Engine

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.25}
"""How far a log-prob may be from the engine's, by its precision: merging an adapter rounds once."""


def export_model(spec: str, output: Path, problems: int) -> dict[str, Any]:
    """Export RUN[@best|last|STEP] into a new folder; nothing is left behind when the proof fails."""
    from rlvrlab.train.policy import policy_of

    run, which = split_run(spec)
    if run == Path(spec):
        which = BEST
    elif which not in (BEST, LAST) and not (which.isascii() and which.isdigit()):
        raise UserError(f"{spec}: after @ stands best, last or the number of a step")
    config = read_config(run)
    checkpoint, step = _checkpoint(run, which)
    source = checkpoint / "actor" / "huggingface"
    if not list(source.glob("*.safetensors")):
        engine = config["recipe"]["engine"]["type"]
        raise UserError(f"{checkpoint}: holds no model in Hugging Face's layout; engine {engine!r} writes none")
    proof: list[str] = []

    def build(draft: Path) -> None:
        for path in source.iterdir():
            if path.is_file() and path.suffix not in (*PICKLES, ".py"):
                shutil.copyfile(path, draft / path.name)
        policy = policy_of(run, str(step))
        proof.extend(prove(draft, policy.resolved, policy.engine, problems))
        facts = facts_of(run, config, step, proof)
        (draft / "README.md").write_text(card(facts), encoding="utf-8", errors="backslashreplace")

    made = cache.make_new(output, build)
    return {"folder": str(made), "run": run.name, "step": step, "proof": proof}


def prove(folder: Path, resolved: Resolved, engine: Engine, count: int) -> list[str]:
    """Greedy answers of the training engine, scored again by Transformers from the folder, and judged."""
    from rlvrlab.batch import batch_of
    from rlvrlab.models.rescoring import rescore
    from rlvrlab.rollout.prompts import prompt_tokens

    recipe, env = resolved.recipe, resolved.build("env")
    problems = env.problems("dev", min(count, recipe.data.dev_size), recipe.data.seed)
    prompts = [prompt_tokens(engine.tokenizer, problem.prompt) for problem in problems]
    sampling = Sampling(max_tokens=recipe.rollout.max_tokens, temperature=0.0)
    asked = [Request(prompt, 1, ("export", p.id), sampling) for prompt, p in zip(prompts, problems, strict=True)]
    answers = [group[0] for group in engine.sample(asked)]
    tokens = [answer.tokens for answer in answers]
    mine_BT = engine.logprobs(batch_of(prompts, tokens))[0]
    scores = rescore(folder, list(zip(prompts, tokens, strict=True)))
    pairs = [(a, b) for row, mine_T in zip(scores.logprobs, mine_BT, strict=True) for a, b in zip(row, mine_T)]  # noqa: B905 - the row is padded
    worst = max((abs(a - b) for a, b in pairs), default=float("nan"))
    if not worst <= TOLERANCE.get(engine.precision, 1e-3):
        raise CheckpointError(f"{folder.name}: the export scores differently (log-probs differ by up to {worst:.3g})")
    verdicts = env.verify_many([(problem, answer.text) for problem, answer in zip(problems, answers, strict=True)])
    known = [verdict.correct for verdict in verdicts if verdict.correct is not None]
    return [
        f"Loaded by Transformers: {scores.parameters:,} parameters, all finite.",
        f"{len(pairs)} tokens of {len(answers)} greedy answers scored again: log-probs within {worst:.1e} of the "
        f"training engine's, {scores.greedy} of them the most likely token.",
        f"{sum(known)} of {len(known)} held-out problems answered correctly, as judged by the verifier.",
    ]


def facts_of(run: Path, config: dict[str, Any], step: int, proof: list[str]) -> Facts:
    """Everything the card says, from the run's record."""
    recipe, info = config["recipe"], read_info(run)
    data, model = info.get("data") or {}, str(recipe["engine"].get("model", ""))
    here = [(row["phase"], found) for row in read_metrics(run) if row["step"] == step and (found := accuracy_of(row))]
    phase, score = here[-1] if here else ("", None)
    last = accuracy_words(score) if score else ""
    results = [
        Result(name, began(entry["before"]), last if name == phase else "", highest(entry["best"]))
        for name, entry in summarise(run).items()
    ]
    shown, hub, terms = _base(model)
    return Facts(
        name=recipe["name"],
        run=run.name,
        step=step,
        base_model=shown,
        hub_id=hub,
        licence=terms,
        environment=str(data.get("environment", recipe["env"]["type"])),
        scorer_version=str(data.get("version", "unknown")),
        recipe_sha256=hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16],
        data={role: one for role, one in data.items() if isinstance(one, dict) and "sha256" in one},
        results=results,
        score=score,
        command=" ".join(info.get("command", [])) or "rlvr train RECIPE",
        packages=info.get("packages", {}),
        seed=int(recipe["seed"]),
        proof=tuple(proof),
    )


def _base(model: str) -> tuple[str, str, str]:
    """The base model as shown (never a path of this machine), its hub id and its licence."""
    name = split_seed(model)[0]
    if name in BUILT_IN:
        return model, smollm2.HUB_ID if name == smollm2.NAME else "", "apache-2.0"
    try:
        folder = resolve(model)
    except UserError:
        return Path(model).name, "", ""
    if folder.is_dir():
        return folder.resolve().name, "", licence(folder)
    return model, model if HUB_ID.fullmatch(model) else "", ""


def _checkpoint(run: Path, which: str) -> tuple[Path, int]:
    """The complete checkpoint that is meant, and its step."""
    from rlvrlab.train import checkpoint

    folder = run / "checkpoints"
    steps = checkpoint.steps(folder)
    if not steps:
        raise UserError(f"{run}: no checkpoint yet; wait for one, or name another run")
    wanted = int(which) if which.isdigit() else steps[-1]
    if which == BEST:  # of the last phase, by held-out accuracy; the last step where nothing was evaluated
        rows = read_metrics(run)
        last_phase = [row for row in rows if row["phase"] == rows[-1]["phase"] and row["step"] in steps]
        # The first row of a phase is the policy it started from: exported only where nothing of the phase was kept.
        own = [row for row in last_phase if row.get("phase_step")] or last_phase
        scored = {row["step"]: score["accuracy"] for row in own if (score := accuracy_of(row))}
        # Of equal ones the last: it has learnt longest, and its phase is the one whose name the export bears.
        wanted = max(scored, key=lambda step: (scored[step], step)) if scored else steps[-1]
    path = checkpoint.at_step(folder, wanted)
    if path is None:
        kept = ", ".join(map(str, checkpoint.named_steps(folder)))
        raise UserError(f"{run}: no checkpoint of step {wanted}; kept are {kept}: name one as {run.name}@STEP")
    problem = checkpoint.defect(path)
    if problem:
        raise CheckpointError(f"{path}: {problem}; name another step")
    return path, wanted
