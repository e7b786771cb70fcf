"""A draft as a document: sizes, streams, inputs, graph, and comments on dimensions without a formula."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.symbols import Names, value_at
from symflops.draft.sample.family import Family
from symflops.draft.write.declarations import declared, words_of
from symflops.draft.write.graph import Style, write_graph
from symflops.draft.write.scopes import Unsolved
from symflops.draft.write.values import Values
from symflops.draft.write.yaml_text import WIDTH, lines_of, quoted, wrapped
from symflops.read.edits import unquoted
from symflops.read.language import LANGUAGE

MOST_VALUES = 12


@dataclass(frozen=True, slots=True)
class Document:
    """A spec as data.

    Attributes:
        title: The name of the class.
        reference: The class as a spec refers to it; empty if it is not in a known library.
        sizes: Letter of a size -> fields of its declaration, such as ``key`` and ``default``.
        derived: Letter -> expression, for sizes that are not fields of the config.
        streams: Name -> axes.
        inputs: Name -> fields of its declaration, such as ``stream`` and ``width``.
        entries: The graph, as pairs (path, field -> value); expressions are texts, the field ``graph`` of a repeat or group
            has the entries within.
        outputs: Names of the output values.
        unsolved: Dimensions without a formula.
        lengths: Letter of a length -> path of the input dimension that it is.
    """

    title: str
    reference: str
    sizes: Mapping[str, Mapping[str, Any]]
    derived: Mapping[str, str]
    streams: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, Any]]
    entries: Sequence[Any]
    outputs: Sequence[str]
    unsolved: Sequence[Unsolved] = ()
    lengths: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The document as YAML."""
        lines = [f"language: {LANGUAGE}", f"name: {snake_case(self.title)}", f"title: Draft of {self.title}"]
        if self.reference:
            lines.append(f"reference: {self.reference}")
        if self.sizes:
            lines += ["sizes:", *(f"  {letter}: {quoted(fields)}" for letter, fields in self.sizes.items())]
        if self.derived:
            lines.append(f"derived: {quoted(self.derived)}")
        line = f"streams: {quoted(self.streams)}"
        split = ["streams:", *(f"  {stream}: {quoted(axes)}" for stream, axes in self.streams.items())]
        lines += [line] if len(line) <= WIDTH else split
        lines.append("inputs:")
        for name, fields in self.inputs.items():
            lines += wrapped(f"  {name}: ", fields, 2)
        lines += ["graph:", *lines_of(self.entries, 2), f"outputs: {quoted(self.outputs)}", *comments(self.unsolved)]
        return unquoted("\n".join(lines) + "\n")


def document(
    title: str, reference: str, family: Family, names: Names, fitter: Fitter, style: Style, defaults: Mapping[str, Any]
) -> Document:
    """Write the first sample of a family as a document, with the sizes that it uses.

    Args:
        title: The name of the class.
        reference: The class as a spec refers to it.
        family: The samples.
        names: Symbols for everything that varies between samples.
        fitter: Finds formulas in these symbols.
        style: How the graph is written.
        defaults: The class's default for each field that a config omits.
    """
    values = Values(family, names, fitter)
    entries, outputs = write_graph(values, style)
    streams, inputs = declared(values)
    streams |= values.streams.once
    shown = [*lines_of(entries, 2), *map(quoted, streams.values()), *map(quoted, inputs.values()), *fitter.derived.values()]
    present = words_of(shown)
    present |= words_of(text for letter, text in names.filled.items() if letter in present)
    sizes = sizes_of(present, family, names, defaults)
    derived = {letter: text for letter, text in fitter.derived.items() if letter in present}
    lengths = {name: slot.label for name, slot in names.lengths.items()}
    return Document(title, reference, sizes, derived, streams, inputs, entries, outputs, values.dims.unsolved, lengths)


def sizes_of(present: set[str], family: Family, names: Names, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Letter of a size -> fields of its declaration, in an order in which defaults read earlier letters alone.

    ``present`` are the letters that the document uses.
    """
    sizes: dict[str, Any] = {}
    for letter, key in names.sizes.items():
        if letter in present:
            fields = default_of(key, defaults)
            if letter in names.listed:
                fields = {"type": "list", **({"default": "[]"} if names.listed[letter] else {})}
            elif not fields and isinstance(value_at(family.samples[0].config, key), (list, tuple)):
                fields = {"type": "list"}
            elif "default" not in fields and letter in names.filled:
                fields = {"default": names.filled[letter]}
            sizes[letter] = {"key": ".".join(map(str, key)), **fields}
    return sizes | {letter: sizes.pop(letter) for letter in ordered(names.filled) if letter in sizes}


def default_of(key: Sequence[Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Field ``default`` of the size at ``key``, an integer or the text of a list of integers.

    Empty if ``defaults``, the class's defaults, have neither at this key.
    """
    default = value_at(defaults, key)
    if isinstance(default, (list, tuple)) and all(isinstance(item, int) for item in default):
        return {"default": f"[{', '.join(map(str, default))}]"}
    return {"default": default} if isinstance(default, int) and not isinstance(default, bool) else {}


def ordered(filled: Mapping[str, str]) -> Iterator[str]:
    """Letters of sizes, each after the letters in its default expression.

    ``filled`` maps letters to these expressions.
    """
    left = dict(filled)
    while left:
        letter = next((letter for letter, text in left.items() if not words_of([text]) & left.keys()), next(iter(left)))
        del left[letter]
        yield letter


def snake_case(title: str) -> str:
    """Class name in snake case; consecutive capitals are one word.

    >>> snake_case("OPTForCausalLM")
    'opt_for_causal_lm'
    """
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in title)
    return re.sub("(?<![^_])([^_])_(?=[^_](_|$))", r"\1", re.sub("__+", "_", name).strip("_"))


def comments(unsolved: Sequence[Unsolved]) -> list[str]:
    """YAML comment lines that list the dimensions without a formula."""
    if not unsolved:
        return []
    lines = ["# Dimensions without a formula; the graph has the first value of each:"]
    for one in unsolved:
        values = ", ".join(map(str, one.values[:MOST_VALUES]))
        lines.append(f"#   {one.place}: {values}{', ...' if len(one.values) > MOST_VALUES else ''}"[:WIDTH])
    return lines
