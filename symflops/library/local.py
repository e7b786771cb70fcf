"""Reads the headers of local specs (``./specs``), which are untrusted data.

A lookup needs the header of each spec: its name, classes, model types, pipelines and streams. Headers are read from YAML and
cached by the digests of their sources. Files below ``./generated`` are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from symflops.formula.identifiers import IDENTIFIER
from symflops.library.cache import keep, kept, place
from symflops.read.spec_files import SpecFile, changed_blocks, specs_in
from symflops.support.errors import SymflopsError
from symflops.support.files import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symflops.ir.spec import Spec
    from symflops.support.findings import Source

MOST_SPECS, MOST_BYTES = 400, 8_000_000
"""The limits on ``./specs``, several times the size of the shipped library."""
NAMES = {"reference": "references", "model_type": "model_types", "pipelines": "pipelines"}
"""Field of a spec that names models -> field of a catalog."""
NAMING = re.compile(rf"^({'|'.join(NAMES)})[ \t]*:(.*(?:\n(?![A-Za-z_]).*)*)", re.MULTILINE)
"""Matches the fields that name models in a spec that is not valid YAML."""


def local_specs(
    folder: str, groups: str = "*", known: Collection[str] = ()
) -> tuple[dict[str, SpecFile], dict[str, dict[str, Any]]]:
    """Return name -> file and name -> header for the specs in ``folder`` whose names are not ``known``.

    ``groups`` is a pattern of subfolders, as in :func:`specs_in`. Copies of shipped specs are omitted, such as those in a
    clone of the repository.

    Raises:
        SymflopsError: there are too many specs or bytes.
    """
    root, files = Path(folder), dict[str, SpecFile]()
    for file in specs_in(root, groups):
        if IDENTIFIER.match(file.name) and file.name not in known:
            files.setdefault(file.name, file)
    if len(files) > MOST_SPECS or sum(file.path.stat().st_size for file in files.values()) > MOST_BYTES:
        raise SymflopsError(f"{root} holds more than {MOST_SPECS:,} specs or {MOST_BYTES:,} bytes: give a spec by its path")
    changed = changed_blocks(root)
    own = {name: row for name, row in _rows(root, files, groups).items() if not files[name].is_copy(row["sources"], changed)}
    return {name: files[name] for name in own}, {name: row["entry"] for name, row in own.items()}


def _rows(root: Path, files: dict[str, SpecFile], groups: str) -> dict[str, Any]:
    """Map each spec to the result of :func:`read`, from the cache if no digest of a source has changed."""
    index = f"specs-{digest(str(root / groups))[:16]}.json"
    try:
        found = kept(place(index))
    except OSError:  # no home folder
        found = None
    known: dict[str, Any] = json.loads(found[1]) if found else {}
    current = {name for name, row in known.items() if name in files and files[name].has(row["sources"])}
    rows = {name: known[name] if name in current else read(file) for name, file in files.items()}
    if rows != known:
        with suppress(OSError):  # without a cache, headers are read again
            keep(place(index), json.dumps(rows, sort_keys=True))
    return rows


def read(file: SpecFile) -> dict[str, Any]:
    """Read a spec: a dict of its header (``entry``) and the digests of its files by path (``sources``).

    The header of a damaged spec has only the names of models.
    """
    from symflops.read.read import read_through

    sources: tuple[Source, ...] = ()
    entry: dict[str, Any] = {"title": "", "streams": {}, "structures": {}}
    try:
        sources = (file.source(),)
        spec = read_through(sources[0], lambda name: None, file.base).spec
    except SymflopsError:  # loading the spec reports the diagnostic
        words = dict(NAMING.findall(sources[0].text)) if sources else {}
        entry |= {name: re.findall(r"[\w.:-]*\w", words.get(key, "")) for key, name in NAMES.items()}
    else:
        sources = spec.sources
        entry = header(spec) | {"references": file.named_by(spec.references)}
    entry |= {"group": file.group, "crc32": crc32(sources[0].text.encode()) if sources else 0}
    return {"entry": entry, "sources": {source.path: digest(source.text) for source in sources}}


def header(spec: Spec) -> dict[str, Any]:
    """Return the header of a spec for a catalog; ``structures`` maps variant -> config field -> value."""
    keys = {size.name.text: size.keys[0] for size in spec.sizes if size.keys}
    return {
        "title": spec.title,
        "model_types": list(spec.model_types),
        "pipelines": list(spec.pipelines),
        "streams": streams(spec),
        "keys": sorted({key.partition(".")[0] for size in spec.sizes for key in size.keys}),
        "structures": {
            variant.name.text: {keys[size.text]: repr(value) for size, value in variant.sizes} for variant in spec.variants
        },
    }


def streams(spec: Spec) -> dict[str, list[str]]:
    """Map each stream that a batch can contain to its lengths, without those of earlier streams."""
    from symflops.formula.expression import names
    from symflops.ir.index_sets import ONCE

    letters = {size.name.text for size in (*spec.sizes, *spec.decided)} | {letter.text for letter, _ in spec.derived}
    found: dict[str, list[str]] = {}
    sets: dict[str, str] = {}
    for stream in (stream for stream in spec.streams if stream.over != ONCE):
        lengths = [name for part in stream.parts for _, length in part.axes for name, _ in names(length)]
        found[stream.name.text] = [name for name in dict.fromkeys(lengths) if name not in letters]
        letters.update(lengths)
        sets[stream.name.text] = stream.over
    measured = {sets[name] for name, lengths in found.items() if lengths}
    counting = {items: name for name, items in reversed(sets.items()) if items not in measured}
    return {name: lengths for name, lengths in found.items() if lengths or counting.get(sets[name]) == name}
