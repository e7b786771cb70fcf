"""Formulas as MathML, made when the pages are built: readable aloud, without scripts, fonts or a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def inline(writer: Any, node: nodes.math) -> None:
    """A formula within a line."""
    writer.body.append(converted(node, as_block=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    writer.body.append(f'<div class="math" role="math" tabindex="0">{converted(node, as_block=True)}</div>')
    raise nodes.SkipNode


def converted(node: nodes.Element, as_block: bool) -> str:
    """The MathML of a formula, or its source with a warning."""
    source = node.astext().replace(r"\cr", r"\\")  # in Markdown a doubled backslash is one
    try:
        return str(tex2mathml(source, as_block=as_block))
    except Exception as error:
        LOGGER.warning("this formula cannot be shown: %s", error, location=node)
        return f"<code>{source}</code>"
