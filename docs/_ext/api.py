"""The functions and classes for programs as Markdown, read from their signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

SECTIONS = {"Args": "Arguments", "Attributes": "Attributes", "Returns": "Returns", "Raises": "Raises", "Yields": "Yields"}
ROLE = re.compile(r":\w+:`~?([^`]*)`")


def entry(path: str, *members: str) -> str:
    """A function, or a class with some of its members: ``entry symflops.Model derive estimator``."""
    thing = found(path)
    parts = [f"### `{path}`", *described(path.rpartition(".")[2], thing)]
    for name in members:
        parts += [f"#### `{path.rpartition('.')[2]}.{name}`", *described(name, inspect.getattr_static(thing, name))]
    return "\n\n".join(parts)


def found(path: str) -> Any:
    """What stands at a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def described(name: str, thing: Any) -> Iterator[str]:
    """The signature and the docstring of a function, class, property or method."""
    inner = thing.fget if isinstance(thing, property) else getattr(thing, "__func__", getattr(thing, "func", thing))
    if isinstance(thing, property):
        yield f"`{name}` -> `{plain(inspect.signature(inner).return_annotation)}`"
    elif not is_dataclass(thing) and not (inspect.isclass(thing) and issubclass(thing, BaseException)):
        yield signature(name, inner)
    yield from prose(inspect.getdoc(inner) or "")


def signature(name: str, thing: Any) -> str:
    """A call, with types and defaults as they are written."""
    whole = inspect.signature(thing)
    parts, kinds = [], [one.kind for one in whole.parameters.values()]
    for one in whole.parameters.values():
        if one.name in ("self", "cls"):
            continue
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        if one.kind is one.KEYWORD_ONLY and one.VAR_POSITIONAL not in kinds and "*" not in parts:
            parts.append("*")
        kind = "" if one.annotation is one.empty else f": {plain(one.annotation)}"
        default = "" if one.default is one.empty else f" = {shown(one.default)}"
        parts.append(f"{star}{one.name}{kind}{default}")
    result = "" if whole.return_annotation is whole.empty or inspect.isclass(thing) else f" -> {plain(whole.return_annotation)}"
    return f"`{name}({', '.join(parts)}){result}`"


def plain(annotation: Any) -> str:
    """A type as it is written."""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def shown(value: Any) -> str:
    """A default; ``...`` for one without a readable text."""
    text = repr(value)
    return "..." if " at 0x" in text or text.startswith("<") else text


def prose(text: str) -> Iterator[str]:
    """A docstring as Markdown: sections become lists, doctests and indented lines code."""
    for part in re.split(r"\n\n(?=\S)", text):
        head, _, body = part.partition("\n")
        if (title := SECTIONS.get(head.removesuffix(":"))) and body:
            yield f"{title}:\n\n" + "\n".join(items(textwrap.dedent(body)))
        elif part.startswith(">>> "):
            yield f"```python\n{part}\n```"
        else:
            yield converted(part)


def items(body: str) -> Iterator[str]:
    """The lines ``name: text`` of a section as a list; a text may go on below, indented."""
    for item in re.split(r"\n(?=\S)", body.strip()):
        words = " ".join(line.strip() for line in item.splitlines())
        name, colon, rest = words.partition(": ")
        yield f"- `{name}`: {converted(rest)}" if colon and re.fullmatch(r"\*{0,2}[\w., ]+", name) else f"- {converted(words)}"


def converted(text: str) -> str:
    """Marked names of a docstring as Markdown's."""
    return ROLE.sub(r"`\1`", text).replace("``", "`")
