"""A draft as a document: sizes, streams, inputs, graph, and comments on dimensions without a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.symbols import Names
from symflops.draft.sample.samples import Family
from symflops.draft.write.dimensions import Unsolved
from symflops.draft.write.graph import Style, write_graph
from symflops.draft.write.values import Val, Values, identifier
from symflops.read.edits import unquoted
from symflops.read.yaml_nodes import HERE, LANGUAGE
from symflops.verify.census.fields import value_at

WIDTH = 128
BARE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*+-/() ")
WORDS = {"y", "n", "yes", "no", "on", "off", "null", "~"}
MOST_VALUES = 12


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
    """YAML lines of entries and their bodies, indented by ``indent`` spaces."""
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
    """YAML lines of ``head`` and a mapping in braces, wrapped at ``WIDTH``; later lines have ``indent + 2`` spaces."""
    text = ", \0".join(f"{quoted(name)}: {quoted(value)}" for name, value in fields.items())
    lines, line = [], head + "{"
    for piece in f"{text}}}".split("\0"):
        if len(line) + len(piece) > WIDTH and line.strip() != "{" and len(line) > indent + 2:
            lines.append(line.rstrip())
            line = " " * (indent + 2)
        line += piece
    return [*lines, line]


def words_of(texts: Iterable[str]) -> set[str]:
    """Names and numbers in expressions."""
    return set("".join(one if one.isalnum() or one == "_" else " " for one in " ".join(texts)).split())


def declared(values: Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """(Stream -> axes, input -> fields of its declaration).

    Axes are a list of names, or a dict with the text of each length. An input that is not read is declared only if it has a
    length that no other input has.
    """
    streams: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    by_axes: dict[str, str] = {}
    plan, names, read = values.plan, values.dims.names, values.inputs
    seen: set[str] = set()
    for name in sorted(plan.inputs, key=lambda name: name not in read):
        own = [length for slot, length in names.dims.items() if ".".join(map(str, slot.key[:-2])) == name]
        axes = axes_of(name, read[name], values) if name in read else {one: one for one in own if one in names.lengths}
        if name not in read and axes.keys() <= seen:
            continue
        seen |= words_of(axes.values()) & names.lengths.keys()
        key = quoted(axes)
        if key not in by_axes:
            by_axes[key] = stream_name(identifier(name), streams, plan.words.get(name, ""), axes)
            streams[by_axes[key]] = list(axes) if all(axis == text for axis, text in axes.items()) else axes
        inputs[identifier(name)] = input_fields(name, by_axes[key], values)
    lacking = names.lengths.keys() - words_of(map(quoted, streams.values()))  # a layout may only use lengths of streams
    for fields in inputs.values():
        if lacking & set(fields.get("layout", "").split()):
            del fields["layout"]
    return streams, inputs


def input_fields(name: str, stream: str, values: Values) -> dict[str, Any]:
    """Fields of an input's declaration: ``stream``, ``width`` if it has one, ``layout`` if it is known."""
    value = values.inputs.get(name)
    width = {"width": values.dims.text(value.width, name)} if value is not None and value.width else {}
    layout = layout_of(name, values.dims.family, values.dims.names, width.get("width", ""))
    return {"stream": stream, **width, **({"layout": layout} if layout else {})}


def axes_of(name: str, value: Val, values: Values) -> dict[str, str]:
    """Axes of an input: name -> text of the length of this axis.

    They are those of a convolution that reads the input or has as many rows. Otherwise, if its rows are a product of
    lengths, each of these is an axis; else it has one axis ``m``, or none for a single row.
    """
    streams, dims = values.streams, values.dims
    if name in streams.of_inputs:
        return streams.of_inputs[name]
    if value.rows in streams.grids:
        return streams.per_item(value.rows)
    text = dims.text(value.rows, name)
    lengths = text.split("*")
    if set(lengths) <= set(dims.names.lengths):
        return {one: one for one in lengths}
    return {} if text == "1" else {"m": text}


def stream_name(name: str, taken: Mapping[str, Any], dtype: str, axes: Mapping[str, str]) -> str:
    """Name for the stream of an input, not among ``taken``: the usual one, else the input's own name."""
    found = usual_name(name, dtype) if axes else "sample"
    if found in taken:
        found = name
    while found in taken:
        found += "_"
    return found


def usual_name(name: str, dtype: str) -> str:
    """Usual stream name for an input, such as text, target, prompt, images, audio or latent."""
    if "int" in dtype:
        return "text" if "decoder" not in name else "target"
    if "encoder" in name:
        return "prompt"
    if name.startswith(("pixel", "image")):
        return "images"
    return "audio" if "audio" in name or name.startswith("input_") else "latent"


def layout_of(name: str, family: Family, names: Names, width: str) -> str:
    """Layout of an input: ``b``, length, size or number of each dimension; empty if one has none of these."""
    words: list[str] = []
    shapes = [sample.plan.inputs.get(name, ()) for sample in family.samples]
    for place, sizes in enumerate(zip(*shapes, strict=False)):
        known = next((one for one, vector in names.vectors.items() if vector == sizes), "")
        if place == 0 and sizes == names.batch:
            words.append("b")
        elif len(set(sizes)) == 1:
            words.append(str(sizes[0]))
        elif not known or "[" in known:
            return ""
        else:  # one word is the width; a size that is another dimension is written as a product
            words.append(known if known in names.lengths or (known == width and known not in words) else f"1*{known}")
    return " ".join(words)


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
