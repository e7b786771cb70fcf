"""Declares the streams and the inputs of a draft."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symflops.draft.fit.symbols import Names
from symflops.draft.sample.family import Family
from symflops.draft.write.names import identifier
from symflops.draft.write.scopes import Val
from symflops.draft.write.values import Values
from symflops.draft.write.yaml_text import quoted


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
    """Fields of an input's declaration: stream, width if it has one, layout if it is known."""
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
