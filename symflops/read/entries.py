"""Reads the entries of a graph: operators, block calls, repeats and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from symflops.formula.expression import Expression
from symflops.ir.spec import Block, BlockCall, Entry, Faulty, Group, Name, OperatorEntry, Repeat, Template, Tie
from symflops.ops.kind import COMMON, TIE, Field, Form, words_of
from symflops.ops.table import KINDS
from symflops.read.field_tables import AXIS, BLOCK, CALL, GROUP, LANGUAGE, REPEAT
from symflops.read.shapes import Shapes
from symflops.read.yaml_nodes import (
    ENTRY,
    HERE,
    Mapping as MappingNode,
    Node,
    Scalar,
    Sequence,
    other_language,
    path_and_fields,
    read_yaml,
)
from symflops.support.findings import Reporter, Source, Span, did_you_mean

BlockText = Callable[[str], Source | None]


class Entries:
    """Reads the entries of graphs, and the blocks that these call.

    A block comes from the spec, or from ``library``, which finds its text by its name. Each block is read once.
    """

    def __init__(self, report: Reporter, library: BlockText) -> None:
        self.report = report
        self.shapes = Shapes(report)
        self.library = library
        self.local: dict[str, Node] = {}
        self.blocks: dict[str, Block | None] = {}
        self.sources: list[Source] = []
        self.reading: list[str] = []

    def graph(self, node: Node | None, source: Source) -> tuple[Entry, ...]:
        """Read the entries of a graph, in order."""
        entries = (self.entry(item, source) for item in self.shapes.sequence(node, "a graph"))
        return tuple(entry for entry in entries if entry is not None)

    def entry(self, node: Node, source: Source) -> Entry | None:
        """Read one entry ``path: {op|block|repeat|graph: ...}``; None if it has no path with fields.

        A faulty entry becomes a :class:`Faulty` with the names that it would bind, so that their readers are not reported.
        """
        parts = path_and_fields(node)
        if parts is None:
            hint = "write '- path: {op: ...}', or '- {op: ...}' without a path"
            self.report.error("bad-entry", "an entry is one path with its fields", node.span, hint)
            return None
        key, body = parts
        path = self.shapes.template(key, "a path")
        if not isinstance(body, MappingNode):
            self.report.error(
                "bad-entry", f"'{key.text}' needs fields", body.span, "write {op: ...}, {block: ...}, {repeat: ...}"
            )
            return None
        graph = self.graph(body.get("graph"), source)
        before = len(self.report.diagnostics)
        if not key.text and body is not node:
            hint = "an entry without a path, '- {op: ...}', stands at the path around it"
            self.report.error("bad-path", "an empty path names no module", key.span, hint)
        if key.text == HERE and body is not node:
            self.report.error("bad-entry", f"'{HERE}' is not a path", key.span, "write '- {op: ...}' without a path")
        found = self.of_kind(path, key, body, graph)
        if found is None or len(self.report.diagnostics) > before:
            return Faulty(path, tuple(_defined_names(key, body)), key.span)
        return found

    def of_kind(self, path: Template, key: Scalar, body: MappingNode, graph: tuple[Entry, ...]) -> Entry | None:
        """Read an entry of the kind whose key it has: ``op``, ``block``, ``repeat`` or ``graph``.

        ``graph`` are the entries inside it.
        """
        if body.get("op") is not None:
            return self.operator(path, body, key.span)
        if body.get("block") is not None:
            return self.call(path, body, key.span)
        if body.get("repeat") is not None:
            return self.repeat(path, body, key.span, graph)
        if body.get("graph") is not None:
            return self.group(path, body, key.span, graph)
        written = [name.text for name, _ in body.entries]
        near = next((name for name in written if did_you_mean(name, ENTRY)), "")
        hint = f"'{near}': {did_you_mean(near, ENTRY)}" if near else f"an entry has one of {', '.join(map(repr, ENTRY))}"
        self.report.error(
            "bad-entry", f"{'this entry' if key.text == HERE else repr(key.text)} says not what it is", key.span, hint
        )
        return None

    def operator(self, path: Template, body: MappingNode, span: Span) -> OperatorEntry | None:
        """Read an operator with the fields that its kind declares."""
        node = body.get("op")
        assert node is not None
        word = self.shapes.text(node, "'op'")
        kind = KINDS.get(word)
        if kind is None:
            hint = did_you_mean(word, KINDS, f"operators: {', '.join(KINDS)}")
            self.report.error("unknown-operator", f"there is no operator '{word}'", node.span, hint)
            return None
        allowed = {field.name: field for field in (*COMMON, *kind.fields)}
        given = self.shapes.known(body, allowed, f"operator '{word}'")
        fields = {name: self.field(allowed[name], value) for name, value in given.items() if name != "op"}
        for field in kind.fields:
            if field.required and (field.name not in given or fields[field.name] == ()):
                self.report.error("missing-field", f"operator '{word}' needs '{field.name}'", span, field.doc)
            elif field.default is not None and field.name not in given:
                fields[field.name] = field.default if field.form is Form.WORD else self.shapes.parse(field.default, span)
        places = {name: value.span for name, value in given.items()}
        return OperatorEntry(path, Name(word, node.span), fields, places, span)

    def field(self, field: Field, node: Node | None) -> Any:
        """Read the value of a field in the form that the field declares.

        The value of an absent field is None, or false if the field is a flag.
        """
        if node is None:
            return False if field.form is Form.FLAG else None
        what = f"'{field.name}'"
        match field.form:
            case Form.FLAG:
                return self.shapes.flag(node)
            case Form.NAME:
                return self.shapes.name(node, what)
            case Form.EXPRESSION | Form.EXPRESSIONS | Form.LENGTHS:
                return self.formula(field.words, node, what)
            case Form.VALUES:
                return self.shapes.value_names(node, what)
            case Form.TEMPLATE:
                return self.shapes.template(node, what)
            case Form.TIE:
                return self.tie(node)
            case Form.AXES if isinstance(node, Scalar) and node.plain:
                return Name(node.text, node.span)
            case Form.AXES:
                return self.shapes.parts(node)
            case Form.WINDOW:
                pairs = self.shapes.mapping(node, what)
                return tuple((Name(key.text, key.span), self.shapes.expression(value, key.text)) for key, value in pairs)
        return self.shapes.one_of(node, field.words, what) if field.words else self.shapes.text(node, what)

    def formula(self, words: tuple[str, ...], node: Node, what: str) -> Expression | None:
        """Read an expression, or one of ``words`` instead."""
        if isinstance(node, Scalar) and node.text in words:
            return self.shapes.parse(repr(node.text), node.span)
        return self.shapes.expression(node, what)

    def tie(self, node: Node) -> Tie | None:
        """Read a tie: the path of the parameter that a weight shares, and the condition under which it does."""
        given = self.shapes.known(node, words_of(TIE.fields), "'tie'") if isinstance(node, MappingNode) else {"to": node}
        if "to" not in given:
            self.report.error("missing-field", "'tie' needs 'to'", node.span, "the path of the other parameter")
            return None
        return Tie(self.shapes.template(given["to"], "'tie'"), self.shapes.expression(given.get("when"), "'when'"))

    def common(self, given: Mapping[str, Node]) -> dict[str, Any]:
        """Read the fields that a block call shares with operators, as field -> value."""
        by_name = {field.name: field for field in COMMON}
        return {name: self.field(by_name[name], node) for name, node in given.items() if name in by_name and name != "op"}

    def call(self, path: Template, body: MappingNode, span: Span) -> BlockCall | None:
        """Read a block call: values by position, parameters by name."""
        node = body.get("block")
        assert node is not None
        name = self.shapes.text(node, "'block'")
        block = self.block(name, node.span)
        if block is None:
            return None
        parameters = [parameter.text for parameter, _ in block.parameters]
        given = self.shapes.known(body, (*words_of(CALL), *parameters), f"block '{name}'")
        common = self.common(given)
        arguments = self.arguments(block, given.get("from"), span)
        values = ((key, self.shapes.expression(given[key], f"'{key}'")) for key in parameters if key in given)
        ready = {key: value for key, value in values if value is not None}
        slips = [did_you_mean(key.text, (*words_of(CALL), *parameters)) for key, _ in body.entries if key.text not in given]
        for parameter, default in block.parameters:
            if default is None and parameter.text not in given and not any(f"'{parameter}'" in slip for slip in slips):
                self.report.error("missing-field", f"block '{name}' needs '{parameter}'", span)
        return BlockCall(path, block, arguments, ready, common, span)

    def arguments(self, block: Block, source: Node | None, span: Span) -> tuple[tuple[Name, ...], ...]:
        """Read the values that a call passes under ``from``: one tuple of names per input of the block."""
        items = self.shapes.sequence(source, "'from'")
        arguments = tuple(self.shapes.value_names(item, "'from'") for item in items)
        required = [name for name in block.inputs if name not in block.optional]
        if not len(required) <= len(arguments) <= len(block.inputs):
            wanted = ", ".join(str(name) for name in block.inputs)
            message = f"block '{block.name}' takes the values {wanted}"
            self.report.error("operand-count", message, source.span if source else span)
        return arguments

    def block(self, name: str, span: Span) -> Block | None:
        """Read the block ``name``, once.

        None if it is unknown, faulty or recursive, which is reported.
        """
        if name in self.reading:
            self.report.error("recursive-block", f"block '{name}' calls itself", span, " -> ".join([*self.reading, name]))
            return None
        if name not in self.blocks:
            self.reading.append(name)
            self.blocks[name] = self.read_block(name, span)
            self.reading.pop()
        return self.blocks[name]

    def read_block(self, name: str, span: Span) -> Block | None:
        if name in self.local:
            return self.block_of(name, self.local[name], True, span.source)
        source = self.library(name) if name.isidentifier() else None
        if source is None:
            hint = did_you_mean(name, self.local, "define it under 'blocks:', or in a file blocks/<name>.yaml")
            self.report.error("unknown-block", f"there is no block '{name}'", span, hint)
            return None
        self.sources.append(source)
        node = read_yaml(source, self.report)
        other = other_language(node, source)
        if other is not None:
            self.report.add(other)
            return None
        return self.block_of(name, node, False, source)

    def block_of(self, name: str, node: Node, local: bool, source: Source) -> Block:
        """Read a block's definition; ``local``: whether it stands in the spec, not in a file of its own."""
        given = self.shapes.known(node, words_of(BLOCK if local else (LANGUAGE, *BLOCK)), f"block '{name}'")
        parameters = []
        for key, value in self.shapes.mapping(given.get("params"), "'params'"):
            parameter = self.shapes.name(key, "a parameter")
            required = isinstance(value, Scalar) and value.plain and value.text in ("null", "~", "")
            if parameter:
                parameters.append((parameter, None if required else self.shapes.expression(value, f"'{key.text}'")))
        names = (self.shapes.value_names(given.get(key), f"'{key}'") for key in ("inputs", "optional", "outputs"))
        inputs, optional, outputs = names
        for extra in optional:
            if extra not in inputs:
                self.report.error("unknown-value", f"optional '{extra}' is no input of block '{name}'", extra.span)
        body = self.graph(given.get("graph"), source)
        return Block(name, tuple(parameters), inputs, optional, outputs, body, local, source)

    def repeat(self, path: Template, body: MappingNode, span: Span, graph: tuple[Entry, ...]) -> Repeat:
        """Read a repeat over a count, a config list, or an axis of a stream."""
        given = self.shapes.known(body, words_of(REPEAT), "a repeat")
        node, axis, of, count = given["repeat"], None, None, None
        if isinstance(node, MappingNode):
            inner = self.fields(AXIS, self.shapes.known(node, words_of(AXIS), "'repeat'"))
            axis, of = inner["axis"], inner["of"]
            if axis is None:
                self.report.error("missing-field", "a repeat over tokens names its axis", node.span, "write {axis: t}")
        elif isinstance(node, Scalar) and not node.text:
            self.report.error("missing-field", "'repeat' says not how often", node.span, "a size, a list, or {axis: t}")
        else:
            count = self.shapes.expression(node, "'repeat'")
        if "graph" not in given:
            self.report.error("missing-field", "a repeat needs 'graph'", span, "the entries that are repeated")
        field = self.fields(REPEAT, given)
        return Repeat(
            path, count, axis, of, graph, field["index"], field["item"], field["start"], field["shared"] or axis is not None,
            field["when"], span, field["role"] or "",
        )  # fmt: skip

    def group(self, path: Template, body: MappingNode, span: Span, graph: tuple[Entry, ...]) -> Group:
        """Read a group: entries under one path, or routed experts."""
        field = self.fields(GROUP, self.shapes.known(body, words_of(GROUP), "a group"))
        return Group(
            path, graph, field["when"], field["no_grad"], field["experts"], field["list"], field["choose"],
            field["routed"], field["from"] or (), field["weights"][0] if field["weights"] else None,
            field["to"] or (), span, field["role"] or "",
        )  # fmt: skip

    def fields(self, table: tuple[Field, ...], given: Mapping[str, Node]) -> dict[str, Any]:
        """Read the fields of ``table``, as field -> value.

        Fields that ``given`` lacks have the value of an absent field. Fields with the forms GRAPH and OTHER are left out, since
        they are read elsewhere.
        """
        plain = (field for field in table if field.form not in (Form.GRAPH, Form.OTHER))
        return {field.name: self.field(field, given.get(field.name)) for field in plain}


def _defined_names(key: Scalar, body: MappingNode) -> Iterator[str]:
    """Yield the names that a faulty entry would bind without its fault, as far as its text tells them."""
    to = next((value for name, value in body.entries if name.text == "to" or did_you_mean(name.text, ("to",))), None)
    names = to.items if isinstance(to, Sequence) else (to,)
    found = [name.text for name in names if isinstance(name, Scalar)]
    inner = body.get("graph")
    for item in inner.items if isinstance(inner, Sequence) else ():
        parts = path_and_fields(item)
        if parts is not None and isinstance(parts[1], MappingNode):
            yield from _defined_names(parts[0], parts[1])
    if body.get("graph") is None or found:
        yield from found or [key.text]
