"""Resolves what people type for a device or its peak rate: ``h100``, ``nvidia a100-sxm4-80gb``, or a number of TFLOP/s.

The name that a driver reports is looked up as a whole (:mod:`symflops.training.devices.peaks`). A typed name may omit vendor,
case and hyphens, or be part of a name that only one device has.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

from symflops.support.errors import SymflopsError, did_you_mean
from symflops.training.devices.peaks import Peak, Row, peak, table

VENDORS = frozenset(("nvidia", "amd", "instinct", "tesla", "geforce", "intel", "google", "huawei", "habana", "aws"))


def peak_called(word: str, dtype: str) -> tuple[Peak, str]:
    """Look up the device called ``word``: (its peak for ``dtype``, note on other matches, or empty).

    If ``word`` matches several devices or none, the peak has no rate, but a reason.

    Raises:
        ValueError: as :func:`symflops.training.devices.peaks.peak`.
    """
    found = peak(word, dtype)
    if found.tflops is not None or any(row.matches(word) for row in table()):
        return found, ""
    try:
        name, others = called(word)
    except ValueError as error:
        return replace(found, why=str(error)), ""
    note = f"'{word}' is read as {name}; there is also {', '.join(others)}" if others else ""
    return replace(peak(name, dtype), reported=word), note


def called(word: str) -> tuple[str, tuple[str, ...]]:
    """Find the device called ``word``: (its name in the table, other names that contain the words).

    Raises:
        ValueError: ``word`` is ambiguous or unknown; the message lists candidates.
    """
    rows = {row.name: row for row in table()}
    whole = [name for name, row in rows.items() if words(word) in (words(known) for known in (name, *row.aliases))]
    partly = [name for name, row in rows.items() if set(words(word)) <= words_of(row)] if words(word) else []
    names = list(dict.fromkeys(whole or partly))
    if len(names) == 1:
        return names[0], tuple(name for name in partly if name != names[0])
    if names:
        raise ValueError(f"'{word}' means several devices: {', '.join(names)}")
    plain = {" ".join(words(known)): row.name for row in rows.values() for known in (row.name, *row.aliases)}
    near = did_you_mean(" ".join(words(word)), list(plain), "'symflops device' lists all")
    for text, name in plain.items():
        near = near.replace(f"'{text}'", f"'{name}'")
    raise ValueError(f"no device '{word}' in the table: {near}")


def words(text: str) -> tuple[str, ...]:
    """Split a name into lower-case words without vendors."""
    return tuple(word for word in re.findall(r"[a-z0-9*]+", text.casefold()) if word not in VENDORS)


def words_of(row: Row) -> set[str]:
    """The lower-case words in the name and aliases of a row's device, without vendors."""
    return {word for name in (row.name, *row.aliases) for word in words(name)}


RATE = re.compile(r"([\d.]+(?:e[+-]?\d+)?)\s*([tp]?)flop(?:s|/s|s/s)?", re.IGNORECASE)
SCALES = {"": 1.0, "t": 1e12, "p": 1e15}
FLOPS_FROM = 1e6  # numbers from here on are FLOP/s, smaller ones TFLOP/s


def rate_of(text: str, dtype: str) -> tuple[float, str, list[str]]:
    """Parse the rate of one device: (FLOP/s, text on the source of the rate, lines on the device for a terminal).

    ``text`` is the name of a device, or a number, such as ``989`` or ``989 TFLOP/s``. Without a unit, numbers below 1e6 are
    TFLOP/s, others FLOP/s.

    Raises:
        SymflopsError: the number is not positive, the device's rate is unknown, or the number is also in a device's name.
    """
    number, unit = None, RATE.fullmatch(text.strip())
    with suppress(ValueError):
        number = float(unit[1]) * SCALES[(unit[2] or "").casefold()] if unit else float(text)
    if len(text.strip()) > 2 and text.strip().isdecimal():
        devices = [row.name for row in table() if text.strip() in words_of(row)]
        if devices:
            raise SymflopsError(f"'{text}' may be {devices[0]} or a rate: write '{devices[0]}' or '{text} TFLOP/s'")
    try:
        given = None if number is None else number / 1e12 if unit or number >= FLOPS_FROM else number
        found, note = peak_called(text, dtype) if given is None else (peak("", peak_tflops=given), "")
    except ValueError as error:
        raise SymflopsError(str(error)) from None
    if found.flops_per_second is None:
        raise SymflopsError(f"the peak is unknown: {found.why}")
    source = f"{found}; {note}" if note else str(found)
    lines = [f"peak {found.brief}", *([note] if note else [])]
    return found.flops_per_second, source if number is None else "given", lines
