"""``symflops``: runs a command, and turns errors of a user into a message and an exit code.

Exit codes: 0 fine, 1 findings or drift, 2 usage, bad batch, unknown spec or stream, 3 a fault of symflops itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

ASK, TRAIN, AUTHOR, MAINTAIN = (
    {
        "estimate": "parameters and FLOPs of a model for a batch",
        "explain": "where the FLOPs of a model go, module by module",
        "mfu": "model FLOPs utilisation of a step",
        "budget": "device-hours of a training on N tokens or samples",
        "compare": "one model under several regimes, or conventions",
        "growth": "where attention overtakes, and what one more token or layer costs",
        "diff": "two models as a difference, cause by cause",
        "list": "the specs, regimes, conventions and devices that there are",
        "solve": "one size or length of a model at a budget of FLOPs",
        "lengths": "lengths of a batch from pixels, frames and tokens of the prompt",
    },
    {
        "corpus": "what a table of lengths costs, in one scan for any models",
        "vendor": "an estimator in the form that a training framework asks for",
        "device": "the peak rate of a device, and its source",
    },
    {
        "new": "begin a spec, as a small decoder or like another one",
        "check": "check specs and show every mistake in them",
        "verify": "compare specs with the real models, or with measured records",
        "draft": "write a spec from a real module, and prove it",
        "skeleton": "a plain PyTorch module of a spec, to run, count and train",
        "trace": "closed forms of a real class, by running it with symbols",
        "render": "the derivation of a model, as LaTeX or Markdown",
        "graph": "the graph of a model, as Mermaid or DOT",
        "site": "pages with calculators for all models, and an index",
    },
    {
        "generate": "derive specs and write estimators and derivations",
        "census": "which fields of a class's config a spec describes",
        "reading": "write how the classes of specs read a config",
        "conform": "derive other frameworks' figures",
        "migrate": "rewrite specs of an older version of the language",
        "schema": "the JSON Schema of specs, for editors",
        "cache": "where derived programs are kept, and clearing them",
        "completion": "completion of commands for a shell",
    },
)
GROUPS = {
    "ask what a model costs": ASK,
    "train with it": TRAIN,
    "author specs and pages": AUTHOR,
    "maintain the library": MAINTAIN,
}
"""Commands by what they are for; within a group the ones that most people use come first."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}

EXAMPLE = "symflops estimate llama-3.1-8b --batch 8192"


def overview() -> str:
    """Return the help on all commands, by groups."""
    groups = [
        "\n".join([f"{title}:", *(f"  {name:<10} {text}" for name, text in group.items())]) for title, group in GROUPS.items()
    ]
    head = "usage: symflops COMMAND [...]\n\nParameters and FLOPs of neural networks, derived and verified."
    foot = f"for example: {EXAMPLE}\n'symflops COMMAND --help' tells more; --version prints the version"
    return "\n\n".join([head, *groups, foot])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = [word for word in given if word != "--traceback"]
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0 if words else 2
    from symflops.cli.terminal import Streams

    with Streams():
        return _main(words, len(words) < len(given))


def _main(words: list[str], traceback: bool) -> int:
    if words[0] == "--version":
        from symflops import __version__

        print(f"symflops {__version__}")
        return 0
    if words[0] not in COMMANDS:
        from symflops.support.errors import close_to

        near = close_to(words[0], list(COMMANDS), 1, 0.6)
        hint = f"did you mean '{near[0]}'?" if near else "'symflops --help' lists the commands"
        print(f"symflops: there is no command '{words[0]}': {hint}", file=sys.stderr)
        return 2
    try:
        if not sys.stderr.isatty():
            return _run(words[0], words[1:])
        from symflops.cli.progress import clock

        with clock(f"symflops {words[0]}"):
            return _run(words[0], words[1:])
    except Exception as error:
        if traceback:
            raise
        told = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
        say(f"symflops {words[0]}: internal fault, please report it ({told}); --traceback shows where")
        return 3


def _run(name: str, words: Sequence[str]) -> int:
    import argparse
    import importlib

    module = importlib.import_module(f"symflops.cli.{name}")
    from symflops.cli.terminal import tell, width

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, width=width() - 2)  # argparse imports shutil if no width is given

    text = filled(module.__doc__ or "")

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            super().error(message + hint_for(message, self.format_usage(), self.prog))

    parser = Parser(prog=f"symflops {name}", description=text, formatter_class=formatter)
    module.configure(parser)
    from symflops.support.errors import SymflopsError

    try:
        args = parser.parse_args(words)
        if any(getattr(args, name, None) for name in ("spec", "specs", "config")):
            from symflops.library.naming import resolve, with_head

            args.note = resolve(args)
            text = getattr(args, "batch", None) or ""
            if ("head" in text or text.startswith("@")) and hasattr(args, "regime"):
                from symflops.evaluate.batch_text import batch_of

                args.regime = with_head(args, batch_of(text, tell=lambda _: None))
        code = int(module.run(args))
        sys.stdout.flush()
        if getattr(args, "note", ""):
            tell(args.note)
        return code
    except SymflopsError as error:
        say(str(error) if error.exit_code == 1 else f"symflops {name}: {error}")
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        say(f"symflops {name}: {_exit_for(error)}")
        return 2


def hint_for(message: str, usage: str, prog: str) -> str:
    """Return a hint for words that no argument takes, else ``""``; ``message`` is argparse's, ``usage`` that of the command."""
    import re

    from symflops.support.errors import did_you_mean

    word, options = message.partition("unrecognized arguments: ")[2].partition(" ")[0], re.findall(r"--[\w-]+", usage)
    lengths = "lengths follow --batch, e.g. --batch '8192*8'" if "--batch" in options else f"'{prog} --help' lists the options"
    if word.startswith("-"):
        return f": {did_you_mean(word, options, lengths)}"
    if word[:1].isdigit():
        return f": {lengths}"
    return ": it takes one model; 'symflops diff A B' compares two" if word and "SPEC" in usage else ""


def filled(text: str) -> str:
    """Wrap the paragraphs of a help text to the terminal; lines that are indented, such as examples, stay as they are."""
    from symflops.cli.terminal import width, wrapped

    found: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        lines, prose = paragraph.split("\n"), list[str]()
        for line in [*lines, ""]:
            if line and not line.startswith(" "):
                prose.append(line)
                continue
            if prose:
                found += wrapped(" ".join(prose), width() - 2)
            found, prose = [*found, line], []
    return "\n".join(found).rstrip()


def say(text: str) -> None:
    """Print a message to standard error; ignore a failure to print, so that the exit code stays."""
    import contextlib

    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _exit_for(error: OSError) -> str:
    """Describe an OSError; if standard output failed, redirect it so that its buffer is dropped."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # drop the rest of the output buffer
    return reason


if __name__ == "__main__":
    sys.exit(main())
