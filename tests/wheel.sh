#!/bin/sh
# Builds the wheel, installs it without its dependencies into a fresh environment that sees those of $PYTHON, and trains
# a packaged recipe by name from a folder that has nothing to do with this one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(command -v "${PYTHON:-python3}")
case $python in /*) ;; *) python=$PWD/$python ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$root"
"$python" -m venv --without-pip "$work/venv"  # the pip that is there installs into it, too
"$python" -m pip --python "$work/venv/bin/python" install --quiet --disable-pip-version-check --no-deps "$work"/rlvrlab-*.whl
# A file of paths that comes after our own, so that the installed package wins over a clone's.
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$work/paths"
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$work/paths" "$site/dependencies.pth"
mkdir "$work/elsewhere"
cd "$work/elsewhere"
unset PYTHONPATH
"$work/venv/bin/python" -c 'import rlvrlab; print(rlvrlab.__file__)' | grep -q "^$work/" || { echo "not the wheel"; exit 1; }
"$work/venv/bin/rlvr" recipes npg_muse | grep -q npg_muse/smoke
"$work/venv/bin/rlvr" train toy_countdown sft.steps=2 grpo.steps=2
"$work/venv/bin/rlvr" show latest | head -1
ls -d experiments/toy_countdown_*
ls -l "$work"/rlvrlab-*.whl | awk '{ print "wheel of " $5 " bytes works" }'
