"""rlvr completion: tab completion for bash, zsh and fish."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from rlvrlab.errors import UserError


@click.command("completion", short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print a shell's completion script.

    \b
    bash   rlvr completion bash >> ~/.bashrc
    zsh    rlvr completion zsh >> ~/.zshrc
    fish   rlvr completion fish > ~/.config/fish/completions/rlvr.fish
    """
    from rlvrlab.cli import rlvr

    found = get_completion_class(shell)
    if found is None:
        raise UserError(f"no completion for {shell!r}")
    click.echo(found(rlvr, {}, "rlvr", "_RLVR_COMPLETE").source())
    return 0
