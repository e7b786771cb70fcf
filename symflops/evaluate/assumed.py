"""Assumptions of a user about sizes, such as ``qk_norm=null, K=0``, and the program specialised to them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from symflops.evaluate.config import as_json, as_read, checked, is_null, look_up, put
from symflops.evaluate.sizes import check_fit, sizes_of
from symflops.evaluate.specialise import specialise
from symflops.evaluate.stored import Stored, stored_of
from symflops.formula.table import ConfigError
from symflops.ir.program import Program
from symflops.support.errors import SymflopsError, did_you_mean

LONGEST = 10_000
PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^"\[\]{},]+|"')
EXAMPLE = 'such as "K=0, q_lora_rank=null"'


Sizes = Mapping[str, tuple[str, ...]]
"""The sizes of a model: letter -> the config fields it is read from."""


@dataclass(frozen=True)
class Known:
    """The sizes of a model whose values are known, so that a program can be specialised to them.

    Attributes:
        config: The config with assumed values written into it; None if nothing is known.
        whole: Whether the config and its defaults determine every size.
        letters: The sizes that the user assumed a value for.
        numeric: Whether numbers replace all known sizes in formulas, not only ``letters``.
    """

    config: Mapping[str, Any] | None = None
    whole: bool = False
    letters: tuple[str, ...] = ()
    numeric: bool = field(default=False, kw_only=True)

    def __bool__(self) -> bool:
        return self.whole or bool(self.letters)

    def of(self, program: Program) -> Program:
        """Specialise a program: substitute the known sizes, then simplify.

        Raises:
            SymflopsError: the config does not fit the model.
        """
        if not self:
            return program
        stored, config = stored_of(program), self.config or {}
        values = sizes_of(stored, config) if self.whole else dict(_alone(stored, config, self.letters))
        if self.whole:
            check_fit(stored, values)
        return specialise(program, values, tuple(values) if self.numeric else self.letters)


def known_of(
    sizes: Sizes, config: Mapping[str, Any] | None = None, assumed: str | Mapping[str, Any] = "", numeric: bool = False
) -> Known:
    """Combine a config and assumptions into known sizes.

    Args:
        sizes: the sizes of the model, with the config fields that set them.
        config: the config; None leaves all sizes unknown but the assumed ones, or, if ``numeric``, at their defaults.
        assumed: ``name=value`` pairs as a text or a mapping; a name is a letter or a config field.
        numeric: whether numbers replace all known sizes in formulas.

    Raises:
        SymflopsError: an assumption names no size of the model.
    """
    found = assumptions(assumed) if isinstance(assumed, str) else dict(assumed)
    whole = config is not None or numeric
    if not found:
        return Known(config if config is not None else {} if numeric else None, whole, numeric=numeric)
    made, letters = deepcopy(as_json(config or {})), []
    for name, value in found.items():
        letters.append(letter_of(name, sizes))
        put(made, sizes[letters[-1]], as_json(value))
    return Known(made, whole, tuple(letters), numeric=numeric)


def assumptions(text: str) -> dict[str, Any]:
    """Parse ``name=value, name=value`` into a dict; a value is JSON or a word.

    >>> assumptions('K=0, qk_norm=null, act=silu, depths=[2, 2]')
    {'K': 0, 'qk_norm': None, 'act': 'silu', 'depths': [2, 2]}

    Raises:
        SymflopsError: the text has another form.
    """
    found: dict[str, Any] = {}
    for part in _parts(text):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not name or not equals or not value:
            raise SymflopsError(f"an assumption is NAME=VALUE, {EXAMPLE}, not '{part.strip()}'")
        if name in found:
            raise SymflopsError(f"'{name}' is assumed twice")
        found[name] = _value(value)
    return found


def _parts(text: str) -> Iterator[str]:
    """Split a text at commas outside brackets and quotes."""
    if len(text) > LONGEST:
        raise SymflopsError(f"assumptions have at most {LONGEST:,} characters")
    depth, part = 0, ""
    for piece in PIECE.findall(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece, 0)
        if piece == "," and depth <= 0:
            yield part
            part = ""
        else:
            part += piece
    if part.strip() or text.strip().endswith(","):
        yield part


def _value(text: str) -> Any:
    """Parse a value as JSON, else as a word."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if re.fullmatch(r"[A-Za-z_][\w./:-]*", text):
            return {"None": None, "True": True, "False": False}.get(text, text)
        raise SymflopsError(f"'{text}' is no value: write a number, true, false, null, a word or a list") from None


def letter_of(name: str, sizes: Sizes) -> str:
    """Find the letter of a size, given this letter or a config field that sets the size.

    Raises:
        SymflopsError: there is no such size, or no config field sets it.
    """
    by_field = {key: letter for letter, keys in reversed(list(sizes.items())) for key in keys}
    by_end = {key.rpartition(".")[2]: letter for key, letter in by_field.items()}
    letter = name if name in sizes else by_field.get(name) or by_end.get(name)
    if letter is None:
        hint = did_you_mean(name, [*sizes, *by_field], f"it has {', '.join(list(sizes)[:12])} ...")
        raise SymflopsError(f"the model has no size '{name}': {hint}")
    if not sizes[letter]:
        raise SymflopsError(f"no config says '{name}': its class does")
    return letter


def _alone(stored: Stored, config: Mapping[str, Any], letters: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the sizes in ``letters`` as (letter, value), without evaluating other sizes.

    Raises:
        ConfigError: a value has the wrong kind; or it is null, and the meaning of null depends on other sizes.
    """
    read = as_read(stored.document, config)
    for row in stored.document["fields"]:
        letter, keys = row["letter"], row["keys"]
        if letter not in letters:
            continue
        value = look_up(read, keys)
        if value is not None:
            yield letter, checked(row["kind"], keys[0], value, row.get("items", ""))
        elif row.get("null") is None and row.get("nullable") and (is_null(read, keys) or row["default"] is None):
            yield letter, None
        elif row["kind"] == "flag":
            yield letter, False
        else:
            meaning = row["null"] if row.get("null") is not None else row["default"]
            if isinstance(meaning, dict) and not stored.formulas.letters(meaning["formula"]):
                meaning = stored.formulas.checked(meaning["formula"], {})
            if meaning is None or isinstance(meaning, dict):
                told = f"what null makes of '{letter}' ({keys[0]}) depends on other sizes"
                raise ConfigError(f"{told}: assume a number, such as {letter}=64, or give all sizes by a config")
            yield letter, meaning
