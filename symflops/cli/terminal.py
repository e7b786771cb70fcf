"""Output on a terminal: its width, colours, tables with numbers to the right, and lines that are cut where they may be.

The streams of a command: closed ones become empty ones, and words of a user are shown, never obeyed, by a terminal.
"""

from __future__ import annotations

import os
import sys

from symflops.evaluate import units
from symflops.support.errors import cut, escaped, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    Argument = Callable[[Any], object]


def argument(*names: str, **options: Any) -> Argument:
    """Declare an argument with the parameters of :meth:`argparse.ArgumentParser.add_argument`."""
    return lambda parser: parser.add_argument(*names, **options)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Group arguments of which a command line may have only one; if ``required``, it must have one."""
    return lambda parser: arguments_of(*arguments)(parser.add_mutually_exclusive_group(required=required))


def arguments_of(*arguments: Argument) -> Callable[[argparse.ArgumentParser], None]:
    """Build the ``configure`` function of a command, which adds its arguments to a parser."""

    def configure(parser: argparse.ArgumentParser) -> None:
        for add in arguments:
            add(parser)

    return configure


def group(title: str, *arguments: Argument) -> Argument:
    """Group arguments under a title of their own in the help."""
    return lambda parser: arguments_of(*arguments)(parser.add_argument_group(title))


SPEC = argument("spec", metavar="SPEC", help="a model: a name ('symflops list models'), or a path")
SPEC_OR_CONFIG = arguments_of(
    argument("spec", nargs="?", metavar="SPEC", help="a model: a name ('symflops list models'), or a path"),
    argument("--lenient", action="store_true", help="let a config without a class have numbers that nothing reads"),
)
SPECS = argument("specs", nargs="*", metavar="SPEC", help="names or paths; default: all")
SET = argument("--set", action="append", metavar="FIELD=VALUE", help="another value for a field of the config; may be repeated")
CONFIG = arguments_of(
    argument("--config", metavar="PATH", help="config.json, model_index.json, a folder with one, or JSON"),
    SET,
)
STRUCTURE = arguments_of(
    argument("--config", metavar="PATH", help="a page for this config: its conditions are decided"),
    SET,
)
ASSUME = argument("--assume", default="", metavar="N=V,..", help='sizes to put into formulas, e.g. "qk_norm=null, K=0"')
NUMERIC = argument("--numeric", action="store_true", help="formulas with numbers: of --config, or of the defaults")
BATCH = arguments_of(
    argument("--batch", metavar="B", help="lengths: 8192, 8192*8, {text: [8192]}, @FILE; default: one typical item"),
    group(
        "images and videos, in place of lengths; --batch is then the number of samples",
        argument("--height", metavar="PX", help="pixels, which the rule of the model's pipeline turns into lengths"),
        argument("--width", metavar="PX", help="pixels"),
        argument("--frames", metavar="N", help="frames of a video"),
        argument("--prompt", metavar="N", help="tokens of the prompt, as the pipeline pads it"),
        argument("--pipeline", metavar="NAME", help="a pipeline of PIPELINES.md, e.g. kontext (default: the usual one)"),
        argument("--guidance", action="store_true", help="classifier-free guidance: each sample runs twice"),
    ),
)
REGIME = argument("--regime", default="full", metavar="R", help="what trains (default: full)")
CONVENTION = argument("--convention", default="symflops", metavar="C", help="what is counted (default: symflops)")
UNIT = argument(
    "--unit", default="flops", choices=("flops", "macs"), help="a MAC is two FLOPs; norms and activations have none"
)
OVER = argument("--over", metavar="STREAM", help="the stream whose items grow in the picture (default: the first)")
JSON = argument("--json", action="store_true", help="print a JSON object")


NARROWEST, LONGEST_BATCH = 40, 600
STYLES = {"bold": "1", "dim": "2", "cyan": "36"}

OWN = tuple(f"\033[{style}m" for style in ("0", *STYLES.values(), "1;31", "1;33", "1;34", "1;36"))
"""The sequences by which a command styles text on a terminal."""


def width() -> int:
    """Return the width of a line in characters: ``COLUMNS``, else the width of the terminal, else 80."""
    text = os.environ.get("COLUMNS", "")
    try:
        found = int(text) if text.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # not a terminal
        found = 80
    return max(found, NARROWEST) if found else 80


def line_width() -> int:
    """Return :func:`width` on a terminal or if ``COLUMNS`` is set; ``sys.maxsize`` for a file or a pipe."""
    return width() if os.environ.get("COLUMNS") or sys.stdout.isatty() else sys.maxsize


def styled(text: str, style: str) -> str:
    """Style ``text`` if standard output is a terminal and ``NO_COLOR`` is not set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    return text if plain or not text.strip() else f"\033[{STYLES[style]}m{text}\033[0m"


def tell(text: object) -> None:
    """Print a message of a command to standard error; ignore a failure to print, so that the answer stays."""
    import contextlib

    with contextlib.suppress(OSError, ValueError):
        print(f"symflops: {text}", file=sys.stderr, flush=True)


def scaled(value: int) -> str:
    """Format a number with an SI prefix, padded to a fixed width."""
    number, _, prefix = units.scaled(value).partition(" ")
    return f"{number:>9} {prefix}"


def heading_of(args: argparse.Namespace, name: str) -> str:
    """Return the name by which the model of a command line was asked for, else ``name``."""
    return getattr(args, "asked", "") or name


def of_batch(batch: Mapping[str, Any]) -> str:
    """Format a batch as JSON; the middle of a long text is cut out."""
    import json

    return f"batch {cut(json.dumps(batch), LONGEST_BATCH)}"


def fitted(text: str, most: int) -> str:
    """Shorten ``text`` to at most ``most`` characters by cutting its middle."""
    if len(text) <= most:
        return text
    head = max(most - 1, 0) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}" if most > 1 else "…"


def columns(rows: Sequence[Sequence[str]], most: int) -> list[str]:
    """Format rows as lines of at most ``most`` characters.

    The first cell is left-aligned and shortened to fit, the others are right-aligned. The first line is bold.
    """
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    first = min(widths[0], max(most - sum(2 + one for one in widths[1:]), 8))
    lines = [
        "  ".join([fitted(row[0], first).ljust(first), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    head, *rest = (line.rstrip() for line in lines)
    return [styled(head, "bold"), *rest]


def place_to_cut(text: str, room: int) -> int:
    """Return the index of the space in the first ``room`` characters at which to break a line, or -1.

    Preferred are spaces inside few brackets, then those before a plus or minus, then later ones.
    """
    depth, found = 0, []
    for place, mark in enumerate(text[: room + 1]):
        depth += (mark == "(") - (mark == ")")
        if mark == " " and place > room // 2:
            found.append((depth, text[place + 1 : place + 3] not in ("+ ", "- "), -place))
    return -min(found)[2] if found else -1


def wrapped(text: str, most: int, first: str = "", rest: str = "") -> list[str]:
    """Wrap ``text`` to lines of ``most`` characters; ``first`` begins the first, ``rest`` all others.

    Lines break at spaces, in formulas at those inside the fewest brackets. A formula without spaces breaks at an operator.
    """
    lines: list[str] = []
    head = first
    while len(head) + len(text) > most:
        room = max(most - len(head), 8)
        cut = place_to_cut(text, room)
        if cut < 0 and not lines and len(rest) < len(first):  # the first word does not fit after a long head
            lines.append(head.rstrip())
            head = rest
            continue
        if cut < 0:
            cut = max(text.rfind(mark, 0, room) for mark in " *,(|.=/") + 1 or room
            cut -= text[cut - 1 : cut + 1] == "**" and cut > 1
        if not text[cut:].strip():
            break
        lines.append((head + text[:cut]).rstrip())
        text, head = text[cut:].lstrip(), rest
    return [*lines, (head + text).rstrip()]


class Shown:
    """Wrapper of an output stream that escapes control characters.

    For the stream of messages it also shortens long lines.
    """

    def __init__(self, stream: Any, messages: bool) -> None:
        self._stream, self._messages = stream, messages

    def write(self, text: str) -> int:
        """Write a text with control characters escaped; on a terminal, styles of commands are kept."""
        self._stream.write(self._shown(text) if not text.isprintable() or len(text) > 1000 else text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each text with :meth:`write`."""
        for line in lines:
            self.write(line)

    def _shown(self, text: str) -> str:
        if not self._stream.isatty():
            return self._plain(text)
        first, *rest = text.split("\033")
        found = [self._plain(first)]
        for part in rest:
            own = next((one[1:] for one in OWN if part.startswith(one[1:])), None)
            found.append(self._plain(f"\033{part}") if own is None else f"\033{own}{self._plain(part[len(own) :])}")
        return "".join(found)

    def _plain(self, text: str) -> str:
        if self._messages:
            head, tail = "\r" * text.startswith("\r"), "\r" * text.endswith("\r")  # of progress, which rewrites its line
            return head + shown(text.strip("\r") if head or tail else text) + tail
        return "\n".join([escaped(line) for line in text.split("\n")])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Streams:
    """Context that opens closed standard streams and escapes their output, and restores them on exit."""

    def __enter__(self) -> None:
        self.before = sys.stdin, sys.stdout, sys.stderr
        closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
        if closed:
            null = os.open(os.devnull, os.O_RDWR)
            while null <= 2:  # a file that is opened later must not take the number of a standard stream
                null = os.dup(null)
            for name in closed:
                setattr(sys, name, os.fdopen(os.dup(null), "r" if name == "stdin" else "w", encoding="utf-8"))
            os.close(null)
        for stream in (sys.stdout, sys.stderr):
            if str(getattr(stream, "encoding", "utf-8")).lower().replace("-", "") != "utf8" and hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8")  # other encodings lack characters of formulas
        sys.stdout, sys.stderr = Shown(sys.stdout, False), Shown(sys.stderr, True)

    def __exit__(self, *_: object) -> None:
        sys.stdin, sys.stdout, sys.stderr = self.before
