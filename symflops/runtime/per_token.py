"""What an estimate says per token: the parameters that one token goes through, and the tokens of a batch."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.runtime.moments import Moments
    from symflops.runtime.stored import Stored


def active_of(stored: Stored, regime: str, sizes: Mapping[str, Any]) -> int | None:
    """Elements of the parameters that one token goes through: of routed experts, those that it is routed to.

    None if the program was stored before it said so.
    """
    formula = stored.regimes[regime].get("active")
    return None if formula is None else int(stored.formulas.settled(formula, sizes))


def per_token(total: int, tokens: int | None) -> int | None:
    """FLOPs per token, rounded to a whole number; None for a batch without tokens."""
    return (2 * total + tokens) // (2 * tokens) if tokens else None


def tokens_of(stored: Stored, regime: str, sizes: Mapping[str, Any], m: Moments) -> int | None:
    """The tokens of a batch, without padding: the queries of the model's first attention outside of towers.

    None if no stream varies with the batch, or the convention counts nothing that runs over them.
    """
    terms, values = stored.regimes[regime].get("tokens", ()), m.as_dict()
    names = [stored.moments[position]["name"] for position, _ in terms]
    if not terms or not values.keys() >= set(names):
        return None
    found = [stored.formulas.settled(part, sizes) * values[name] for name, (_, part) in zip(names, terms, strict=True)]
    return int(sum(found))
