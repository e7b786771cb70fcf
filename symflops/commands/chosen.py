"""Which regimes and conventions generated files have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from symflops.api import CONVENTIONS, Model, convention_of
from symflops.catalog.comparison import UNFIT
from symflops.catalog.library import pages
from symflops.compiler import Goal, NeedsSizeError
from symflops.diagnostics.findings import SpecError

BAKED = ("full", "forward", "lora", "checkpointed")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The regimes and conventions of generated files; without one, those that a library stores."""

    regimes: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()

    def regimes_of(self, model: Model, variant: str = "") -> list[str]:
        """The regimes of a spec."""
        return list(self.regimes) or baked(model, variant)

    def stored(self, model: Model, variant: str = "") -> tuple[str, ...]:
        """The conventions of the program of a spec; that of a structure which its config decides has those of modules."""
        try:
            model.compiled(Goal.GRAPH, variant=variant)
        except NeedsSizeError:
            return self.shown
        return self.shown if variant else self.conventions or (*CONVENTIONS, *stored())

    @property
    def shown(self) -> tuple[str, ...]:
        """The conventions of modules and pages."""
        return self.conventions or CONVENTIONS


@cache
def stored() -> tuple[str, ...]:
    """The shipped conventions that the programs of a library store beside the first two, as their pages say."""
    return tuple(name for name in pages("conventions") if name not in CONVENTIONS and convention_of(name).stored)


ALL = Chosen()


def baked(model: Model, variant: str = "") -> list[str]:
    """The regimes in generated files: all of ``BAKED`` that fit the model and leave as many sizes symbolic as the first."""
    config: dict[str, Any] | None = None
    found: list[str] = []
    for regime in BAKED:
        try:
            model.compiled(Goal.DERIVATION, [regime], config=config, variant=variant)
        except NeedsSizeError:
            if found:
                continue
            config = {}  # the structure that the defaults have
            model.compiled(Goal.DERIVATION, [regime], config=config, variant=variant)
        except SpecError as error:
            if not found or any(diagnostic.code not in UNFIT for diagnostic in error.diagnostics):
                raise
            continue
        found.append(regime)
    return found
