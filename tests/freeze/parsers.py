"""The commands and their arguments, as argparse has them: caught where a command hands its words to its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any
from unittest import mock

from tests.freeze.calling import call


class Caught(BaseException):  # no error of a command: nothing catches it on its way
    """Carries the parser of a command out of it."""


def command_names() -> list[str]:
    """The commands that ``symflops --help`` lists."""
    return [line.split()[0] for line in call("--help").out.splitlines() if line.startswith("  ")]


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser that a command makes for its words.

    Raises:
        LookupError: the command made none.
    """

    def caught(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        raise Caught(parser)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", caught):
        try:
            call(command)
        except Caught as found:
            return found.args[0]
    raise LookupError(f"the command '{command}' has no parser")


def arguments(command: str) -> dict[str, dict[str, Any]]:
    """The arguments of a command: options by their spellings, positional ones by their place and what help calls them."""
    parser = parser_of(command)
    exclusive = [sorted(spelled(action) for action in group._group_actions) for group in parser._mutually_exclusive_groups]
    found = {}
    for place, action in enumerate(action for action in parser._actions if not action.option_strings):
        found[f"{place} {spelled(action)}"] = described(action, exclusive)
    return found | {spelled(action): described(action, exclusive) for action in parser._actions if action.option_strings}


def described(action: argparse.Action, exclusive: list[list[str]]) -> dict[str, Any]:
    """What one argument takes."""
    return {
        "kind": type(action).__name__.strip("_"),
        "values": action.nargs,
        "type": getattr(action.type, "__name__", None),
        "choices": sorted(map(str, action.choices)) if action.choices else None,
        "default": repr(action.default),
        "required": action.required if action.option_strings else None,
        "excludes": next((group for group in exclusive if spelled(action) in group), None),
    }


def spelled(action: argparse.Action) -> str:
    """How an argument is written."""
    return ", ".join(sorted(action.option_strings)) or str(action.metavar or action.dest)


def every_command() -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """Each command with its arguments."""
    for command in command_names():
        yield command, arguments(command)
