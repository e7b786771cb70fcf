"""The directive ``generated``: a page or a part of one, read from the code when the documentation is built."""

from __future__ import annotations

import json
from typing import Any

import operators
import reference
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PAGES = {
    "operators": operators.operators,
    "common-fields": operators.common,
    "forms": operators.forms,
    "commands": reference.commands,
    "regimes": reference.regimes,
    "conventions": reference.conventions,
    "roles": reference.roles,
    "inferred-roles": reference.inferred_roles,
    "functions": reference.functions,
    "diagnostics": reference.diagnostics,
}


class Generated(SphinxDirective):
    """``{generated} operators``, or ``{generated} keys document``."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The generated nodes."""
        name, *more = self.arguments
        text = reference.keys(more[0]) if name == "keys" else PAGES[name]()
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class WhoSaysWhat(SphinxDirective):
    """``{who-says-what} llama``: one model under several conventions."""

    required_arguments = 1
    option_spec = {
        "conventions": directives.unchanged_required,
        "batch": directives.unchanged_required,
        "config": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """The table."""
        config = json.loads(self.options.get("config", "{}"))
        names = self.options["conventions"].split()
        text = reference.who_says_what(self.arguments[0], names, config, json.loads(self.options["batch"]))
        return self.parse_text_to_nodes(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("generated", Generated)
    app.add_directive("who-says-what", WhoSaysWhat)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
