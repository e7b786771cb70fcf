"""Prints a draft as YAML: sizes, streams, inputs, the graph, and a comment at every dimension that has no formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fit.symbols import Names, value_at
from symflops.draft.sample.family import Family
from symflops.draft.write.graph import Grapher
from symflops.draft.write.writer import Unsolved, identifier

WIDTH = 128
BARE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*+-/() ")
WORDS = {"y", "n", "yes", "no", "on", "off", "null", "~"}
NAMED = {"text": "text", "prompt": "prompt"}


def quoted(value: Any, flow: bool = True) -> str:
    """A text as YAML reads it back."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(key)}: {quoted(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(quoted(item) for item in value) + "]"
    text = str(value)
    plain = text and set(text) <= BARE and text[0] not in "-*. " and text.lower() not in WORDS and text[-1] != " "
    if plain and (
        text.isidentifier()
        or text.replace(".", "").isdigit()
        or text in ("true", "false")
        or not text[0].isdigit()
        or set(text) & set("*/+( ")
    ):
        return text
    return '"' + text.replace('"', "'") + '"'


def lines_of(entries: Sequence[Any], indent: int) -> list[str]:
    """Entries as lines."""
    pad = " " * indent
    found: list[str] = []
    for key, fields in entries:
        body = fields.get("graph")
        head = {name: value for name, value in fields.items() if name != "graph"}
        if body is None:
            found += wrapped(f"{pad}- {quoted(key)}: ", head, indent + 4)
            continue
        found.append(f"{pad}- {quoted(key)}:")
        found += [f"{pad}    {name}: {quoted(value)}" for name, value in head.items()]
        found.append(f"{pad}    graph:")
        found += lines_of(body, indent + 6)
    return found


def wrapped(head: str, fields: Mapping[str, Any], indent: int) -> list[str]:
    """One mapping in braces, broken where the line would be too long."""
    pieces = [f"{quoted(name)}: {quoted(value)}" for name, value in fields.items()]
    lines, line = [], head + "{"
    for place, one in enumerate(pieces):
        last = place == len(pieces) - 1
        text = one + ("}" if last else ", ")
        if len(line) + len(text) > WIDTH and line.strip() not in ("{",) and len(line) > indent + 2:
            lines.append(line.rstrip())
            line = " " * (indent + 2)
        line += text
    return [*lines, line]


@dataclass(frozen=True, slots=True)
class Document:
    """A spec as data: expressions are texts, entries are a path and fields; ``lengths`` are axis -> dimension of an input."""

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
    def name(self) -> str:
        """The title in small letters."""
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in self.title).strip("_")
        while "__" in name:
            name = name.replace("__", "_")
        return squeezed(name)

    @property
    def text(self) -> str:
        """The document as YAML."""
        lines = [f"name: {self.name}", f"title: Draft of {self.title}"]
        if self.reference:
            lines.append(f"reference: {self.reference}")
        if self.sizes:
            lines.append("sizes:")
            lines += [f"  {letter}: {quoted(fields)}" for letter, fields in self.sizes.items()]
        if self.derived:
            lines.append(f"derived: {quoted(self.derived)}")
        line = f"streams: {quoted(self.streams)}"
        apart = ["streams:", *(f"  {stream}: {quoted(axes)}" for stream, axes in self.streams.items())]
        lines += [line] if len(line) <= WIDTH else apart
        lines.append("inputs:")
        for name, fields in self.inputs.items():
            lines += wrapped(f"  {name}: ", fields, 2)
        lines.append("graph:")
        lines += lines_of(self.entries, 2)
        lines.append(f"outputs: {quoted(self.outputs)}")
        return "\n".join([*lines, *notes(self.unsolved)]) + "\n"


def document(
    title: str, reference: str, family: Family, names: Names, writer: Grapher, defaults: Mapping[str, Any]
) -> Document:
    """What a writer finds, with the sizes that it uses."""
    entries, outputs = writer.graph()
    streams, inputs = declared(family, names, writer)
    streams |= writer.apart
    shown = "\n".join([*lines_of(entries, 2), *map(quoted, streams.values()), *map(quoted, inputs.values())])
    shown += " " + " ".join(writer.fitter.derived.values())
    present = words_of(shown)
    present |= {word for letter, text in names.filled.items() if letter in present for word in words_of(text)}
    sizes = {}
    for letter, key in names.sizes.items():
        if letter in present:
            said = default_of(key, family, defaults)
            if letter in names.listed:
                said = {"type": "list", **({"default": "[]"} if names.listed[letter] else {})}
            elif "default" not in said and letter in names.filled:
                said = {"default": names.filled[letter]}
            sizes[letter] = {"key": ".".join(map(str, key)), **said}
    sizes |= {letter: sizes.pop(letter) for letter in ordered(names.filled) if letter in sizes}
    derived = {letter: text for letter, text in writer.fitter.derived.items() if letter in present}
    lengths = {name: slot.label for name, slot in names.lengths.items()}
    return Document(title, reference, sizes, derived, streams, inputs, entries, outputs, writer.unsolved, lengths)


def ordered(filled: Mapping[str, str]) -> Iterator[str]:
    """Letters after those that their expressions are made of."""
    left = dict(filled)
    while left:
        letter = next((letter for letter, text in left.items() if not words_of(text) & left.keys()), next(iter(left)))
        del left[letter]
        yield letter


def words_of(text: str) -> set[str]:
    """The names in a text."""
    return set("".join(one if one.isalnum() or one == "_" else " " for one in text).split())


def default_of(key: Sequence[Any], family: Family, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What the class has for a field, as a size says it."""
    default = value_at(defaults, key)
    example = value_at(family.samples[0].config, key)
    if isinstance(example, (list, tuple)) and not isinstance(default, (list, tuple)):
        default = example
    if isinstance(default, (list, tuple)) and all(isinstance(item, int) for item in default):
        return {"default": f"[{', '.join(map(str, default))}]"}
    return {"default": default} if isinstance(default, int) and not isinstance(default, bool) else {}


def squeezed(name: str) -> str:
    """A name in which capitals in a row are one word."""
    words = name.split("_")
    found: list[str] = []
    for word in words:
        if len(word) == 1 and found and (len(found[-1]) == 1 or found[-1].endswith("\0")):
            found[-1] = found[-1].rstrip("\0") + word + "\0"
        else:
            found.append(word)
    return "_".join(word.rstrip("\0") for word in found)


def notes(unsolved: Sequence[Unsolved]) -> list[str]:
    """Comments about dimensions without a formula."""
    if not unsolved:
        return []
    lines = ["# Dimensions without a formula; the graph has the first value of each:"]
    for one in unsolved:
        values = ", ".join(map(str, one.values[:12]))
        lines.append(f"#   {one.place}: {values}{', ...' if len(one.values) > 12 else ''}"[:WIDTH])
    return lines


def declared(family: Family, names: Names, writer: Grapher) -> tuple[dict[str, Any], dict[str, Any]]:
    """Streams and inputs: every input that is read, and every one that has a length of its own."""
    streams: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    by_axes: dict[str, str] = {}
    plan = family.samples[0].plan
    lengths: dict[str, list[str]] = {".".join(map(str, slot.key[:-2])): [] for slot in names.dims}
    for slot, name in names.dims.items():
        lengths[".".join(map(str, slot.key[:-2]))].append(name)
    used = set(writer.inputs)
    declared_lengths: set[str] = set()
    order = [name for name in plan.inputs if name in used] + [name for name in plan.inputs if name not in used]
    for name in order:
        own = [one for one in lengths.get(name, []) if one in names.lengths]
        value = writer.inputs.get(name)
        if value is None and set(own) <= declared_lengths:
            continue
        if value is None:
            axes: Any = {one: one for one in own}
        elif name in writer.streams:
            axes = writer.streams[name]
        elif value.rows in writer.grids:
            axes = writer.stream(value.rows)
        else:
            text = writer.text(value.rows, name)
            if set(text.split("*")) <= set(names.lengths):
                axes = {one: one for one in text.split("*")}
            else:
                axes = {} if text == "1" else {"m": text}
        declared_lengths.update(word for word in names.lengths if word in words_in(axes))
        key = quoted(axes)
        if key not in by_axes:
            by_axes[key] = stream_name(identifier(name), streams, plan.words.get(name, ""), axes)
            short = list(axes) if all(axis == text for axis, text in axes.items()) else axes
            streams[by_axes[key]] = short
        fields: dict[str, Any] = {"stream": by_axes[key]}
        if value is not None and value.width:
            fields["width"] = writer.text(value.width, name)
        layout = layout_of(name, family, names, writer)
        if layout:
            fields["layout"] = layout
        inputs[identifier(name)] = fields
    return streams, inputs


def words_in(axes: Mapping[str, str]) -> set[str]:
    """The names in the axes of a stream."""
    text = " ".join(axes.values())
    return set("".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split())


def stream_name(name: str, taken: Mapping[str, Any], word: str, axes: Any) -> str:
    """What users call a stream: text for tokens, prompt for a condition, else after the input."""
    if not axes:
        found = "sample"
    elif "int" in word:
        found = "text" if "decoder" not in name else "target"
    elif "encoder" in name:
        found = "prompt"
    elif name.startswith(("pixel", "image")):
        found = "images"
    elif "audio" in name or name.startswith("input_"):
        found = "audio"
    else:
        found = "latent"
    if found in taken:
        found = name
    while found in taken:
        found += "_"
    return found


def layout_of(name: str, family: Family, names: Names, writer: Grapher) -> str:
    """The dimensions of an input as words: items, lengths, numbers; nothing where one of them has no such word."""
    words = []
    shapes = [sample.plan.inputs.get(name, ()) for sample in family.samples]
    for place, sizes in enumerate(zip(*shapes, strict=False)):
        if place == 0 and sizes == names.batch:
            words.append("b")
        elif len(set(sizes)) == 1:
            words.append(str(sizes[0]))
        else:
            known = next((one for one, vector in names.vectors.items() if vector == sizes), None)
            if known is None or "[" in known:
                return ""
            words.append(known)
    return " ".join(words)
