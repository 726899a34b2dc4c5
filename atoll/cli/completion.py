"""`atoll completion`: the script a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from atoll.cli.talk import echo


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      eval "$(atoll completion bash)"
      atoll completion fish > ~/.config/fish/completions/atoll.fish
    """
    from atoll.cli.main import main

    found = get_completion_class(shell)
    assert found is not None
    echo(*found(main, {}, "atoll", "_ATOLL_COMPLETE").source().split("\n"))
