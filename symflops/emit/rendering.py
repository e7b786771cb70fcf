"""The Jinja environment: templates only place text, and an unknown variable raises an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def environment() -> Environment:
    """Jinja environment of all templates; its delimiters occur in neither Python nor LaTeX."""
    found = Environment(
        loader=PackageLoader("symflops.emit", "templates"),
        undefined=StrictUndefined,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # each target escapes for its own language
    )
    found.filters |= {"tuple_of": tuple_of, "dict_of": dict_of, "json": json.dumps}
    return found


def tuple_of(items: Iterable[str]) -> str:
    """Print strings as a Python tuple literal."""
    return tuple_text([json.dumps(item) for item in items])


def tuple_text(cells: Sequence[str]) -> str:
    """Print expressions as a Python tuple; a single one gets a trailing comma."""
    return f"({', '.join(cells)}{',' if len(cells) == 1 else ''})"


def dict_of(items: Iterable[tuple[str, str]]) -> str:
    """Print pairs of strings as a Python dictionary literal."""
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in items) + "}"


def template(name: str) -> Template:
    """The template called ``name``."""
    return environment().get_template(name)
