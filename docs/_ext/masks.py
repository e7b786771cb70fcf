"""The masks, windows and folds of attention as Markdown, with the pairs that are derived from an example of each."""

from __future__ import annotations

from operators import load_example, written

from symflops.ir.regime import Regime

SELF = {"inputs": {"q": ["text", "D"], "k": ["text", "D"], "v": ["text", "D"]}, "streams": {"text": ["x"]}}
CROSS = {
    "inputs": {"q": ["text", "D"], "k": ["prompt", "D"], "v": ["prompt", "D"]},
    "streams": {"text": ["x"], "prompt": ["y"]},
}
SPANS = SELF | {"streams": {"text": ["x"], "spans": "{over: images, axes: [s]}"}}
IMAGE = {"inputs": {"q": ["image", "D"], "k": ["image", "D"], "v": ["image", "D"]}, "streams": {"image": ["i", "j"]}}
WHOLE = "{op: pad, from: %s, axes: {i: 'round_up(i, W)', j: 'round_up(j, W)'}, to: %s}"
GRID = IMAGE | {"graph": [f"whole_{name}: {WHOLE % (name, name)}" for name in "qkv"]}
VIDEO = {"inputs": {"q": ["video", "D"], "k": ["video", "D"], "v": ["video", "D"]}, "streams": {"video": ["f", "i", "j"]}}
EXAMPLES = (
    (SELF, "", "every query sees every key of its item"),
    (CROSS, "", "keys of another stream"),
    (SELF, "mask: causal", "a query sees the keys up to its own place"),
    (CROSS, "mask: causal", "queries are the last of the keys, as in decoding over a cache"),
    (SELF, "mask: prefix, prefix: P", "everybody sees the first P keys, and the rest is causal"),
    (SELF, "sliding: W", "the last W keys, with the query's own"),
    (SELF, "local: W", "keys at most W away, on both sides"),
    (SELF, "chunked: C", "keys of the same chunk of C tokens"),
    (SELF, "mask: causal, chunked: C", "bounds combine: both must hold"),
    (SELF, "mask: block", "without blocks, an item is one block"),
    (SELF, "mask: block, blocks: [A, B]", "the keys of its own block; a token of no block is one of its own"),
    (SELF, "mask: causal, blocks: [A, B]", "block-causal: its own block and all before, whatever their order"),
    (SPANS, "mask: causal, blocks: spans", "the same, if a batch gives the blocks as items of a stream"),
    (SELF, "sees: K", "K keys of each query, or all if there are fewer"),
    (SELF, "mask: causal, sees: row//B + 1", "a number of keys by the place `row` of the query, at most those up to it"),
    (SPANS, "sees: spans", "the pairs are the rows of a stream: edges of a graph, a tree of drafts"),
    (SELF, "mask: causal, sparse: true", "a class that computes the useful pairs alone"),
    (IMAGE, "window: {i: W, j: W}", "windows of W by W, smaller at the edges"),
    (GRID, "window: {i: W, j: W}, shift: {i: S, j: S}", "shifted by S rows over the end: both ends share a window"),
    (VIDEO, "fold: f", "within a frame: the folded axis becomes batch"),
    (VIDEO, "fold: [i, j]", "along time, at each place of the frame"),
)


def masks() -> str:
    """One row for each kind of mask: how it is written, what it means, and its pairs in one item."""
    rows = []
    for frame, fields, meaning in EXAMPLES:
        entry = ", ".join(filter(None, ("a: {op: attention, heads: H", fields, "query: q, key: k, value: v, to: a}")))
        model = load_example(frame | {"graph": [*frame.get("graph", ()), entry]})
        works = [work.contraction for work in model.derivation(Regime("example"), "torch", {}).work]
        first, *others = [work for work in works if work.name.startswith("scores")]
        computed, useful = written(first.extent.executed), written(first.extent.useful)
        told = "all" if useful == computed else "" if first.extent.useful == 0 else f"`{useful}`"
        more = (f"`{written(work.extent.useful)}` for each of {work.items}" for work in others)
        cells = (f"`{fields}`" if fields else "", meaning, f"`{computed}`", ", and ".join(filter(None, (told, *more))))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(["| Fields | Meaning | Pairs computed | Useful pairs |", "|:--|:--|:--|:--|", *rows])
