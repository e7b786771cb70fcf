"""Migrates specs and blocks from version 1 of the language to version 2. No other module supports version 1.

- ``language: 2`` is the first field.
- ``view`` becomes one operator per meaning, and ``mul`` of activations becomes ``act``.
- A weight at the path of another operator becomes a ``tie``.
- An entry at the surrounding path loses its path ``_``.
- Lists and formulas keep quotes only where YAML needs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from symflops.read.edits import Edits, graphs, quotes, written
from symflops.read.spec_files import read_source
from symflops.read.yaml_nodes import ENTRY, HERE, LANGUAGE, Mapping, Node, Scalar, Sequence, other_language, read_yaml
from symflops.support.files import write
from symflops.support.findings import Source, SpecError, SymflopsError

VIEWS = {
    "reshape": "reshape", "expand": "expand", "pad": "pad", "pool": "pool", "select": "select", "crop": "slice",
    "pad_batch": "pad_batch", "batch": "flatten_batch",
}  # fmt: skip
"""The operator of each kind of ``view``."""

ENDS = (".yaml", ".yml")
CHANGES = ("stream", "axes", "like", "width")
TIED = re.compile(r"\{'/([^'{}]+)' if (.+) else ''\}")
ACTIVATION = re.compile(r"([\w.]*[._])?(act|act_fn|activation|activation_fn|[a-z]*(silu|swish|gelu|relu|glu))")
"""Paths of activations, including gated ones, which also multiply by another value."""


def is_document(node: Node) -> bool:
    """Whether a YAML document is a spec or a block: it has ``graph`` or ``extends``."""
    return isinstance(node, Mapping) and any(node.get(key) is not None for key in ("graph", "extends"))


def migrated(source: Source) -> str:
    """Rewrite a spec or block in the current version of the language.

    Raises:
        SpecError: it is not YAML, or its version is unknown.
    """
    node = read_yaml(source)
    other = other_language(node, source)
    if other is None:
        return source.text
    if other.code != "old-language":
        raise SpecError([other])
    for rewrite in PASSES:
        edits = Edits(source)
        rewrite(read_yaml(source), edits)
        source = Source(source.path, edits.text())
    read_yaml(source)
    return source.text


def entries(graph: Sequence) -> Iterator[tuple[Mapping, Scalar, Mapping]]:
    """Yield (entry, path, fields) for each entry of a graph in version 1 of the language."""
    for item in graph.items:
        if isinstance(item, Mapping) and len(item.entries) == 1 and isinstance(item.entries[0][1], Mapping):
            yield item, item.entries[0][0], item.entries[0][1]


def operators(node: Node, edits: Edits) -> None:
    """Rewrite operators that the current version writes otherwise: ``view``, ``mul`` and tied weights."""
    for graph in graphs(node):
        for _, path, fields in entries(graph):
            op = fields.get("op")
            match op.text if isinstance(op, Scalar) else "":
                case "view":
                    view(fields, edits)
                case "mul":
                    product(path, fields, edits)
            tie(fields, edits)


def view(fields: Mapping, edits: Edits) -> None:
    """Rewrite a ``view`` as the operator for its kind, which stands under ``as``."""
    op, kind = fields.get("op"), fields.get("as")
    word = kind.text if isinstance(kind, Scalar) else "reshape"
    if op is None or word not in VIEWS:
        return
    renamed = word == "reshape" and all(fields.get(name) is None for name in CHANGES)
    edits.replace(*op.extent, "identity" if renamed else VIEWS[word])
    if kind is not None:
        edits.remove(fields, "as")


def product(path: Scalar, fields: Mapping, edits: Edits) -> None:
    """Rewrite a ``mul`` as ``act`` if it has one operand, a field ``act``, or the path of an activation."""
    op, operands, function = fields.get("op"), fields.get("from"), fields.get("act")
    several = isinstance(operands, Sequence) and len(operands.items) > 1
    if op is None or (several and function is None and not ACTIVATION.fullmatch(path.text)):
        return
    edits.replace(*op.extent, "act")
    for key, _ in fields.entries:
        if key.text == "act":
            edits.replace(*key.extent, "of")


def tie(fields: Mapping, edits: Edits) -> None:
    """Rewrite the field ``weight`` as ``tie`` if it has the path of another operator's weight."""
    value = fields.get("weight")
    if not isinstance(value, Scalar):
        return
    conditional = TIED.fullmatch(value.text)
    if conditional:
        to, when = (written(text, True) for text in conditional.groups())
        edits.replace(*value.extent, f"{{to: {to}, when: {when}}}")
    elif value.text.startswith("/"):
        edits.replace(*value.extent, written(value.text[1:], edits.is_flow(fields)))
    else:
        return
    key = next(key for key, _ in fields.entries if key.text == "weight")
    edits.replace(*key.extent, "tie")


def paths(node: Node, edits: Edits) -> None:
    """Remove the path ``_`` of entries; without it, too, they are at the path around them."""
    for graph in graphs(node):
        for item, key, fields in entries(graph):
            if key.text == HERE and any(fields.get(kind) is not None for kind in ENTRY):
                edits.unwrap(item, edits.is_flow(graph))


def version(node: Node, edits: Edits) -> None:
    """Set ``language`` to the current version; without the field, insert it before the first field."""
    assert isinstance(node, Mapping)
    given, start = node.get("language"), node.extent[0]
    if given is not None:
        return edits.replace(*given.extent, LANGUAGE)
    if edits.is_flow(node):
        return edits.replace(start + 1, start + 1, f"language: {LANGUAGE}, ")
    return edits.replace(start, start, f"language: {LANGUAGE}{edits.line_end}")


PASSES: tuple[Callable[[Node, Edits], None], ...] = (operators, quotes, paths, version)


def files_of(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield (YAML file, whether ``paths`` names the file itself) for the files at or below ``paths``."""
    for path in paths:
        if path.is_dir():
            yield from ((inner, False) for inner in sorted(path.rglob("*")) if inner.suffix in ENDS and inner.is_file())
        else:
            yield path, True


def migrate(path: Path, named: bool, check: bool) -> bool:
    """Rewrite one file unless ``check``; return whether it was of an older version.

    Raises:
        SpecError: it is not YAML, or of an unknown version.
        SymflopsError: it cannot be read or written, or it was ``named`` and is no spec or block.
    """
    source = read_source(path)
    if not named and "graph" not in source.text and "extends" not in source.text:
        return False
    if not is_document(read_yaml(source)):
        if named:
            raise SymflopsError(f"{path} is no spec or block: it has neither 'graph' nor 'extends'")
        return False
    text = migrated(source)
    if text != source.text and not check:
        write(path, text)
    return text != source.text
