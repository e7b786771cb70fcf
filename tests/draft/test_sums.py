"""Widths of fused projections, and rounded shares in multiples."""

from symflops.draft.fit.fit import proportion
from symflops.draft.fit.formula import products, triple

SIZES = {
    "H": (8, 8, 16, 8, 12, 24, 4),
    "d": (24, 48, 24, 24, 80, 16, 32),
    "N": (6, 6, 6, 7, 10, 12, 8),
    "g": (2, 2, 2, 2, 4, 3, 1),
}


def test_three_products() -> None:
    width = tuple(2 * h * d + 2 * n * g + h for h, d, n, g in zip(*SIZES.values(), strict=True))
    found = triple(width, products(SIZES))
    assert found is not None
    assert sorted(found.text.split(" + ")) == ["2*H*d", "2*N*g", "H"]
    assert triple((*width[:-1], width[-1] + 1), products(SIZES)) is None


def test_two_of_a_rounded_share() -> None:
    sizes = {"D": (50, 64, 70, 96, 101, 200)}
    found = proportion(tuple(2 * (8 * size // 3) for size in sizes["D"]), sizes)
    assert found is not None
    assert found.text == "2*(8*D//3)"
