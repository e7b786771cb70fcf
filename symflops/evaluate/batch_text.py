"""Reads numbers and batches as people type them: ``8192*8``, ``15T``, ``latent=64x64*2; prompt=77*2``, JSON."""

from __future__ import annotations

import re
from warnings import warn

from symflops.support.errors import SymflopsError
from symflops.support.reading import parse_json, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal
    from typing import Any

PREFIXES = {"k": 3, "m": 6, "b": 9, "g": 9, "t": 12, "p": 15}
THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?")
BARE = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)")
"""A key without quotation marks."""
FORMS = "e.g. 8192, 8192*8, 4096,1024 or '{text: [8192]}'"
MOST_ITEMS = 1_000_000
MOST_DIGITS = 40


def amount(text: str, name: str) -> Decimal:
    """Parse a number of at least 0, such as ``90k``, ``1.5T``, ``1e12``, ``15,000,000`` or the product ``8192*8``.

    Raises:
        SymflopsError: the text is no such number.
    """
    from decimal import Decimal, InvalidOperation, localcontext

    found = Decimal(1)
    try:
        with localcontext() as context:
            context.prec = 4 * MOST_DIGITS
            for factor in text.lower().split("*"):
                digits = factor.strip()
                power = PREFIXES.get(digits[-1:], 0)
                digits = digits[:-1].strip() if power else digits
                number = Decimal(digits.replace(",", "") if THOUSANDS.fullmatch(digits) else digits)
                if number.is_finite() and number.adjusted() > MOST_DIGITS:
                    raise SymflopsError(f"{name} has at most {MOST_DIGITS} digits, which '{text[:MOST_DIGITS]}' exceeds")
                if not number.is_finite() or number < 0:
                    raise InvalidOperation
                found *= number.scaleb(power)
    except InvalidOperation:
        raise SymflopsError(f"{name} takes a number, e.g. 1e12, 15T or 8192*8, not '{text[:MOST_DIGITS]}'") from None
    return found


def whole(text: str, name: str) -> int:
    """Parse a whole number as :func:`amount`, exactly.

    Raises:
        SymflopsError: the text is no whole number.
    """
    value = amount(text, name)
    if value.adjusted() > MOST_DIGITS or value != value.to_integral_value():
        raise SymflopsError(f"{name} is a whole number with at most {MOST_DIGITS} digits, not '{text[:MOST_DIGITS]}'")
    return int(value)


def batch_of(text: str, streams: Any = (), tell: Callable[[str], object] = warn, otherwise: str = "") -> dict[str, Any]:
    """Parse a batch: streams mapped to lengths.

    Args:
        text: JSON, also with keys that lack quotation marks, or a JSON list for one stream; ``@`` and the path of a JSON file;
            or lengths of one stream, of several as ``latent=64x64*2; prompt=77*2``. ``*N`` repeats a length.
        streams: The streams of the model, one of which a text without a name belongs to.
        otherwise: Another way to give a batch, for the error about lengths without a stream.
        tell: Gets a message about a number that is read as several items (default: a warning).

    Raises:
        SymflopsError: the text is no batch, or does not say which stream has the lengths.
    """
    text = text.strip()
    if text.startswith(("@", "{", "[", '"')):
        batch = read_json(text[1:]) if text.startswith("@") else parse_json(BARE.sub(r'\1"\2"\3', text), "the batch")
        if isinstance(batch, list) and streams:
            return {lone(streams, otherwise): batch}
        if not isinstance(batch, dict):
            raise SymflopsError(f"a batch maps streams to lists of lengths, {FORMS}")
        return batch
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, lengths = part.partition("=")
        name = name.strip() if equals else lone(streams, otherwise)
        if name in found:
            told = f"a comma is between items of a stream, {name}=4096,1024, and ; between streams, latent=4096*2; prompt=77*2"
            raise SymflopsError(f"the batch has '{name}' twice: {told}")
        text = (lengths if equals else part).strip()
        found[name] = [entry for word in text.split(",") for entry in entries(word)]
        number, star, times = text.partition("*")
        if THOUSANDS.fullmatch(number):
            items, whole_number = " and ".join(text.split(",")), f"{number.replace(',', '')}{star}{times}"
            tell(f"'{text}' is read as items of {items}; the number is {whole_number}")
    return found


def lone(streams: Any, otherwise: str = "") -> str:
    """The stream that a text without names is about: the only one that a batch must have; ``otherwise`` ends the error.

    Raises:
        SymflopsError: there are several.
    """
    needed = [stream.name for stream in streams if stream.given and not stream.optional and not stream.absent] or ["text"]
    if len(needed) > 1:
        named = "; ".join(f"{name}=LENGTHS" for name in needed)
        raise SymflopsError(f"this model has the streams {', '.join(needed)}: say '{named}'{otherwise}")
    return str(needed[0])


def entries(word: str) -> list[Any]:
    """Parse entries of one stream: ``8192``, ``8192*8`` for eight of them, ``64x64`` for a length per axis.

    Raises:
        SymflopsError: the text is something else.
    """
    first, star, times = word.partition("*")
    if re.fullmatch(r"0\d+", first.strip()):
        raise SymflopsError(f"'{first.strip()}' is no length: a comma is between items, so 8,000 tokens are 8000 or 8k")
    row = [whole(length, "a length") for length in first.lower().split("x")]
    count = whole(times, "the number of items") if star else 1
    if count > MOST_ITEMS:
        raise SymflopsError(f"a batch has at most {MOST_ITEMS:,} items, not {count:,}")
    return [row if len(row) > 1 else row[0]] * count
