"""The names that the entries of a graph bind."""

from __future__ import annotations

from collections.abc import Sequence

from symflops.ir.spec import Entry, Faulty, Group, OperatorEntry, Repeat


def assigned(entries: Sequence[Entry]) -> frozenset[str]:
    """Names of values that ``entries`` may bind or add to."""
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
    """Names that an entry lists under ``to``; names under ``add_to`` are not included."""
    if isinstance(entry, Faulty):
        return frozenset(entry.names) - {"_"}
    if isinstance(entry, Repeat):
        return frozenset()
    fields = (
        {"to": entry.to} if isinstance(entry, Group) else entry.fields if isinstance(entry, OperatorEntry) else entry.common
    )
    return frozenset(name.text for name in fields.get("to") or ()) - {"_"}
