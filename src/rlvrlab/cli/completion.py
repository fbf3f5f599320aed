"""rlvr completion: tab completion for bash, zsh and fish."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json
from rlvrlab.errors import UserError


@click.command("completion", short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@AS_JSON
def command(shell: str, as_json: bool) -> None:
    """Print a shell's completion script.

    \b
    bash   rlvr completion bash >> ~/.bashrc
    zsh    rlvr completion zsh >> ~/.zshrc
    fish   rlvr completion fish > ~/.config/fish/completions/rlvr.fish
    """
    from rlvrlab.cli.verbs import rlvr

    completion = get_completion_class(shell)
    if completion is None:
        raise UserError(f"no completion for {shell!r}")
    script = completion(rlvr, {}, "rlvr", "_RLVR_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
