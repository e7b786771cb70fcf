"""The names that the entries of a graph bind."""

from __future__ import annotations

from collections.abc import Sequence

from symflops.ir.spec import Entry, Faulty, Group, OperatorEntry, Repeat


def assigned(entries: Sequence[Entry]) -> frozenset[str]:
    """Names that ``entries`` may bind to a value, or to whose value they may add a result."""
    found: set[str] = set()
    for entry in entries:
        if isinstance(entry, Faulty):
            found |= set(entry.names)
        elif isinstance(entry, Group) and entry.experts is not None:
            found |= {name.text for name in entry.to} or {entry.path.text}
        elif isinstance(entry, (Repeat, Group)):
            found |= assigned(entry.body)
        else:
            fields = entry.fields if isinstance(entry, OperatorEntry) else entry.common
            names = fields.get("to")
            found |= {name.text for name in names} if names else {entry.path.text}
            found |= {name.text for name in fields.get("add_to") or ()}
    return frozenset(found - {"_"})


def named_results(entry: Entry) -> frozenset[str]:
    """Names that an entry gives its results under ``to``; without those under ``add_to``."""
    if isinstance(entry, Faulty):
        return frozenset(entry.names) - {"_"}
    if isinstance(entry, Repeat):
        return frozenset()
    fields = (
        {"to": entry.to} if isinstance(entry, Group) else entry.fields if isinstance(entry, OperatorEntry) else entry.common
    )
    return frozenset(name.text for name in fields.get("to") or ()) - {"_"}
