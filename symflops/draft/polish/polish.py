"""Makes entries read as a person writes them: sums into what is added to, products into gates, no copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REFERENCES = (
    "from",
    "with",
    "gate",
    "add_to",
    "query",
    "key",
    "value",
    "bias",
    "like",
    "weights",
    "dt",
    "write",
    "decay",
    "right",
    "axes_of",
)
GATED = ("linear", "conv", "matmul", "attention", "mul", "map", "rms_norm", "layer_norm")


def reads(fields: dict[str, Any]) -> Iterator[str]:
    """The names that an entry reads, those of its body too."""
    for word in REFERENCES:
        value = fields.get(word)
        if isinstance(value, str) and not (word == "bias" and value in ("true", "false")):
            yield value
        elif isinstance(value, list):
            yield from value
    for _, inner in fields.get("graph", ()):
        yield from reads(inner)


def writes(fields: dict[str, Any]) -> Iterator[str]:
    """The names that an entry binds, those of its body too."""
    for word in ("to", "add_to"):
        value = fields.get(word)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from value
    for _, inner in fields.get("graph", ()):
        yield from writes(inner)


def rename(entries: list[Any], old: str, new: str) -> None:
    """Call a value otherwise."""
    for _, fields in entries:
        for word in (*REFERENCES, "to"):
            value = fields.get(word)
            if value == old:
                fields[word] = new
            elif isinstance(value, list):
                fields[word] = [new if one == old else one for one in value]
        rename(fields.get("graph", []), old, new)


def polished(entries: list[Any], kept: set[str]) -> list[Any]:
    """Entries that say the same with fewer lines; names in ``kept`` are read elsewhere."""
    for _, fields in entries:
        if "graph" in fields:
            outside = {name for key, other in entries if other is not fields for name in reads(other)} | kept
            fields["graph"] = polished(fields["graph"], (outside | carried(fields["graph"])) & set(writes(fields)))
    changed = True
    while changed:
        changed = unchained(entries, kept) or summed(entries, kept) or gated(entries, kept)
    return entries


def tidied(entries: list[Any], outputs: list[str], kept: set[str]) -> list[str]:
    """Give values the shortest names that are free, in the order in which they are made; the outputs under their new names.

    Names in ``kept`` are of inputs and stay; paths are names where nothing else is said.
    """
    order = [name for name in dict.fromkeys(made(entries)) if name not in kept]
    taken = kept | set(keys(entries))
    chosen: dict[str, str] = {}
    for name in order:
        base = name.rstrip("0123456789") or name
        found, number = base, 2
        while found in taken:
            found, number = f"{base}{number}", number + 1
        taken.add(found)
        chosen[name] = found
    relabelled(entries, chosen)
    return [chosen.get(name, name) for name in outputs]


def keys(entries: list[Any]) -> Iterator[str]:
    """The paths of entries that name no result: it is called as the path is."""
    for key, fields in entries:
        if "to" not in fields:
            yield key
        yield from keys(fields.get("graph", []))


def made(entries: list[Any]) -> Iterator[str]:
    """The names that entries bind, in order."""
    for _, fields in entries:
        yield from own(fields)
        yield from made(fields.get("graph", []))


def relabelled(entries: list[Any], names: dict[str, str]) -> None:
    """Call all values otherwise at once."""
    for _, fields in entries:
        for word in (*REFERENCES, "to"):
            value = fields.get(word)
            if isinstance(value, str) and not (word == "bias" and value in ("true", "false")):
                fields[word] = names.get(value, value)
            elif isinstance(value, list):
                fields[word] = [names.get(one, one) for one in value]
        relabelled(fields.get("graph", []), names)


def carried(body: list[Any]) -> set[str]:
    """The names that a body reads before it binds them: the next turn reads them again."""
    found: set[str] = set()
    bound: set[str] = set()
    for _, fields in body:
        inner = carried(fields["graph"]) if "graph" in fields else set()
        direct = reads({word: value for word, value in fields.items() if word != "graph"})
        found.update(name for name in (*direct, *inner) if name not in bound)
        bound.update(writes(fields))
    return found


def unchained(entries: list[Any], kept: set[str]) -> bool:
    """Take away a copy: its source is called as the copy is, where the old value of that name is not read in between."""
    for place, (_, fields) in enumerate(entries):
        source = fields.get("from")
        if fields.get("op") != "add" or not isinstance(source, str) or set(fields) != {"op", "from", "to"}:
            continue
        target = fields["to"]
        made = next((number for number in range(place - 1, -1, -1) if source in set(own(entries[number][1]))), None)
        if made is None or source in kept or "graph" in entries[made][1]:
            continue
        between = entries[made + 1 : place]
        after = entries[place + 1 :]
        if any(target in set(reads(one)) | set(writes(one)) for _, one in between):
            continue
        if any(source in set(reads(one)) for _, one in after) and any(target in set(writes(one)) for _, one in after):
            continue
        if sum(source in set(own(one)) for _, one in entries) > 1:
            continue
        del entries[place]
        rename(entries[made:], source, target)
        return True
    return False


def own(fields: dict[str, Any]) -> Iterator[str]:
    """The names that an entry itself binds."""
    value = fields.get("to")
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from value


def count(entries: list[Any], name: str) -> int:
    """How often a name is read."""
    return sum(sum(one == name for one in reads(fields)) for _, fields in entries)


def summed(entries: list[Any], kept: set[str]) -> bool:
    """``r + x`` as ``add_to: r`` of what makes ``x``, where ``r`` is not read before the sum, nor its old value after."""
    for place, (_, fields) in enumerate(entries):
        operands = fields.get("from")
        if (
            fields.get("op") != "add"
            or not isinstance(operands, list)
            or len(operands) != 2
            or set(fields) != {"op", "from", "to"}
        ):
            continue
        for base, term in (operands, operands[::-1]):
            if base == term or term in kept or count(entries, term) != 1:
                continue
            made = next((number for number in range(place - 1, -1, -1) if term in set(own(entries[number][1]))), None)
            if made is None:
                continue
            maker = entries[made][1]
            if ("block" not in maker and maker.get("op") not in GATED) or "add_to" in maker or "graph" in maker:
                continue
            source = next((one for _, one in entries[:place] if base in set(own(one))), None)
            if base != operands[0] and (base not in kept if source is None else source.get("op") == "parameter"):
                continue
            if any(base in set(reads(one)) | set(writes(one)) for _, one in entries[made + 1 : place]):
                continue
            if base in set(writes(maker)):
                continue
            bound = any(base in set(writes(one)) for _, one in entries[:made]) or fields["to"] == base or base in kept
            if not bound or (fields["to"] != base and needed_later(entries[place + 1 :], base, kept)):
                continue
            if fields["to"] in kept and fields["to"] != base:
                continue
            result = fields["to"]
            del entries[place]
            maker["add_to"] = base
            del maker["to"]
            if result != base:
                rename(entries[made + 1 :], result, base)
            return True
    return False


def needed_later(entries: list[Any], name: str, kept: set[str]) -> bool:
    """Whether the present value of a name is read before it is bound anew."""
    for _, fields in entries:
        if name in set(reads(fields)):
            return True
        if "graph" not in fields and name in set(own(fields)):
            return False
    return name in kept


def gated(entries: list[Any], kept: set[str]) -> bool:
    """``g * x`` as ``gate: g`` of the linear or attention that makes ``x``, with the sum that the product is added to."""
    for place, (_, fields) in enumerate(entries):
        operands = fields.get("from")
        into = "add_to" if "add_to" in fields else "to"
        if (
            fields.get("op") != "mul"
            or set(fields) != {"op", "from", into}
            or not isinstance(operands, list)
            or len(operands) != 2
        ):
            continue
        term, gate = operands
        if gate == term or term in kept or count(entries, term) != 1:
            continue
        made = next((number for number in range(place - 1, -1, -1) if term in set(own(entries[number][1]))), None)
        if made is None:
            continue
        maker = entries[made][1]
        if maker.get("op") not in ("linear", "attention") or "gate" in maker or "add_to" in maker:
            continue
        if any(gate in set(writes(one)) for _, one in entries[made:place]):
            continue
        if into == "add_to" and any(fields[into] in {*reads(one), *writes(one)} for _, one in entries[made + 1 : place]):
            continue
        del maker["to"]
        maker |= {"gate": gate, into: fields[into]}
        del entries[place]
        return True
    return False
