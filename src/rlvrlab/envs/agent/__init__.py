"""Questions answered with tools over several turns; importing this registers the environment."""

from rlvrlab.envs.agent import environment as environment
