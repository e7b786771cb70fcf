"""What a terminal shows: its width, colours, tables with numbers to the right, and lines that are cut where they may be."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

NARROWEST, LONGEST_BATCH = 40, 600
STYLES = {"bold": "1", "dim": "2", "cyan": "36"}


def width() -> int:
    """The columns of a line: the variable ``COLUMNS``, else those of the terminal, else 80."""
    text = os.environ.get("COLUMNS", "")
    try:
        found = int(text) if text.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # not a terminal
        found = 80
    return max(found, NARROWEST) if found else 80


def line_width() -> int:
    """The columns of a line on a terminal, or of ``COLUMNS``; lines of a file or of a pipe have no end."""
    return width() if os.environ.get("COLUMNS") or sys.stdout.isatty() else sys.maxsize


def styled(text: str, style: str) -> str:
    """``text`` in a style, on a terminal whose user does not refuse colours (``NO_COLOR``)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    return text if plain or not text.strip() else f"\033[{STYLES[style]}m{text}\033[0m"


def scaled(value: int) -> str:
    """A number with four digits and an SI prefix."""
    for power, prefix in ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:9.3f} {prefix}"
    return f"{value:9d} "


def short(value: int) -> str:
    """A number as :func:`scaled` writes it, without spaces around it."""
    return scaled(value).strip()


def of_batch(batch: Mapping[str, Any]) -> str:
    """A batch as text; of a long one, the beginning and the end."""
    import json

    from symflops.diagnostics.errors import cut

    return f"batch {cut(json.dumps(batch), LONGEST_BATCH)}"


def fitted(text: str, most: int) -> str:
    """``text`` with at most ``most`` characters: a longer one loses its middle."""
    if len(text) <= most:
        return text
    head = max(most - 1, 0) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}" if most > 1 else "…"


def columns(rows: Sequence[Sequence[str]], most: int, style: Callable[[int, str], str] | None = None) -> list[str]:
    """Rows as lines of at most ``most`` characters: the first cell to the left, and shortened to fit; the others to the right.

    ``style`` may colour a line, by its position.
    """
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    first = min(widths[0], max(most - sum(2 + one for one in widths[1:]), 8))
    lines = [
        "  ".join([fitted(row[0], first).ljust(first), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    lines = [line.rstrip() for line in lines]
    return [style(place, line) for place, line in enumerate(lines)] if style else lines


def place_to_cut(text: str, room: int) -> int:
    """The space at which a line of ``room`` characters ends: in few parentheses, before a sign, the last one; -1 for none."""
    depth, found = 0, []
    for place, mark in enumerate(text[: room + 1]):
        depth += (mark == "(") - (mark == ")")
        if mark == " " and place > room // 2:
            found.append((depth, text[place + 1 : place + 3] not in ("+ ", "- "), -place))
    return -min(found)[2] if found else -1


def wrapped(text: str, most: int, first: str = "", rest: str = "") -> list[str]:
    """``text`` as lines of at most ``most`` characters, after ``first`` and, from the second line on, after ``rest``.

    Lines end at spaces, of a formula in few parentheses; a formula without spaces ends at an operator.
    """
    lines: list[str] = []
    head = first
    while len(head) + len(text) > most:
        room = max(most - len(head), 8)
        cut = place_to_cut(text, room)
        if cut < 0 and not lines and len(rest) < len(first):  # the first word has no place behind a long head
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
