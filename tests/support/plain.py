"""Which texts are ours alone: the names of our functions and the marks in the names of symbols, which no message may hold."""

from __future__ import annotations

import inspect
import re

from symflops.formula import functions

NAMES = sorted(name for name, cls in inspect.getmembers(functions, inspect.isclass) if issubclass(cls, functions.Count))
OURS = re.compile(rf"\b(?:{'|'.join(NAMES)})\(|\?[A-Za-z_]\w*\b|\w@\d*|\bTruth\(|\bPolynomial\(|\b(?:Add|Mul|Integer|Symbol)\(")


def unplain(text: str) -> list[str]:
    """What of ``text`` only we understand."""
    return OURS.findall(text)
