"""Batches with and without each optional stream, in every form of lengths, for every spec of several streams."""

from __future__ import annotations

import importlib
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
import torch

from symflops.evaluate.lengths import of_cu_seqlens, of_mask, of_position_ids, of_rows, same
from symflops.library import lookup
from symflops.support.errors import SymflopsError
from symflops.training.meter.accumulate import Accumulator
from symflops.training.meter.batches import streams_of
from tests.sampling import sampled
from tests.shipped import FILES, cases_of

NAMES = [name for name in FILES if len(lookup.by_name(name).specs[name]["streams"]) > 1]


@cache
def estimators(name):
    """An estimator for each set of streams and divisions that a spec's defaults and live cases have; its module's, if a batch may leave out something."""
    found = {}
    for config in ({}, *(dict(case.config) for case in cases_of(FILES[name]))):
        try:
            if lookup.by_name(name).of_structure(name, config)[0] is None:
                continue
            one = lookup.estimator(lookup.by_name(name), name, config)[1]
        except SymflopsError:
            continue
        found.setdefault(str((one.streams, one.sets, one.implied, list(one.moment_sets))), one)
    one = next(iter(found.values()), None)
    if one is not None and len(subsets(one)[0]) > 1:
        module = importlib.import_module(f"symflops.generated.{FILES[name].group}.{name}")
        return (*found.values(), module.Estimator(module.Sizes.from_config({})))
    return tuple(found.values())


def lengths_of(one):
    """Lengths of two items per stream that the model takes."""
    rows = {name: axes for members in one.sets.values() for name, axes, _ in members}
    forms = [(length, length, {}) for length in (64, 48, 448, 480, 3360)]
    forms += [(64, 64, one.taken), (256, 8, {}), (3360, 64, one.taken), (1, 64, {}), (1, 64, one.taken)]  # with tokens enough for those of the images, and one for all frames
    for (long, wide, taken), exact in product(forms, (False, True)):
        sizes = {name: ((wide, wide // 2) if len(axes) > 1 else (long, max(1, long // 2))) for name, axes in rows.items()}
        items = {
            name: [[taken.get(axis, size) for axis in axes] if len(axes) > 1 else taken.get(axes[0], size) if exact else min(size, taken.get(axes[0], size)) for size in sizes[name]]
            for name, axes in rows.items() if axes
        }  # fmt: skip
        batch = {name: items.get(name, 2) for name in rows}
        try:
            for alike in ({}, *({name: [row[0]] * 2} for name, row in items.items())):
                one.moments(**{**batch, **alike})
            return batch
        except ValueError:
            continue
    raise AssertionError(f"no batch for {one.name}")


def tensor(rows):
    return torch.tensor(rows, dtype=torch.int64)


def boundaries(lengths, tail=()):
    return tensor([0, *np.cumsum(lengths).tolist(), *tail])


def positions(lengths):
    return tensor([[place for length in lengths for place in range(length)]])


def mask(lengths):
    return tensor([[1] * length + [0] * (max(lengths) - length) for length in lengths])


ONE_AXIS = {
    "lists": list, "arrays": np.array, "tensors": tensor, "int32": lambda rows: tensor(rows).int(), "masks": lambda rows: of_mask(mask(rows)), "lists of masks": lambda rows: of_mask(mask(rows).tolist()),
    "sides": lambda rows: {"lengths": tensor(rows), "padded": tensor([max(rows)] * len(rows))}, "boundaries": lambda rows: of_cu_seqlens(boundaries(rows)),
    "shapes": lambda rows: same(len(rows), rows[0]),
}  # fmt: skip
ALONE = {"boundaries with a tail": lambda rows: of_cu_seqlens(boundaries(rows, (-1, -1))), "ids": lambda rows: of_position_ids(positions(rows)), "ids as lists": lambda rows: of_position_ids(positions(rows).tolist())}  # fmt: skip
ROWS = {"lists": list, "arrays": np.array, "tensors": tensor, "grids": lambda rows: of_rows(tensor(rows), len(rows[0])), "shapes": lambda rows: same(len(rows), *rows[0])}
NOTHING = ("left out", "lists", "arrays", "tensors", "shapes", "rows")


def given(form, members, name, axes, rows):
    """The lengths of a stream in a form, and as lists; a form that the stream cannot have is one of tensors."""
    if not axes:
        return rows, rows
    made = {**(ROWS if len(axes) > 1 else ONE_AXIS), **(ALONE if len(axes) == 1 and len(members) == 1 else {})}.get(form, tensor)
    return made(rows), [rows[0]] * len(rows) if form == "shapes" else rows


def empty(form, axes):
    """No items, in a form."""
    if form in ("left out", "shapes"):
        return None if form == "left out" else same(0, *(0 for _ in axes))
    if form == "rows":
        return of_rows(torch.zeros((0, len(axes) or 1), dtype=torch.int64), len(axes) or 1)
    shape = (0, len(axes)) if len(axes) > 1 else (0,)
    return 0 if not axes else [] if form == "lists" else np.zeros(shape, np.int64) if form == "arrays" else torch.zeros(shape, dtype=torch.int64)


def subsets(one):
    """The streams that a batch may leave out together: optional ones, and those that alone have the items of their set."""
    alone = {members[0][0] for items, members in one.sets.items() if items != "samples" and len(members) == 1}
    free = sorted(alone | {name for name, optional in one.streams.items() if optional})
    return [set(chosen) for count in range(len(free) + 1) for chosen in combinations(free, count)], alone


def takes(one, full, left, alone):
    """Whether the model runs without some streams."""
    try:
        one.moments(**{stream: rows for stream, rows in full.items() if stream not in left}, **{stream: [] for stream in left & alone if not one.streams[stream]})
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", sampled(NAMES, 4, 1))
def test_streams_left_out(name):
    for one in estimators(name):
        full, (chosen, alone) = lengths_of(one), subsets(one)
        for left, form, nothing in ((left, form, nothing) for left in chosen if takes(one, full, left, alone) for form in ("shapes", *ONE_AXIS, *ALONE) for nothing in NOTHING):
            if not left and nothing != "left out":
                continue
            batch, plain = {}, {}
            for members in one.sets.values():
                for stream, axes, _ in members:
                    if stream not in left:
                        batch[stream], plain[stream] = given(form, members, stream, axes, full[stream])
                    elif stream in alone and (nothing != "left out" or not one.streams[stream]):
                        batch[stream], plain[stream] = empty(nothing if nothing != "left out" else "lists", axes), []
            accumulator = Accumulator(one)
            accumulator.add(**batch)
            found = accumulator.read()
            assert not found.faults, (one.name, left, form, nothing)
            assert found.real == tuple(one.moments(**plain).as_dict().values()), (one.name, left, form, nothing)


def argument(words, width, axes, rows):
    """An argument whose layout has these words, for items that have the lengths ``rows``."""
    if words[0] == "values:":
        return tensor(rows)
    sizes = dict(zip(axes, rows[0] if len(axes) > 1 else rows[:1]))

    def size(word):
        name, _, default = word.partition("=")
        head, _, blocks = name.partition("*")
        return len(rows) * sizes[blocks] if blocks else len(rows) if head == "b" else sizes.get(name, int(default) if default else 1 if name == "1" else width or 3)

    made = torch.zeros([size(word) for word in words], device="meta")
    return made if any(word.startswith("b") for word in words) else [made] * len(rows)


@pytest.mark.parametrize("name", sampled(NAMES, 4, 1))
def test_batches_without_an_argument(name):
    """The arguments of the model's forward, those of a stream left out, None or empty; all items of a stream have one length."""
    for one in estimators(name):
        full, (chosen, alone) = lengths_of(one), subsets(one)
        axes = {stream: names for members in one.sets.values() for stream, names, _ in members}
        owner = {argument: next((stream for stream, names in axes.items() if layout == f"values: {' '.join(names)}"), to) for argument, (to, layout, _) in one.inputs().items()}
        made = {argument_: argument(layout.split(), width, axes[owner[argument_]], full[owner[argument_]]) for argument_, (_, layout, width) in one.inputs().items() if owner[argument_] in axes}
        for left in (left for left in chosen if takes(one, full, left, alone)):
            if not {stream for stream, optional in one.streams.items() if not optional} - left <= set(owner.values()):
                continue
            for nothing in ({}, dict.fromkeys(made), {argument: torch.zeros(0) for argument in made} if left <= alone else {}):
                batch = {argument: given if owner[argument] not in left else nothing.get(argument) for argument, given in made.items() if owner[argument] not in left or argument in nothing}
                found = streams_of(one, batch)
                accumulator = Accumulator(one)
                accumulator.add(**found)
                plain = {stream: rows if any(hasattr(column, "tolist") for column in found[stream].axes) else [rows[0]] * 2 for stream, rows in full.items() if stream not in left and stream in found}
                assert set(plain) == set(full) - left, (one.name, left)
                plain |= {stream: [] for stream in left if not one.streams[stream] and stream in alone}
                assert accumulator.read().real == tuple(one.moments(**plain).as_dict().values()), (one.name, left)
