"""Axes of convolutions have the form that the operator derives; a list that shrinks loses its items."""

from symflops.draft.fit.fit import Fitter
from symflops.draft.vary.slots import Slot, applied
from symflops.draft.write.dimensions import Axes

LENGTHS = (32, 33, 34, 35, 47, 90, 121)
KERNELS = (3, 5, 2, 7, 4, 3, 6)
STRIDES = (2, 3, 2, 4, 5, 2, 3)


def axes():
    solo = {name: [] for name in ("h", "k", "s")}
    return Axes(Fitter({"h": LENGTHS, "k": KERNELS, "s": STRIDES}, solo))


def after(lengths, kernel, stride, padding):
    return tuple((n + 2 * p - k) // s + 1 for n, k, s, p in zip(lengths, kernel, stride, padding, strict=True))


def same(number):
    return (number,) * len(LENGTHS)


def test_a_strided_convolution_takes_whole_steps_out():
    found = axes()
    halved = after(LENGTHS, same(2), same(2), same(0))
    found.convolved(LENGTHS, halved, same(2), same(2), same(0), same(1))
    assert found.formula(halved).text == "(h//2)"
    again = after(halved, same(3), same(2), same(1))
    found.convolved(halved, again, same(3), same(2), same(1), same(1))
    assert found.formula(again).text == "(((h//2) + 1)//2)"


def test_kernel_and_stride_may_be_sizes():
    found = axes()
    vector = after(LENGTHS, KERNELS, STRIDES, same(0))
    found.convolved(LENGTHS, vector, KERNELS, STRIDES, same(0), same(1))
    text = found.formula(vector).text
    values = tuple(eval(text, {"h": h, "k": k, "s": s}) for h, k, s in zip(LENGTHS, KERNELS, STRIDES, strict=True))
    assert values == vector


def test_pools_borders_and_repetitions_of_an_axis():
    found = axes()
    found.formula(LENGTHS)
    pooled = tuple((n + 1) // 3 for n in LENGTHS)
    assert found.formula(pooled).text == "((h + 1)//3)"
    assert found.formula(tuple(2 * n for n in pooled)).text == "2*((h + 1)//3)"
    assert found.formula(tuple(n + 1 for n in LENGTHS)).text == "h + 1"
    odd = tuple(n + 1 - k % 2 for n, k in zip(LENGTHS, KERNELS, strict=True))
    text = found.formula(odd).text
    assert tuple(eval(text, {"h": h, "k": k}) for h, k in zip(LENGTHS, KERNELS, strict=True)) == odd


def test_a_list_that_shrinks_loses_the_numbers_of_its_items():
    length, item = Slot("config", ("widths",), 2, "length"), Slot("config", ("widths", 1), 16)
    assert applied({"widths": [8, 16]}, {}, {length: 1, item: 32})[0] == {"widths": [8]}
    assert applied({"widths": [8, 16]}, {}, {length: 3, item: 32})[0] == {"widths": [8, 32, 16]}
