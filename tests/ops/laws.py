"""What each operator must cost: small graphs around one use of it, with its work counted one by one in plain Python.

``LAWS`` is the table that ``test_laws`` holds the operators to. An operator that has no row there, or a field that no row
uses, fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

Count = Callable[..., int]
Item = dict[str, int]
Runs = Callable[[list[Item]], list[dict[str, Any]]]


def each(items: list[Item]) -> list[dict[str, Any]]:
    """Items as they are, one by one."""
    return [*items]


def padded(items: list[Item]) -> list[dict[str, Any]]:
    """Every item as long as the longest, along each axis."""
    return [{axis: max(item[axis] for item in items) for axis in items[0]} for _ in items]


def joined(items: list[Item]) -> list[dict[str, Any]]:
    """Every item as long as the longest, its axes one after another."""
    return [max(items, key=lambda item: sum(item.values())) for _ in items]


def together(items: list[Item]) -> list[dict[str, Any]]:
    """All of them at once: what is counted is one thing, of a batch as a whole."""
    return [{"items": items}]


def padded_together(items: list[Item]) -> list[dict[str, Any]]:
    """All of them at once, each as long as the longest."""
    return [{"items": padded(items)}]


def longest(items: list[Item], axis: str) -> int:
    """The longest of a batch, none in an empty one."""
    return max((item[axis] for item in items), default=0)


def every_row(items: list[Item], *axes: str) -> int:
    """The rows of all items."""
    return sum(prod(item[axis] for axis in axes) for item in items)


@dataclass(frozen=True, eq=False)
class Law:
    """One use of an operator of ``kind``: ``entries`` read the values ``a``, ``b``, ``c`` and make ``r``.

    ``values`` are the streams and widths of those values, each made by a linear from an input, so that it needs a gradient; a width
    of None is a carrier of indices. ``streams`` are axes by stream, ``lengths`` the lengths that an axis may have: a least
    one, and steps. ``work`` counts the multiply-adds of one item, by its lengths; ``every`` those that are executed, with what
    masks discard. ``rows`` are the rows of ``r``, ``width`` its width. ``degrees`` is how the work grows with each axis, step by
    step, and with the number of ``items``: as fast as it where nothing is said.

    ``reached`` are the values to which gradients come. ``runs`` is what a batch is executed as, ``useful`` what of it is useful: counts take each of those. ``seen`` says whether
    PyTorch's counter sees the work; ``gradients`` are the products as large as it that the backward pass has, of which it sees
    ``seen_gradients``.
    """

    kind: str
    entries: tuple[str, ...]
    rows: Count
    width: int
    work: Count | None = None
    every: Count | None = None
    degrees: dict[str, int] = field(default_factory=dict)
    values: tuple[tuple[str, int | None], ...] = (("text", 4),)
    streams: dict[str, str] = field(default_factory=lambda: {"text": "[x]"})
    lengths: dict[str, tuple[int, int]] = field(default_factory=dict)
    reached: str = "abc"
    seen: bool = True
    gradients: int = 2
    seen_gradients: int | None = None
    runs: Runs = each
    useful: Runs = each

    def counted(self, count: Count | None, items: list[Item], executed: bool) -> int:
        """A count over a batch, as it is executed or as far as it is useful."""
        return sum(count(**item) for item in (self.runs if executed else self.useful)(items)) if count else 0

    def degree(self, axis: str) -> int:
        """How fast the work grows with an axis, or with the number of items."""
        return self.degrees.get(axis, int(axis == "items" and self.work is not None))

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The batch variables of each stream."""
        return {name: tuple(text.partition("[")[2].strip("[]}").replace(" ", "").split(",")) if "[" in text else () for name, text in self.streams.items()}

    def legal(self, axis: str) -> tuple[int, int]:
        """The least length of an axis, and its steps."""
        return self.lengths.get(axis, (0, 1))

    def spec(self) -> str:
        """The graph as a spec: a linear before each value, a linear of width 1 after the result."""
        given = list(zip("abc", self.values, strict=False))
        inputs = [f"  in_{name}: {{stream: {stream}{'' if width is None else ', width: 5'}}}" for name, (stream, width) in given]
        before = [
            f"  - before_{name}: {{op: linear, from: in_{name}, width: {width}, bias: false, to: {name}}}" for name, (_, width) in given if width is not None
        ]
        streams = [f"  {name}: {axes}" for name, axes in self.streams.items()]
        after = "  - after: {op: linear, from: r, width: 1, bias: false, to: out}"
        entries = [f"  - {entry}" for entry in self.entries]
        return "\n".join(["language: 2", "name: law", "streams:", *streams, "inputs:", *inputs, "graph:", *before, *entries, after, "outputs: [out]", ""])


def one(fields: str, kind: str) -> tuple[str, ...]:
    """One entry ``one`` of an operator."""
    return (f"one: {{op: {kind}, {fields}, to: r}}",)


def rowwise(kind: str, fields: str, width: int = 4, **more: object) -> Law:
    """An operator without work that keeps the rows of its first operand."""
    return Law(kind, one(fields, kind), lambda x, **_: x, width, **more)  # type: ignore[arg-type]


def positions(n: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Where a kernel fits, slid along."""
    return sum(1 for start in range(-padding, n + padding, stride) if start + dilation * (kernel - 1) < n + padding)


def reached(n: int, kernel: int, stride: int, padding: int, dilation: int = 1, extra: int = 0) -> int:
    """Rows that a transposed convolution makes: from the first to the last that a kernel reaches, less the padding."""
    return max(start * stride + dilation * (kernel - 1) for start in range(n)) + 1 - 2 * padding + extra


def pairs(queries: int, keys: int, sees: Callable[[int, int], bool] = lambda i, j: True) -> int:
    """Pairs of a query and a key, one by one; the last query stands at the last key."""
    return sum(sees(i + keys - queries, j) for i, j in product(range(queries), range(keys)))


def windows(n: int, size: int) -> int:
    """Pairs within windows of an axis, the last one perhaps smaller."""
    return sum(pairs(len(cut), len(cut)) for cut in (range(n)[start : start + size] for start in range(0, n, size)))


def conv(fields: str, axes: str, rows: Count, size: int, **more: object) -> Law:
    """A convolution of 4 channels into 6: ``size`` multiply-adds for each of its rows. It does not run without rows."""
    names = axes.strip("[]").replace(" ", "").split(",")
    more["lengths"] = dict.fromkeys(names, (1, 1)) | more.get("lengths", {})  # type: ignore[operator]
    return Law(
        "conv", one(f"from: a, width: 6, {fields}", "conv"), rows, 6,
        **{"work": lambda **n: size * rows(**n), "degrees": dict.fromkeys(names, 1), "streams": {"text": axes}, **more},  # type: ignore[arg-type]
    )  # fmt: skip


def attention(fields: str, sees: Callable[[int, int], bool] | None = None, size: int = 8, **more: object) -> Law:
    """Attention of a sequence to itself, of width 4: ``size`` multiply-adds for a pair in both products."""
    values = (("text", 4), ("text", 4), ("text", 4))
    given: dict[str, object] = {"degrees": {"x": 2}, "values": values, **more}
    if sees is not None:
        given = {"every": lambda x: size * x * x, **given}
    return Law(
        "attention", one(f"query: a, key: b, value: c, {fields}", "attention"), lambda x: x, 4,
        work=lambda x: size * pairs(x, x, sees or (lambda i, j: True)), **given,  # type: ignore[arg-type]
    )  # fmt: skip


TWO = {"text": "[x]", "prompt": "[y]"}
GRID = {"text": "[h, w]"}
VIDEO = {"text": "[f, h, w]"}
SAMPLE = {"text": "[x]", "sample": "[]"}
IMAGES = {"text": "[x]", "pictures": "{over: images, axes: [h, w]}"}
TABLE = {**GRID, "table": '{over: once, axes: {n: longest(h), m: "longest(w)//2"}}'}

LINEAR = (
    Law("linear", one("from: a, width: 6", "linear"), lambda x: x, 6, lambda x: 24 * x, degrees={"x": 1}),
    Law("linear", one("from: a, width: 6, in: 4, bias: false, in_out: true", "linear"), lambda h, w: h * w, 6, lambda h, w: 24 * h * w,
        degrees={"h": 1, "w": 1}, streams=GRID),
    Law("linear", ('one: {op: linear, from: a, width: 6, rows_of: 18, bias: true, split: "[2, 4]", to: [s, r]}',), lambda x: x, 4,
        lambda x: 24 * x, degrees={"x": 1}),
    Law("linear", one('from: a, width: 6, shape: "[6, 2, 2]"', "linear"), lambda y, **_: y, 6, lambda y, **_: 24 * y, degrees={"y": 1},
        streams=TWO, values=(("prompt", 4),)),
    Law("linear", one("from: a, width: 6", "linear"), lambda h, w, **_: h * w, 6, lambda h, w, **_: 24 * h * w, degrees={"h": 1, "w": 1},
        streams=IMAGES, values=(("pictures", 4),)),
    Law("linear", ("one: {op: linear, from: a, width: 4, bias: false, shared: true, to: s}",
                   "one: {op: linear, from: s, with: [b], width: 4, bias: false, gate: [b, c], add_to: b, role: router, shared: true, to: r}",
                   "other: {op: linear, from: a, width: 9, when: false, to: r}"),
        lambda x: x, 4, lambda x: 2 * 16 * x, degrees={"x": 1}, values=(("text", 4), ("text", 4), ("text", 1))),
)  # fmt: skip

CONVOLUTIONS = (
    conv("kernel: 3", "[x]", lambda x: positions(x, 3), 4 * 6 * 3, lengths={"x": (3, 1)}),
    conv("kernel: 3, padding: same, dilation: 2", "[x]", lambda x: x, 4 * 6 * 3),
    conv("kernel: 2, padding: valid, bias: false", "[x]", lambda x: positions(x, 2), 4 * 6 * 2, lengths={"x": (2, 1)}),
    conv("kernel: 4, stride: 2, padding: 1", "[x]", lambda x: positions(x, 4, 2, 1), 4 * 6 * 4, lengths={"x": (2, 2)}),
    conv("kernel: 3, stride: 3", "[x]", lambda x: positions(x, 3, 3), 4 * 6 * 3, lengths={"x": (5, 3)}),
    conv("kernel: 3, padding: 1, groups: 2", "[x]", lambda x: x, 4 * 3 * 3),
    conv("kernel: 3, padding: 1, weight_norm: 0", "[x]", lambda x: x, 4 * 6 * 3),
    conv("kernel: 3, padding: 1, bias: false, fixed: true", "[x]", lambda x: x, 4 * 6 * 3, gradients=1),
    conv('kernel: "[3, 2]", stride: "[2, 1]", padding: "[1, 0]", dilation: "[1, 2]"', "[h, w]",
         lambda h, w: positions(h, 3, 2, 1) * positions(w, 2, 1, 0, 2), 4 * 6 * 6, lengths={"h": (1, 2), "w": (3, 1)}),
    conv('kernel: "[2, 2]", stride: 2', "[f, h, w]", lambda f, h, w: f * positions(h, 2, 2) * positions(w, 2, 2), 4 * 6 * 4,
         lengths={"h": (2, 2), "w": (2, 2)}),
    conv('kernel: "[3, 3, 3]", padding: 1', "[f, h, w]", lambda f, h, w: f * h * w, 4 * 6 * 27),
    conv("kernel: 4, stride: 2, padding: 1, output_padding: 1, transposed: true", "[x]",
         lambda x: reached(x, 4, 2, 1, extra=1), 0, work=lambda x: 4 * 6 * 4 * x, lengths={"x": (1, 1)}),
)  # fmt: skip

BLOCK = [0, 0, 0, 1, 2, 2, *range(3, 99)]
"""The block of each token, where three blocks are followed by tokens of none."""

ATTENTION = (
    attention("heads: 2"),
    attention("heads: 2, mask: causal", lambda i, j: j <= i),
    attention("heads: 2, mask: block"),
    attention("heads: 2, mask: prefix, prefix: 3", lambda i, j: j <= i or j < 3, lengths={"x": (3, 1)}),
    attention("heads: 2, mask: causal, sliding: 3", lambda i, j: i - 3 < j <= i, degrees={"x": 1}, lengths={"x": (3, 1)}),
    attention("heads: 2, local: 2", lambda i, j: abs(i - j) <= 2, degrees={"x": 1}, lengths={"x": (4, 1)}),
    attention("heads: 2, mask: causal, chunked: 4", lambda i, j: j <= i and i // 4 == j // 4, degrees={"x": 1}, lengths={"x": (1, 4)}),
    attention("heads: 2, mask: causal, blocks: [3, 1, 2]", lambda i, j: j <= i or BLOCK[i] == BLOCK[j], lengths={"x": (6, 1)}),
    attention("heads: 2, mask: block, blocks: [3, 1, 2]", lambda i, j: BLOCK[i] == BLOCK[j], degrees={"x": 1}, lengths={"x": (6, 1)}),
    attention("heads: 2, mask: block, blocks: [3, 1, 2], sparse: true", lambda i, j: BLOCK[i] == BLOCK[j], every=None, degrees={"x": 1},
              lengths={"x": (6, 1)}),
    attention("heads: 2, mask: causal, sees: 'min(row//2, 1)*2 + row % 2 + 1'", lambda i, j: i // 2 - 1 <= j // 2 and j <= i, degrees={"x": 1},
              lengths={"x": (4, 2)}),
    attention("heads: 2, kv_heads: 1", values=(("text", 4), ("text", 2), ("text", 2))),
    Law("attention", one("query: a, key: b, value: c, heads: 2", "attention"), lambda x, **_: x, 6, lambda x, y: (4 + 6) * pairs(x, y),
        degrees={"x": 1, "y": 1}, streams=TWO, values=(("text", 4), ("prompt", 4), ("prompt", 6))),
    Law("attention", one("query: a, key: b, value: b, heads: 2, bias: c", "attention"), lambda x: x, 4, lambda x: 8 * pairs(x, x),
        degrees={"x": 2}, values=(("text", 4), ("text", 4), ("text", 2))),
    Law("attention", ("one: {op: attention, heads: 1, query: [a, b], key: [a, b], value: [a, b], to: [r, s]}",), lambda x, **_: x, 4,
        lambda x, y: 8 * pairs(x + y, x + y), degrees={"x": 2, "y": 2}, streams=TWO, values=(("text", 4), ("prompt", 4))),
    Law("attention", one("query: a, key: a, value: a, heads: 1, fold: [f]", "attention"), lambda f, h, w: f * h * w, 4,
        lambda f, h, w: 8 * sum(pairs(h * w, h * w) for _ in range(f)), degrees={"f": 1, "h": 2, "w": 2}, streams=VIDEO),
    Law("attention", one("query: a, key: a, value: a, heads: 1, fold: [h, w]", "attention"), lambda f, h, w: f * h * w, 4,
        lambda f, h, w: 8 * sum(pairs(f, f) for _ in range(h * w)), degrees={"f": 2, "h": 1, "w": 1}, streams=VIDEO),
    Law("attention", one("query: a, key: a, value: a, heads: 1, fold: [f], window: {h: 3, w: 2}", "attention"), lambda f, h, w: f * h * w, 4,
        lambda f, h, w: 8 * f * windows(h, 3) * windows(w, 2), degrees={"f": 1, "h": 1, "w": 1}, streams=VIDEO,
        lengths={"h": (1, 3), "w": (1, 2)}),
    Law("attention", ('whole: {op: pad, from: a, axes: {h: "round_up(h, 3)"}, to: p}',
        "one: {op: attention, query: p, key: p, value: p, heads: 1, fold: [f], window: {h: 3, w: 2}, shift: {h: 1}, to: r}"),
        lambda f, h, w: f * len(range(0, h, 3)) * 3 * w, 4, lambda f, h, w: 8 * f * (sum(9 for _ in range(0, h, 3)) - 4) * windows(w, 2),
        lambda f, h, w: 8 * f * sum(9 for _ in range(0, h, 3)) * windows(w, 2), degrees={"f": 1, "h": 1, "w": 1}, streams=VIDEO, lengths={"h": (1, 3), "w": (1, 2)}),
)  # fmt: skip

PRODUCTS = (
    Law("matmul", one("from: [a, b], dims: [3, tokens], width: 3, stream: sample", "matmul"), lambda **_: 1, 3, lambda x: 3 * x,
        degrees={"x": 1}, values=(("text", 4), ("text", 4)), streams=SAMPLE),
    Law("matmul", one("from: [a, b], dims: [x, tokens, 4], axes_of: b, like: a, width: 2", "matmul"), lambda x, **_: x, 2, lambda x, y: 4 * pairs(x, y),
        degrees={"x": 1, "y": 1}, streams=TWO, values=(("text", 4), ("prompt", 4))),
    Law("matmul", one('from: [a, b], dims: ["ceil(tokens, 3)", 3, 3], width: 1', "matmul"), lambda x: x, 1,
        lambda x: sum(9 for _ in range(0, x, 3)), degrees={"x": 1}, values=(("text", 4), ("text", 4)), lengths={"x": (1, 3)}),
    Law("matmul", one("from: [a, b], dims: [3, tokens], width: 3, stream: sample, broadcast: true", "matmul"), lambda **_: 1, 3, lambda x: 3 * x,
        degrees={"x": 1}, values=(("text", 4), ("text", 4)), streams=SAMPLE, seen=False),
    Law("bilinear", one("from: [a, b], width: 3, bias: false", "bilinear"), lambda x: x, 3, lambda x: x * (3 * 4 * 2 + 3 * 4),
        degrees={"x": 1}, values=(("text", 4), ("text", 2)), seen=False),
    Law("scan", one("from: a, dt: b, write: c, state: 3", "scan"), lambda x: x, 12, lambda x: x * (4 * 3 + 4 * 3), degrees={"x": 1},
        values=(("text", 4), ("text", 4), ("text", 3)), seen=False),
    Law("scan", ('decay: {op: parameter, shape: "[4, 3]", to: d}', "one: {op: scan, from: a, dt: b, write: b, decay: d, state: 3, to: r}"),
        lambda x: x, 12, lambda x: x * (4 * 3 + 4 * 3), degrees={"x": 1}, values=(("text", 4), ("text", 4)), seen=False),
    Law("triangular_solve", ("matrices: {op: zeros, like: a, width: 6, to: z}", "one: {op: triangular_solve, from: z, order: 3, right: a, to: r}"),
        lambda x: x, 10, lambda x: sum(10 for _ in range(0, x, 3) for i in range(3) for _ in range(i)),
        lambda x: sum(10 for _ in range(0, x, 3) for _ in product(range(3), range(3))),
        degrees={"x": 1}, values=(("text", 10),), lengths={"x": (0, 3)}, seen=False, gradients=1, seen_gradients=0),
    Law("triangular_solve", one("from: a, order: 3, right: b", "triangular_solve"), lambda x: x, 10,
        lambda x: sum(10 for _ in range(0, x, 3) for i in range(3) for _ in range(i)),
        lambda x: sum(10 for _ in range(0, x, 3) for _ in product(range(3), range(3))),
        degrees={"x": 1}, values=(("text", 6), ("text", 10)), lengths={"x": (0, 3)}, seen=False, seen_gradients=1),
    Law("triangular_inverse", one("from: a, order: 4", "triangular_inverse"), lambda x: x, 8,
        lambda x: sum(2 for _ in range(0, x, 4) for i in range(4) for j in range(i) for _ in range(j)),
        lambda x: sum(2 for _ in range(0, x, 4) for i in range(4) for _ in product(range(i), range(i))),
        degrees={"x": 1}, values=(("text", 8),), lengths={"x": (0, 4)}, seen=False),
)  # fmt: skip

NORMS = (
    *(rowwise(kind, "from: a") for kind in ("rms_norm", "layer_norm", "group_norm", "batch_norm")),
    *(rowwise(kind, 'from: a, affine: true, dim: 2, bias: true, shape: "[2, 1]"') for kind in ("rms_norm", "layer_norm", "group_norm", "batch_norm")),
    rowwise("layer_norm", "from: a, affine: false"),
)

READ = (
    rowwise("embedding", "from: in_a, rows: 11, width: 4", values=(("text", None),)),
    Law("parameter", ('one: {op: parameter, shape: "[3, 4]", stream: text, width: 4, to: r}', "used: {op: add, from: [r, a], to: r}"), lambda x: x, 4),
    Law("parameter", ('one: {op: parameter, shape: "[4]", trainable: false, to: p}', "used: {op: add, from: [a, p], to: r}"), lambda x: x, 4),
)  # fmt: skip

ELEMENTWISE = (
    rowwise("mul", "from: a, width: 2", 2),
    rowwise("act", "from: a, of: \"'prelu'\", width: 2", 2),
    rowwise("act", "from: [a, b], of: \"'silu'\"", streams=SAMPLE, values=(("text", 4), ("sample", 4))),
    rowwise("mul", "from: [a, b]", streams=SAMPLE, values=(("text", 4), ("sample", 4))),
    rowwise("add", "from: [a, b]", values=(("text", 4), ("text", 4))),
    rowwise("map", "from: a, width: 7, saves: null", 7),
    rowwise("detach", "from: a", reached=""),
    rowwise("zeros", "stream: text, width: 3", 3, reached=""),
    rowwise("zeros", "like: a, width: 3", 3, reached=""),
    Law("zeros", one("like: b, stream: {h: h, two: 2}, width: 3", "zeros"), lambda h, **_: 2 * h, 3, streams=IMAGES,
        values=(("text", 4), ("pictures", 4)), reached=""),
)  # fmt: skip

MOVES = (
    rowwise("identity", "from: a"),
    rowwise("identity", "from: a, gradient: true"),
    rowwise("concat", "from: [a, b]", 6, values=(("text", 4), ("text", 2))),
    Law("concat", one("from: [a, b], along: tokens", "concat"), lambda x, y: x + y, 4, streams=TWO, values=(("text", 4), ("prompt", 4))),
    Law("split", ('one: {op: split, from: a, sizes: "[1, 3]", to: [s, r]}',), lambda x: x, 3),
    Law("split", ("both: {op: concat, along: tokens, from: [a, b], to: c}", "one: {op: split, from: c, along: tokens, to: [s, r]}"),
        lambda y, **_: y, 4, streams=TWO, values=(("text", 4), ("prompt", 4))),
    Law("reshape", one("from: a, axes: {h: h/2, w: w/2}, width: 16", "reshape"), lambda h, w: len(range(0, h, 2)) * len(range(0, w, 2)), 16,
        streams=GRID, lengths={"h": (0, 2), "w": (0, 2)}),
    Law("pad", one('from: a, axes: {x: "round_up(x, 4)"}', "pad"), lambda x: sum(4 for _ in range(0, x, 4)), 4),
    Law("slice", one("from: a, like: b", "slice"), lambda y, **_: y, 4, streams=TWO, values=(("text", 4), ("prompt", 4)), reached="a"),
    Law("pool", one("from: a, stream: sample", "pool"), lambda **_: 1, 4, streams=SAMPLE),
    Law("select", one("from: a, stream: {x: x//3}", "select"), lambda x: len(range(3, x + 1, 3)), 4),
    Law("expand", one("from: a, stream: {x: x, copies: 3}", "expand"), lambda x: 3 * x, 4),
    Law("expand", one("from: a, like: b, axes: {h: h, w: 3}", "expand"), lambda h, **_: 3 * h, 4, streams=IMAGES,
        values=(("text", 4), ("pictures", 4)), reached="a"),
    Law("push", ("one: {op: push, from: a, stack: kept}", "last: {op: pop, stack: kept, to: r}"), lambda x: x, 4),
    Law("pop", ("first: {op: push, from: a, stack: kept}", "second: {op: push, from: b, stack: kept}",
                "one: {op: pop, stack: kept, take: first, to: r}", "other: {op: pop, stack: kept, to: s}"),
        lambda x, **_: x, 4, streams=TWO, values=(("text", 4), ("prompt", 4)), reached="a"),
    Law("gather", ("first: {op: push, from: a, stack: kept}", "second: {op: push, from: b, stack: kept}",
                   "one: {op: gather, stack: kept, like: c, to: r}"),
        lambda y, **_: y, 4, streams=TWO, values=(("text", 4), ("text", 4), ("prompt", 1)), reached="ab"),
)  # fmt: skip

ROWS = tuple(  # the fields that say which rows a value has afterwards, for each operator that changes rows
    law
    for kind in ("reshape", "expand", "pad", "pool", "slice", "select", "pad_batch")
    for more in ({"runs": padded} if kind == "pad_batch" else {},)
    for law in (
        Law(kind, one("from: a, stream: {x: x, one: 1}, width: 4", kind), lambda x: x, 4, **more),
        Law(kind, one("from: a, axes: {x: x}", kind), lambda x: x, 4, **more),
        Law(kind, one("from: a, like: b", kind), lambda x, **_: x, 4, values=(("text", 4), ("text", 2)), reached="a", **more),
    )
)

WHOLE = (
    *(Law("keep", one(f"from: a, kind: {kind}, {more}", "keep"), lambda h, w: h * w, 4, streams=GRID)
      for kind in ("latent", "convolution", "state") for more in ("last: 2", "width: 3")),
    rowwise("pad_batch", "from: a", runs=padded),
    Law("pad_batch", one("from: a", "pad_batch"), lambda h, w: h * w, 4, streams=GRID, runs=padded),
    Law("pad_batch", ("both: {op: concat, along: tokens, from: [a, b], to: c}", "one: {op: pad_batch, from: c, to: r}"),
        lambda x, y: x + y, 4, streams=TWO, values=(("text", 4), ("prompt", 4)), runs=joined),
    Law("linear", ("pad: {op: pad_batch, from: a, to: p}", "one: {op: linear, from: p, width: 6, to: r}"), lambda h, w: h * w, 6,
        lambda h, w: 24 * h * w, degrees={"h": 1, "w": 1}, streams=GRID, runs=padded),
    Law("linear", ("pad: {op: pad_batch, from: a, to: p}", "one: {op: linear, from: p, width: 6, to: q}",
                   "crop: {op: slice, from: q, like: a, to: s}", "pad: {op: pad_batch, from: s, shared: true, to: r}"),
        lambda x: x, 6, lambda x: 24 * x, degrees={"x": 1}, runs=padded),
    Law("conv", ("pad: {op: pad_batch, from: a, to: p}", "one: {op: conv, from: p, width: 6, kernel: 3, padding: 1, stride: 2, to: r}"),
        lambda x: positions(x, 3, 2, 1), 6, lambda x: 4 * 6 * 3 * positions(x, 3, 2, 1), degrees={"x": 1}, lengths={"x": (0, 2)}, runs=padded),
    Law("attention", ("pad: {op: pad_batch, from: a, to: p}", "one: {op: attention, query: p, key: p, value: p, heads: 2, mask: causal, to: r}"),
        lambda x: x, 4, lambda x: 8 * pairs(x, x, lambda i, j: j <= i), lambda x: 8 * pairs(x, x), degrees={"x": 2}, runs=padded),
    Law("attention", ("pad: {op: pad_batch, from: a, to: p}", "one: {op: attention, query: p, key: b, value: b, heads: 2, to: r}"),
        lambda x, **_: x, 4, lambda x, y: 8 * pairs(x, y), degrees={"x": 1, "y": 1}, streams=TWO, values=(("text", 4), ("prompt", 4)),
        runs=lambda items: [{"x": longest(items, "x"), "y": item["y"]} for item in items]),
    Law("matmul", ("pad: {op: pad_batch, from: a, to: p}", "one: {op: matmul, from: [p, p], dims: [3, tokens, tokens], to: r}"),
        lambda x: x, 1, lambda x: 3 * x * x, degrees={"x": 2}, runs=padded),
    Law("flatten_batch", one("from: a", "flatten_batch"), lambda items: every_row(items, "x"), 4, runs=together, useful=together),
    Law("flatten_batch", one("from: a, width: 2", "flatten_batch"), lambda items: every_row(items, "h", "w"), 2, streams=GRID, runs=together,
        useful=together),
    Law("pad_batch", ("pad: {op: pad_batch, from: a, to: p}", "one: {op: flatten_batch, from: p, to: r}"),
        lambda items: every_row(items, "h", "w"), 4, streams=GRID, runs=padded_together, useful=together),
    Law("matmul", ("texts: {op: flatten_batch, from: a, to: t}", "images: {op: flatten_batch, from: b, to: i}",
                   "one: {op: matmul, from: [t, i], dims: [samples, images, 3], stream: {n: images, m: samples}, to: r}"),
        lambda items: every_row(items, "x") * every_row(items, "h", "w"), 1,
        lambda items: 3 * every_row(items, "x") * every_row(items, "h", "w"), degrees={"x": 1, "h": 1, "w": 1, "items": 2},
        streams=IMAGES, values=(("text", 3), ("pictures", 3)), runs=together, useful=together),
    Law("matmul", ("pad: {op: pad_batch, from: a, to: p}", "texts: {op: flatten_batch, from: p, to: t}",
                   "one: {op: matmul, from: [t, t], dims: [samples, samples, 4], to: r}"),
        lambda items: every_row(items, "x"), 1, lambda items: 4 * every_row(items, "x") ** 2, degrees={"x": 2, "items": 2},
        runs=padded_together, useful=together),
    Law("zeros", one("stream: table, width: 3", "zeros"), lambda items: longest(items, "h") * (longest(items, "w") // 2), 3,
        streams=TABLE, runs=together, useful=together, reached=""),
    Law("linear", ("table: {op: zeros, stream: table, width: 4, to: t}", "one: {op: linear, from: t, width: 6, to: r}"),
        lambda items: longest(items, "h") * (longest(items, "w") // 2), 6,
        lambda items: 24 * longest(items, "h") * (longest(items, "w") // 2), degrees={"h": 1, "w": 1, "items": 0}, streams=TABLE,
        lengths={"w": (0, 2)}, runs=together, useful=together, reached="", gradients=1),
)  # fmt: skip

CONSTRUCTS = (
    Law("experts", ("one: {experts: 5, choose: 2, from: a, to: r, graph: [{op: linear, from: x, width: 6, bias: false, to: y}]}",),
        lambda x: x, 6, lambda x: sum(prod((4, 6)) for _ in range(2 * x)), degrees={"x": 1}),
    Law("experts", ("one: {experts: 5, routed: 2, from: a, to: r, graph: [{op: linear, from: x, width: 6, bias: false, to: y}]}",),
        lambda x: x, 6, lambda x: sum(prod((4, 6)) for _ in range(2 * x)), lambda x: sum(prod((4, 6)) for _ in range(5 * x)), degrees={"x": 1}),
    Law("experts", ("one: {experts: 5, list: true, choose: 2, from: a, weights: b, to: r, role: experts, "
                    "graph: [{up: {op: linear, from: x, width: 6, bias: false, to: y}}]}",),
        lambda x: x, 6, lambda x: sum(prod((4, 6)) for _ in range(2 * x)), degrees={"x": 1}, values=(("text", 4), ("text", 5))),
    Law("group", ("one: {no_grad: true, graph: [{op: linear, from: a, width: 6, to: r}]}",
                  "other: {when: false, graph: [{op: linear, from: a, width: 9, to: r}]}"),
        lambda x: x, 6, lambda x: 24 * x, degrees={"x": 1}, reached="", gradients=0),
    Law("repeat", ("start: {op: select, from: a, stream: sample, to: r}",
                   "one: {repeat: {axis: x}, graph: [{op: linear, from: r, width: 4, bias: false, to: r}]}"),
        lambda **_: 1, 4, lambda x: sum(16 for _ in range(x)), degrees={"x": 1}, streams=SAMPLE),
    Law("repeat", ('chunks: {op: pad, from: a, stream: {c: "ceil(x, 3)", t: 3}, to: u}',
                   "start: {op: select, from: a, stream: sample, to: r}",
                   "one: {repeat: {axis: c, of: u}, graph: [{op: linear, from: r, width: 4, bias: false, to: r}]}"),
        lambda **_: 1, 4, lambda x: sum(16 for _ in range(0, x, 3)), degrees={"x": 1}, streams=SAMPLE, lengths={"x": (0, 3)}),
    Law("repeat", ("start: {op: select, from: a, stream: {x: x}, to: r}",
                   "one: {repeat: 4, index: i, start: 2, role: vision, graph: [{up: {op: linear, from: r, width: i, to: s}}, "
                   "{down: {op: linear, from: s, width: 4, to: r}}, {to: {op: linear, from: r, width: 4, to: r, when: i > 2}}]}",
                   "other: {repeat: 2, when: false, graph: [{op: linear, from: a, width: 9, to: r}]}"),
        lambda x: x, 4, lambda x: x * sum(4 * i + i * 4 + 16 * (i > 2) for i in range(2, 6)), degrees={"x": 1}),
    Law("repeat", ("one: {repeat: 3, shared: true, graph: [{op: linear, from: a, width: 4, bias: false, to: a}]}",
                   "same: {op: mul, from: a, to: r}"),
        lambda x: x, 4, lambda x: sum(16 * x for _ in range(3)), degrees={"x": 1}),
    Law("repeat", ("same: {op: mul, from: a, to: r}",
                   'one: {repeat: "[3, 5]", item: k, graph: [{up: {op: linear, from: r, width: k, to: s}}, {to: {op: linear, from: s, width: 4, to: r}}]}'),
        lambda x: x, 4, lambda x: x * sum(4 * k + k * 4 for k in (3, 5)), degrees={"x": 1}),
)  # fmt: skip

LAWS = (*LINEAR, *CONVOLUTIONS, *ATTENTION, *PRODUCTS, *NORMS, *READ, *ELEMENTWISE, *MOVES, *ROWS, *WHOLE, *CONSTRUCTS)
