"""Resolves SPEC on the command line: a spec, class, pipeline, variant, published model, or the path of a config."""

from __future__ import annotations

import os

from symflops.evaluate.classes import class_name
from symflops.evaluate.config import as_json, put
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.stored import Stored, has
from symflops.library.catalog import UnknownModelError, assumed, attributes, catalogs
from symflops.library.lookup import by_config, config_of, interpreter, read_config, warn
from symflops.support.errors import SymflopsError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from symflops.library.catalog import Catalog

PUBLISHED = "pub-"
"""Prefix of the names of published models among the records."""


class Named:
    """Result of resolving a word: a spec, and the config or config fields that the word implies.

    ``whole`` is True if ``config`` is complete, ``own`` if it was read from a path. ``note`` is a message for the user.
    """

    def __init__(
        self, spec: str, config: Mapping[str, Any] | None = None, whole: bool = False, note: str = "", own: bool = False
    ) -> None:
        self.spec, self.config, self.whole, self.note, self.own = spec, dict(config or {}), whole, note, own


def named(word: str, lenient: bool = False) -> Named:
    """Resolve a spec, path, class, pipeline, variant (``sdxl``, ``resnet/18``) or published model.

    Kinds are tried in this order. ``lenient`` is that of :func:`by_config`, for a config at a path.

    Raises:
        UnknownModelError: nothing has this name, or several variants or models have it.
        SymflopsError: the config at the path cannot be read.
    """
    if word.endswith((".yaml", ".yml")):
        return Named(word)
    found = catalogs()
    if any(word in catalog.specs for catalog in found):
        return Named(word)
    if os.path.isdir(word) or (word.endswith(".json") and os.path.isfile(word)):
        config = read_config(word)
        return Named(by_config(config, lenient)[1], config, True, own=True)
    for catalog in found:
        for name, entry in catalog.specs.items():
            for reference in entry["references"]:
                if word in (reference, class_name(reference)):
                    return Named(name, of_class(reference))
    holders = [name for catalog in found for name, entry in catalog.specs.items() if word in entry["pipelines"]]
    if holders:
        name = by_config({"_class_name": word})[1]
        beside = ", ".join(other for other in holders if other != name)
        return Named(name, note=f"'{word}' runs {beside} beside {name}, which is counted" if beside else "")
    variants = list(variants_called(word, found))
    if variants:
        return of_variant(word, *only(word, "variant", variants))
    models = ((catalog, name, model) for catalog in found for name, model in published_in(catalog))
    published = [row for row in models if word in (short := row[2]["name"].removeprefix(PUBLISHED), f"{row[1]}/{short}")]
    if published:
        _, name, model = only(word, "published model", published)
        return Named(name, model["config"] | of_class(model["reference"]), True)
    others = assumed().specs
    if word.removeprefix("assumed/") in others:
        return Named(word)
    known = [name for catalog in found for name in (*catalog.specs, *classes(catalog.specs))]
    raise UnknownModelError(f"there is no spec '{word}': {did_you_mean(word, [*known, *others], 'symflops list shows all')}")


def only(word: str, kind: str, rows: list[tuple[Catalog, str, Any]]) -> tuple[Catalog, str, Any]:
    """Return the only row (catalog, spec, variant or model); ``word`` and ``kind`` are for the error.

    Raises:
        UnknownModelError: there are several rows.
    """
    if len(rows) > 1:
        names = [f"{name}/{what if isinstance(what, str) else what['name'].removeprefix(PUBLISHED)}" for _, name, what in rows]
        raise UnknownModelError(f"'{word}' is a {kind} of several specs: {', '.join(names)}")
    return rows[0]


def published_in(catalog: Catalog) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name of a spec, published model of it), for models with a measurement, as dicts."""
    for name, models in catalog.published().items():
        yield from ((name, model) for model in models if model["name"].startswith(PUBLISHED))


def classes(specs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Iterate over the names of the classes that specs describe."""
    return (class_name(reference) for entry in specs.values() for reference in entry["references"])


def of_class(reference: str) -> dict[str, Any]:
    """Return the config field and value that name a class, in the form of its library."""
    name = class_name(reference)
    return {"_class_name": name} if reference.startswith("diffusers.") else {"architectures": [name]}


def variants_called(word: str, found: list[Catalog]) -> Iterator[tuple[Catalog, str, str]]:
    """Yield (catalog, spec, variant) for the variants called ``word``, with or without the spec's name.

    If exactly one of their specs has pipelines that are no proper subset of another's, only its variant is yielded.
    """
    rows = [
        (catalog, name, variant)
        for catalog in found
        for name, entry in catalog.specs.items()
        for variant in entry.get("structures", {})
        if variant != "default"
    ]
    whole = [row for row in rows if word in (f"{row[1]}_{row[2]}", f"{row[1]}/{row[2]}")]
    fits = whole or [row for row in rows if row[2] == word]
    held = [set(catalog.specs[name]["pipelines"]) for catalog, name, _ in fits]
    main = [row for row, own in zip(fits, held, strict=True) if own and not any(own < other for other in held)]
    yield from main if len(main) == 1 else fits


def of_variant(word: str, catalog: Catalog, name: str, variant: str) -> Named:
    """Resolve a variant to the only published model of its structure, else to its structure with defaults."""
    structure = catalog.specs[name]["structures"][variant]
    if catalog.shipped and not catalog.changed(name):
        stored = Stored(catalog.program(name, variant))
        alike = [model for spec, model in published_in(catalog) if spec == name and fits(stored, model["config"], structure)]
        if len(alike) == 1:
            return Named(name, alike[0]["config"] | of_class(alike[0]["reference"]), True)
    first = next(map(class_name, catalog.specs[name]["references"]), name)
    told = f"'{word}' fixes {', '.join(structure)}; all other sizes are the defaults of {first}"
    return Named(name, config_of_variant(catalog, name, variant), True, told)


def fits(stored: Stored, config: Mapping[str, Any], structure: Mapping[str, str]) -> bool:
    """Whether sizes of a config have the values in ``structure``; False if its sizes cannot be read."""
    try:
        return has(attributes(stored, config), structure)
    except SymflopsError:
        return False


def config_of_variant(catalog: Catalog, name: str, variant: str) -> dict[str, Any]:
    """Return the config fields, with values, that determine the structure of a variant."""
    if not catalog.shipped or catalog.changed(name):
        from symflops.api import load

        return load(catalog.file(name)).variants[variant]
    stored = Stored(catalog.program(name, variant))
    fixed = dict(stored.fixed)
    found: dict[str, Any] = {}
    for row in stored.document["fields"]:
        if row["letter"] in fixed:
            put(found, row["keys"][0], as_json(fixed[row["letter"]]))
    return found


def resolve(args: Any) -> str:
    """Replace SPEC arguments of a command by names of specs, and set the config that they imply.

    Changes ``args`` in place, and sets ``args.given`` to whether the user supplied a config. Returns a note for the user, or
    an empty text.

    Raises:
        SymflopsError: as :func:`named`; or a config is given twice.
    """
    if isinstance(getattr(args, "specs", None), list):
        args.specs = [named(word).spec for word in args.specs]
    lenient = getattr(args, "lenient", False)
    if lenient and not args.spec and args.config:
        args.spec = by_config(read_config(args.config), lenient)[1]
    if not isinstance(getattr(args, "spec", None), str):
        return ""
    word, found = args.spec, named(args.spec, lenient)
    args.spec = found.spec
    if not found.config or not hasattr(args, "config"):
        return ""
    if args.config and found.whole:
        raise SymflopsError(f"'{word}' is a config already: leave out --config, or name '{args.spec}' with it")
    args.given = bool(args.config) or found.own
    args.config = {**(read_config(args.config) if args.config else {}), **found.config}
    return found.note


def estimator_of(
    model: Any, config: Any = None, regime: str | None = None, convention: str | None = None
) -> InterpretedEstimator:
    """Create an estimator from a word (see :func:`named`), a config, a loaded spec, or an estimator.

    Raises:
        SymflopsError: as :func:`symflops.estimate`.
    """
    if isinstance(model, InterpretedEstimator):
        wanted = (regime or model.regime, convention or model.convention)
        same = wanted == (model.regime, model.convention)
        return model if same else interpreter(model.name, model.config, *wanted)
    regime, convention = regime or "full", convention or "symflops"
    given = {} if config is None else config_of(config)
    if hasattr(model, "spec") and hasattr(model, "estimator"):  # a symflops.Model, whose type imports sympy
        return model.estimator(given, regime, convention)  # type: ignore[no-any-return]
    if not isinstance(model, (str, os.PathLike)):
        given = config_of(model)
        return interpreter(by_config(given)[1], given, regime, convention)
    found = named(os.fspath(model))
    if found.note:
        warn(found.note, 4)
    return interpreter(found.spec, given | found.config, regime, convention)
