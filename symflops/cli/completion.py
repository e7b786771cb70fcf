"""Completion of commands, options and names for a shell.

  eval "$(symflops completion bash)"        # in ~/.bashrc
  eval "$(symflops completion zsh)"         # in ~/.zshrc, after compinit
  symflops completion fish | source         # in ~/.config/fish/config.fish

The shell asks symflops for the words that may follow, so local specs are completed, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from symflops.cli.terminal import argument, arguments_of

SCRIPTS = {
    "bash": """_symflops() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$(symflops completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" \\
        -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _symflops symflops""",
    "zsh": """_symflops() {
    local -a found
    found=("${(@f)$(symflops completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _symflops symflops""",
    "fish": """function __symflops_ask
    set -g __symflops_words (symflops completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    test -n "$__symflops_words"
end
complete -c symflops -n __symflops_ask -f -a '$__symflops_words'""",
}


configure = arguments_of(
    argument("shell", choices=(*SCRIPTS, "words"), metavar="SHELL", help="bash, zsh or fish"),
    argument("words", nargs="*", metavar="WORD", help="of 'words': the line so far; prints what its last word may become"),
)


def run(args: argparse.Namespace) -> int:
    """Print the completion script of a shell, or the completions of a line; return the exit code 0."""
    if args.shell in SCRIPTS:
        print(SCRIPTS[args.shell])
        return 0
    *before, last = args.words or [""]
    print("\n".join(word for word in sorted(set(candidates(before, last))) if word.startswith(last)))
    return 0


def candidates(before: Sequence[str], last: str) -> Iterable[str]:
    """Return the words that can follow the words ``before``; ``last`` is what is typed of the next."""
    import importlib

    from symflops.cli.main import COMMANDS

    if not before:
        return [*COMMANDS, "--help", "--version"]
    if before[0] not in COMMANDS:
        return []
    parser = argparse.ArgumentParser(before[0])
    importlib.import_module(f"symflops.cli.{before[0]}").configure(parser)
    options = parser._option_string_actions
    given = options.get(before[-1])
    if given is not None and given.nargs != 0:
        return [*map(str, given.choices or ()), *values(str(given.metavar), last)]
    if last.startswith("-"):
        return options
    places = [action for action in parser._actions if not action.option_strings]
    return [word for action in places for word in (*map(str, action.choices or ()), *values(str(action.metavar), last))]


def values(metavar: str, last: str) -> Iterable[str]:
    """Return the known values of an argument with this ``metavar``, such as the names of regimes.

    For a list of values, each begins with the items that ``last`` already has.
    """
    from symflops.read.spec_files import pages

    *items, _ = last.split(",")
    head = "".join(f"{item}," for item in items) if metavar in ("R,R", "C,C") else ""
    match metavar:
        case "SPEC":
            return specs()
        case "R" | "R,R":
            return [head + name for name in pages("regimes")]
        case "C" | "C,C":
            return [head + name for name in pages("conventions")]
        case "P" | "NAME":
            from symflops.training.devices.peaks import table, words

            return {"-".join(words(row.name)) for row in table() if row.confidence != "U"}
    return []


def specs() -> Iterable[str]:
    """Return the names of all specs, and of the variants, published models and repositories that one thing alone has."""
    from collections import Counter

    from symflops.library.catalog import catalogs
    from symflops.library.names import models_in, repositories_in, specs_in, variants_in

    found = catalogs()
    others = (
        entry.names[place]
        for entries, place in ((variants_in, -1), (models_in, 0), (repositories_in, 0))
        for entry in entries(found)
    )
    return [*(entry.spec for entry in specs_in(found)), *(name for name, count in Counter(others).items() if count == 1)]
