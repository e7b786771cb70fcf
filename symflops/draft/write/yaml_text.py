"""Prints entries of a spec as YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.read.language import HERE

WIDTH = 128
BARE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*+-/() ")
WORDS = {"y", "n", "yes", "no", "on", "off", "null", "~"}


def quoted(value: Any) -> str:
    """Value as YAML flow text on one line, quoted where necessary."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(key)}: {quoted(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(quoted(item) for item in value) + "]"
    text = str(value)
    return text if is_bare(text) else '"' + text.replace('"', "'") + '"'


def is_bare(text: str) -> bool:
    """Whether a text needs no quotes."""
    if not text or not set(text) <= BARE or text[0] in "-*. " or text.lower() in WORDS or text[-1] == " ":
        return False
    return not text[0].isdigit() or text.replace(".", "").isdigit() or bool(set(text) & set("*/+( "))


def lines_of(entries: Sequence[Any], indent: int) -> list[str]:
    """YAML lines of entries and their bodies, indented."""
    pad = " " * indent
    found: list[str] = []
    for key, fields in entries:
        head = {name: value for name, value in fields.items() if name != "graph"}
        path = "" if key == HERE else f"{quoted(key)}: "
        if "graph" not in fields:
            found += wrapped(f"{pad}- {path}", head, indent + 4)
            continue
        inner = indent + (4 if path else 2)
        lines = [f"{name}: {quoted(value)}" for name, value in head.items()] + ["graph:"]
        lines = [f"{' ' * inner}{line}" for line in lines]
        found += [f"{pad}- {path.rstrip()}", *lines] if path else [f"{pad}- {lines[0].lstrip()}", *lines[1:]]
        found += lines_of(fields["graph"], inner + 2)
    return found


def wrapped(head: str, fields: Mapping[str, Any], indent: int) -> list[str]:
    """YAML lines of a mapping in braces after ``head``, wrapped at the line width."""
    text = ", \0".join(f"{quoted(name)}: {quoted(value)}" for name, value in fields.items())
    lines, line = [], head + "{"
    for piece in f"{text}}}".split("\0"):
        if len(line) + len(piece) > WIDTH and line.strip() != "{" and len(line) > indent + 2:
            lines.append(line.rstrip())
            line = " " * (indent + 2)
        line += piece
    return [*lines, line]
