"""Figures of a spec at its defaults in one line, and what changed against the spec that it extends or was copied from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import suppress

from symflops.analysis.stated import Sized
from symflops.api import Model, load
from symflops.evaluate.config import as_json
from symflops.read.field_tables import EXTENDS
from symflops.read.spec_files import SpecFile
from symflops.read.yaml_nodes import Mapping, Scalar, read_yaml
from symflops.support.findings import SymflopsError

WIDTH = 80
UNITS = {"parameters": "{} parameters", "active": "{} active", "flops_per_token": "{}FLOPs per token"}
PREFIXES = ("", "k", "M", "B", "T", "P", "E")


def rounded(value: int) -> str:
    """Format a count with three digits and a prefix.

    >>> rounded(6_738_415_616), rounded(999_999), rounded(12)
    ('6.74 B', '1 M', '12')
    """
    digits, _, exponent = f"{value:.2e}".partition("e")
    prefix, shift = divmod(int(exponent), 3)
    return f"{float(digits) * 10**shift:.3g} {PREFIXES[prefix]}".rstrip()


def amount(name: str, value: int) -> str:
    """Format the figure ``name`` as its unit continues it: ``6.74 B`` parameters, ``40.4 G`` before FLOPs."""
    found = rounded(value)
    return found if name != "flops_per_token" else found.replace("B", "G") if " " in found else f"{found} "


def figures_of(model: Model) -> dict[str, int]:
    """Derive the figures of a spec at its defaults, by the names of ``expect``; those that need a missing size are left out."""
    sized, found = Sized(model, {}), {}
    for name in UNITS:
        with suppress(SymflopsError):
            found[name] = sized.figure(name)
    return found


def headline(file: SpecFile, parent: SpecFile | None = None) -> str:
    """Format the figures of a spec at its defaults, and the change against ``parent`` or the spec that it extends.

    The text is empty if the defaults do not decide any figure.
    """
    model, other = load(file), parent or base_of(file)
    found = figures_of(model)
    if not found:
        return ""
    figures = ", ".join(UNITS[name].format(amount(name, value)) for name, value in found.items())
    lines = [f"{file.name} at its defaults: {figures}", *(change(model, found, load(other)) if other else ())]
    return "\n".join(line for text in lines for line in textwrap.wrap(text, WIDTH, subsequent_indent="  "))


def base_of(file: SpecFile) -> SpecFile | None:
    """Find the spec that a spec extends; None if it extends none."""
    node = read_yaml(file.source())
    name = node.get(EXTENDS.name) if isinstance(node, Mapping) else None
    return file.other(name.text) if isinstance(name, Scalar) else None


def change(model: Model, found: dict[str, int], parent: Model) -> Iterator[str]:
    """Yield a sentence on the sizes that a spec adds to ``parent`` or gives other defaults, and on the figures that differ."""
    before = figures_of(parent)
    if not before:
        return
    differ = [name for name in found if name in before and found[name] != before[name]]
    parts = [UNITS[name].format(f"{amount(name, before[name])} -> {amount(name, found[name])}") for name in differ]
    own, theirs = (Sized(one, {}).estimator.sizes for one in (model, parent))
    known = {size.name.text for size in parent.spec.sizes}
    docs = {size.name.text: size.doc for size in model.spec.sizes}
    same = {letter for letter in own if (own[letter] == theirs.get(letter) if letter in theirs else letter in known)}
    other = (letter for letter in docs if letter in own and letter not in same)
    new = ", ".join(f"{letter} = {as_json(own[letter])}" + f" ({docs[letter]})" * bool(docs[letter]) for letter in other)
    yield f"{parent.spec.name}{f' with {new}' if new else ''}: {', '.join(parts) or 'the same figures'}"
