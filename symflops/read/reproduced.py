"""Reads which version of a framework a convention reproduces; imports no sympy, since meters use this."""

from __future__ import annotations

import re
from dataclasses import fields

from symflops.ir.reproduced import Reproduced
from symflops.read.shapes import Shapes
from symflops.read.spec_files import page, pages
from symflops.read.yaml_nodes import Mapping, Node, read_yaml
from symflops.support.findings import Reporter

FIELD = "reproduces"
NAMES = tuple(field.name for field in fields(Reproduced))
NEEDED = ("of", "version", "date")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def reproduced_by(name: str) -> Reproduced | None:
    """The framework version that a shipped convention reproduces; None if it names none or is not shipped."""
    node = read_yaml(page("conventions", name)) if name in pages("conventions") else None
    return reproduced(node.get(FIELD) if isinstance(node, Mapping) else None, Reporter())


def reproduced(node: Node | None, report: Reporter) -> Reproduced | None:
    """Read ``reproduces``, None if absent; reports fields that it lacks, and an invalid date."""
    if node is None:
        return None
    shapes = Shapes(report)
    given = shapes.known(node, NAMES, f"'{FIELD}'")
    found = Reproduced(**{name: shapes.prose(given.get(name), f"'{name}'") for name in NAMES})
    missing = next((name for name in NEEDED if not getattr(found, name)), "")
    if missing:
        report.error("missing-field", f"'{FIELD}' needs '{missing}'", node.span, "the framework, its version, and the date")
    elif not DATE.fullmatch(found.date):
        report.error("bad-shape", "this is no date", given["date"].span, "as 2026-08-22")
    return found
