"""Random steps: each writes the entries of one construct, always valid where it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .builder import SAMPLES, WIDTHS, Builder, Entry, Known, Place

BLOCKS: dict[str, Any] = {
    "mlp": {
        "params": {"hidden": None, "width": None, "bias": "true"},
        "inputs": ["v", "m"], "optional": ["m"], "outputs": ["o"],
        "graph": [
            {"up": {"op": "linear", "from": "v", "with": ["m"], "width": "hidden", "bias": "bias", "to": "u"}},
            {"act": {"op": "mul", "from": ["u", "u"], "to": "u"}},
            {"down": {"op": "linear", "from": "u", "width": "width", "to": "o"}},
        ],
    },
    "cross": {
        "params": {}, "inputs": ["u", "w"], "outputs": ["p", "q"],
        "graph": [
            {"proj": {"op": "linear", "from": "w", "width": "width(u)", "to": "p"}},
            {"keep": {"op": "map", "from": "u", "width": "width(w)", "to": "q"}},
        ],
    },
}  # fmt: skip


def linear(b: Builder) -> list[Entry]:
    """A linear; sometimes with the weight of an earlier one."""
    source = b.source()
    known, fields = b.values[source], {"op": "linear", "from": source}
    width = b.pick(WIDTHS)
    ties = [w for w in b.weights if w[1] == known.width]
    if ties and b.chance(40):
        name, _, width = b.pick(ties)
        fields |= {"width": width, "tie": name, "bias": b.chance(50)}
    else:
        fields["width"] = width
        if b.chance(40):
            fields["bias"] = b.pick([False, "flag"])
    if b.chance(30):
        fields["with"] = b.rng.choices(b.partners(known.stream), k=b.pick([1, 1, 2]))
    made = b.entry(fields, known.stream, width)
    if "tie" not in fields and b.place.path is not None:
        b.weights.append((f"{b.place.path}{b.labels[-1]}{b.place.suffix}.weight", known.width, width))
    return made


def norm(b: Builder) -> list[Entry]:
    """A norm, with or without parameters."""
    source = b.source()
    known = b.values[source]
    fields: Entry = {"op": b.pick(["rms_norm", "layer_norm"]), "from": source}
    if b.chance(50):
        fields["affine"] = False
    elif b.chance(30):
        fields["bias"] = b.chance(50)
    if b.chance(40):
        fields["with"] = b.pick(b.partners(known.stream))
    return b.entry(fields, known.stream, known.width)


def pointwise(b: Builder) -> list[Entry]:
    """mul, act, add or map."""
    source = b.source()
    known = b.values[source]
    kind = b.pick(["mul", "act", "add", "map"])
    others = [n for n in b.partners(known.stream) if not b.values[n].maybe]
    if kind == "add":
        others = [n for n in others if b.values[n].width == known.width]
    fields: Entry = {"op": kind, "from": [source, b.pick(others)]}
    width = known.width
    if kind == "map" and b.chance(50):
        width = fields["width"] = b.pick(WIDTHS)
    return b.entry(fields, known.stream, width)


def constant(b: Builder) -> list[Entry]:
    """Replace a value by a detached or a zero one, or read a parameter."""
    source = b.source()
    known = b.values[source]
    kind = b.pick(["detach", "zeros", "parameter"])
    if kind == "detach":
        return b.entry({"op": "detach", "from": source}, known.stream, known.width, extras=False)
    if kind == "zeros":
        fields = {"op": "zeros", "stream": known.stream, "width": known.width}
        if known.stream != "table":
            return b.entry(fields, known.stream, known.width, extras=False)
    width = b.pick(WIDTHS)
    return b.entry({"op": "parameter", "shape": f"[{width}]"}, "table", width, extras=False)


def swap(b: Builder) -> list[Entry]:
    """Exchange two values, or replace one by a fresh projection of the other."""
    pairs = [(m, n) for m in b.sure() for n in b.sure() if m < n and
             (b.values[m].stream, b.values[m].width) == (b.values[n].stream, b.values[n].width)]  # fmt: skip
    if not pairs:
        return linear(b)
    first, second = b.pick(pairs)
    held = b.fresh("v")
    b.values[held] = b.values[first]
    b.bound |= {first, second}
    b.budget -= 2
    middle = b.pick([
        {"op": "map", "from": second}, {"op": "linear", "from": second, "width": b.values[second].width},
        {"op": "detach", "from": second},
    ])  # fmt: skip
    return [
        {b.label(): {"op": "map", "from": first, "to": held}},
        {b.label(): {**middle, "to": first}},
        {b.label(): {"op": "map", "from": held, "to": second}},
    ]


def rows(b: Builder) -> list[Entry]:
    """Pool a sequence per sample, or spread a sample's row over a sequence."""
    names = [n for n in b.sure() if b.values[n].stream in SAMPLES]
    if not names:
        return linear(b)
    source = b.pick(names)
    known = b.values[source]
    if known.stream != "sample":
        return b.entry({"op": b.pick(["pool", "select"]), "from": source, "stream": "sample"},
                       "sample", known.width)  # fmt: skip
    stream = b.pick(["text", "prompt"])
    return b.entry({"op": "expand", "from": source, "stream": stream}, stream, known.width)


def pattern(b: Builder, form: str, mask: str) -> Entry:
    """Sometimes blocks of unequal lengths, or a number of keys for each query; sometimes only the useful pairs are computed."""
    kind = b.more.randrange(8)
    sparse = b.more.choice([{}, {}, {"sparse": True}, {"sparse": "flag"}])
    if kind == 0:
        within = b.more.choice(["causal", "block"]) if form == "self" else "causal"
        streams = [known.stream for known in b.values.values() if known.stream == "image"]
        return {"mask": within, "blocks": b.more.choice([*streams, "[tokens//3, tokens//2]", "[tokens//2, 0, min(tokens//3, 2)]"]), **sparse}
    if kind == 1:
        sees = ["R", "row//R + 1", "row % R + 1 + min(row//R, 2)*R", "tokens if row < R else 2", "R - row", "R if flag else null"]
        return {"sees": b.more.choice(sees), **sparse}
    return sparse if kind == 2 else {}


def attend(b: Builder) -> list[Entry]:
    """Self, cross or joint attention of projections, and a projection of each result."""
    sources = b.sure(stream="text") + b.sure(stream="prompt") + b.sure(stream="image")
    if not sources or b.budget < 3:
        return linear(b)
    first = b.pick(sources)
    stream = b.values[first].stream
    others = [n for n in sources if b.values[n].stream in ("text", "prompt") and b.values[n].stream != stream]
    form = b.pick(["self", "joint", "cross", "prefix"]) if others and stream != "image" and b.budget >= 4 else "self"
    grouped, value_head = b.chance(40), b.pick(["d", "d", "F"])
    q_width, k_width, v_width = "H*d" if grouped else "G*d", "G*d", f"G*{value_head}"
    result = f"{'H' if grouped else 'G'}*{value_head}"
    entries: list[Entry] = []
    triples: list[tuple[str, str, str]] = []
    for source in [first] if form == "self" else [first, b.pick(others)]:
        names = (b.fresh("q"), b.fresh("k"), b.fresh("u"))
        b.budget -= 1
        entries.append({b.label(): {
            "op": "linear", "from": source, "width": f"{q_width} + {k_width} + {v_width}", "bias": b.chance(50),
            "split": f"[{q_width}, {k_width}, {v_width}]", "to": list(names),
        }})  # fmt: skip
        if b.chance(25):
            which = b.pick(names[:2])
            entries.append({b.label(): {"op": "rms_norm", "from": which, "dim": "d", "to": which}})
        triples.append(names)
    fields: Entry = {"op": "attention", "heads": "H" if grouped else "G"}
    if grouped:
        fields["kv_heads"] = "G"
    if form in ("self", "prefix") and b.chance(50):
        fields["mask"] = "causal"
    if form == "self" and stream == "prompt" and len(b.prompt_axes) == 2 and b.chance(70):
        fields.pop("mask", None)
        fields["fold"] = [b.pick(b.prompt_axes)]
    if form in ("self", "prefix") and "fold" not in fields:
        fields |= pattern(b, form, fields.get("mask", "full"))
    if (tables := b.sure(stream="table")) and b.chance(30):
        fields["bias"] = [b.pick(tables)]
    queries = triples if form == "joint" else triples[:1]
    keys = {"self": triples, "joint": triples, "cross": triples[1:], "prefix": triples[::-1]}[form]
    for name, group, position in (("query", queries, 0), ("key", keys, 1), ("value", keys, 2)):
        fields[name] = [t[position] for t in group] if len(group) > 1 else group[0][position]
    results = [b.fresh("v") for _ in queries]
    fields["to"] = results if len(results) > 1 else results[0]
    b.budget -= 1
    entries.append({b.label(): fields})
    for name, triple in zip(results, queries, strict=True):
        owner = stream if triple is triples[0] else b.values[others[0]].stream
        b.values[name] = Known(owner, result)
        b.bound.add(name)
        if b.chance(75):
            width = b.pick(WIDTHS)
            entries += b.entry({"op": "linear", "from": name, "width": width}, owner, width)
    return entries


def join(b: Builder) -> list[Entry]:
    """Concatenate along tokens or width, project, split again."""
    source = b.source()
    known = b.values[source]
    other = {"text": "prompt", "prompt": "text"}.get(known.stream)
    entries: list[Entry] = []
    held, mixed = b.fresh("v"), b.fresh("v")
    if other and b.sure(stream=other) and b.chance(60):
        matching = b.sure(stream=other, width=known.width)
        second = b.pick(matching) if matching else None
        if second is None:
            second, entries = b.project(b.pick(b.sure(stream=other)), known.width)
        width = b.pick([known.width, *WIDTHS])
        along, back, kinds = "tokens", {}, [Known(known.stream, width), Known(other, width)]
    else:
        second = b.pick(b.sure(stream=known.stream))
        widths = (known.width, b.values[second].width)
        width, along = " + ".join(widths), "width"
        back, kinds = {"sizes": f"[{', '.join(widths)}]"}, [Known(known.stream, w) for w in widths]
    entries.append({b.label(): {"op": "concat", "along": along, "from": [source, second], "to": held}})
    entries.append({b.label(): {"op": "linear", "from": held, "width": width, "to": mixed}})
    names = [b.fresh("v"), b.fresh("v")]
    b.budget -= 3
    entries.append({b.label(): {"op": "split", "along": along, "from": mixed, **back, "to": list(names)}})
    if b.chance(30):
        entries[-1][b.labels[-1] + b.place.suffix]["to"][0] = "_"
        names, kinds = names[1:], kinds[1:]
    b.values.update(zip(names, kinds, strict=True))
    b.bound.update(names)
    return entries


def block(b: Builder) -> list[Entry]:
    """A call of a local block."""
    source = b.source()
    known = b.values[source]
    twins = [n for n in b.sure(stream=known.stream, width=known.width) if n != source]
    if twins and b.chance(50):
        second = b.pick(twins)
        b.budget -= 2
        b.bound |= {source, second}
        to = [source, second] if b.chance(70) else [second, source]
        return [{b.label("c"): {"block": "cross", "from": [source, second], "to": to}}]
    given = [source]
    if b.chance(40):
        given.append(b.pick(b.partners(known.stream)))
    width = b.pick([known.width, *WIDTHS])
    fields: Entry = {"block": "mlp", "from": given, "hidden": b.pick(["2*D", "E", "F+1"]), "width": width}
    if b.chance(40):
        fields["bias"] = b.pick(["false", "flag"])
    b.budget -= 1
    return b.entry(fields, known.stream, width, letter="c")


def _body(b: Builder, place: Place, steps: int) -> tuple[list[Entry], dict[str, Known]]:
    """Entries one level down, and the names as they stand at their end."""
    inner = replace(b, values=dict(b.values), place=place)
    entries: list[Entry] = []
    for _ in range(steps):
        if inner.budget > 0 or not entries:
            entries += step(inner)
    b.budget = inner.budget
    return entries, inner.values


def group(b: Builder) -> list[Entry]:
    """A group: conditional, without gradients, or plain."""
    label = b.label("b")
    path = None if b.place.path is None else f"{b.place.path}{label}."
    kind = b.pick(["when", "no_grad", "plain"])
    condition = (b.condition() or "flag") if kind == "when" else None
    place = replace(b.place, depth=b.place.depth + 1, path=path)
    entries, values = _body(b, place, b.pick([1, 2]))
    if kind != "when":
        b.values.update(values)
    fields: Entry = {"when": condition} if condition else {"no_grad": True} if kind == "no_grad" else {}
    return [{label: {**fields, "graph": entries}}]


def repeat(b: Builder) -> list[Entry]:
    """A repeat over a count or a list; with a module, without one, or shared."""
    label = b.label("b")
    count = b.pick(["R1", "R2", "R1", "R2", "R1+1", "max(0, R2-1)", "len(kinds)"])
    form = b.pick(["plain", "plain", "plain", "shared", "bare"])
    fields: Entry = {"repeat": "kinds" if count == "len(kinds)" else count}
    indices, suffix, key = b.place.indices, b.place.suffix, label
    path: str | None = None
    if form == "shared":
        fields["shared"] = True
        path = None if b.place.path is None else f"{b.place.path}{label}."
    if form == "bare" or b.chance(60):
        fields["index"] = b.fresh("i")
        indices = (*indices, (fields["index"], count if count.isalnum() else f"({count})"))
    if form == "bare":
        key, suffix = "_", suffix + ".{" + fields["index"] + "}"
    place = replace(b.place, depth=b.place.depth + 1, path=path, suffix=suffix, indices=indices)
    fields["graph"], _ = _body(b, place, b.pick([1, 2, 2, 3, 4]))
    return [{key: fields}]


LEAVES = (linear, linear, linear, norm, pointwise, constant, swap, swap, rows, attend, attend, join, block)


def step(b: Builder) -> list[Entry]:
    """One random step."""
    nests = (repeat, repeat, repeat, group) if b.place.depth < 3 and b.budget > 1 else ()
    return b.pick([*LEAVES, *nests])(b)
