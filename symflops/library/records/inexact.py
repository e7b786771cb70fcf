"""Reads ``inexact.yaml``: measured records that no derivation can reproduce, each with its reason and difference.

Valid reasons lie outside of the spec: work that depends on data missing from the record, or an error of the counter itself. An
entry states how much the derived figures differ from the measured ones, and verification checks that amount.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Mapped
from functools import lru_cache
from pathlib import Path

from symflops.ir.verification import KnownInexact
from symflops.read.shapes import Shapes
from symflops.read.spec_files import read_source
from symflops.read.yaml_nodes import Node, Scalar, read_yaml
from symflops.support.findings import Reporter, Source

FILE = "inexact.yaml"
MOST = 10
FIELDS = ("id", "reason", "difference")
DIFFERENCES = ("forward", "backward", "modules")
WHOLE = re.compile(r"[-+]?[0-9]{1,30}")


def known_inexact(root: Path) -> Mapped[str, KnownInexact]:
    """Read ``inexact.yaml`` of a library of specs: record id -> entry; empty without the file.

    Raises:
        SpecError: lists every finding: wrong shape, missing field, duplicate entry, more than ten entries.
    """
    path = root / FILE
    return _entries(read_source(path, f"specs/{FILE}")) if path.is_file() else {}


@lru_cache(maxsize=4)
def _entries(source: Source) -> Mapped[str, KnownInexact]:
    reader = _Reader(Reporter())
    found = reader.entries(read_yaml(source))
    reader.report.check()
    return found


class _Reader(Shapes):
    """Reads the list of entries, and reports mistakes."""

    def entries(self, document: Node) -> dict[str, KnownInexact]:
        """Read all entries, by id."""
        found: dict[str, KnownInexact] = {}
        items = self.sequence(document, "the file")
        for item in items:
            entry = self.entry(item)
            if entry.id in found:
                self.report.error("twice", f"'{entry.id}' has an entry already", item.span, "one entry for each record")
            found[entry.id] = entry
        if len(items) > MOST:
            hint = "more of them means that a mechanism is missing"
            self.report.error("too-many", f"at most {MOST} records may be inexact, not {len(items)}", items[MOST].span, hint)
        return found

    def entry(self, item: Node) -> KnownInexact:
        """Read one entry; all fields are required."""
        given = self.known(item, FIELDS, "an entry")
        for field in FIELDS:
            if field not in given:
                self.report.error("missing-field", f"an entry needs '{field}'", item.span)
        difference = self.known(given["difference"], DIFFERENCES, "'difference'") if "difference" in given else {}
        modules = self.mapping(difference.get("modules"), "'modules'")
        return KnownInexact(
            self.text(given.get("id"), "'id'"),
            self.prose(given.get("reason"), "'reason'"),
            self.whole(difference, "forward"),
            self.whole(difference, "backward"),
            tuple((key.text, self.whole({key.text: value}, key.text)) for key, value in modules),
        )

    def whole(self, given: Mapped[str, Node], name: str) -> int:
        """Read an integer field; 0 if it is absent or, with a finding, if it is no integer."""
        node = given.get(name)
        if node is None:
            return 0
        if not isinstance(node, Scalar) or not WHOLE.fullmatch(node.text):
            self.report.error("bad-number", f"'{name}' must be a whole number of FLOPs", node.span, "derived minus measured")
            return 0
        return int(node.text)
