"""The closed forms of a named model, from a stored program if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symflops.api import load
from symflops.catalog.lookup import by_name, config_of, is_file, program
from symflops.emit.closed_forms import Derived
from symflops.model.serialise import program_of


def closed_forms(spec: str, config: Mapping[str, Any], regime: str, convention: str) -> Derived:
    """The closed forms of a config, from the program that an estimate interprets, or from a spec given by its path.

    Raises:
        SymflopsError: as :func:`symflops.catalog.lookup.estimator`.
    """
    config = config_of(config)
    catalog = None if is_file(spec) else by_name(spec)
    if catalog is None or is_file(regime, convention):
        return load(catalog.file(spec) if catalog else spec).derive(regime, convention, config)
    found, regime, convention = program(catalog, spec, config, regime, convention, lambda text: None)
    made = program_of(found)
    return Derived(made, made.case(regime, convention))
