"""Pairs under masks: the closed forms against counting, and against the masks that transformers builds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from ruamel.yaml import YAML
from sympy import Integer

from symflops.formula.formula import Formula, evaluate
from symflops.formula.functions import size_symbol
from symflops.formula.masks import Mask, useful_pairs
from symflops.formula.polynomial import Polynomial
from symflops.lower.formulas import Formulas
from symflops.lower.names import atom_name
from symflops.support.findings import SpecError
from tests.sampling import amount, sampled

from ..oracle.interpreter import run
from ..oracle.package import CONVENTIONS, closed_form as closed_form_of, generated, interpreted, program_of, symbolic
from ..oracle.specs import Case

LONGEST = amount(6, 12)
LENGTHS = range(LONGEST + 1)
BOUNDS = ("prefix", "sliding", "local", "chunked")
x, y = size_symbol("x"), size_symbol("y")


@dataclass(frozen=True)
class Shape:
    """A base and which bounds it has."""

    base: str
    bounds: frozenset[str]

    @property
    def name(self) -> str:
        return " & ".join([self.base, *(bound for bound in BOUNDS if bound in self.bounds)])


def shapes() -> Iterator[Shape]:
    """Every base with every subset of the bounds; a prefix mask with and without its number of keys."""
    for base in ("full", "block", "causal", "prefix"):
        free = BOUNDS if base == "prefix" else BOUNDS[1:]
        for flags in product((False, True), repeat=len(free)):
            yield Shape(base, frozenset(bound for bound, flag in zip(free, flags, strict=True) if flag))


SHAPES = list(shapes())


def allows(shape: Shape, sizes: dict[str, int], t: int, j: int) -> bool:
    """Whether the query at position ``t`` sees key ``j``."""
    base = {"full": True, "block": True, "causal": j <= t, "prefix": j <= t or j < sizes.get("prefix", 0)}[shape.base]
    if "sliding" in shape.bounds:
        base = base and t - sizes["sliding"] < j and (shape.base == "prefix" or j <= t)
    if "local" in shape.bounds:
        base = base and -sizes["local"] <= t - j <= sizes["local"]
    return base and ("chunked" not in shape.bounds or t // sizes["chunked"] == j // sizes["chunked"])


def counted(shape: Shape, sizes: dict[str, int], queries: int, keys: int) -> int:
    """Pairs, one by one."""
    return sum(allows(shape, sizes, i + keys - queries, j) for i in range(queries) for j in range(keys))


@cache
def closed_form(shape: Shape, queries: Any, keys: Any) -> Formula:
    """The form for symbolic bounds."""
    mask = Mask(shape.base, **{bound: size_symbol(bound) for bound in shape.bounds})
    return Formulas({}).of(useful_pairs(mask, queries, keys))


def drawn(shape: Shape, rng: Random, count: int) -> list[dict[str, int]]:
    """Random bounds, some longer than every length; of each the smallest once."""
    smallest = {bound: int(bound in ("sliding", "chunked")) for bound in BOUNDS if bound in shape.bounds}
    several = [{bound: rng.randint(1, LONGEST + 2) for bound in smallest} for _ in range(count)]
    return [smallest, *several] if smallest else [{}]


@pytest.mark.parametrize("shape", sampled(SHAPES, 4, 1), ids=lambda shape: shape.name)
def test_every_pair_is_counted(shape: Shape) -> None:
    """Two lengths of which nothing is known, a square, queries after a past, and rows before every key."""
    rng = Random(shape.name)
    for queries, keys in product(LENGTHS, LENGTHS):
        for sizes in drawn(shape, rng, 6 if queries != keys else 20):
            forms = [(x, y, {"x": queries, "y": keys})]
            if queries == keys:
                forms.append((x, x, {"x": queries}))
            if keys >= queries:
                forms.append((x, x + y, {"x": queries, "y": keys - queries}))
            if queries >= keys:
                forms.append((x + y, x, {"x": keys, "y": queries - keys}))
            for one, other, lengths in forms:
                found = evaluate(closed_form(shape, one, other), {**sizes, **lengths})
                assert found == counted(shape, sizes, queries, keys), (one, other, lengths, sizes)


@pytest.mark.parametrize("shape", sampled(SHAPES, 4, 1), ids=lambda shape: shape.name)
def test_known_numbers_fold(shape: Shape) -> None:
    """Bounds that a config has decided, lengths that are numbers."""
    rng = Random(shape.name)
    drawn_lengths = [(rng.randint(0, LONGEST), rng.randint(0, LONGEST)) for _ in range(5)]
    for queries, keys in [(0, 0), (0, 5), (5, 0), (1, 9), (9, 1), *drawn_lengths]:
        for sizes in drawn(shape, rng, 2):
            mask = Mask(shape.base, **{bound: Integer(value) for bound, value in sizes.items()})
            assert useful_pairs(mask, Integer(queries), Integer(keys)) == counted(shape, sizes, queries, keys)
            form = Formulas({}).of(useful_pairs(mask, x, y))
            assert evaluate(form, {"x": queries, "y": keys}) == counted(shape, sizes, queries, keys)


READABLE = {
    "full": "x**2",
    "block": "x**2",
    "causal": "x**2/2 + x/2",
    "prefix & prefix": "x**2/2 + x/2 + Least(x, prefix)**2/2 - Least(x, prefix)/2",
    "causal & sliding": "sliding*x + Least(x, sliding)**2/2 + Least(x, sliding)/2 - sliding*Least(x, sliding)",
    "full & local": "x + 2*local*x + Least(x, local)**2 - Least(x, local) - 2*local*Least(x, local)",
    "causal & local": "x + local*x + Least(x, local)**2/2 - Least(x, local)/2 - local*Least(x, local)",
    "full & chunked": "chunked**2*FloorDiv(x, chunked) + Modulo(x, chunked)**2",
    "causal & chunked": "FloorDiv(x, chunked)*(chunked**2/2 + chunked/2) + Modulo(x, chunked)**2/2 + Modulo(x, chunked)/2",
}


@pytest.mark.parametrize("name", READABLE)
def test_squares_are_said_simply(name: str) -> None:
    """One clamped length, or the whole chunks and the rest, and nothing else of the lengths."""
    from sympy import sympify

    from symflops.formula.functions import FloorDiv, Least, Modulo

    (shape,) = (shape for shape in SHAPES if shape.name == name)
    letters = {"x": x, **{bound: size_symbol(bound) for bound in BOUNDS}}
    want = sympify(READABLE[name], locals={**letters, "FloorDiv": FloorDiv, "Least": Least, "Modulo": Modulo})
    found = useful_pairs(Mask(shape.base, **{bound: letters[bound] for bound in shape.bounds}), x, x)
    assert Polynomial.of(found) == Polynomial.of(want)


def test_moments_have_short_names() -> None:
    """What varies with the batch under a sliding window: the length, and the length up to the window."""
    found = Polynomial.of(useful_pairs(Mask(sliding=size_symbol("W")), x, x)).split(lambda atom: x in atom.free_symbols)
    assert {tuple(sorted((atom_name(atom), power) for atom, power in monomial)) for monomial in found} == {
        (("x", 1),), (("min_x_W", 1),), (("min_x_W", 2),),
    }  # fmt: skip


def test_names() -> None:
    """One word per mask: nothing where every pair is allowed, no base where the bounds say it."""
    names = {shape.name: Mask(shape.base, **dict.fromkeys(shape.bounds, x)).name for shape in SHAPES}
    assert names["full"] == names["block"] == ""
    assert (names["causal"], names["prefix & prefix"]) == ("causal", "prefix")
    assert names["causal & sliding"] == names["full & sliding"] == "sliding"
    assert (names["full & local & chunked"], names["causal & chunked"]) == ("local_chunked", "causal_chunked")
    with pytest.raises(ValueError, match="diagonal"):
        useful_pairs(Mask("diagonal"), x, x)


def test_fields_are_bounds() -> None:
    """The tests know every bound that a mask has; blocks and picked keys have tests of their own (``test_blocks``)."""
    assert tuple(field.name for field in fields(Mask)) == ("base", *BOUNDS, "within", "picked")


# bounds of the counts, for lengths and windows of any size

EXAMPLES = settings(deadline=None, derandomize="CI" in os.environ)
SIZE, LENGTH = st.integers(1, 5000), st.integers(0, 5000)
SIZES = st.fixed_dictionaries(dict.fromkeys(BOUNDS, SIZE))


def pairs(shape: Shape, sizes: dict[str, int], queries: int, keys: int) -> int:
    return int(evaluate(closed_form(shape, x, y), {**sizes, "x": queries, "y": keys}))


@EXAMPLES
@given(st.sampled_from(SHAPES), SIZES, LENGTH, LENGTH)
def test_never_more_than_all(shape: Shape, sizes: dict[str, int], queries: int, keys: int) -> None:
    assert 0 <= pairs(shape, sizes, queries, keys) <= queries * keys


@EXAMPLES
@given(st.sampled_from(SHAPES), SIZES, LENGTH, LENGTH, st.sampled_from(BOUNDS), SIZE)
def test_a_wider_window_shows_more(shape: Shape, sizes: dict[str, int], queries: int, keys: int, bound: str, more: int) -> None:
    """Chunks grow by whole multiples, for only then they hold the smaller ones."""
    wider = {**sizes, bound: sizes[bound] * (1 + more % 7) if bound == "chunked" else sizes[bound] + more}
    assert pairs(shape, sizes, queries, keys) <= pairs(shape, wider, queries, keys)


@EXAMPLES
@given(st.sampled_from(SHAPES), SIZES, LENGTH, LENGTH)
def test_an_intersection_shows_no_more_than_its_parts(shape: Shape, sizes: dict[str, int], queries: int, keys: int) -> None:
    """Any bound left out shows no less; without a prefix a mask is causal, which shows no more."""
    found = pairs(shape, sizes, queries, keys)
    for bound in shape.bounds:
        other = pairs(Shape(shape.base, shape.bounds - {bound}), sizes, queries, keys)
        assert other <= found if bound == "prefix" else found <= other


@EXAMPLES
@given(st.sampled_from(SHAPES), SIZES, LENGTH, LENGTH)
def test_rows_of_one_query_add_up(shape: Shape, sizes: dict[str, int], queries: int, keys: int) -> None:
    """The last query over all keys, and the others over theirs: decoding token by token under masks that look back only."""
    if shape.base in ("causal", "prefix") and "prefix" not in shape.bounds and queries and keys:
        last = pairs(shape, sizes, 1, keys)
        assert pairs(shape, sizes, queries, keys) == last + pairs(shape, sizes, queries - 1, keys - 1)


# the masks that transformers builds

Build = Callable[[Any, Any, dict[str, Any], dict[str, int]], Any]


def no_skip(name: str) -> dict[str, bool]:
    """Without this, a builder returns nothing where the kernel needs no mask."""
    return {"allow_is_bidirectional_skip" if "bidirectional" in name else "allow_is_causal_skip": False}


def builder(name: str, **combined: Callable[[dict[str, int]], Any]) -> Build:
    """A builder of transformers, with mask functions that it shall combine with its own."""

    def build(utils: Any, config: Any, call: dict[str, Any], sizes: dict[str, int]) -> Any:
        functions = {key: make(sizes) for key, make in combined.items()}
        return getattr(utils, name)(config, **call, **functions, **no_skip(name))

    return build


def sees_prefix(sizes: dict[str, int]) -> Any:
    return lambda batch, head, query, key: key < sizes["prefix"]


def window(sizes: dict[str, int]) -> Any:
    from transformers import masking_utils as utils

    return utils.sliding_window_overlay(sizes["sliding"])


def chunk(sizes: dict[str, int]) -> Any:
    """Their overlay reads a tensor of left padding, which a vmapped function cannot; there is none here."""
    return lambda batch, head, query, key: key // sizes["chunked"] == query // sizes["chunked"]


def nearby(sizes: dict[str, int]) -> Any:
    from transformers import masking_utils as utils

    return utils.sliding_window_bidirectional_overlay(sizes["local"])


BUILDERS: dict[tuple[str, str], Build] = {
    ("full", ""): builder("create_bidirectional_mask"),
    ("causal", ""): builder("create_causal_mask"),
    ("full", "sliding"): builder("create_sliding_window_causal_mask"),
    ("causal", "sliding"): builder("create_sliding_window_causal_mask"),
    ("full", "local"): builder("create_bidirectional_sliding_window_mask"),
    ("causal", "local"): builder("create_causal_mask", and_mask_function=nearby),
    ("causal", "chunked"): builder("create_chunked_causal_mask"),
    ("full", "chunked"): builder("create_bidirectional_mask", and_mask_function=chunk),
    ("causal", "chunked sliding"): builder("create_chunked_causal_mask", and_mask_function=window),
    ("full", "chunked local"): builder("create_bidirectional_sliding_window_mask", and_mask_function=chunk),
    ("prefix", "prefix"): builder("create_causal_mask", or_mask_function=sees_prefix),
    ("prefix", "prefix sliding"): builder("create_causal_mask", or_mask_function=sees_prefix, and_mask_function=window),
    ("prefix", "prefix chunked"): builder("create_causal_mask", or_mask_function=sees_prefix, and_mask_function=chunk),
    ("prefix", "local prefix"): builder("create_causal_mask", or_mask_function=sees_prefix, and_mask_function=nearby),
}


def with_past(past: int, cache: Any) -> Any:
    """A cache of ``past`` tokens, or none."""
    import torch

    if past:
        cache.update(torch.zeros(1, 1, past, 1), torch.zeros(1, 1, past, 1), 0)
        return cache
    return None


def config_of(sizes: dict[str, int]) -> Any:
    from transformers import LlamaConfig

    config = LlamaConfig(num_hidden_layers=1, attn_implementation="sdpa")
    config.sliding_window = sizes.get("local", sizes.get("sliding"))
    config.attention_chunk_size = sizes.get("chunked")
    return config


def call_of(queries: int, past_key_values: Any) -> dict[str, Any]:
    import torch

    return {"inputs_embeds": torch.zeros(1, queries, 1), "attention_mask": None, "past_key_values": past_key_values}


@pytest.mark.parametrize("key", BUILDERS, ids=lambda key: f"{key[0]} & {key[1]}" if key[1] else key[0])
def test_transformers_masks_hold_as_many(key: tuple[str, str]) -> None:
    """The True entries of the masks that it builds, for all lengths and pasts up to 12 and random windows."""
    from transformers import DynamicCache, masking_utils as utils

    shape, rng = Shape(key[0], frozenset(key[1].split())), Random(str(key))
    for queries in range(1, LONGEST + 1):
        for past in range(LONGEST + 1 - queries):
            for sizes in drawn(shape, rng, 2):
                call = call_of(queries, with_past(past, DynamicCache()))
                mask = BUILDERS[key](utils, config_of(sizes), call, sizes)
                assert mask.shape[-2:] == (queries, past + queries)
                lengths = {"x": queries, "y": past}
                assert evaluate(closed_form(shape, x, x + y), {**sizes, **lengths}) == int(mask.sum()), (lengths, sizes)


MASKS: dict[tuple[str, str], Callable[[Any, dict[str, int]], Any]] = {
    ("causal", ""): lambda utils, sizes: utils.causal_mask_function,
    ("causal", "sliding"): lambda utils, sizes: utils.sliding_window_causal_mask_function(sizes["sliding"]),
    ("full", "local"): lambda utils, sizes: utils.sliding_window_bidirectional_overlay(sizes["local"]),
    ("causal", "chunked"): lambda utils, sizes: utils.chunked_causal_mask_function(sizes["chunked"], no_padding()),
    ("full", "chunked"): lambda utils, sizes: utils.chunked_overlay(sizes["chunked"], no_padding()),
    ("prefix", "prefix"): lambda utils, sizes: utils.or_masks(utils.causal_mask_function, sees_prefix(sizes)),
}


def no_padding() -> Any:
    import torch

    return torch.zeros(1, dtype=torch.long)


@pytest.mark.parametrize("vmap", (False, True), ids=("broadcast", "vmap"))
@pytest.mark.parametrize("key", MASKS, ids=lambda key: f"{key[0]} & {key[1]}" if key[1] else key[0])
def test_transformers_mask_functions_agree_where_queries_come_first(key: tuple[str, str], vmap: bool) -> None:
    """Their mask functions at any offset: also more queries than keys, which no builder makes with these.

    (Their full mask is ``position >= 0``, which is not full there; what cross-attention really gets is tested below.)
    """
    from transformers import masking_utils as utils

    shape, rng = Shape(key[0], frozenset(key[1].split())), Random(str(key))
    for queries, keys in product(range(1, LONGEST + 1), repeat=2):
        for sizes in drawn(shape, rng, 1):
            function = MASKS[key](utils, sizes)
            mask = utils.sdpa_mask(
                1, queries, keys, keys - queries, mask_function=function, allow_is_causal_skip=False, use_vmap=vmap
            )
            assert pairs(shape, sizes, queries, keys) == int(mask.sum()), (queries, keys, sizes)


def test_cross_attention_is_full() -> None:
    """Every query sees every key of another stream, of which there may be fewer."""
    import torch
    from transformers import masking_utils as utils

    for queries, keys in product(range(1, LONGEST + 1), repeat=2):
        call = {**call_of(queries, None), "encoder_hidden_states": torch.zeros(1, keys, 1)}
        mask = utils.create_bidirectional_mask(config_of({}), **call, allow_is_bidirectional_skip=False)
        assert pairs(Shape("full", frozenset()), {}, queries, keys) == int(mask.sum())


@pytest.mark.parametrize("key", [("causal", ""), ("causal", "sliding"), ("causal", "chunked")], ids=lambda key: " & ".join(key))
def test_packed_documents_are_items(key: tuple[str, str]) -> None:
    """Positions that start anew mark documents of one row: its mask holds what they hold as items of their own."""
    import torch
    from transformers import masking_utils as utils

    shape, rng = Shape(key[0], frozenset(key[1].split())), Random(str(key))
    for _ in range(30):
        documents = [rng.randint(1, 6) for _ in range(rng.randint(2, 4))]
        (*_, sizes) = drawn(shape, rng, 1)
        positions = torch.cat([torch.arange(length) for length in documents])[None]
        call = {**call_of(sum(documents), None), "position_ids": positions}
        mask = BUILDERS[key](utils, config_of(sizes), call, sizes)
        assert int(mask.sum()) == sum(pairs(shape, sizes, length, length) for length in documents), (documents, sizes)


def test_a_cache_of_the_window_drops_what_nobody_sees() -> None:
    """A sliding cache keeps the last keys only; the pairs are those over the whole past."""
    from transformers import DynamicCache, masking_utils as utils

    shape = Shape("causal", frozenset({"sliding"}))
    for queries, past, width in product((1, 2, 5), range(LONGEST), (2, 3, 7)):
        config = config_of({"sliding": width})
        config.layer_types = ["sliding_attention"]
        cached = with_past(past, DynamicCache(config=config))
        mask = utils.create_sliding_window_causal_mask(config, **call_of(queries, cached), allow_is_causal_skip=False)
        assert mask.shape[-1] == min(past, width - 1) + queries
        assert pairs(shape, {"sliding": width}, queries, past + queries) == int(mask.sum()), (queries, past, width)


# the fields of the operator

HEAD = """
language: 2
name: small
sizes: {{D: D, L: L, W: {{key: sliding_window, optional: true}}, C: {{key: chunk, optional: true}}, V: window, P: prefix,
  kinds: {{key: layer_types, type: list}}, maybe: {{key: maybe, type: list, optional: true}}, layers: {{key: layers, type: list}}, flag: {{key: flag, type: bool}}}}
streams: {{text: [x], memory: [y]}}
inputs: {{h: {{stream: text, width: D}}, m: {{stream: memory, width: D}}}}
outputs: [h]
graph:
  - layers:
      repeat: L
      index: i
      graph:
        - proj: {{op: linear, from: h, width: D, to: h}}
        - attn: {{op: attention, heads: 1, query: {query}, key: {key}, value: {key}, {fields}, to: {to}}}
"""
CONFIG: dict[str, Any] = {"D": 3, "L": 4, "window": 3, "prefix": 2, "flag": True, "sliding_window": 2, "chunk": 3}
CONFIG |= {"layer_types": ["full", "sliding", "sliding", "full"], "layers": [0, 1, 3, 1]}
BATCH = {"text": [0, 1, 2, 5, 7], "memory": [3, 0, 2, 9, 4]}
STREAMS = {
    "self": ("h", "h", "h"),
    "past": ("h", "[m, h]", "h"),
    "cross": ("h", "m", "h"),
    "joint": ("[h, m]", "[h, m]", "[h, m]"),
}
FIELDS = (
    "mask: causal",
    "mask: causal, sliding: V",
    "mask: causal, sliding: W",
    "local: W",
    "mask: block",
    "mask: causal, chunked: C",
    "mask: causal, sliding: W, chunked: C",
    "mask: prefix, prefix: P",
    "mask: prefix, prefix: P, sliding: W",
    "mask: causal, sliding: V if flag else null",
    "mask: causal, sliding: W if flag else null, chunked: null if flag else C",
    "mask: causal, sliding: V if i % 2 == 0 else null",
    "sliding: 'null', local: 1, chunked: 4",
    "mask: causal, sliding: W if i in layers else null",
    "mask: causal, sliding: 'W if layers[i] == 1 else null', chunked: C",
    "mask: causal, sliding: \"W if kinds[i] == 'sliding' else null\"",
)


def case_of(fields: str, streams: str, config: dict[str, Any]) -> Case:
    query, key, to = STREAMS[streams]
    text = HEAD.format(fields=fields, query=query, key=key, to=to)
    return Case(YAML(typ="safe").load(text), config, BATCH, ("*",))


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("fields", sampled(list(FIELDS), 8, 4))
def test_fields_mean_masks(fields: str, streams: str) -> None:
    """Windows that a config has or has not, that a condition chooses, that differ between layers: as the oracle counts them."""
    for changed in ({}, {"sliding_window": None}, {"chunk": None}, {"flag": False}):
        case = case_of(fields, streams, {**CONFIG, **changed})
        programs = [program_of(case), symbolic(case)]
        for convention in CONVENTIONS:
            want = run(case.document, case.config, case.batch, train=case.train, convention=convention)
            for program in programs:
                assert program is None or interpreted(program, case, convention) == want, (changed, convention)
        assert "layers" in fields or "kinds" in fields or programs[1] is not None


MAYBE = "V if (i % 2 == 0 if maybe == null else maybe[i] == 'sliding' and count(maybe, 'full') < 3) else null"


@pytest.mark.parametrize("maybe", (None, ["full", "full", "sliding", "sliding"]), ids=("null", "given"))
def test_a_list_that_may_be_null(maybe: list[str] | None) -> None:
    """The layers of a list where the config has one, else a rule: as the oracle counts them, in every form that is written."""
    case = case_of(f'mask: causal, sliding: "{MAYBE}"', "self", {**CONFIG, "maybe": maybe})
    program = symbolic(case)
    assert program is not None
    for convention in CONVENTIONS:
        want = run(case.document, case.config, case.batch, train=case.train, convention=convention)
        assert interpreted(program, case, convention) == generated(program, case, convention) == want
        assert closed_form_of(program, case, convention) == (want.forward, want.backward)


def test_a_window_that_may_be_null_is_one_formula() -> None:
    """Without a config the pairs are those of both cases, each under its bracket."""
    program = symbolic(case_of("mask: causal, sliding: W", "self", CONFIG))
    assert program is not None
    assert {moment.name for moment in program.moments} == {"n", "x", "xx", "min_x_W", "min_x_W_min_x_W"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("prefix: P", "bad-field"),
        ("mask: prefix", "missing-field"),
        ("sliding: 0", "bad-field"),
        ("chunked: 0", "bad-field"),
        ("local: 0 - 1", "bad-field"),
        ("sliding: flag", "bad-field"),
        ("sliding: \"'W'\"", "bad-field"),
        ("window: {x: V}, mask: causal", "mask-unsupported"),
        ("window: {z: V}", "bad-field"),
        ("window: {x: 0}", "bad-field"),
        ("window: {x: flag}", "bad-field"),
        ("shift: {x: 1}", "bad-field"),
        ("window: {x: V}, shift: {z: 1}", "bad-field"),
        ("window: {x: V}, shift: {x: 0 - 1}", "bad-field"),
        ("window: {x: V}, local: W", "mask-unsupported"),
    ],
)
def test_fields_that_mean_no_mask(fields: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        program_of(case_of(fields, "self", CONFIG))
    assert [item.code for item in caught.value.diagnostics] == [code]
