"""The schema that editors read, with the blocks that specs may call."""

from __future__ import annotations

from symflops.catalog.library import block_texts, comment_of
from symflops.diagnostics.findings import Source, SpecError
from symflops.frontend.json_schema import BlockSignature, schema
from symflops.syntax.yaml_nodes import Mapping, read_yaml


def editor_schema(page: str) -> str:
    """The text of the schema of one kind of page; it suggests the blocks of the project and of the library."""
    return schema(page, [BlockSignature(name, comment_of(text), parameters(text)) for name, text in block_texts().items()])


def parameters(text: str) -> tuple[str, ...]:
    """The parameters of a block; none of one that is no YAML."""
    try:
        node = read_yaml(Source("block.yaml", text))
    except SpecError:
        return ()
    params = node.get("params") if isinstance(node, Mapping) else None
    return tuple(key.text for key, _ in params.entries) if isinstance(params, Mapping) else ()
