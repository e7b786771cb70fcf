"""Writes ``specs/checkpoints.json`` from the configs of published checkpoints: ``python -m tests.library.checkpoints``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from symflops.evaluate.classes import class_name
from symflops.evaluate.config import as_read
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import Stored
from symflops.library.lookup import by_config
from symflops.library.records.verified import CHECKPOINTS as FILE, published
from symflops.read.spec_files import find_spec, shipped
from tests.verify.test_published_configs import KNOWN, config_of

WRITTEN_ANEW = "the published config.json, its deciding fields written anew"


def kept(program: Stored, config: dict[str, Any]) -> dict[str, Any]:
    """The fields that the spec reads, under the first of their names."""
    read, found = as_read(program.document, config), {}
    for field in program.document["fields"]:
        for key in field["keys"]:
            value: Any = read
            for word in key.split("."):
                value = value.get(word, ...) if isinstance(value, dict) else ...
            if value is not ...:
                place = found
                *outer, last = key.split(".")
                for word in outer:
                    place = place.setdefault(word, {})
                place[last] = value
    return found


def rows() -> dict[str, list[dict[str, Any]]]:
    """The checkpoints of each spec; those with the sizes of a measured model are left out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in sorted(KNOWN):
        config = config_of(name)
        catalog, spec = by_config(config)
        program = Stored(catalog.program(spec))
        sizes = sizes_of(program, config)
        small = kept(program, config)
        assert sizes_of(program, small) == sizes, name
        if any(sizes_of(program, item.config) == sizes for item in published(find_spec(spec)) if item.name.startswith("pub-")):
            continue
        cited = KNOWN[name].get("source", "").replace(":", ", ", 1)
        table = KNOWN[name].get("table", "").replace(":", ", ", 1)
        source = f"the config.json in {cited}" if cited else f"{table}, written as a config.json" if table else WRITTEN_ANEW
        reference = next(one for one in catalog.specs[spec]["references"] if class_name(one) == KNOWN[name]["class"])
        found.setdefault(spec, []).append({"name": name, "reference": reference, "config": small, "source": source, "parameters": KNOWN[name]["parameters"]})
    return found


def text() -> str:
    """The contents of the file."""
    return json.dumps({"schema": 1, "specs": rows()}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(shipped("specs") / FILE).write_text(text(), "utf-8")
