"""The model that a question is about: one structure after another, each under the same regime and convention."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from symflops.analysis.explanation import default_batch
from symflops.api import load
from symflops.emit.emit import Derived
from symflops.evaluate.assumed import letter_of, put
from symflops.evaluate.config import as_json
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.moments import tokens_of
from symflops.ir.serialise import program_of
from symflops.library.lookup import by_config, by_name, config_of, is_file, program
from symflops.support.errors import SymflopsError, did_you_mean

Batch = Mapping[str, Any]


class Subject:
    """A model of a config, of which sizes and lengths may be varied.

    Raises:
        SymflopsError: there is no such model, regime or convention, or the config does not fit it.
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
        """The same model with another config."""
        return Subject(self.spec, config, self.regime, self.convention)

    def derivation(self, config: Mapping[str, Any]) -> Derived:
        """The closed forms of a config."""
        return closed_forms(self.spec, config, self.regime, self.convention)

    @property
    def program(self) -> Any:
        """The program of the config."""
        return self.derived.program

    @property
    def estimator(self) -> InterpretedEstimator:
        """The estimator of the config."""
        return self.at("", None)

    def batch(self) -> dict[str, Any]:
        """One item per stream, of typical lengths."""
        return default_batch(self.estimator)

    def with_size(self, letter: str, value: Any) -> dict[str, Any]:
        """The config with another value of a size."""
        config = deepcopy(self.config)
        put(config, self.program.keys[letter], value)
        return config

    def at(self, letter: str, value: Any) -> InterpretedEstimator:
        """The estimator of the config with another value of a size.

        Raises:
            SymflopsError: the model takes no such value.
        """
        if (letter, value) not in self.known:
            config = self.with_size(letter, value) if letter else self.config
            structural = letter in dict(self.program.fixed)
            derived = self.derivation(config) if structural else self.derived
            self.known[letter, value] = derived.estimator(config)
        return self.known[letter, value]

    def numbers(self) -> list[str]:
        """The sizes that are numbers, by letter."""
        sizes = self.estimator.sizes
        fields = [field for field in self.program.fields if field.keys and field.kind in ("number", "count")]
        return [field.letter for field in fields if type(sizes[field.letter]) is int]

    def variable(self, name: str) -> tuple[str, str]:
        """What a name says may vary: ``size`` and a letter, or ``length`` and a stream or the axis of one.

        Raises:
            SymflopsError: nothing of that name is a number.
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
        """The stream of an axis, the axis's place in an entry, and the entries of a batch.

        Raises:
            SymflopsError: the batch has no such items.
        """
        stream = next(stream for stream in self.program.streams if axis in stream.variables)
        entries = batch.get(stream.name)
        if not isinstance(entries, list) or not entries:
            raise SymflopsError(f"the batch has no items of '{stream.name}' to vary: give a list")
        return stream.name, stream.variables.index(axis), entries

    def length(self, batch: Batch, axis: str) -> int:
        """One length of the first item of a batch."""
        _, place, (entry, *_) = self.items(batch, axis)
        found = entry[place] if isinstance(entry, list) else entry
        if type(found) is not int:
            raise SymflopsError(f"a length of a batch is a whole number, not {found!r}")
        return found

    def with_length(self, batch: Batch, axis: str, value: int) -> dict[str, Any]:
        """A batch in which one length of every item is another."""
        name, place, entries = self.items(batch, axis)
        made = [[*entry[:place], value, *entry[place + 1 :]] if isinstance(entry, list) else value for entry in entries]
        return {**batch, name: made}

    def tokens(self, model: InterpretedEstimator, batch: Batch) -> int:
        """The tokens of a batch.

        Raises:
            SymflopsError: the model has none.
        """
        found = tokens_of(model.stored, model.regime, model.sizes, model.moments(**batch))
        if not found:
            raise SymflopsError("this batch has no tokens to count: give --batch with lengths")
        return found


def closed_forms(spec: str, config: Mapping[str, Any], regime: str, convention: str) -> Derived:
    """The closed forms of a config, from the program that an estimate interprets, or from a spec given by its path.

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
