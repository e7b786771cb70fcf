"""Units of conventions: FLOPs, MACs (multiply-adds of two FLOPs each), or MACs that the source calls FLOPs.

Rates and MFU are in FLOPs, so figures in MACs are doubled. A source that counts a multiply-add as one FLOP compares its figure
with the peak unchanged, and so does a meter under the convention named after it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = {"flops": "FLOPs", "macs": "MACs", "macs_as_flops": "FLOPs"}
PREFIXES = (18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")
MULTIPLY_ADD = {"flops": "two FLOPs", "macs": "one MAC", "macs_as_flops": "one FLOP"}
AS_SOURCE = "macs_as_flops"
"""The unit of a convention whose source counts a multiply-add as one FLOP."""
TWICE_AS_HIGH = (
    "Its source counts a multiply-add as one FLOP, and so do FLOPs, rates and MFU here; counted as two, each is twice as high"
)


def scaled(value: int) -> str:
    """Format a number with at most four digits and an SI prefix.

    >>> scaled(6738415616), scaled(12)
    ('6.738 G', '12')
    """
    found = next(((power, prefix) for power, prefix in PREFIXES if abs(value) >= 10**power), None)
    return f"{value / 10 ** found[0]:.3f} {found[1]}" if found else f"{value}"


def percent(share: Any) -> str:
    """Format a share as a percentage; ``-`` if it is None."""
    return "-" if share is None else f"{float(100 * share):.2f} %"


def unit_of(estimator: Any) -> str:
    """The unit of an estimator's figures: ``FLOPs`` or ``MACs``."""
    return NAMES[getattr(estimator, "unit", "flops")]


def in_flops(estimator: Any, amount: int) -> int:
    """Convert ``amount``, in the unit of an estimator, to FLOPs: doubled if the unit is MACs."""
    return 2 * amount if unit_of(estimator) == NAMES["macs"] else amount
