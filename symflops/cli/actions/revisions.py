"""Differences of derived files from those that are there: the figures that move, as text and as Markdown for a pull request."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from symflops.analysis.revision import Moved, moved
from symflops.api import load
from symflops.cli.actions.generate import Output
from symflops.cli.actions.stored_rules import ENDING
from symflops.library.cache import keep, kept, place
from symflops.read.spec_files import SpecFile
from symflops.read.variants import DEFAULT, config_of
from symflops.support.errors import SymflopsError
from symflops.support.files import digest
from symflops.support.reading import json_object, parse_json, read_text

WIDTH, MOST = 80, 6
Revisions = dict[str, list[Moved]]
"""Stem of a generated program that differs from the one that is there -> the figures that move."""


def revisions(out: Path, file: SpecFile, output: Output) -> Revisions:
    """Compare the programs of a spec with those before; programs that are new, or as they were, are left out.

    A program before is the one below ``out``, or that of the module there (:func:`remembered`).
    """
    found: Revisions = {}
    for name, text in output.files.items():
        path = out / name
        if path.suffix != ".json" or name.endswith(ENDING):
            continue
        try:
            before, after = json_object(str(path)) if path.is_file() else remembered(path), parse_json(text, name)
            if before is not None and before != after:
                found[path.stem] = moved(before, after, sizes_of(file, path.stem)) if figures(before) != figures(after) else []
        except SymflopsError:  # what is there is damaged, or was stored under other rules
            continue
    return found


def remembered(path: Path) -> Any:
    """The program of a module that stands without it, such as ``llama.json`` of ``llama.py``; None if it is not known.

    It is in the user's cache if this version of symflops wrote the module as it is there.
    """
    with suppress(OSError):
        found = kept(entry(path))
        if found and path.with_suffix(".py").is_file() and found[0]["module"] == digest(read_text(path.with_suffix(".py"))):
            return parse_json(found[1], str(path))
    return None


def remember(path: Path, program: str, module: str) -> None:
    """Keep the text of a program for :func:`remembered`, if there is a home folder."""
    with suppress(OSError):
        keep(entry(path), program, module=digest(module))


def entry(path: Path) -> Path:
    """The path in the user's cache of a program that would stand at ``path``.

    Raises:
        OSError: there is no home folder.
    """
    return place("modules") / f"{digest(str(path.resolve()))[:16]}.json"


def figures(program: Mapping[str, Any]) -> dict[str, Any]:
    """Drop what moves no figure from a stored program: digests of its sources, and its title."""
    return {key: value for key, value in program.items() if key not in ("sources", "title")}


def sizes_of(file: SpecFile, stem: str) -> dict[str, dict[str, Any]]:
    """Map published sizes to configs: the variant of the program ``stem``, those under ``expect``, or the defaults."""
    spec = load(file).spec
    found = {one.model.name.text: config_of(one.model, spec.sizes) for one in spec.expect if one.model.sizes}
    variant = next((one for one in spec.variants if stem == f"{spec.name}_{one.name}"), None)
    if variant:
        return {variant.name.text: config_of(variant, spec.sizes)} | found
    return found or {f"{DEFAULT}s": {}}


def as_text(found: Revisions) -> Iterator[str]:
    """Yield the lines for a terminal: a heading for each program, and a paragraph for each figure that moves."""
    for name, rows in found.items():
        if rows:
            yield f"{name}:"
        for row in rows:
            ways = f" ({row.ways})" * bool(row.ways)
            sizes = "".join(f"; {size}: {change}" for size, change in row.sizes)
            text = f"{row.figure}{ways}: {row.formula}{sizes}"
            yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    yield from still([name for name, rows in found.items() if not rows], "{}")


def as_markdown(found: Revisions) -> Iterator[str]:
    """Yield the lines of a section for each program: a table of the figures that move."""
    for name, rows in found.items():
        if rows:
            yield from (f"### `{name}`", "", "| figure | difference | change |", "|:--|:--|:--|")
        for row in rows:
            ways = f" ({row.ways})" * bool(row.ways)
            sizes = "<br>".join(f"{size}: {change}" for size, change in row.sizes)
            yield f"| {row.figure}{ways} | `{row.formula}` | {sizes} |"
        yield from [""] * bool(rows)
    yield from still([name for name, rows in found.items() if not rows], "`{}`")


def still(names: Sequence[str], form: str) -> Iterator[str]:
    """Yield the sentence that no figure of the programs ``names`` moves, unless there are none."""
    if names:
        shown = [form.format(name) for name in names[:MOST]] + ([f"{len(names) - MOST} more"] if len(names) > MOST else [])
        yield from textwrap.wrap(f"no figure moves: {', '.join(shown)}", WIDTH, subsequent_indent="  ")
