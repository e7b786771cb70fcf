"""The units that conventions count in: FLOPs, or MACs (multiply-adds) of two FLOPs each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = {"flops": "FLOPs", "macs": "MACs"}


def unit_of(estimator: Any) -> str:
    """The unit of an estimator's figures as a word."""
    return NAMES[getattr(estimator, "unit", "flops")]


def in_flops(estimator: Any, amount: int) -> int:
    """A figure of an estimator in FLOPs, which peak rates and frameworks are in."""
    return 2 * amount if unit_of(estimator) == NAMES["macs"] else amount
