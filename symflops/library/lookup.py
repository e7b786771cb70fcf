"""Finds the program of a model by its name or config. Imports neither sympy nor YAML."""

from __future__ import annotations

import os.path

from symflops.evaluate import evidence
from symflops.evaluate.classes import class_in, class_name, without_pipeline
from symflops.evaluate.estimate import Estimate
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.moments import per_token, tokens_of
from symflops.evaluate.stored import Stored
from symflops.evaluate.unread import check_numbers, check_unread
from symflops.library.catalog import PACKAGE, Catalog, UnknownModelError, by_name, catalogs
from symflops.library.configs import config_of, read_config, spec_of
from symflops.library.pipelines import notes
from symflops.support.errors import SymflopsError, shown
from symflops.support.reading import read_bytes, what_counts

__all__ = [
    "Catalog", "UnknownModelError", "by_config", "by_name", "catalogs", "class_name", "config_of", "described", "estimator",
    "interpreted", "interpreter", "read_config", "result",
]  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def by_config(config: Any, lenient: bool = False) -> tuple[Catalog, str]:
    """Find the catalog and spec that describe the model of ``config``.

    A config without a class may come from another library with other field names. Unless ``lenient``, it is refused if it has
    a number that neither the spec nor its class reads.

    Raises:
        UnknownModelError: no spec matches, or several do; the message has the names in the config and the nearest specs.
        ConfigError: the config has a number that nothing reads.
    """
    config = config_of(config)
    catalog, name = spec_of(config)
    if not (lenient or class_in(config)):
        stored = catalog.shipped and not catalog.changed(name)
        found = catalog.program(name) if stored else program(catalog, name, config, "full", "symflops", lambda text: None)[0]
        check_numbers(Stored(found), config)
    return catalog, name


def described(field: str) -> set[str]:
    """Collect the entries of all specs in ``field``: ``model_types``, ``pipelines`` or ``references``."""
    return {word for catalog in catalogs() for entry in catalog.specs.values() for word in entry[field]}


def estimator(
    catalog: Catalog,
    name: str,
    config: Mapping[str, Any],
    regime: str = "full",
    convention: str = "symflops",
    tell: Callable[[str], object] | None = None,
) -> tuple[Any, InterpretedEstimator]:
    """Create the estimator of a spec, or of the variant that fits a config; returns (source, estimator).

    The source is the generated module if the shipped catalog has one, else the JSON object of the interpreted program. If the
    spec is local, or no stored program has the config's structure, regime and convention, the program is derived and cached,
    and ``tell`` receives a message (default: a warning).

    Raises:
        SymflopsError: the spec is not valid, the config does not fit, or there is no such regime or convention.
    """
    found = interpreted(catalog, name, config, regime, convention, tell)
    if catalog.shipped:
        name = name.removeprefix("assumed/")
        variant, stored = catalog.of_structure(name, without_pipeline(config_of(config), catalog.specs[name]["pipelines"]))
        if variant is not None and stores(stored, regime, convention):
            module = catalog.module(name, variant)
            if convention in module.CONVENTIONS:
                found.longest = module.Estimator.longest
                return module, found
    return found.stored.document, found


def interpreted(
    catalog: Catalog,
    name: str,
    config: Mapping[str, Any],
    regime: str = "full",
    convention: Any = "symflops",
    tell: Callable[[str], object] | None = None,
    strict: bool = False,
) -> InterpretedEstimator:
    """Create the estimator that interprets a config's program, which is derived and cached if missing.

    ``convention`` is a name, a path, or a convention object.

    Raises:
        SymflopsError: as :func:`estimator`; or, if ``strict``, the config has a key that neither the spec nor the class knows.
    """
    name, asked = name.removeprefix("assumed/"), regime
    config = without_pipeline(config_of(config), catalog.specs[name]["pipelines"])
    if is_file(regime, convention):
        from symflops.api import load

        model = load(catalog.file(name)).estimator(config, regime, convention)
    else:
        found, regime, convention = program(catalog, name, config, regime, convention, tell or warn)
        model = InterpretedEstimator(found, config, regime=regime, convention=convention)
    if strict:
        check_unread(model.stored, config, strict)
    lines, document = model.unread, model.stored.document
    if lines and (document.get("census") or not document["references"]):  # if all keys that the classes read are known
        more = f", and of {len(lines) - 1} more keys" if len(lines) > 1 else ""
        (tell or (lambda text: warn(text, 5)))(shown(lines[0]) + more)
    model.measured = catalog.measured(name, asked)
    return model


def left_to_class(catalog: Catalog, name: str, config: Mapping[str, Any]) -> list[str]:
    """List a message for each layer count that a config omits, so that the class's default counts."""
    config = without_pipeline(config_of(config), catalog.specs[name]["pipelines"])
    _, program = catalog.of_structure(name, config)
    return list(evidence.left_to_class(Stored(program), config)) if program else []


def interpreter(
    spec: str, config: Mapping[str, Any], regime: str = "full", convention: str = "symflops"
) -> InterpretedEstimator:
    """Create the estimator that interprets the program of a spec, given by name or path.

    Raises:
        SymflopsError: as :func:`estimator`.
    """
    if is_file(spec):
        from symflops.api import load

        return load(spec).estimator(config_of(config), regime, convention)
    return interpreted(by_name(spec), spec, config, regime, convention, lambda text: None)


def program(
    catalog: Catalog, name: str, config: Mapping[str, Any], regime: str, convention: str, tell: Callable[[str], object]
) -> tuple[dict[str, Any], str, str]:
    """Find the stored or cached program of a config, or derive it: (program, its regime, its convention), both by name."""
    variant, found = catalog.of_structure(name, config)
    if variant is not None and stores(found, regime, convention):
        return found, regime, convention
    from symflops.library.cache import Entries, cached

    named = "the module's regime" if regime.startswith("{") else f"regime '{regime}'"
    reason = "has its structure" if variant is None else f"knows {named} and convention '{convention}'"
    prefix = f"no stored program of '{name}' {reason}" if found else f"'{name}' of {catalog.file(name).root}"
    entries = Entries(catalog.file(name), regime, convention, class_in(config))
    found = cached(entries, config, lambda text: tell(f"{prefix}: {text}"))
    return found, found["regimes"][0]["name"], found["conventions"][0]


def stores(program: Mapping[str, Any], regime: str, convention: str) -> bool:
    """Whether a stored program has a regime and a convention, and the convention's file is unchanged."""
    named = convention in program["conventions"] and any(row["name"] == regime for row in program["regimes"])
    return named and is_current(convention, dict(program.get("pages", ())).get(convention))


def is_current(convention: str, known: str | None) -> bool:
    """Whether the convention's file exists and, unless ``known`` is None, has the digest ``known``."""
    try:  # not hashlib: its OpenSSL import takes a quarter of an interpreter's start
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256
    try:
        text = read_bytes(os.path.join(PACKAGE, "conventions", f"{convention}.yaml"))
    except SymflopsError:
        return False
    return known in (None, sha256(what_counts(text)).hexdigest())


def is_file(*names: object) -> bool:
    """Whether one of ``names`` is an object or a YAML path; results for these are not cached."""
    return any(not isinstance(name, str) or ".yaml" in name or ".yml" in name for name in names)


def warn(text: str, level: int = 7) -> None:
    """Warn the caller of a public function, ``level`` calls above."""
    import warnings

    warnings.warn(shown(text), stacklevel=level)


def result(model: InterpretedEstimator, batch: Mapping[str, Any]) -> Estimate:
    """Build the JSON object of an estimate: figures of one step on ``batch``, in the unit of the convention."""
    m = model.moments(batch)
    tokens, total = tokens_of(model.stored, model.regime, model.sizes, m), model.total(m)
    found = Estimate({
        "schema": 1,
        "spec": model.name,
        "variant": model.variant,
        "convention": model.convention,
        "regime": model.regime,
        "unit": model.unit,
        "parameters": model.parameters,
        "parameters_active": model.parameters_active,
        "trainable_parameters": model.trainable_parameters,
        "forward": model.forward(m),
        "backward": model.backward(m),
        "recomputed": model.recomputed(m),
        "total": total,
        "tokens": tokens,
        "flops_per_token": per_token(total, tokens),
        "moments": m.as_dict(),
        "notes": [*model.notes(batch), *notes(model, batch)],
        "evidence": model.evidence,
    })  # fmt: skip
    found.asked = model.asked
    return found
