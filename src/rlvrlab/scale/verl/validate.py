"""Is verl here, is it the version this is made for, and does it take these settings?

python -m rlvrlab.scale.verl.validate [--job FOLDER] key=value …      what the launch scripts run before verl

With a job its prompts are measured as well, in the same process: to import verl takes longer than either check.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, UserError, one_line
from rlvrlab.scale.code_version import ONE_CODE, code_version
from rlvrlab.scale.verl import CODE, VERSION, lengths
from rlvrlab.scale.verl.keys import PLAIN_ATTENTION

RAY = (2, 50)
INSTALL = f"pip install verl=={VERSION} ray==2.60.0 TransferQueue==0.1.10 cachetools fastapi uvicorn rlvrlab"
PLUGIN = "rlvrlab"
UNASKED = {
    "transfer_queue": "TransferQueue==0.1.10",
    "cachetools": "cachetools",
    "fastapi": "fastapi",
    "uvicorn": "uvicorn",
}
"""What verl's trainer imports although its package does not require it."""
ATTENTION, FLASH = "attn_implementation", "flash_attention_2"
"""How verl's models attend where nothing else is said."""
FLASH_PACKAGES = ("flash_attn", "kernels")
"""Transformers takes it from either."""


def installed() -> str | None:
    """The version of verl with all that its configuration needs, or None."""
    if any(importlib.util.find_spec(name) is None for name in ("verl", "hydra", "omegaconf")):
        return None
    return version("verl")


def check_versions() -> None:
    """verl and Ray of the right versions, and our plug-in where verl looks for it."""
    try:
        found = version("verl")
    except PackageNotFoundError:
        raise UserError(f"verl is not installed in {sys.prefix}; in an environment of its own: {INSTALL}") from None
    if found != VERSION:
        raise UserError(f"verl {found} is installed, this is made for {VERSION}: pip install verl=={VERSION}")
    try:
        ray = version("ray")
    except PackageNotFoundError:
        raise UserError("Ray is not installed; pip install ray==2.60.0") from None
    if tuple(int(part) for part in ray.split(".")[:2]) < RAY:
        raise UserError(f"Ray {ray} is too old; pip install ray==2.60.0")
    lacking = [name for name in UNASKED if importlib.util.find_spec(name) is None]
    if lacking:
        wanted = " ".join(UNASKED[name] for name in lacking)
        raise UserError(f"verl imports {', '.join(lacking)} without asking for it: pip install {wanted}")
    if PLUGIN not in {point.name for point in entry_points(group="verl.plugins")}:
        raise UserError("rlvrlab's verl plug-in is not registered here; install rlvrlab again: pip install -e .")


def check_code(config: Any) -> None:
    """The code here is the one that the settings were made with."""
    wanted = config.ray_kwargs.ray_init.runtime_env.env_vars.get(CODE)
    if wanted != code_version():
        remedy = f"{ONE_CODE.format(code_version())}, or export the recipe again with this one"
        raise UserError(f"the settings were made by rlvrlab {wanted}; {remedy}")


def composed(overrides: Sequence[str]) -> Any:
    """verl's configuration with these settings, checked by Hydra and by verl itself; raises UserError."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    spec = importlib.util.find_spec("verl")
    assert spec is not None and spec.origin is not None
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(Path(spec.origin).parent / "trainer" / "config"), version_base=None):
            config = compose("ppo_trainer", overrides=list(overrides))
    except (HydraException, OmegaConfBaseException) as error:
        cause = error.__cause__ or error
        raise UserError(f"verl {VERSION} refuses the settings: {one_line(cause, 1000)}") from None
    return config


def validated(config: Any) -> None:
    """verl's own checks of a composed configuration; imports verl and torch."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    try:
        with redirect_stdout(sys.stderr):
            validate_config(config, need_reference_policy(config), need_critic(config))
    except (AssertionError, ValueError, TypeError) as error:
        raise UserError(f"verl {VERSION} refuses the settings: {one_line(error, 1000)}") from None


def check_packages(config: Any) -> None:
    """What samples and what attends are installed; verl would miss them after everything else was loaded."""
    engine = str(config.actor_rollout_ref.rollout.name)
    if engine in ("vllm", "sglang") and importlib.util.find_spec(engine) is None:
        raise UserError(f"{engine} is not installed; install it, or try a CPU with engine.rollout=cpu")
    models = {"actor_rollout_ref.model": config.actor_rollout_ref.model, "critic.model": config.critic.model}
    flash = [name for name, model in models.items() if model.override_config.get(ATTENTION, FLASH) == FLASH]
    flash = flash if config.critic.enable else [name for name in flash if name != "critic.model"]
    lacking = all(importlib.util.find_spec(name) is None for name in FLASH_PACKAGES)
    if config.trainer.device == "cuda" and flash and lacking:
        plain = [f"{name}.{key}={value}" for name in flash for key, value in PLAIN_ATTENTION.items()]
        raise UserError(f"flash-attn is not installed; install it, or do without: engine.overrides={json.dumps(plain)}")


def main(arguments: Sequence[str]) -> int:
    """Exit code 2 and one line where something is wrong."""
    job = arguments[1] if arguments[:1] == ["--job"] else None
    try:
        check_versions()
        config = composed(arguments[2:] if job else arguments)
        check_code(config)
        check_packages(config)
        validated(config)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return lengths.main([job]) if job else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
