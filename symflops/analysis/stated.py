"""Checks figures that a paper states (``expect``): to the digits given, with modules and possible causes of a difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any

from symflops.analysis.explanation import default_batch
from symflops.api import REGIMES, Model
from symflops.count.per_parameter import first_readers, share
from symflops.evaluate.config import put
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.moments import summed
from symflops.ir.spec import Expectation, Name
from symflops.library.lookup import result
from symflops.read.spec_files import pages
from symflops.read.variants import DEFAULT, config_of
from symflops.support.findings import Diagnostic, SymflopsError

NOUNS = {"parameters": "parameters", "active": "active parameters", "flops_per_token": "FLOPs per token"}
"""Figures of ``expect``, and what messages call them."""
ROWS, CAUSES, WIDTH = 8, 4, 40
HINT = "see whether the source counts so; if not, change the figure"
NO_CAUSE = "no flag, norm, bias, module or convention explains it alone"


def agrees(text: str, value: int) -> bool:
    """Whether ``value`` is the number in ``text`` to its digits.

    >>> agrees("8.03e9", 8_030_261_248), agrees("8.031e9", 8_030_261_248)
    (True, False)
    """
    stated = Decimal(text)
    return 2 * abs(value - Fraction(stated)) <= Fraction(10) ** int(stated.as_tuple().exponent)


def wrong_figures(model: Model) -> list[Diagnostic]:
    """Return a finding for each stated figure of a spec that differs from the derived one."""
    return [finding for stated in model.spec.expect for finding in _wrong(model, stated)]


def _wrong(model: Model, stated: Expectation) -> Iterator[Diagnostic]:
    name = stated.model.name
    try:
        sized = Sized(model, config_of(stated.model, model.spec.sizes), *stated.rules, stated.batch)
        derived = {figure: (sized.figure(figure.text), text) for figure, text in stated.figures}
    except SymflopsError as error:
        told = str(error).partition("\n")[0]
        yield Diagnostic("bad-value", f"'{name}' has no such figures: {told}", name.span, "config, batch, regime or convention")
        return
    for figure, (value, text) in derived.items():
        if not agrees(text, value):
            yield sized.finding(name.text, figure, text, value)


@dataclass(frozen=True)
class Sized:
    """A model at one config, with the rules and the batch of its FLOPs.

    Raises:
        SymflopsError: the config does not fit the model, or the regime or convention is unknown.
    """

    model: Model
    config: Mapping[str, Any]
    regime: str = "full"
    convention: str = "symflops"
    given: Mapping[str, Any] | None = None

    @cached_property
    def estimator(self) -> InterpretedEstimator:
        """The estimator of the config."""
        return self.model.estimator(self.config, self.regime, self.convention)

    @cached_property
    def batch(self) -> Mapping[str, Any]:
        """The given batch, else one item per stream, of typical lengths."""
        return default_batch(self.estimator) if self.given is None else self.given

    def figure(self, name: str) -> int:
        """Derive the figure ``name`` of ``expect``.

        Raises:
            SymflopsError: the batch does not fit, or has no tokens.
        """
        if name == "flops_per_token":
            found = result(self.estimator, self.batch)[name]
        else:
            found = self.estimator.parameters if name == "parameters" else self.estimator.parameters_active
        if found is None:
            raise SymflopsError("the batch has no tokens")
        return int(found)

    def finding(self, model: str, figure: Name, text: str, value: int) -> Diagnostic:
        """Report a stated figure that is not ``value``: the difference, its modules, and what would explain it."""
        noun, less = NOUNS[figure.text], value - int(Decimal(text))
        whose = "the default config" if model == DEFAULT else f"'{model}'"
        message = f"{whose} has {value:,} {noun}, not {text}"
        note = [f"{abs(less):,} {'more' if less > 0 else 'less'} than stated; by module:", *self.table(figure.text, value)]
        causes = list(islice(self.causes(figure.text, text), CAUSES))
        note += [f"it is {text} with {cause}" for cause in causes]
        return Diagnostic("other-figure", message, figure.span, HINT if causes else NO_CAUSE, note="\n".join(note))

    def table(self, name: str, whole: int) -> Iterator[str]:
        """Yield the lines of a table: the modules with the largest parts of the figure ``name``."""
        if name == "flops_per_token":
            moments, tokens = self.estimator.moments(**self.batch), result(self.estimator, self.batch)["tokens"]
            parts = {path: flops.total // tokens for path, flops in self.estimator.by_module(moments).items()}
        else:
            parts = summed((path.rpartition(".")[0], count) for path, _, count in self.tensors(name))
        rows = sorted(parts.items(), key=lambda row: -row[1])
        left = sum(count for _, count in rows[ROWS:])
        shown = [*rows[:ROWS], *([(f"{len(rows) - ROWS} more", left)] if left else [])]
        wide = max([WIDTH, *(len(path) for path, _ in shown)])
        for path, count in shown:
            yield f"{path or 'the model itself':<{wide}} {count:>18,} {count / max(whole, 1):>6.1%}"

    # causes

    def causes(self, name: str, text: str) -> Iterator[str]:
        """Yield what would turn the figure ``name`` into the stated one: a flag, a group of parameters, or other rules."""
        for size in self.model.spec.sizes:
            if size.kind == "flag":
                value = not self.estimator.sizes[size.name.text]
                config = deepcopy(dict(self.config))
                put(config, size.keys, value)
                if self.would_be(name, text, replace(self, config=config)):
                    yield f"{size.keys[0]}: {str(value).lower()}"
        yield from self.rules(text) if name == "flops_per_token" else self.groups(name, text)

    @staticmethod
    def would_be(name: str, text: str, other: Sized) -> bool:
        """Whether the figure ``name`` of ``other`` is the stated one; False if its config or rules do not fit."""
        try:
            return agrees(text, other.figure(name))
        except SymflopsError:
            return False

    def rules(self, text: str) -> Iterator[str]:
        """Yield regimes and shipped conventions under which FLOPs per token are as stated."""
        for regime in REGIMES:
            for convention in pages("conventions"):
                if self.would_be("flops_per_token", text, replace(self, regime=regime, convention=convention)):
                    yield f"regime: {regime}, convention: {convention}"

    def groups(self, name: str, text: str) -> Iterator[str]:
        """Yield the parameters without which, or with which twice, the figure is as stated; then biases that linears lack."""
        value, groups = self.figure(name), dict[str, int]()
        for path, kind, count in sorted(self.tensors(name), key=lambda tensor: tensor[1] != "embedding"):
            parts = path.split(".")
            modules = [".".join(parts[:end]) for end in range(1, len(parts)) if parts[end] != "*"]
            kinds = [f"all parameters of {kind}"] if "norm" in kind else []
            for group in (*kinds, *(["all biases"] if parts[-1] == "bias" else []), *modules, path):
                groups[group] = groups.get(group, 0) + count
        first = {count: group for group, count in reversed(groups.items())}  # of equal groups, the outermost
        alone = {group: count for group, count in groups.items() if first[count] == group}
        yield from (f"no {group}" for group, count in alone.items() if agrees(text, value - count))
        yield from (f"{group} twice" for group, count in alone.items() if agrees(text, value + count))
        if (biases := self.biases(name)) and agrees(text, value + biases):
            yield "a bias in every linear"

    @cached_property
    def readers(self) -> dict[str, tuple[str, Fraction, Fraction]]:
        """Map each parameter to its operator's kind, the share of it that one token uses, and its last dimension."""
        derivation, found = self.model.derivation(self.regime, config=self.config), {}
        for entry, operator, _ in first_readers(derivation):
            part = self.number(share(derivation.graph, operator, "routed"))
            found[str(entry.parameter.path)] = operator.kind, part, self.number(entry.parameter.shape[-1])
        return found

    def number(self, expression: Any) -> Fraction:
        """Evaluate an expression of sizes; 1 if it depends on anything else."""
        known = expression.subs({letter: self.estimator.sizes.get(letter.name) for letter in expression.free_symbols})
        return Fraction(str(known)) if known.is_Rational else Fraction(1)

    def tensors(self, name: str) -> Iterator[tuple[str, str, int]]:
        """Yield (path, kind of operator, elements) of each parameter; of ``active`` ones, those that one token uses."""
        for path, count in self.estimator.tensors().items():
            kind, part, _ = self.readers[path]
            if count:
                yield path, kind, int(count * part) if name == "active" else count

    def biases(self, name: str) -> int:
        """Count the elements of a bias in each linear that has none."""
        weights = {path: count for path, kind, count in self.tensors(name) if kind == "linear" and path.endswith(".weight")}
        known = self.estimator.tensors()
        lacking = {path: count for path, count in weights.items() if not known.get(f"{path.removesuffix('weight')}bias")}
        return sum(int(count / self.readers[path][2]) for path, count in lacking.items())
