"""Hints for options that belong to another command than the one they were given to."""

from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup
from typing_extensions import override

MAX_COMMANDS_NAMED = 5  # commands that a hint names


class OptionHintGroup(TyperGroup):
    """A command group whose errors about unknown options name the commands that have them."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _add_hint(error, self)
            raise

    @override
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            _add_hint(error, self)
            raise


def _add_hint(error: Any, group: TyperGroup) -> None:
    """Add the commands that have the option to the error of click about an unknown option."""
    # The class is click's or, in later versions, typer's copy of it.
    if type(error).__name__ != "NoSuchOption":
        return
    option = str(error.option_name)
    commands = [f"{group.name} {words} {option}" for words in _find_commands(group, option)]
    if commands:
        more = len(commands) - MAX_COMMANDS_NAMED
        listed = ", ".join(commands[:MAX_COMMANDS_NAMED]) + (f" and {more} more" if more > 0 else "")
        error.message = f"{error.message}. It is an option of: {listed}."


def _find_commands(group: Any, option: str) -> Iterator[str]:
    """Yield the commands below a group that have an option, as words, without hidden options."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from (f"{name} {words}" for words in _find_commands(command, option))
        options = (one for one in command.params if not getattr(one, "hidden", True))
        if any(option in (*one.opts, *one.secondary_opts) for one in options):
            yield name
