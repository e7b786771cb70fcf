"""Reads ``reference``: the classes that a spec describes, and how they differ.

A row gives values of sizes that have no config field (``head: none``), and under ``rename`` path prefixes that differ in this
class (``rename: {model: ""}`` for a base model, whose parameters lack the prefix).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from symflops.evaluate.classes import check_class, class_in, class_name, without_pipeline
from symflops.evaluate.sizes import checked
from symflops.formula.identifiers import CLASS, PATH
from symflops.formula.table import ConfigError
from symflops.ir.spec import ClassSpec, Name, SizeSpec, Spec
from symflops.read.plain_values import frozen, python_value
from symflops.read.shapes import Shapes
from symflops.read.variants import value_in
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, Scalar
from symflops.support.findings import did_you_mean

RENAME = "rename"


def read_classes(node: Node | None, decided: Sequence[SizeSpec], shapes: Shapes) -> tuple[ClassSpec, ...]:
    """Read the classes under ``reference``: one, a list, or a mapping from each class to what it sets.

    ``decided`` are the sizes without a config field, whose values each class sets.
    """
    if isinstance(node, MappingNode):
        return tuple(_row(key, value, decided, shapes) for key, value in node.entries)
    return tuple(ClassSpec(_reference(item, shapes)) for item in shapes.sequence(node, "'reference'"))


def _reference(node: Node, shapes: Shapes) -> str:
    text = shapes.text(node, "'reference'")
    if not CLASS.match(text):
        hint = "write package.ClassName, or module:ClassName for module.py beside the spec"
        shapes.report.error("bad-name", f"'{text}' is not a class", node.span, hint)
    return text


def _row(key: Scalar, node: Node, decided: Sequence[SizeSpec], shapes: Shapes) -> ClassSpec:
    """Read one class, with the values of sizes that it sets and the path prefixes that it renames."""
    values, renamed = [], []
    known = {size.name.text: size for size in decided}
    for field, value in shapes.mapping(node, f"'{key.text}'"):
        if field.text == RENAME:
            renamed = [_renaming(old, new, shapes) for old, new in shapes.mapping(value, f"'{RENAME}'")]
        elif field.text in known:
            values.append((Name(field.text, field.span), _value(field, value, known[field.text], shapes)))
        else:
            hint = did_you_mean(field.text, [*known, RENAME], "a class decides the sizes that have no 'key'")
            shapes.report.error("unknown-size", f"'{field.text}' is no size without a 'key'", field.span, hint)
    return ClassSpec(_reference(key, shapes), tuple(values), tuple(renamed))


def _value(field: Scalar, node: Node, size: SizeSpec, shapes: Shapes) -> Any:
    value = frozen(python_value(node, shapes.report))
    try:
        return checked(size.kind, field.text, value) if value is not None or not size.optional else None
    except ConfigError:
        hint = f"as size '{size.name}' says"
        shapes.report.error("bad-value", f"'{field.text}' is {value!r}, not a {size.kind}", node.span, hint)
    return value


def _renaming(old: Scalar, node: Node, shapes: Shapes) -> tuple[str, str]:
    """Read one line under ``rename`` as (path prefix in the spec, path prefix in the class)."""
    new = shapes.text(node, f"'{RENAME}'")
    for text, span in ((old.text, old.span), (new, node.span)):
        if not PATH.match(text) or text.startswith("/") or (text is old.text and not text):
            shapes.report.error("bad-path", f"{text!r} is no beginning of a path", span, "module names joined by points")
    return old.text, new


def view(spec: Spec, name: str) -> Spec:
    """Specialise the spec to its class ``name``, or to its first class if ``name`` is empty.

    Raises:
        ConfigError: the spec names classes, but not ``name``.
    """
    rows = {class_name(row.name): row for row in reversed(spec.classes)}
    if name and rows and name not in rows:
        check_class(spec.name, spec.references, (), {"architectures": [name]})
    constants = {row.name: _constants(spec.decided, row) for row in spec.classes}
    row = rows.get(name) or next(iter(spec.classes), ClassSpec(""))
    own = constants.get(row.name) or _constants(spec.decided, row)
    same = (other.name for other in spec.classes if (constants[other.name], other.renamed) == (own, row.renamed))
    return replace(spec, constants=own, renamed=row.renamed, alike=tuple(same))


def _constants(decided: Sequence[SizeSpec], row: ClassSpec) -> tuple[tuple[str, Any], ...]:
    """List (size, value) of the sizes ``decided`` for the class ``row``, with defaults for omitted ones."""
    given = {letter.text: value for letter, value in row.values}
    letters = [size.name.text for size in decided]
    return tuple((letter, given[letter] if letter in given else value_in(decided, letter, {})) for letter in letters)


def view_of_config(spec: Spec, config: Mapping[str, Any] | None) -> Spec:
    """Specialise the spec to the class that the config names, or to its first class without a config.

    Raises:
        ConfigError: the spec does not describe that class, or a config without a class is of another model type.
    """
    if config is None:
        return view(spec, "")
    config = without_pipeline(config, spec.pipelines)
    check_class(spec.name, spec.references, spec.model_types, config)
    return view(spec, class_in(config) if spec.classes else "")
