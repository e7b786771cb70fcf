"""Reads the classes and the variants of a spec, and specialises a spec to one of its classes.

``reference`` lists the classes. A row gives values of sizes that have no config field (``head: none``), and under ``rename``
path prefixes that differ in this class (``rename: {model: ""}`` for a base model, whose parameters lack the prefix).

``variants`` lists structures of published models, each given by the config fields that differ from the defaults. A field that
a variant omits has its default, as in a config. Values are config values, not expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from symflops.evaluate.classes import check_class, class_in, class_name, without_pipeline
from symflops.evaluate.config import as_read, as_whole, is_null, look_up, put
from symflops.evaluate.sizes import checked
from symflops.formula.domain import known, python_value
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import names
from symflops.formula.identifiers import CLASS, PATH, VARIANT
from symflops.formula.table import ConfigError
from symflops.formula.truth import UnknownSizeError
from symflops.ir.regime import Regime
from symflops.ir.spec import ClassSpec, Name, SizeSpec, Spec, VariantSpec
from symflops.read.shapes import Shapes
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, Scalar, frozen, python_value as value_of_node
from symflops.support.findings import Diagnostic, SpecError, did_you_mean

RENAME = "rename"
DEFAULT, DERIVED = "default", "derived"
"""Names of structures in an estimate: of the defaults, and of one derived on request for a config."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
COUNTED = ("number", "entries", "position", "rational")
"""The kinds of sizes that stay symbols in a graph, unless its structure depends on their value."""


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
    value = frozen(value_of_node(node, shapes.report))
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


def read_variants(node: Node | None, sizes: Sequence[SizeSpec], shapes: Shapes) -> tuple[VariantSpec, ...]:
    """Read the field ``variants`` of a spec, whose sizes are ``sizes``; mistakes are reported.

    ``node`` is the field's value, None if the spec does not have it; then the result is empty. ``shapes`` checks the forms
    of YAML nodes and collects the mistakes.
    """
    found = []
    for key, value in shapes.mapping(node, "'variants'"):
        if not VARIANT.match(key.text) or key.text in (DEFAULT, DERIVED):
            hint = f"lower case letters, digits and underscores, and neither '{DEFAULT}' nor '{DERIVED}'"
            shapes.report.error("bad-name", f"'{key.text}' cannot name a variant", key.span, hint)
        given = [read_size(field, item, sizes, shapes) for field, item in shapes.mapping(value, f"variant '{key.text}'")]
        variant = VariantSpec(Name(key.text, key.span), tuple(size for size in given if size is not None))
        letters = [name.text for name, _ in variant.sizes]
        for position, (name, _) in enumerate(variant.sizes):
            if name.text in letters[:position]:
                shapes.report.error("duplicate-key", f"size '{name}' is said twice", name.span, "two names of one field")
        found.append(variant)
    if not shapes.report.failed:
        compare(found, sizes, shapes)
    return tuple(found)


def read_size(key: Scalar, node: Node, sizes: Sequence[SizeSpec], shapes: Shapes) -> tuple[Name, Any] | None:
    """Read a config field that a variant sets, as (size, value); reports it and returns None if unknown."""
    size = next((size for size in sizes if key.text in size.keys), None)
    if size is None:
        fields = [field for known_size in sizes for field in known_size.keys]
        hint = did_you_mean(key.text, fields, "a variant says fields of the config, as 'key' of a size has them")
        shapes.report.error("unknown-size", f"no size is read from '{key.text}'", key.span, hint)
        return None
    value = frozen(value_of_node(node, shapes.report))
    if value is None and not size.optional:
        shapes.report.error("bad-value", f"'{key.text}' cannot be null", node.span, f"size '{size.name}' is not optional")
    elif value is not None:
        try:
            checked(size.kind, key.text, value, size.items)
        except ConfigError:
            shapes.report.error(
                "bad-value",
                f"'{key.text}' is {value!r}, not a {size.kind}{as_whole(value)}",
                node.span,
                f"as size '{size.name}' says",
            )
    return Name(size.name.text, key.span), value


def compare(variants: Sequence[VariantSpec], sizes: Sequence[SizeSpec], shapes: Shapes) -> None:
    """Report variants whose sizes have the same values as the defaults or as an earlier variant."""
    letters = sorted({name.text for variant in variants for name, _ in variant.sizes})
    seen = {values_of(letters, sizes, {}): "the defaults"}
    for variant in variants:
        values = values_of(letters, sizes, config_of(variant, sizes))
        if values in seen:
            message = f"'{variant.name}' has the structure of {seen[values]}"
            shapes.report.error("same-structure", message, variant.name.span, "one name for each structure")
        seen.setdefault(values, f"'{variant.name}'")


def values_of(letters: Sequence[str], sizes: Sequence[SizeSpec], config: Mapping[str, Any]) -> tuple[str, ...]:
    """Values of the sizes ``letters`` in a config, as texts; one is empty if it needs a missing field."""
    found = []
    for letter in letters:
        try:
            found.append(repr(frozen(value_in(sizes, letter, config))))
        except (SpecError, UnknownSizeError):
            found.append("")
    return tuple(found)


def config_of(variant: VariantSpec, sizes: Sequence[SizeSpec]) -> dict[str, Any]:
    """Make the config of a variant: its fields, nested as in a config file."""
    return config_with(sizes, {name.text: value for name, value in variant.sizes})


def config_with(sizes: Sequence[SizeSpec], values: Mapping[str, Any], more: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """Make a config; ``values`` maps sizes to their values, ``more`` has further fields at the top."""
    keys = {size.name.text: size.keys for size in sizes}
    config: dict[str, Any] = dict(more)
    for letter, value in values.items():
        put(config, keys[letter], value)
    return config


def structure_name(spec: Spec, fixed: Sequence[tuple[str, object]]) -> str:
    """The name of the structure that depends on the sizes ``fixed``, as (size, value).

    It is ``DEFAULT`` if they have the values of the defaults, or the name of a variant with these values, else ``DERIVED``.
    """
    named = {DEFAULT: {}, **{variant.name.text: config_of(variant, spec.sizes) for variant in spec.variants}}
    letters, values = [letter for letter, _ in fixed], tuple(repr(value) for _, value in fixed)
    return next((name for name, config in named.items() if values_of(letters, spec.sizes, config) == values), DERIVED)


def fixed_by(variant: VariantSpec, sizes: Sequence[SizeSpec]) -> dict[str, Any]:
    """Map the sizes that a variant fixes before the graph is built to their values.

    Numbers are left out: they are fixed later if the structure depends on them.
    """
    counted = {size.name.text for size in sizes if size.kind in COUNTED and not size.optional}
    return {name.text: value for name, value in variant.sizes if name.text not in counted}


def needless_sizes(variant: VariantSpec, fixed: Sequence[tuple[str, object]]) -> list[Diagnostic]:
    """A finding for each size of a variant that is not in ``fixed``, the sizes its structure depends on."""
    needed = dict(fixed)
    names = [name for name, _ in variant.sizes if name.text not in needed]
    hint = "leave it out: the estimator is of all its values"
    return [Diagnostic("needless-size", f"the structure does not depend on '{name}'", name.span, hint) for name in names]


def read_for(sizes: Sequence[SizeSpec], wanted: str) -> set[str]:
    """The size ``wanted``, and all sizes that its default reads, directly or through other defaults."""
    found = {wanted}
    for size in reversed(sizes):
        if size.name.text in found:
            found.update(name for formula in (size.default, size.null) if formula is not None for name, _ in names(formula))
    return found


def value_in(sizes: Sequence[SizeSpec], wanted: str, config: Mapping[str, Any], reading: Mapping[str, Any] = NOTHING) -> Any:
    """The value of the size ``wanted`` in a config, else its default, which may depend on earlier sizes.

    ``reading`` has facts about how the class reads the config, as in the file beside the spec.

    Raises:
        ConfigError: the config holds a value of another type.
    """
    config = as_read({"reading": reading}, config)
    read = read_for(sizes, wanted)
    scope: dict[str, Any] = {}
    for size in sizes:
        value = look_up(config, size.keys)
        if value is not None:
            checked(size.kind, size.keys[0], value, size.items)
        null = is_null(config, size.keys)
        formula = size.null if null and size.null is not None else size.default
        if null and size.null is None and reading and size.kind == "flag" and not size.optional:
            value = False
        elif value is None and formula is not None and size.name.text in read and not (null and size.optional):
            value = python_value(evaluate(formula, scope))
        if size.name.text == wanted:
            return value
        scope[size.name.text] = known(value)
    return None


def view_of_regime(spec: Spec, regime: Regime) -> Spec:
    """Specialise the spec to the parts that ``regime`` runs: the sizes of other parts become 0.

    Raises:
        SpecError: the regime names a part that the spec does not have.
    """
    known = dict.fromkeys(size.part for size in spec.sizes if size.part)
    for part in regime.parts:
        if part not in known:
            message = f"regime '{regime.name}' runs '{part}', a part that '{spec.name}' does not have"
            hint = did_you_mean(part, known, f"it has {', '.join(known) or 'no parts'}")
            raise SpecError([Diagnostic("unknown-part", message, regime.places.get(part), hint)])
    apart = tuple(size for size in spec.sizes if size.part and size.part not in regime.parts)
    constants = (*spec.constants, *((size.name.text, 0) for size in apart))
    return replace(spec, sizes=tuple(size for size in spec.sizes if size not in apart), constants=constants, apart=apart)
