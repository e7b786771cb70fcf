"""JSON Schema (draft-07) of the language, for completion and checks in an editor; generated from the readers' field tables.

It covers the form of a page: its fields, the words that they take, and which are required. Only ``symflops check``
evaluates formulas and resolves names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from symflops.formula.identifiers import CLASS, CONFIG_KEY, IDENTIFIER, MODULE, VARIANT
from symflops.ir.convention import ROLES
from symflops.ops.kind import COMMON, Field, Form, words_of
from symflops.ops.table import ALL
from symflops.read import field_tables as tables
from symflops.read.read import FIGURES
from symflops.read.variants import RENAME

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
TEXT: Schema = {"type": "string"}
LIST: Schema = {"type": "array"}
PLAIN: Schema = {"type": ["string", "number"]}
AXIS = ["string", "number", "object"]
LISTED: Schema = {"type": [*SCALAR["type"], "array"], "items": SCALAR}
EXPRESSION: Schema = {"type": [*SCALAR["type"], "array"], "items": LISTED}
"""A list of types instead of alternatives, so that an editor shows the field's documentation and not each form's."""


class BlockSignature(NamedTuple):
    """A block as the schema needs it: its name, documentation in one line, and names of its parameters."""

    name: str
    doc: str
    params: tuple[str, ...]


def ref(name: str) -> Schema:
    """The schema that refers to the definition ``name`` in the same JSON document."""
    return {"$ref": f"#/definitions/{name}"}


def one_or_more(item: Schema) -> Schema:
    """The schema of an item or a list of items."""
    if set(item) == {"type"} and isinstance(item["type"], str):
        return {"type": [item["type"], "array"], "items": item}
    return {"anyOf": [item, {"type": "array", "items": item}]}


def pattern(regex: Any) -> Schema:
    """The schema of a text that a Python regular expression matches entirely."""
    return {"type": "string", "pattern": f"^{regex.pattern.removesuffix(chr(92) + 'Z')}$"}


def mapping(value: Schema, keys: Schema | None = None) -> Schema:
    """The schema of a mapping whose values have the schema ``value``, and its keys ``keys``; or null."""
    return {"type": ["object", "null"], "additionalProperties": value, **({"propertyNames": keys} if keys else {})}


NAME, NAMES = pattern(IDENTIFIER), one_or_more(TEXT)
FORMS: dict[Form, Schema] = {
    Form.EXPRESSION: ref("expression"), Form.EXPRESSIONS: ref("expression"), Form.LENGTHS: ref("expression"),
    Form.VALUES: ref("values"), Form.TEMPLATE: TEXT, Form.AXES: ref("axes"), Form.WINDOW: mapping(ref("expression")),
    Form.NAME: NAME, Form.TEXT: TEXT, Form.TEXTS: one_or_more(TEXT), Form.FLAG: {"type": "boolean"},
    Form.COUNT: {"type": "integer", "minimum": 0}, Form.NUMBER: ref("number"), Form.GRAPH: ref("graph"),
}  # fmt: skip


def of_field(field: Field) -> Schema:
    """The schema of a field's value."""
    match field.form:
        case Form.WORD:
            found = {"enum": [*words(field.words)]} if field.words else dict(PLAIN)
        case Form.FIELDS:
            found = of_mapping(field.fields)
        case Form.TIE:
            found = {"anyOf": [TEXT, of_mapping(field.fields)]}
        case Form.LIST:
            found = one_or_more(of_mapping(field.fields))
        case Form.CHOICE:
            each = {"enum": list(field.words)}
            found = {"anyOf": [each, {**of_mapping(field.fields), "properties": {one.name: each for one in field.fields}}]}
        case Form.NAMED | Form.OTHER:
            found = ref(field.name)
        case _:
            found = dict(FORMS[field.form])
            if field.words:
                found = {"anyOf": [{"enum": list(field.words), "description": field.doc}, found]}
    return {"description": field.doc, **({"allOf": [found]} if "$ref" in found else found)}


def words(texts: Iterable[str]) -> Iterable[Any]:
    """Convert words to the values that YAML reads: ``true`` is a boolean and ``4`` an integer."""
    for text in texts:
        yield {"true": True, "false": False}.get(text, int(text) if text.isdigit() else text)


def of_mapping(fields: Iterable[Field], **more: Schema) -> Schema:
    """The schema of a mapping that has only ``fields``; ``more`` has other schemas for some, by name."""
    fields = tuple(fields)
    return {
        "type": "object",
        "properties": {field.name: more.get(field.name, of_field(field)) for field in fields},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


# graphs


def graph_definitions(blocks: Sequence[BlockSignature]) -> dict[str, Schema]:
    """Schema definitions of entries, operators and blocks, by name, for references in graphs."""
    shared = {field.name: ref(f"common_{field.name}") for field in COMMON}
    operators = {}
    for kind in ALL:
        own = {field.name: of_field(field) for field in kind.fields if field not in COMMON}
        named = {"op": {"const": kind.name, "description": kind.doc}}
        fields = (*COMMON, *(field for field in kind.fields if field.name in own))
        operators[kind.name] = of_mapping(fields, **{**shared, **own, **named})
        operators[kind.name]["required"] += ["op"]
    of_call = {**shared, "from": one_or_more(ref("values"))}
    names = [{"const": block.name, "description": block.doc} for block in blocks]
    call = of_mapping(tables.CALL, **of_call, block={**of_field(tables.CALL[0]), "anyOf": [*names, TEXT]})
    call |= {"additionalProperties": ref("expression")}
    call |= {"allOf": [having("block", block.name, ref(f"block_{block.name}")) for block in blocks]} if blocks else {}
    axis = of_mapping(tables.AXIS)
    repeat = of_mapping(tables.REPEAT, role=shared["role"], repeat={"anyOf": [ref("expression"), axis]})
    kinds = {"op": ref("operator"), "block": ref("call"), "repeat": ref("repeat"), "graph": ref("group")}
    return {
        "expression": EXPRESSION,
        "values": NAMES,
        "axes": {"anyOf": [PLAIN, mapping(ref("expression")), {"type": "array", "items": {"type": AXIS}}]},
        "graph": {"type": "array", "items": ref("entry")},
        "entry": entry({**mapping(chosen(kinds)), "maxProperties": 1}, chosen(kinds)),
        "operator": {
            "properties": {"op": {"enum": list(operators)}},
            "allOf": [having("op", name, ref(f"op_{name}")) for name in operators],
        },
        **{f"op_{name}": schema for name, schema in operators.items()},
        "call": call,
        **{f"block_{block.name}": parameters_of(block) for block in blocks},
        "repeat": repeat,
        "group": of_mapping(tables.GROUP, role=shared["role"]),
        **{f"common_{field.name}": of_field(field) for field in COMMON},
    }


def parameters_of(block: BlockSignature) -> Schema:
    """The schema of a call of a library block: its parameters and the fields of every call.

    A reference stands in ``allOf``, since JSON Schema draft-07 ignores keywords next to ``$ref``.
    """
    names = {
        name: {"description": f"a parameter of the block {block.name}", "allOf": [ref("expression")]} for name in block.params
    }
    known = sorted({*names, *words_of(tables.CALL)})
    return {"description": block.doc, "properties": names, "propertyNames": {"enum": known}}


def entry(at_path: Schema, alone: Schema) -> Schema:
    """The schema of an entry.

    ``at_path`` applies to a path with fields below it, ``alone`` to fields without a path.
    """
    said = ({"required": [key], "properties": {key: kind}} for key, kind in (("op", TEXT), ("block", TEXT), ("graph", LIST)))
    return {"type": "object", "minProperties": 1, "if": {"anyOf": list(said)}, "then": alone, "else": at_path}


def chosen(kinds: dict[str, Schema], otherwise: Schema | None = None) -> Schema:
    """The schema of a mapping, chosen by the first key of ``kinds`` that the mapping has.

    A mapping without any of the keys has the schema ``otherwise``; by default it is not valid.
    """
    schema: Schema = {"type": "object", "required": list(kinds)[-1:]} if otherwise is None else otherwise
    for key, found in reversed(kinds.items()):
        schema = {"if": {"type": "object", "required": [key]}, "then": found, "else": schema}
    return schema


def having(key: str, value: str, then: Schema) -> Schema:
    """The schema ``then`` for mappings with ``value`` under ``key``; any other value is valid."""
    return {"if": {"type": "object", "required": [key], "properties": {key: {"const": value}}}, "then": then}


def changes() -> dict[str, Schema]:
    """Map ``changes`` to its schema: the graph entries of a spec that extends another."""
    places = {field.name: of_field(field) for field in tables.PLACES}
    operators = {field for kind in ALL for field in kind.fields} | set(COMMON)
    body: Schema = {"type": "object", "properties": {"graph": ref("changes"), **places}}
    body["allOf"] = [
        {"if": {"required": [key]}, "then": {"propertyNames": {"enum": sorted({*words_of(fields), *places})}}}
        for key, fields in (("op", operators), ("repeat", tables.REPEAT))
    ]
    at_path = {"maxProperties": 1, "additionalProperties": {"anyOf": [{"type": "null"}, body]}}
    return {"changes": {"type": "array", "items": entry(at_path, body)}}


# pages


def spec(blocks: Sequence[BlockSignature]) -> Schema:
    """The schema of a spec, full or extending another."""
    full, merged = _spec_properties()
    docs = {field.name: {"description": field.doc} for field in tables.DOCUMENT}
    return {
        "type": "object",
        "properties": {**docs, "extends": of_field(tables.EXTENDS)},
        "additionalProperties": False,
        "if": {"required": [tables.EXTENDS.name]},
        "then": {"required": ["language", "name"], "properties": merged},
        "else": {"required": [field.name for field in tables.DOCUMENT if field.required], "properties": full},
        "definitions": {**graph_definitions(blocks), **changes(), **stated()},
    }


def _spec_properties() -> tuple[Schema, Schema]:
    """Field -> schema, for (a full spec, a spec that extends another).

    In a spec that extends another, null in place of a value removes the name from the other's.
    """
    sized = {"anyOf": [NAMES, of_mapping(tables.SIZE, key=one_or_more(pattern(CONFIG_KEY)))]}
    parts = ref("axes")
    own = {
        "name": pattern(MODULE),
        "reference": {"anyOf": [one_or_more(pattern(CLASS)), mapping(class_row(), pattern(CLASS))]},
        "sizes": sized,
        "derived": ref("expression"),
        **dict.fromkeys(("requires", "expected"), ref("expression")),
        "variants": {"type": ["object", "null"]},
        "streams": {"anyOf": [{**of_mapping(tables.STREAM), "required": ["over"]}, parts]},
        "inputs": of_mapping(tables.INPUT),
        "blocks": of_mapping(tables.BLOCK, params=mapping(ref("expression"), NAME)),
        "baseline": {"anyOf": [NAME, baseline()]},
        "expect": ref("expect"),
    }
    named = {"variants": pattern(VARIANT), "blocks": TEXT, "requires": TEXT, "expected": TEXT}
    full, merged = {}, {}
    for field in tables.DOCUMENT:
        schema = own.get(field.name, FORMS.get(field.form, {}))
        if field.form is Form.NAMED:
            keys = named.get(field.name, NAME)
            full[field.name] = mapping(schema, keys)
            merged[field.name] = mapping({"anyOf": [{"type": "null"}, schema]}, keys)
        else:
            full[field.name] = merged[field.name] = schema
    merged["graph"] = ref("changes")
    merged[tables.EXTENDS.name] = of_field(tables.EXTENDS)
    return full, merged


def baseline() -> Schema:
    """The schema of a baseline given as a mapping."""
    formulas = {field.name: mapping(ref("expression")) for field in tables.BASELINE if field.form is Form.NAMED}
    return of_mapping(tables.BASELINE, **{**formulas, "config": mapping(ref("expression"), pattern(CONFIG_KEY))})


def stated() -> dict[str, Schema]:
    """Schema definitions of figures that a paper states: of the defaults, and by name of published sizes."""
    plain = dict.fromkeys(FIGURES, PLAIN) | dict.fromkeys(("batch", "config"), mapping({}))
    figures = of_mapping(tables.EXPECT, **plain)
    return {"figures": figures, "expect": {**figures, "additionalProperties": ref("figures")}}


def class_row() -> Schema:
    """The schema of a class under ``reference``: values of sizes, and renamed paths."""
    value: Schema = {"type": ["string", "number", "boolean", "null", "array"]}
    return {"type": ["object", "null"], "properties": {RENAME: mapping(TEXT)}, "additionalProperties": value}


def block(blocks: Sequence[BlockSignature]) -> Schema:
    """The schema of a block in a file of its own."""
    body = of_mapping((tables.LANGUAGE, *tables.BLOCK), params=mapping(ref("expression"), NAME))
    return {**body, "definitions": graph_definitions(blocks)}


def regime(_: Sequence[BlockSignature]) -> Schema:
    """The schema of a regime."""
    return of_mapping(tables.REGIME)


def convention(_: Sequence[BlockSignature]) -> Schema:
    """The schema of a convention; each key under ``roles`` is a role, or a ``region.role``."""
    backward = {"anyOf": [{"const": "derived"}, ref("number"), of_mapping(tables.BACKWARD)]}
    rule = {"anyOf": [{"enum": list(words(tables.RULE[0].words))}, of_mapping(tables.RULE, rows={"enum": list(ROLES)})]}
    regions = "|".join(name for name, role in ROLES.items() if role.group == "region")
    roles = mapping(rule, {"pattern": f"^(({regions})\\.)?({'|'.join(ROLES)})$"})
    return {
        **of_mapping(tables.CONVENTION),
        "definitions": {
            "number": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^[0-9.]+(/[0-9]+)?$"}]},
            "backward": backward,
            "roles": roles,
            "exceptions": one_or_more(of_mapping(tables.EXCEPTION)),
        },
    }


PAGES: dict[str, Callable[[Sequence[BlockSignature]], Schema]] = {
    "spec": spec,
    "block": block,
    "regime": regime,
    "convention": convention,
}


def schema(page: str, blocks: Sequence[BlockSignature] = ()) -> str:
    """The JSON Schema of ``page`` (a key of ``PAGES``) as text; suggests ``blocks`` and their parameters."""
    return json.dumps({"$schema": DRAFT, "title": f"symflops {page}", **PAGES[page](blocks)}, indent=1) + "\n"
