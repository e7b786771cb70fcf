"""What each operator kind computes: results, parameters, contractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .expressions import evaluate, fill
from .facts import Contraction, Stream, Value
from .unroll import Scope, check_rows, listed

Entry = Mapping[str, Any]


def operator(scope: Scope, key: str, entry: Entry) -> list[Value]:
    """Execute one operator entry; its results before `gate` and `add_to`."""
    path, kind = scope.join(key), entry["op"]
    values = [scope.value(name) for name in listed(entry.get("from"))]
    if added := scope.present(entry.get("with")):
        check_rows(values[0].stream, added)
        values[:1] = scope.emit(path, "with", [values[0], *added], [(values[0].stream, values[0].width)])
    return KINDS[kind](scope, path, entry, values)


def _parameter(scope: Scope, entry: Entry, field: str, default: str, shape: list[int]) -> str:
    """Declare a parameter, under the name that it is tied to, its template (relative to the enclosing path), or its default."""
    tie = entry.get("tie") if field == "weight" else None
    if tie is not None and (isinstance(tie, str) or scope.ev(tie.get("when", True))):
        return scope.context.program.declare(fill(tie if isinstance(tie, str) else tie["to"], scope.names, scope.width_of), shape)
    template = entry.get(field)
    name = fill(template, scope.names, scope.width_of) if template else ""
    return scope.context.program.declare(scope.join(name) if name else default, shape)


def _parts(width: int, sizes: Any) -> list[int]:
    if sum(sizes) != width or any(type(s) is not int for s in sizes):
        raise ValueError(f"split {sizes} of width {width}")
    return sizes


def linear(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """y = x W^T + b."""
    (x,) = values
    width = scope.ev(entry["width"])
    if type(width) is not int or x.width is None:
        raise ValueError(f"{path}: widths {x.width} -> {width}")
    if "in" in entry and scope.ev(entry["in"]) != x.width:
        raise ValueError(f"{path}: input width {x.width}")
    weight = _parameter(scope, entry, "weight", f"{path}.weight", [width, x.width])
    names = [weight]
    if scope.ev(entry.get("bias", True)):
        names.append(_parameter(scope, entry, "bias_name", f"{path}.bias", [width]))
    product = Contraction("linear", 2 * x.stream.total() * x.width * width, ((x,), (weight,)))
    widths = _parts(width, scope.ev(entry["split"])) if "split" in entry else [width]
    return scope.emit(path, "linear", values, [(x.stream, w) for w in widths], names, [product])


def embedding(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """A table look-up: no product."""
    rows, width = scope.ev(entry["rows"]), scope.ev(entry["width"])
    weight = _parameter(scope, entry, "weight", f"{path}.weight", [rows, width])
    return scope.emit(path, "embedding", values, [(values[0].stream, width)], [weight])


def parameter(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """A raw parameter read as a value; under `once` it has prod(shape)/width rows."""
    shape = scope.ev(entry["shape"])
    width = scope.ev(entry["width"]) if "width" in entry else shape[-1]
    name = scope.context.program.declare(path, shape, bool(scope.ev(entry.get("trainable", True))))
    given = entry.get("stream", "once")
    if given in scope.context.streams:
        stream = scope.context.streams[given]
    else:
        stream = scope.context.stream("once", {"row": math.prod(shape) // width}, scope.names)
    return scope.emit(path, "parameter", [], [(stream, width)], [name])


def _norm(bias_default: bool) -> Callable[[Scope, str, Entry, list[Value]], list[Value]]:
    def norm(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
        (x,) = values
        names: list[str] = []
        if scope.ev(entry.get("affine", True)):
            dim = scope.ev(entry["dim"]) if "dim" in entry else x.width
            names.append(_parameter(scope, entry, "weight", f"{path}.weight", [dim]))
            if scope.ev(entry.get("bias", bias_default)):
                names.append(_parameter(scope, entry, "bias_name", f"{path}.bias", [dim]))
        return scope.emit(path, "norm", values, [(x.stream, x.width)], names)

    return norm


def _folded(stream: Stream, fold: list[str]) -> list[tuple[int, int]]:
    """Per item: the product of the folded axes, and the tokens of one fold."""
    found = []
    for parts in stream.items:
        products = {math.prod(dict(part)[a] for a in fold) for part in parts}
        if len(products) != 1:
            raise ValueError(f"folded axes {fold} differ between parts")
        tokens = sum(math.prod(n for a, n in part if a not in fold) for part in parts)
        found.append((products.pop(), tokens))
    return found


def _sees(mask: str, bounds: Mapping[str, int], position: int, key: int) -> bool:
    """Whether the query at `position` may see a key: a base, and windows that intersect with it."""
    ahead = mask in ("full", "block") and "sliding" not in bounds
    seen = ahead or key <= position or (mask == "prefix" and key < bounds.get("prefix", 0))
    if "sliding" in bounds:
        seen = seen and position - key < bounds["sliding"]
    if "local" in bounds:
        seen = seen and abs(position - key) <= bounds["local"]
    if "chunked" in bounds:
        seen = seen and position // bounds["chunked"] == key // bounds["chunked"]
    return seen


def _blocks(lengths: list[int], queries: int) -> list[int]:
    """The block of each query; a token of no block is one of its own."""
    found = [place for place, length in enumerate(lengths) for _ in range(length)]
    if len(found) > queries:
        raise ValueError(f"blocks of {len(found)} tokens, {queries} queries")
    return found + [-1 - place for place in range(queries - len(found))]


def _pairs_of_blocks(queries: int, keys: int, mask: str, lengths: list[int]) -> int:
    """Pairs of a mask with blocks, one by one: the queries are the last of the keys, blocks are theirs."""
    past = keys - queries
    if past < 0 or (past and mask == "block"):
        raise ValueError("blocks of queries that are not among the keys")
    of = _blocks(lengths, queries)
    pairs = ((i, j - past) for i in range(queries) for j in range(keys))
    return sum((j >= 0 and of[i] == of[j]) or (mask == "causal" and j <= i) for i, j in pairs)


def _pairs_seen(queries: int, keys: int, mask: str, seen: Callable[[int], int]) -> int:
    """Pairs of queries that see a number of keys each, of those that the mask allows."""
    if mask == "causal" and keys < queries:
        raise ValueError("queries that are not the last of the keys")
    return sum(max(0, min(seen(i), i + 1 + keys - queries if mask == "causal" else keys)) for i in range(queries))


def _pairs(queries: int, keys: int, mask: str, bounds: Mapping[str, int]) -> int:
    """Pairs that a mask leaves, counted one by one; the last query sees the last key."""
    if mask in ("full", "block") and not bounds:
        return queries * keys
    return sum(_sees(mask, bounds, i + keys - queries, j) for i in range(queries) for j in range(keys))


def _left(scope: Scope, entry: Entry, sides: tuple[int, int], mask: str, bounds: Mapping[str, int], parts: Any) -> int:
    """Pairs of one item that blocks, numbers of keys or bounds leave."""
    field = "blocks" if "blocks" in entry else "sees"
    if field not in entry:
        return _pairs(*sides, mask, bounds)
    axes = dict(parts[0]) if len(parts) == 1 else {}
    names = {**scope.names, **axes, "tokens": sum(math.prod(n for _, n in part) for part in parts)}
    if entry[field] in scope.context.streams:
        return _pairs_of_blocks(*sides, mask, []) if field == "blocks" else 0
    if field == "blocks":
        return _pairs_of_blocks(*sides, mask, evaluate(entry["blocks"], names))
    return _pairs_seen(*sides, mask, lambda row: _number_seen(evaluate(entry["sees"], {**names, "row": row}), row, sides[1]))


def _number_seen(value: Any, row: int, keys: int) -> int:
    """The number of keys that one query sees; null is all."""
    return keys if value is None else int(value[row] if isinstance(value, list) else value)


def _elsewhere(scope: Scope, entry: Entry, mask: str) -> Iterator[int]:
    """Pairs that the items of a stream add: those ahead within a block (both sides under `block`), or its rows."""
    for field in ("blocks", "sees"):
        if entry.get(field) in scope.context.streams:
            for rows in scope.context.streams[entry[field]].rows():
                ahead = sum(1 for i in range(rows) for _ in range(i))
                yield rows if field == "sees" else ahead * (2 if mask == "block" else 1)


def _joined(values: list[Value]) -> Stream:
    """Concatenation along tokens."""
    if len({v.width for v in values}) != 1 or len({v.stream.over for v in values}) != 1:
        raise ValueError("concatenation of different widths or index sets")
    items = zip(*(v.stream.items for v in values), strict=True)
    return Stream(values[0].stream.over, tuple(tuple(p for parts in item for p in parts) for item in items))


def attention(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """Two products: scores = q.k and mix = p.v."""
    q, k, v = ([scope.value(n) for n in listed(entry[f])] for f in ("query", "key", "value"))
    if entry.get("with"):
        raise ValueError("`with` on attention is not in the oracle")
    bias = scope.present(entry.get("bias"))
    heads = scope.ev(entry["heads"])
    kv_heads = scope.ev(entry["kv_heads"]) if "kv_heads" in entry else heads
    mask, fold = entry.get("mask", "full"), listed(entry.get("fold"))
    sizes = {name: scope.ev(entry[name]) for name in ("prefix", "sliding", "local", "chunked") if name in entry}
    bounds = {name: size for name, size in sizes.items() if size is not None}
    if mask not in ("full", "causal", "prefix", "block"):
        raise ValueError(f"mask {mask} is not in the oracle")
    every = scope.context.all_pairs and not scope.ev(entry.get("sparse", False))
    if every:
        mask, bounds = "full", {}
    qs, ks, vs = _joined(q), _joined(k), _joined(v)
    if not qs.over == ks.over == vs.over or ks.rows() != vs.rows():
        raise ValueError(f"{path}: streams do not fit")
    wq, wk, wv = q[0].width, k[0].width, v[0].width
    if wq % heads or wk % kv_heads or wv % kv_heads or heads % kv_heads or wq // heads != wk // kv_heads:
        raise ValueError(f"{path}: widths {wq}, {wk}, {wv} of {heads} and {kv_heads} heads")
    dq, dv = wq // heads, wv // kv_heads
    pairs = 0
    for (folds, queries), (also, keys), rows in zip(_folded(qs, fold), _folded(ks, fold), qs.items, strict=True):
        if folds != also:
            raise ValueError(f"{path}: folded axes differ")
        pairs += folds * (_pairs(queries, keys, mask, bounds) if every else _left(scope, entry, (queries, keys), mask, bounds, rows))
    if not every:
        pairs += sum(_elsewhere(scope, entry, mask))
    probabilities = (*q, *k, *bias)
    products = [
        Contraction("scores", 2 * pairs * heads * dq, (tuple(q), tuple(k))),
        Contraction("mix", 2 * pairs * heads * dv, (probabilities, tuple(v))),
    ]
    return scope.emit(path, "attention", [*probabilities, *v], [(x.stream, heads * dv) for x in q], None, products)


def elementwise(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """`mul`, `act`, `add`, `map`: the first operand's stream; its width unless one is written."""
    first = values[0]
    if entry["op"] != "map":
        check_rows(first.stream, values[1:])
    if entry["op"] == "add" and len({v.width for v in values}) != 1:
        raise ValueError(f"{path}: add of different widths")
    width = scope.ev(entry["width"]) if "width" in entry else first.width
    return scope.emit(path, entry["op"], values, [(first.stream, width)])


def detach(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """The same value without its history."""
    return scope.emit(path, "detach", values, [(values[0].stream, values[0].width)], constant=True)


def _stream(scope: Scope, entry: Entry, base: Value | None) -> Stream:
    """The stream that `stream`, `axes` or `like` describe."""
    if "like" in entry:
        return scope.value(entry["like"]).stream
    given = entry.get("stream")
    if isinstance(given, str):
        return scope.context.streams[given]
    old = base.stream if base else None
    over = old.over if old else "samples"
    if given is not None:
        return scope.context.stream(over, given, scope.names, old)
    if old is None or ("axes" in entry and any(len(parts) != 1 for parts in old.items)):
        raise ValueError("`axes` needs a value of one part")
    if "axes" not in entry or not old.items:
        return old
    kept = {a: a for a, _ in old.items[0][0]}
    return scope.context.stream(over, {**kept, **entry["axes"]}, scope.names, old)


def zeros(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """A constant."""
    return scope.emit(path, "zeros", [], [(_stream(scope, entry, None), scope.ev(entry["width"]))], constant=True)


def _longest(stream: Stream) -> Stream:
    """Every item of a batch as long as the longest, along each axis; several parts are one run of tokens."""
    if any(len(parts) != 1 for parts in stream.items):
        rows = max(stream.rows(), default=0)
        return Stream(stream.over, tuple(((("tokens", rows),),) for _ in stream.items))
    axes = [[a for a, _ in parts[0]] for parts in stream.items[:1]]
    sides = [max(dict(parts[0])[a] for parts in stream.items) for names in axes for a in names]
    part = tuple(zip(*axes, sides, strict=True)) if axes else ()
    return Stream(stream.over, tuple((part,) for _ in stream.items))


def change_of_rows(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """Other rows, other width, no work."""
    (x,) = values
    kind = entry["op"]
    if kind == "flatten_batch":
        return scope.emit(path, kind, values, [(Stream("once", ((((x.stream.over, x.stream.total()),),),)), x.width)])
    stream = _stream(scope, entry, x)
    width = scope.ev(entry["width"]) if "width" in entry else x.width
    if kind == "pad_batch" and scope.context.all_pairs:
        stream = _longest(stream)
    if stream.over != x.stream.over or len(stream.items) != len(x.stream.items):
        raise ValueError(f"{path}: {kind} leaves the index set")
    if kind in ("identity", "reshape") and [r * x.width for r in x.stream.rows()] != [r * width for r in stream.rows()]:
        raise ValueError(f"{path}: reshape changes rows x width")
    return scope.emit(path, kind, values, [(stream, width)])


def matmul(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """A product with its index sizes written out, for each item of the index set that the operands share."""
    base = scope.value(entry["axes_of"]) if "axes_of" in entry else max(values, key=lambda v: v.stream.over != "once")
    if {v.stream.over for v in values} - {base.stream.over, "once"}:
        raise ValueError(f"{path}: operands of two index sets")
    work, rows = 0, []
    for i, parts in enumerate(base.stream.items):
        axes = {a: n for v in values if v.stream.over == base.stream.over for a, n in v.stream.items[i][0]}
        axes |= dict(parts[0]) | {"tokens": base.stream.rows()[i]}
        work += math.prod(evaluate(size, {**scope.names, **axes}) for size in entry["dims"])
        rows.append((tuple((a, evaluate(n, {**scope.names, **axes})) for a, n in entry.get("stream", {}).items()),))
    stream = Stream(base.stream.over, tuple(rows)) if "stream" in entry else base.stream
    product = Contraction("matmul", 2 * work, ((values[0],), (values[1],)))
    return scope.emit(path, "matmul", values, [(stream, scope.ev(entry.get("width", 1)))], None, [product])


def concat(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """Along tokens the parts are remembered; along width the rows must agree."""
    if entry.get("along", "width") == "tokens":
        return scope.emit(path, "concat", values, [(_joined(values), values[0].width)])
    check_rows(values[0].stream, values[1:])
    return scope.emit(path, "concat", values, [(values[0].stream, sum(v.width for v in values))])


def split(scope: Scope, path: str, entry: Entry, values: list[Value]) -> list[Value]:
    """Back into the parts of the stream, or into widths."""
    (x,) = values
    if entry.get("along", "width") == "width":
        return scope.emit(path, "split", values, [(x.stream, w) for w in _parts(x.width, scope.ev(entry["sizes"]))])
    count = len(listed(entry["to"]))
    if any(len(parts) != count for parts in x.stream.items):
        raise ValueError(f"{path}: {count} results for the parts of the stream")
    streams = [Stream(x.stream.over, tuple((parts[i],) for parts in x.stream.items)) for i in range(count)]
    return scope.emit(path, "split", values, [(s, x.width) for s in streams])


KINDS: dict[str, Callable[[Scope, str, Entry, list[Value]], list[Value]]] = {
    "linear": linear, "embedding": embedding, "parameter": parameter, "rms_norm": _norm(False),
    "layer_norm": _norm(True), "attention": attention, "mul": elementwise, "act": elementwise, "add": elementwise, "map": elementwise,
    "detach": detach, "zeros": zeros, "concat": concat, "split": split, "matmul": matmul,
    **dict.fromkeys(("identity", "reshape", "expand", "select", "pool", "pad", "slice", "pad_batch", "flatten_batch"), change_of_rows),
}  # fmt: skip
