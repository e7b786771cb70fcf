"""Every class that transformers' auto mappings have for the model types of the shipped specs: exact, or refused.

``python -m tests.verify.auto_classes [SPEC..]`` prints a line per class, and the sums.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from symflops.api import load
from symflops.evaluate.classes import class_name
from symflops.library.catalog import catalogs
from symflops.library.lookup import by_config
from symflops.read.spec_files import find_spec
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.live import build, verify_live

EXACT, REFUSED, WRONG, UNBUILT = "exact", "refused", "WRONG", "cannot be built"


@lru_cache(maxsize=1)
def auto_classes() -> tuple[tuple[str, str, str], ...]:
    """Model type, spec of the model type, and class, for all auto mappings."""
    from transformers.models.auto import modeling_auto

    types = {kind: name for name, entry in catalogs()[-1].specs.items() for kind in entry["model_types"]}
    found: dict[tuple[str, str, str], None] = {}
    for mapping in sorted(name for name in dir(modeling_auto) if name.startswith("MODEL_") and name.endswith("MAPPING_NAMES")):
        for kind, names in getattr(modeling_auto, mapping).items():
            for name in names if isinstance(names, (tuple, list)) else (names,):
                if kind in types:
                    found.setdefault((kind, types[kind], name))
    return tuple(sorted(found))


@lru_cache(maxsize=1)
def small() -> dict[str, LiveCase]:
    """A small case per spec, its own or that of the spec that it extends."""
    return {name: next(iter(cases_of(find_spec(name))), LLAMA) for _, name, _ in auto_classes()}


LLAMA = LiveCase({"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 67,
                  "num_key_value_heads": 2}, {"text": [17, 17]})  # fmt: skip


def outcome(kind: str, spec: str, name: str) -> tuple[str, str]:
    """What an estimate of the class is, and why."""
    case = small()[spec]
    padded = {"pad_token_id": 0} if name.endswith("ForSequenceClassification") else {}  # which such a class asks for
    device = "cpu" if padded else case.device  # it looks for the padding among the tokens
    case = replace(case, config={**case.config, **padded}, device=device, reference=f"transformers.{name}")
    try:
        found = by_config({"architectures": [name], "model_type": kind})[1]
    except SymflopsError as error:
        return REFUSED, str(error)
    first = load(found).spec.references[0]
    own = next((one for one in cases_of(find_spec(found)) if class_name(one.reference or first) == name), case)
    try:
        build(case.reference, own)
    except SymflopsError as error:
        return UNBUILT, str(error)
    try:
        report = verify_live(load(found), replace(own, reference=case.reference))
    except SymflopsError as error:
        return REFUSED, str(error)
    return (EXACT, "") if report.exact else (WRONG, str(report)[:400])


def outcomes(*specs: str) -> Iterator[tuple[tuple[str, str, str], str, str]]:
    """Each class with its outcome."""
    for row in auto_classes():
        if not specs or row[1] in specs:
            yield (row, *outcome(*row))


def main(*specs: str) -> None:
    """Print a line per class."""
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for (kind, spec, name), found, why in outcomes(*specs):
        counts[found] += 1
        print(f"{kind:<28} {spec:<22} {name:<44} {found} {why[:160] if found != EXACT else ''}", flush=True)
    built = sum(counts.values()) - counts[UNBUILT]
    shares: Any = {word: f"{count} ({count / built:.1%} of those built)" for word, count in counts.items()}
    print(shares)


if __name__ == "__main__":
    main(*sys.argv[1:])
