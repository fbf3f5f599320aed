"""The texts of an exported folder."""

from __future__ import annotations

from collections.abc import Sequence

REWARD = '''"""verl calls this for every answer: environment, judge and reward of the recipe in plan.json."""

from rlvrlab.scale.verl.reward import compute_score

__all__ = ["compute_score"]
'''
NODE = """#!/usr/bin/env bash
# One node: bash launch.sh [more settings of verl …]
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export RLVR_VERL_PLAN="$HERE" VERL_FILE_LOGGER_PATH="$HERE/metrics.jsonl"
PYTHON="${PYTHON:-python3}"
OVERRIDES=(
@OVERRIDES@
)
"$PYTHON" -m rlvrlab.scale.verl.validate --job "$HERE" "${OVERRIDES[@]}" "$@"
exec "$PYTHON" -m verl.trainer.main_ppo "${OVERRIDES[@]}" "$@"
"""
CLUSTER = """#!/usr/bin/env bash
# A Ray cluster whose nodes all see this folder under the same path, and have the same Python environment:
#   bash launch_cluster.sh auto                       on a node of the cluster
#   bash launch_cluster.sh ray://HEAD:10001           from outside
# To make a cluster: `ray start --head` on the first node, `ray start --address=HEAD:6379` on the others.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ADDRESS="${1:?name the address of the Ray cluster, e.g. auto}"
shift
export RLVR_VERL_PLAN="$HERE" VERL_FILE_LOGGER_PATH="$HERE/metrics.jsonl"
PYTHON="${PYTHON:-python3}"
OVERRIDES=(
@OVERRIDES@
  "+ray_kwargs.ray_init.address=${ADDRESS}"
)
"$PYTHON" -m rlvrlab.scale.verl.validate --job "$HERE" "${OVERRIDES[@]}" "$@"
exec "$PYTHON" -m verl.trainer.main_ppo "${OVERRIDES[@]}" "$@"
"""
README = """# @NAME@ on verl @VERSION@

| file | what |
|---|---|
| `train.parquet`, `dev.parquet` | problems in verl's shape |
| `plan.json` | the recipe as resolved: every Ray process reads it |
| `reward.py` | `compute_score`: environment, judge and reward of the recipe |
| `overrides.txt` | the settings of verl, one per line |
| `launch.sh`, `launch_cluster.sh` | start it on one node with @GPUS@ GPUs, or on a Ray cluster |

Every node needs verl @VERSION@ and rlvrlab in the same environment; verl loads rlvrlab's plug-in by itself. The launch
scripts check versions, plug-in, configuration and the lengths of all prompts before anything is started.

    PYTHON=/path/to/python bash launch.sh
    bash launch.sh actor_rollout_ref.rollout.gpu_memory_utilization=0.4

Metrics go to `metrics.jsonl`, checkpoints to `checkpoints/`. `rlvr train RECIPE --engine verl` does the same and brings
the results into a run folder: metrics, answers, merged checkpoints.
"""
ESCAPES = {ord(mark): f"\\{mark}" for mark in '\\"`$'}
"""Of what bash would read between double quotes."""


def array(lines: Sequence[str]) -> str:
    """Elements of a bash array; only ${HERE} is expanded."""
    escaped = [line.translate(ESCAPES).replace("\\${HERE}", "${HERE}") for line in lines]
    return "\n".join(f'  "{line}"' for line in escaped)
