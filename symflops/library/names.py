"""One table of names for commands, functions and pages, and the model that a name or an object stands for.

Names are those of specs, classes, pipelines, variants (``sdxl``, ``resnet/18``), published models and repositories; case, dots,
hyphens and underscores make no difference. A path that exists wins over a name.
"""

from __future__ import annotations

import os
import re

from symflops.evaluate.classes import class_name
from symflops.evaluate.config import as_json, put
from symflops.evaluate.stored import Stored, has
from symflops.library.catalog import Catalog, UnknownModelError, assumed, attributes, catalogs
from symflops.library.configs import CONFIGS
from symflops.library.lookup import by_config, read_config
from symflops.support.errors import SymflopsError, close_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

IGNORED = dict.fromkeys(map(ord, "._- "))
BETWEEN = re.compile(r"(?<=\d)[._ -]+(?=\d)")
DEFAULTS = "class defaults"
LISTS = "'symflops list' shows all, 'symflops list models' the published ones"
MOST, EXAMPLES = 5, 4
"""How many names an error suggests, and how many published models a note names."""


class Named:
    """Result of resolving a word: a spec, and the config or config fields that the word implies.

    ``whole`` is True if ``config`` is complete, ``defaults`` if the word stands for the defaults of a class. ``note`` is a
    message for the user, and ``asked`` the name for headings with what it stands for in brackets; it is empty for a config.
    """

    def __init__(
        self,
        spec: str,
        config: Mapping[str, Any] | None = None,
        whole: bool = False,
        note: str = "",
        defaults: bool = False,
        asked: str = "",
    ) -> None:
        self.spec, self.config, self.whole, self.note = spec, as_json(config or {}), whole, note
        self.defaults, self.asked = defaults, asked

    def called(self, given: bool) -> str:
        """The name for headings; with a config that is ``given`` beside the word, without what the word alone stands for."""
        return (self.asked.partition(" (")[0] if given else self.asked) or self.spec


class Entry:
    """Row of the table: all names of one thing, the first one for headings, and the catalog and spec that have it."""

    __slots__ = ("catalog", "names", "spec", "thing")

    def __init__(self, names: tuple[str, ...], catalog: Catalog, spec: str, thing: Any = None) -> None:
        self.names, self.catalog, self.spec, self.thing = names, catalog, spec, thing


def key(name: str) -> str:
    """Reduce a name to lower case for comparison; dots, hyphens, underscores and spaces count only between two digits.

    >>> key("Llama-3.1_8B"), key("opt-1.3b"), key("OPT 13B")
    ('llama3/1/8b', 'opt1/3b', 'opt13b')
    """
    return BETWEEN.sub("/", name.lower()).translate(IGNORED)


def named(word: str, lenient: bool = False) -> Named:
    """Resolve a path, or the name of a spec, class, pipeline, variant, published model or repository.

    Kinds are tried in this order for exactly this name, then in the opposite order for one with the same :func:`key`.
    ``lenient`` is that of :func:`by_config`, for a config.

    Raises:
        UnknownModelError: nothing has this name, or several variants or models have it.
        SymflopsError: the config at the path cannot be read.
    """
    if word.endswith((".yaml", ".yml")):
        return Named(word)
    if is_config(word):
        config = read_config(word)
        return Named(by_config(config, lenient)[1], config, True)
    found, plain = catalogs(), key(word)
    exactly, kinds = (lambda name: name == word), list(KINDS.values())
    for fits, order in ((exactly, kinds), (lambda name: key(name) == plain, kinds[::-1])):
        for entries, resolved in order:
            rows = [entry for entry in entries(found) if any(map(fits, entry.names))]
            if rows:
                made = resolved(word, rows)
                return headed(made, next(filter(fits, rows[0].names)))
    if begun := [(entry, name) for entry in (*repositories_in(found), *models_in(found)) for name in begun_by(plain, entry)]:
        model, name = begun[0]
        if len({model_of(entry) for entry, _ in begun}) == 1:
            made = headed(of_model(word, [entry for entry in models_in(found) if model_of(model) in entry.names]), name)
            made.note = f"'{word}' is read as {name}"
            return made
    others = assumed().specs
    if (own := word.removeprefix("assumed/")) in others:
        return Named(word, asked=own)
    if os.path.isdir(word):
        raise UnknownModelError(f"the folder '{word}' has no {' or '.join(CONFIGS)}")
    if word.startswith((".", os.sep)):
        raise UnknownModelError(f"there is no file or folder '{word}'")
    raise UnknownModelError(f"there is no spec '{word}': {suggestion(word, [*every_name(found), *others])}")


def headed(made: Named, name: str) -> Named:
    """Set the name for headings of a resolved word."""
    made.asked = f"{name} ({DEFAULTS if made.defaults else made.spec})"
    return made


def begun_by(plain: str, entry: Entry) -> Iterator[str]:
    """Yield the names of an entry of which a part before a hyphen, underscore or dot has the key ``plain``."""
    for name in entry.names:
        if any(key(name[:place]) == plain for place, mark in enumerate(name) if mark in "-_."):
            yield name


def model_of(entry: Entry) -> str:
    """The published model, as ``spec/name``, of its entry or of a repository's."""
    return entry.thing if isinstance(entry.thing, str) else entry.names[1]


def is_config(word: str) -> bool:
    """Whether a word is the text of a JSON object, the path of a file or of a folder with a config, or ends in ``.json``."""
    if word.lstrip().startswith("{") or word.endswith(".json") or (os.path.exists(word) and not os.path.isdir(word)):
        return True
    return any(os.path.isfile(os.path.join(word, name)) for name in CONFIGS)


def specs_in(found: list[Catalog]) -> Iterator[Entry]:
    """Yield an entry per spec."""
    yield from (Entry((name,), catalog, name) for catalog in found for name in catalog.specs)


def classes_in(found: list[Catalog]) -> Iterator[Entry]:
    """Yield an entry per class that a spec describes; its thing is the reference."""
    for entry in specs_in(found):
        references = entry.catalog.specs[entry.spec]["references"]
        yield from (Entry((class_name(one), one), entry.catalog, entry.spec, one) for one in references)


def pipelines_in(found: list[Catalog]) -> Iterator[Entry]:
    """Yield an entry per pipeline and spec of one of its models."""
    for entry in specs_in(found):
        yield from (Entry((one,), entry.catalog, entry.spec) for one in entry.catalog.specs[entry.spec]["pipelines"])


def variants_in(found: list[Catalog]) -> Iterator[Entry]:
    """Yield an entry per variant; its thing is the name of the variant in its spec."""
    for entry in specs_in(found):
        name, others = entry.spec, entry.catalog.specs[entry.spec].get("structures", {})
        yield from (
            Entry((f"{name}/{one}", f"{name}_{one}", one), entry.catalog, name, one) for one in others if one != "default"
        )


def models_in(found: list[Catalog]) -> Iterator[Entry]:
    """Yield an entry per published model; its thing is the row with the config."""
    for catalog in found:
        for name, short, row in catalog.models():
            yield Entry((short, f"{name}/{short}", f"{name}-{short}"), catalog, name, row)


def repositories_in(found: list[Catalog]) -> Iterator[Entry]:
    """Yield an entry per repository of checkpoints; its thing is the published model."""
    for catalog in found:
        for name, row in catalog.repositories().items():
            names = (name, *row.get("also", ()))
            yield Entry(
                (*names, *(one.rpartition("/")[2] for one in names)), catalog, row["model"].partition("/")[0], row["model"]
            )


def of_spec(_: str, rows: list[Entry]) -> Named:
    """Resolve a word to the defaults of a spec."""
    catalog, name = rows[0].catalog, rows[0].spec
    first = next(map(class_name, catalog.specs[name]["references"]), f"the spec '{name}'")
    return Named(name, note=of_defaults(rows[0], first), defaults=True)


def of_class_word(_: str, rows: list[Entry]) -> Named:
    """Resolve a word to the defaults of a class."""
    return Named(rows[0].spec, of_class(rows[0].thing), note=of_defaults(rows[0], rows[0].names[0]), defaults=True)


def of_defaults(entry: Entry, first: str) -> str:
    """Say that sizes are the defaults of the class ``first``, and name published models of the same spec."""
    models = dict.fromkeys(one.names[0] for one in models_in([entry.catalog]) if one.spec == entry.spec)
    known = [name for name in models if name != "default"]
    more = f" and {len(known) - EXAMPLES} more, see 'symflops list models {entry.spec}'" if len(known) > EXAMPLES else ""
    told = f"published models: {', '.join(known[:EXAMPLES])}{more}" if known else "give a config for those of a model"
    return f"all sizes are the defaults of {first}; {told}"


def of_pipeline(_: str, rows: list[Entry]) -> Named:
    """Resolve a word to the denoising model of a pipeline; a note names its other models."""
    pipeline = rows[0].names[0]
    name = by_config({"_class_name": pipeline})[1]
    beside = ", ".join(row.spec for row in rows if row.spec != name)
    notes = [f"'{pipeline}' runs {beside} beside {name}, which is counted"] if beside else []
    own = [of_spec(name, [row]).note for row in rows if row.spec == name]
    return Named(name, note="; ".join([*notes, *own]), defaults=True)


def of_variant_word(word: str, rows: list[Entry]) -> Named:
    """Resolve a word to the only variant that has this name.

    If exactly one of several specs has pipelines that are no proper subset of another's, its variant is the one.
    """
    fits = [row for row in rows if key(word) in map(key, row.names[:2])] or rows
    held = [set(row.catalog.specs[row.spec]["pipelines"]) for row in fits]
    main = [row for row, own in zip(fits, held, strict=True) if own and not any(own < other for other in held)]
    row = only(word, "variant", main if len(main) == 1 else fits)
    return of_variant(row.catalog, row.spec, row.thing)


def of_model(word: str, rows: list[Entry]) -> Named:
    """Resolve a word to the only published model that has this name."""
    row = only(word, "published model", rows)
    return Named(row.spec, row.thing["config"] | of_class(row.thing["reference"]), True)


def of_repository(word: str, rows: list[Entry]) -> Named:
    """Resolve a word to the published model of a repository."""
    row = rows[0] if len({row.thing for row in rows}) == 1 else only(word, "repository", rows)
    return of_model(row.thing, [entry for entry in models_in([row.catalog]) if row.thing in entry.names])


KINDS: dict[str, tuple[Callable[[list[Catalog]], Iterable[Entry]], Callable[[str, list[Entry]], Named]]] = {
    "spec": (specs_in, of_spec),
    "class": (classes_in, of_class_word),
    "pipeline": (pipelines_in, of_pipeline),
    "variant": (variants_in, of_variant_word),
    "published model": (models_in, of_model),
    "repository": (repositories_in, of_repository),
}
"""Kind of thing -> its entries in the table, and what a word for it resolves to."""


def only(word: str, kind: str, rows: list[Entry]) -> Entry:
    """Return the only row; ``word`` and ``kind`` are for the error.

    Raises:
        UnknownModelError: there are several rows.
    """
    names = list(dict.fromkeys(max(row.names, key=lambda name: "/" in name) for row in rows))
    if len(names) > 1:
        raise UnknownModelError(f"'{word}' is a {kind} of several specs: {', '.join(names)}")
    return rows[0]


def every_name(found: list[Catalog]) -> Iterator[str]:
    """Yield every name of the table, the shortest one of each thing that is not a class by its path."""
    for kind, (entries, _) in KINDS.items():
        for entry in entries(found):
            yield entry.names[-1 if kind in ("variant", "repository") else 0]
            if kind == "repository":
                yield entry.names[0]


def suggestion(word: str, known: Iterable[str], otherwise: str = LISTS) -> str:
    """The hint ``did you mean ...?``: names with the word or all of its parts, else names like it, else ``otherwise``."""
    plain, own, names = key(word), key(word.rpartition("/")[2]), list(dict.fromkeys(known))
    parts = [key(part) for part in word.replace("-", " ").replace("_", " ").replace("/", " ").split()]
    holding = [name for name in names if plain in key(name)] or [
        name for name in names if all(part in key(name) for part in parts)
    ]
    keys = {key(name): name for name in reversed(names)}
    start = max((one for one in keys if own.startswith(one)), key=len, default="")  # such as the spec of another size
    alike = dict.fromkeys([*filter(None, [start]), *close_to(plain, list(keys), MOST, 0.6)])
    near = sorted(holding, key=len) or [keys[one] for one in alike]
    if not near or not plain:
        return otherwise
    return f"did you mean {' or '.join(map(repr, near[:MOST]))}?"


def of_class(reference: str) -> dict[str, Any]:
    """Return the config field and value that name a class, in the form of its library."""
    name = class_name(reference)
    return {"_class_name": name} if reference.startswith("diffusers.") else {"architectures": [name]}


def of_variant(catalog: Catalog, name: str, variant: str) -> Named:
    """Resolve a variant to the only measured model of its structure, else to its structure with defaults."""
    structure, asked = catalog.specs[name]["structures"][variant], f"{name}/{variant}"
    if catalog.shipped and not catalog.changed(name):
        stored = Stored(catalog.program(name, variant))
        rows = [row for row in models_in([catalog]) if row.spec == name and "batch" in row.thing]
        alike = [row for row in rows if fits(stored, row.thing["config"], structure)]
        if len(alike) == 1:
            return of_model(asked, alike)
    first = next(map(class_name, catalog.specs[name]["references"]), name)
    told = f"'{asked}' fixes {', '.join(structure)}; all other sizes are the defaults of {first}"
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
            put(found, row["keys"], as_json(fixed[row["letter"]]))
    return found
