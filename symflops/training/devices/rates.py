"""Parses a device rate from user input: a number, or the name of a device."""

from __future__ import annotations

from symflops.support.errors import SymflopsError
from symflops.training.devices.names import peak_called
from symflops.training.devices.peaks import peak

FLOPS_FROM = 1e6  # numbers from here on are FLOP/s, smaller ones TFLOP/s


def rate_of(text: str, dtype: str) -> tuple[float, str]:
    """Parse a rate: (FLOP/s of one device, source). Numbers below 1e6 are TFLOP/s.

    Raises:
        SymflopsError: the number is not positive, or the device's rate is unknown.
    """
    try:
        value = float(text)
    except ValueError:
        return _of_name(text, dtype)
    try:
        return float(peak("", peak_tflops=value / 1e12 if value >= FLOPS_FROM else value).flops_per_second or 0), "given"
    except ValueError as error:
        raise SymflopsError(str(error)) from None


def _of_name(text: str, dtype: str) -> tuple[float, str]:
    try:
        found, note = peak_called(text, dtype)
    except ValueError as error:
        raise SymflopsError(str(error)) from None
    if found.flops_per_second is None:
        raise SymflopsError(f"the peak is unknown: {found.why}")
    return found.flops_per_second, f"{found}; {note}" if note else str(found)
