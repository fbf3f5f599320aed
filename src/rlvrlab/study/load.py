"""From a study file to a checked study: every error at once, each with its place and a remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from rlvrlab import registry
from rlvrlab.errors import LabError, RecipeError, UserError, suggestion
from rlvrlab.recipe.parse import read_toml
from rlvrlab.recipe.remedies import first_words
from rlvrlab.recipe.schema import instantiate
from rlvrlab.recipe.shipped import beside, recipe_names
from rlvrlab.rewards.total import PartialCredit
from rlvrlab.study.measures import COSTS, MEASURES, is_cost, metric_names, pass_k, suite_of
from rlvrlab.study.places import complaints, placed, stage_names
from rlvrlab.study.schema import Settings, Stage, Study, Suite

OWN = {"seed": "seeds", "output_dir": "output", "name": "name", "question": "question"}
"""Recipe keys that the study sets itself -> the study's key for them."""
ON_TEST = "@test"
"""Ends the name under which the test problems of a dev suite are examined."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}", re.ASCII)
_BEST = re.compile(r"""\s*best\(\s*(?:"([^"]*)"|'([^']*)')\s*\)\s*(?:\.\s*([A-Za-z_][\w.]*))?\s*""", re.ASCII)


class Best(NamedTuple):
    """The winner of a stage, or one of its settings."""

    stage: str
    key: str | None


def parse_best(text: str, where: str, *, keyed: bool) -> Best:
    """Read best("volume") or, where `keyed`, best("volume").data.train_size: the only expressions of a study file."""
    match = _BEST.fullmatch(text)
    if match is None:
        raise UserError(f'{where}: {text!r} is not of the form best("STAGE"){".recipe.key" if keyed else ""}')
    stage, key = match[1] if match[1] is not None else match[2], match[3]
    if keyed and key is None:
        raise UserError(f'{where}: {text!r} names no recipe key; write e.g. best("{stage}").data.train_size')
    if key is not None and not all(part.isidentifier() for part in key.split(".")):
        raise UserError(f"{where}: {key!r} is not a dotted recipe key")
    if not keyed and key is not None:
        raise UserError(f'{where}: takes a whole winner, best("{stage}"); single keys belong into inputs')
    return Best(stage, key)


@dataclass(frozen=True)
class StudyFile:
    """A study as read and checked."""

    study: Study
    path: Path
    text: str

    @property
    def recipe(self) -> Path:
        """The base recipe: a file beside the study file, or what comes along under this name."""
        return beside(self.path.parent, self.study.recipe)

    @property
    def folder(self) -> Path:
        """Where the study is kept unless the command says otherwise."""
        return Path(self.study.output) / self.study.name

    def placed(self, problems: Iterable[str]) -> list[str]:
        """Problems (`key: what`) with this file and the lines of their keys."""
        return placed(self.path, self.text, [stage.name for stage in self.study.stages], problems)

    def stage(self, name: str) -> Stage:
        """The stage of this name, which must exist."""
        return next(stage for stage in self.study.stages if stage.name == name)

    def suite(self, name: str) -> Suite:
        """A suite of the file, or the test problems of one."""
        own = self.study.suites.get(name)
        return own or self.study.suites[name.removesuffix(ON_TEST)].model_copy(update={"role": "test"})

    def chooses_on(self, stage: Stage) -> list[str]:
        """The suites that every trial of a stage is examined on."""
        return _chooses_on(stage, self.study)

    def examined_last(self, stage: Stage) -> list[str]:
        """The suites of test problems that a stage's winner is asked at the end."""
        chosen_on, suites = self.chooses_on(stage), self.study.suites
        twins = [f"{name}{ON_TEST}" for name in chosen_on if suites[name].role == "dev"]
        own = [name for name, suite in suites.items() if suite.role == "test" and name not in chosen_on]
        return [*twins, *own]

    def asks_last(self, stage: Stage) -> str:
        """Who is asked the test problems at the end: winner, arms or none."""
        leads_on = any(stage.name in self.needs(other) for other in self.study.stages)
        return stage.final or ("none" if leads_on else "winner")

    def chosen_on_test(self) -> list[str]:
        """Why stages of this study would choose on test problems, in words; empty when none does."""
        return [
            f'stages.{stage.name}: chooses on test problems (suites.{name}); give the suite role = "dev": the winner '
            "is examined on test problems once, at the end"
            for stage in self.study.stages
            for name in self.chooses_on(stage)
            if self.study.suites[name].role == "test"
        ]

    def needs(self, stage: Stage) -> list[str]:
        """Stages whose winners it starts from, in the file's order; a malformed best(…) raises UserError."""
        wanted = {parse_best(text, key, keyed=True).stage for key, text in stage.inputs.items()}
        if stage.base is not None:
            wanted.add(parse_best(stage.base, "base", keyed=False).stage)
        return [other.name for other in self.study.stages if other.name in wanted]

    def all_needs(self, stage: Stage) -> list[str]:
        """Stages it starts from directly or through others; each comes after those it needs itself."""
        names: list[str] = []
        for name in self.needs(stage):
            names += [*self.all_needs(self.stage(name)), name]
        return list(dict.fromkeys(names))


def load_study(path: Path) -> StudyFile:
    """Read and check; raises RecipeError with all problems."""
    if not path.is_file():
        raise UserError(f"{path}: no such study file; `rlvr recipes` shows the ones that come with rlvrlab")
    tree, text = read_toml(path)
    if "stages" not in tree and "recipe" not in tree:
        raise UserError(f"{path}: is no study (no recipe, no stages); a recipe is run by `rlvr train {path}`")
    try:
        study = Study.model_validate_json(json.dumps(tree, default=str))
    except ValidationError as error:
        raise RecipeError(placed(path, text, stage_names(tree), complaints(error, tree))) from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply") from None
    file = StudyFile(study, path, text)
    problems = list(_contradictions(file))
    if problems:
        raise RecipeError(file.placed(problems))
    return file


def _contradictions(file: StudyFile) -> Iterator[str]:
    study = file.study
    if not file.recipe.is_file():
        own = [path.name for path in sorted(file.path.parent.glob("*.toml")) if path.name != file.path.name]
        near = suggestion(study.recipe, [*own, *recipe_names()])
        meant = near if "did you mean" in near else ""
        remedy = "give a file, relative to the study file, or a name of `rlvr recipes`"
        yield f"recipe: {file.recipe} is not there{meant}; {remedy}"
    yield from _reserved("fixed", study.fixed)
    for i, rung in enumerate(study.ladder):
        yield from _reserved(f"ladder {i + 1}", rung)
    if len(set(study.seeds)) < len(study.seeds):
        yield f"seeds: {study.seeds} names one twice"
    for name, suite in study.suites.items():
        yield from _suite(f"suites.{name}", name, suite, file.path.parent)
    names = [stage.name for stage in study.stages]
    yield from (f"stages: two are named {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1)
    for stage in study.stages:
        yield from _stage(stage, names, study)
    try:
        TopologicalSorter({stage.name: file.needs(stage) for stage in study.stages}).prepare()
    except UserError:
        pass  # a malformed best(…), which its stage has complained about
    except CycleError as error:
        yield f"stages: {' → '.join(reversed(error.args[1]))} is a circle; a stage can only start from earlier winners"
    gpus = study.resources
    if gpus.launcher == "local" and gpus.gpus > len(gpus.gpu_ids):
        yield f"resources.gpus: a trial takes {gpus.gpus}, gpu_ids has {len(gpus.gpu_ids)}; list the GPUs it may use"


def _suite(where: str, name: str, suite: Suite, folder: Path) -> Iterator[str]:
    if not _PLAIN.fullmatch(name) or name == COSTS:
        yield f"{where}: {name!r} cannot name a suite; letters, digits, _ and -, not {COSTS!r}"
    if suite.suite is not None and suite.env is not None:
        yield f"{where}: has both env and suite; give one"
    try:
        if suite.suite is not None:
            from rlvrlab.evals.suites import members_of

            known = [member.name for member in members_of(suite.suite)]
            for one in suite.only:
                if one not in known:
                    yield f"{where}.only: no member {one!r}{suggestion(one, known)}"
        elif suite.env is not None:
            if not isinstance(suite.env.get("type"), str):
                yield f'{where}.env: needs `type = "NAME"`'
            else:
                registry.name_own(suite.env, folder, Path())
                instantiate("env", suite.env, folder)
    except ValidationError as error:
        yield f"{where}.env.{first_words(error)}"
    except LabError as error:
        yield f"{where}: {error}"


def _stage(stage: Stage, names: list[str], study: Study) -> Iterator[str]:
    where = f"stages.{stage.name}"
    for part, own in (("fixed", stage.fixed), ("inputs", stage.inputs), ("factors", stage.factors)):
        yield from _reserved(f"{where}.{part}", own)
    for arm, own in stage.arms.items():
        yield from _reserved(f"{where}.arms.{arm}", own)
    for key, values in stage.factors.items():
        texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
        yield from (f"{where}.factors.{key}: {one} is listed twice" for one in set(texts) if texts.count(one) > 1)
    expressions = [("base", stage.base, False)] if stage.base is not None else []
    for key, text, keyed in [*expressions, *((f"inputs.{k}", v, True) for k, v in stage.inputs.items())]:
        try:
            best = parse_best(str(text), f"{where}.{key}", keyed=keyed)
        except UserError as error:
            yield str(error)
            continue
        if best.stage not in names:
            yield f"{where}.{key}: no stage {best.stage!r}{suggestion(best.stage, names)}"
    for name in stage.suites:
        if name not in study.suites:
            yield f"{where}.suites: no suite {name!r}{suggestion(name, study.suites)}"
    suites = {name: study.suites[name] for name in _chooses_on(stage, study) if name in study.suites}
    if stage.select.extend and stage.select.human:
        yield f"{where}.select: extend runs more seeds by itself and human waits for a person; take one"
    for metric, weight in stage.select.metrics.items():
        if weight <= 0:
            yield f"{where}.select.metrics.{metric}: weight {weight}; above 0 (what is better is known of each metric)"
        owner, _, measure = metric.partition(".")
        suite, k = suites.get(suite_of(metric)), pass_k(measure)
        # cross/countdown.accepted is one member of a named suite
        of_member = suite is not None and "/" in owner and (measure in MEASURES or k is not None)
        if suite is not None and k is not None and k > suite.n:
            yield f"{where}.select.metrics: {metric} needs suites.{owner}.n of {k} or more, it is {suite.n}"
        elif suite is None and suite_of(metric) in study.suites and not is_cost(metric):
            how = _remedy(metric, study)
            yield f"{where}.select.metrics: {metric} is of a suite that the stage does not choose on; {how}"
        elif metric not in metric_names(suites) and not of_member:
            yield f"{where}.select.metrics: no metric {metric!r}{suggestion(metric, metric_names(suites))}"
        elif measure == "mean_accuracy" and (rewards := _rewards(stage)):
            yield f"{where}.select.metrics: {metric} is that of the arm's own reward, {rewards} here; use accepted"
    if stage.select.rule in ("weighted", "balanced") and any(map(is_cost, stage.select.metrics)):
        what = "a weighted sum" if stage.select.rule == "weighted" else "a balance"
        yield f"{where}.select.metrics: costs have no share in {what}; use lexicographic, pareto or select.cost"


def _rewards(stage: Stage) -> str:
    """The rewards of a stage's arms, where they differ and some give partial credit; else nothing."""
    named = dict.fromkeys(
        value
        for own in (stage.factors, *stage.arms.values())
        for key, values in own.items()
        if key == "reward.type"
        for value in (values if isinstance(values, list) else [values])
    )
    known = [name for name in named if name in registry.names("reward")]
    partial = any(issubclass(registry.find("reward", name), PartialCredit) for name in known)
    return " and ".join(map(str, named)) if len(named) > 1 and partial else ""


def _chooses_on(stage: Stage, study: Study) -> list[str]:
    """Those it names, else all with dev problems; a study without any is refused when it is run."""
    on_dev = [name for name, suite in study.suites.items() if suite.role == "dev"]
    return stage.suites or on_dev or list(study.suites)


def _remedy(metric: str, study: Study) -> str:
    name = suite_of(metric)
    if study.suites[name].role == "test":
        return f'suites.{name} has test problems, which are asked once, at the end; choose on one with role = "dev"'
    return f"add {name!r} to its suites"


def _reserved(where: str, own: Settings) -> Iterator[str]:
    for key in own:
        if key in OWN:
            yield f"{where}: {key} is set by the study; use its own key `{OWN[key]}`"
        elif not all(part.isidentifier() for part in key.split(".")):
            yield f"{where}: {key!r} is not a dotted recipe key such as rollout.n"
