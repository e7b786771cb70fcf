"""Rewrites files of specs and blocks in the present version of the language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from symflops.read.migration import is_document, migrated
from symflops.read.spec_files import read_source
from symflops.read.yaml_nodes import read_yaml
from symflops.support.files import write
from symflops.support.findings import SymflopsError

ENDS = (".yaml", ".yml")


def files_of(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield (YAML file, whether ``paths`` names the file itself) for the files at or below ``paths``."""
    for path in paths:
        if path.is_dir():
            yield from ((inner, False) for inner in sorted(path.rglob("*")) if inner.suffix in ENDS and inner.is_file())
        else:
            yield path, True


def migrate(path: Path, named: bool, check: bool) -> bool:
    """Rewrite one file unless ``check``; return whether it was of an older version.

    Raises:
        SpecError: it is not YAML, or of an unknown version.
        SymflopsError: it cannot be read or written, or it was ``named`` and is no spec or block.
    """
    source = read_source(path)
    if not named and "graph" not in source.text and "extends" not in source.text:
        return False
    if not is_document(read_yaml(source)):
        if named:
            raise SymflopsError(f"{path} is no spec or block: it has neither 'graph' nor 'extends'")
        return False
    text = migrated(source)
    if text != source.text and not check:
        write(path, text)
    return text != source.text
