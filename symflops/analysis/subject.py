"""Model whose sizes and lengths can be varied; derived estimators are cached."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from symflops.analysis.explanation import default_batch
from symflops.api import load
from symflops.emit.emit import Derived
from symflops.evaluate.assumed import letter_of
from symflops.evaluate.config import as_json, put
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.moments import tokens_of
from symflops.ir.serialise import program_of
from symflops.library.lookup import by_config, by_name, config_of, is_file, program
from symflops.support.errors import SymflopsError, did_you_mean

Batch = Mapping[str, Any]


class Subject:
    """A model under one config, regime and convention, with methods that replace one size or one length.

    Raises:
        SymflopsError: the model, regime or convention is unknown, or the config does not fit.
    """

    def __init__(self, spec: str | None, config: Mapping[str, Any] | None, regime: str, convention: str) -> None:
        if not spec and config is None:
            raise SymflopsError("say which model: a SPEC, or --config PATH")
        self.config: dict[str, Any] = as_json(config or {})
        self.spec = spec or by_config(self.config)[1]
        self.regime, self.convention = regime, convention
        self.derived = self.derivation(self.config)
        self.known: dict[tuple[str, Any], InterpretedEstimator] = {}

    def of_config(self, config: Mapping[str, Any]) -> Subject:
        """Return a subject of the same model, regime and convention with the config ``config``."""
        return Subject(self.spec, config, self.regime, self.convention)

    def derivation(self, config: Mapping[str, Any]) -> Derived:
        """The closed forms for ``config``, under the regime and convention of this subject."""
        return closed_forms(self.spec, config, self.regime, self.convention)

    @property
    def program(self) -> Any:
        """The derived program (IR) for the config."""
        return self.derived.program

    @property
    def estimator(self) -> InterpretedEstimator:
        """The estimator for the config of this subject."""
        return self.at("", None)

    def batch(self) -> dict[str, Any]:
        """Return a batch of one item per stream, with typical lengths."""
        return default_batch(self.estimator)

    def with_size(self, letter: str, value: Any) -> dict[str, Any]:
        """A copy of the config in which the size ``letter`` is ``value``."""
        config = deepcopy(self.config)
        put(config, self.program.keys[letter], value)
        return config

    def at(self, letter: str, value: Any) -> InterpretedEstimator:
        """Return the estimator for the config in which the size ``letter`` is ``value`` (cached).

        With an empty ``letter`` the config is unchanged. If the size decides the structure, the program is derived again.

        Raises:
            SymflopsError: the model does not accept the value.
        """
        if (letter, value) not in self.known:
            config = self.with_size(letter, value) if letter else self.config
            structural = letter in dict(self.program.fixed)
            derived = self.derivation(config) if structural else self.derived
            self.known[letter, value] = derived.estimator(config)
        return self.known[letter, value]

    def numbers(self) -> list[str]:
        """Return the letters of the sizes whose values under this config are whole numbers."""
        sizes = self.estimator.sizes
        fields = [field for field in self.program.fields if field.keys and field.kind in ("number", "count")]
        return [field.letter for field in fields if type(sizes[field.letter]) is int]

    def variable(self, name: str) -> tuple[str, str]:
        """Resolve ``name``, a config field, letter or stream, to ``("size", letter)`` or ``("length", axis)``.

        Raises:
            SymflopsError: no size or length has this name, several lengths do, or the size is not a number.
        """
        program = self.program
        lengths = {stream.name: stream for stream in program.streams if stream.variables}
        axes = {f"{stream.name}.{axis}": axis for stream in lengths.values() for axis in stream.variables}
        if name in axes:
            return "length", axes[name]
        if name in lengths:
            if len(lengths[name].variables) > 1:
                told = " or ".join(f"{name}.{axis}" for axis in lengths[name].variables)
                raise SymflopsError(f"'{name}' has several lengths: say {told}")
            return "length", lengths[name].variables[0]
        try:
            letter = letter_of(name, program.keys)
        except SymflopsError:
            known = [*program.keys, *(key for keys in program.keys.values() for key in keys), *lengths, *axes, "tokens"]
            hint = did_you_mean(name, known, f"lengths are {', '.join(lengths)}, sizes those of the config")
            raise SymflopsError(f"'{name}' is no size and no length of this model: {hint}") from None
        if letter not in self.numbers():
            raise SymflopsError(f"'{name}' is {self.estimator.sizes[letter]!r}, not a number: nothing to solve for")
        return "size", letter

    def items(self, batch: Batch, axis: str) -> tuple[str, int, list[Any]]:
        """Return (stream with ``axis``, position of ``axis`` in an entry, entries of the stream in ``batch``).

        Raises:
            SymflopsError: the batch has no items of that stream.
        """
        stream = next(stream for stream in self.program.streams if axis in stream.variables)
        entries = batch.get(stream.name)
        if not isinstance(entries, list) or not entries:
            raise SymflopsError(f"the batch has no items of '{stream.name}' to vary: give a list")
        return stream.name, stream.variables.index(axis), entries

    def length(self, batch: Batch, axis: str) -> int:
        """The length of the batch's first item along ``axis``."""
        _, place, (entry, *_) = self.items(batch, axis)
        found = entry[place] if isinstance(entry, list) else entry
        if type(found) is not int:
            raise SymflopsError(f"a length of a batch is a whole number, not {found!r}")
        return found

    def with_length(self, batch: Batch, axis: str, value: int) -> dict[str, Any]:
        """A copy of ``batch`` in which every item has length ``value`` along ``axis``."""
        name, place, entries = self.items(batch, axis)
        made = [[*entry[:place], value, *entry[place + 1 :]] if isinstance(entry, list) else value for entry in entries]
        return {**batch, name: made}

    def tokens(self, model: InterpretedEstimator, batch: Batch) -> int:
        """Return the number of tokens in ``batch``, by which ``model`` divides its FLOPs.

        Raises:
            SymflopsError: the batch has no tokens.
        """
        found = tokens_of(model.stored, model.regime, model.sizes, model.moments(**batch))
        if not found:
            raise SymflopsError("this batch has no tokens to count: give --batch with lengths")
        return found


def closed_forms(spec: str, config: Mapping[str, Any], regime: str, convention: str) -> Derived:
    """Return the closed forms for a config: derived if an argument is a file, else from a stored program.

    Raises:
        SymflopsError: as :func:`symflops.library.lookup.estimator`.
    """
    config = config_of(config)
    catalog = None if is_file(spec) else by_name(spec)
    if catalog is None or is_file(regime, convention):
        return load(catalog.file(spec) if catalog else spec).derive(regime, convention, config)
    found, regime, convention = program(catalog, spec, config, regime, convention, lambda text: None)
    made = program_of(found)
    return Derived(made, made.case(regime, convention))
