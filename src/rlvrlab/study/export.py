"""A study as plain shell scripts: `rlvr train`, `rlvr eval`, and a small Python file that takes the highest mean.

run_all.sh            all stages in order
1_volume.sh …         one stage: every arm and seed, skipped where its `done` file is there
settings.sh           stage and arm -> recipe keys; what a stage takes from an earlier one's winner
choose.py             the winner of a stage by the rule's metrics, without statistics
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from rlvrlab.errors import RecipeError, UserError, writing_to
from rlvrlab.evals.protocol import USUAL_SIZE
from rlvrlab.recipe.parse import flatten
from rlvrlab.record.files import write_atomically
from rlvrlab.study.chain import Chain
from rlvrlab.study.load import StudyFile, parse_best
from rlvrlab.study.measures import direction, is_cost, suite_of
from rlvrlab.study.schema import Settings, Stage, Suite
from rlvrlab.study.settings import as_toml, words
from rlvrlab.study.starts import MODEL, SEED

NAMES = {"accepted": "accepted_at_1", "truncated": "truncated_rate", "gen_tokens": "avg_gen_tokens"}
"""A metric's name in metrics.json, where it differs."""
LAYERED = """# The last line of a key counts; another plug-in (`reward.type=…`) takes the keys of the old one away.
layered() {
  awk -F= '{ table = $1; sub(/[.].*/, "", table)
    if ($1 == table ".type" && ($1 in value) && value[$1] != $0)
      for (other in value) if (index(other, table ".") == 1) delete value[other]
    if (!($1 in seen)) order[++count] = $1
    seen[$1] = 1; value[$1] = $0 }
    END { for (i = 1; i <= count; i++) if (order[i] in value) print value[order[i]] }'
}
"""
OF_SEED = f'sed "/^{MODEL}=/s/{SEED}/$seed/g"'
"""Puts the seed into the name of a start."""
CHOOSE = '''"""Print the arm with the highest weighted mean of a stage's metrics: python choose.py STAGE."""

import glob
import json
import os
import sys

WHAT = json.loads(r"""%s""")
HOME = os.path.dirname(os.path.abspath(__file__))


def value(stage, arm, metric):
    suite, member, measure, sign = metric
    found = []
    pattern = os.path.join(HOME, "out", stage, arm, "seed_*", "eval_" + suite, "**", "metrics.json")
    for path in glob.glob(pattern, recursive=True):
        with open(path) as file:
            every = json.load(file).items()
        wanted = [numbers.get(measure) for name, numbers in every if member in ("", name)]
        found += [sign * number for number in wanted if number is not None]
    return sum(found) / len(found) if found else None


def score(stage, arm):
    parts = [(weight, value(stage, arm, metric)) for weight, metric in WHAT[stage]["metrics"]]
    if any(part is None for _, part in parts):
        return None
    return sum(weight * part for weight, part in parts) / sum(weight for weight, _ in parts)


stage = sys.argv[1]
scores = {arm: score(stage, arm) for arm in WHAT[stage]["arms"]}
for arm, found in scores.items():
    print(stage, arm, "not finished" if found is None else "%%.4f" %% found, file=sys.stderr)
known = {arm: found for arm, found in scores.items() if found is not None}
if not known:
    sys.exit("no arm of %%s has finished" %% stage)
print(max(known, key=known.get))
'''


def export_study(file: StudyFile, output: Path) -> list[Path]:
    """Write the scripts into a folder and return their paths."""
    chain = Chain(file)
    order = chain.order()
    problems = chain.check_first() + _clashes(chain, order)
    if problems:
        raise RecipeError([f"{file.path.name}: {problem}" for problem in problems])
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{output}: cannot be made ({error.strerror}); choose another -o") from None
    names = [f"{i}_{stage.name}.sh" for i, stage in enumerate(order, 1)]
    pages = {name: _stage_script(chain, stage) for name, stage in zip(names, order, strict=True)}
    pages["settings.sh"] = _settings_script(chain, order)
    choosing = {}  # what choose.py has to know of each stage
    for stage in order:
        weights = stage.select.metrics or {f"{s}.accepted": 1.0 for s in file.chooses_on(stage)}
        parts = []
        for metric, weight in weights.items():
            owner, _, measure = metric.partition(".")
            if not is_cost(metric):
                named = [suite_of(metric), owner.partition("/")[2], NAMES.get(measure, measure), direction(metric)]
                parts.append([weight, named])
        choosing[stage.name] = {"arms": [_folder(arm.name) for arm in chain.arms(stage)], "metrics": parts}
    pages["choose.py"] = CHOOSE % json.dumps(choosing, indent=1)
    runs = "".join(f'sh "$here/{name}"\n' for name in names)
    pages["run_all.sh"] = f"{_head(file, 'All stages in order.')}{runs}"
    made = []
    with writing_to(output, "choose another --output"):
        for name, text in pages.items():
            write_atomically(output / name, text)
            (output / name).chmod(0o755 if name.endswith(".sh") else 0o644)
            made.append(output / name)
    return made


def _clashes(chain: Chain, order: list[Stage]) -> list[str]:
    """Names that differ in a study and would be one in a script: their results would land in one folder."""
    shells = {"stages": [(stage.name, _symbol(stage.name)) for stage in order]}
    for stage in order:
        shells[f"stages.{stage.name}"] = [(arm.name, _folder(arm.name)) for arm in chain.arms(stage)]
    problems = []
    for where, pairs in shells.items():
        first: dict[str, str] = {}
        for name, word in pairs:
            if first.setdefault(word, name) != name:
                problems.append(f"{where}: {first[word]!r} and {name!r} are both {word} in a shell; rename one")
    return problems


def _head(file: StudyFile, words_about: str) -> str:
    name = " ".join(file.path.name.split())  # a comment ends with its line, and a file's name may hold a line break
    return (
        f"#!/bin/sh\n# {words_about} Made by `rlvr study export {name}`.\n"
        'set -eu\nhere=$(cd "$(dirname "$0")" && pwd)\n'
    )


def _settings_script(chain: Chain, order: list[Stage]) -> str:
    """One function per stage: `settings_volume ARM` prints its overrides, one per line."""
    lines = ["# Recipe keys of every arm, one `key=value` per line; sourced by the stages.", LAYERED]
    usual = dict(flatten(chain.resolved({}).plain()))
    for stage in order:
        lines += [f"settings_{_symbol(stage.name)}() {{", *_echo(chain.file.study.fixed)]
        if stage.base is not None:
            name = parse_best(stage.base, "base", keyed=False).stage
            lines.append(f'  settings_{_symbol(name)} "$BEST_{_symbol(name)}"')
        lines += _echo(stage.fixed)
        for key, text in stage.inputs.items():  # what the winner sets, else what the base recipe has
            best = parse_best(text, key, keyed=True)
            name, wanted = _symbol(best.stage), str(best.key)
            lines += _echo({key: usual[wanted]}) if usual.get(wanted) is not None else []
            rename = shlex.quote(f"s/^{re.escape(wanted)}=/{key}=/p")
            lines.append(f'  settings_{name} "$BEST_{name}" | layered | sed -n {rename}')
        lines.append('  case "$1" in')
        for arm in chain.arms(stage):
            lines += [f"  {_folder(arm.name)})", *(f"  {line}" for line in _echo(arm.own)), "    ;;"]
        lines += ['  *) echo "no arm $1" >&2; return 1 ;;', "  esac", "}", ""]
    return "\n".join(lines)


def _echo(settings: Settings) -> list[str]:
    """Lines that print the settings as they stand: some shells' echo would read the backslashes in them."""
    return [f"  printf '%s\\n' {shlex.quote(word)}" for word in words(settings)]


def _stage_script(chain: Chain, stage: Stage) -> str:
    file = chain.file
    lines = [_head(file, f"Stage {stage.name}."), '. "$here/settings.sh"']
    for need in file.all_needs(stage):
        name = _symbol(need)
        lines += [f': "${{BEST_{name}:=$(python3 "$here/choose.py" {shlex.quote(need)})}}"', f"export BEST_{name}"]
    arms = " ".join(shlex.quote(_folder(arm.name)) for arm in chain.arms(stage))
    seeds = " ".join(map(str, stage.seeds or file.study.seeds))
    lines += [f"for seed in {seeds}; do", f"for arm in {arms}; do",
              f'  dir="$here/out/{stage.name}/$arm/seed_$seed"',
              '  [ -f "$dir/done" ] && continue', '  mkdir -p "$dir"',
              f'  settings_{_symbol(stage.name)} "$arm" | layered | {OF_SEED} > "$dir/settings.txt"', "  set --",
              '  while IFS= read -r word; do set -- "$@" "$word"; done < "$dir/settings.txt"',
              '  begun=$(ls -d "$dir"/runs/*/ 2>/dev/null | head -n 1)',
              '  if [ -n "$begun" ]; then rlvr train --resume "${begun%/}"',
              f'  else rlvr train {shlex.quote(str(file.recipe.resolve()))} "$@" name={file.study.name} seed="$seed" '
              'output_dir="$dir/runs"; fi',
              '  run=$(ls -d "$dir"/runs/*/ | head -n 1)']  # fmt: skip
    for name in file.chooses_on(stage):
        lines.append(f"  {_evaluation(name, file.study.suites[name], file.path.parent)}")
    return "\n".join([*lines, '  touch "$dir/done"', "done", "done", ""])


def _evaluation(name: str, suite: Suite, folder: Path) -> str:
    """The `rlvr suite` or `rlvr eval` that examines a run on one suite of the study."""
    policy = f'"${{run%/}}@{suite.policy}"'
    if suite.suite is not None:
        parts = ["rlvr suite", shlex.quote(suite.suite), f"--tier {suite.tier} --models {policy}"]
        parts += [f"--only {shlex.quote(one)}" for one in suite.only]
        parts += [f"--data {shlex.quote(str((folder / suite.data).resolve()))}"] if suite.data else []
        parts += [f"--size {suite.size}"] if suite.size else []
    else:
        env, parts = dict(suite.env or {}), ["rlvr eval"]
        if env:
            kind = str(env.pop("type"))
            # A plug-in of one's own lies beside the study file; the scripts may be run from anywhere.
            parts.append(shlex.quote(str((folder / kind).resolve()) if ".py:" in kind else kind))
        parts += [shlex.quote(f"{key}={as_toml(value)}") for key, value in env.items()]
        parts += [f"--run {policy} --size {suite.size or USUAL_SIZE} --role {suite.role}"]
        if suite.n > 1:
            parts.append(f"--protocol @k --n {suite.n} --k 1,{suite.n} --temperature {suite.temperature}")
    parts += [f"--max-tokens {suite.max_tokens}"] if suite.max_tokens else []
    return " ".join([*parts, f'--seed {suite.seed} -o "$dir/eval_{name}"'])


def _symbol(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _folder(arm: str) -> str:
    """An arm's name without what a shell or a file system would trip over."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", arm).strip("_") or "arm"
