"""No finding about a damaged spec of the library holds the name of one of our functions, or a mark of a symbol's name."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ruamel.yaml import YAML

from symflops.cli.actions.check import findings
from symflops.read.spec_files import SpecFile
from tests.sampling import amount, sampled
from tests.shipped import ROOT
from tests.support.plain import unplain

SPECS = (
    "papers/hymba", "papers/bigbird", "papers/neighbourhood_attention", "papers/native_sparse_attention", "papers/byte_latent", "vision/swin",
    "vision/segformer", "language/llama4", "language/jamba", "diffusion/dit", "diffusion/autoencoder_kl", "audio/wav2vec2", "nn/conv1d",
)  # fmt: skip
DAMAGES = (
    "{0} + 1", "({0})//2", "ceil({0}, 3)", "min({0}, 7)", "({0}) % 5", "({0})/3", "max({0}, 2)", "{0} if {1} else 1", "({0})//{1}", "{1}",
    "{0} if {1} > 2 else {1}", "[{0}, {1}]", "range({0})",
)  # fmt: skip
FIELDS = ("width", "heads", "kv_heads", "dim", "split", "sizes", "kernel", "stride", "repeat", "shape", "choose", "sliding", "chunked", "when", "bias", "axes", "stream", "dims", "groups")


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every mapping or list with a key whose value is an expression."""
    found = []
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        found += [(tree, key)] if isinstance(value, (str, int)) and (key in FIELDS or isinstance(key, int) or tree is None) else places(value)
        if key in ("axes", "stream") and isinstance(value, dict):
            found += [(value, axis) for axis in value]
    return found


def damaged(document: dict[str, Any], rng: Random) -> dict[str, Any]:
    document = copy.deepcopy(document)
    sizes = [*document.get("sizes", {}), *document.get("derived", {})] or ["1"]
    for _ in range(rng.randint(1, 3)) if places(document) else ():
        holder, key = rng.choice(places(document))
        holder[key] = rng.choice(DAMAGES).format(holder[key], rng.choice(sizes))
    return document


@pytest.mark.drawn
@pytest.mark.parametrize("name", sampled(SPECS, 6, 1))
def test_findings_are_in_the_words_of_the_language(name: str, tmp_path: Path) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = True
    document = yaml.load((ROOT / f"{name}.yaml").read_text("utf-8"))
    told = 0
    for seed in range(amount(6, 200, 12)):
        text = io.StringIO()
        yaml.dump(damaged(document, Random(f"{name} {seed}")), text)
        (tmp_path / "spec.yaml").write_text(text.getvalue(), "utf-8")
        found = findings(SpecFile(tmp_path, tmp_path / "spec.yaml", "spec.yaml"))
        for finding in found:
            said = "\n".join((finding.message, finding.hint, finding.note, finding.label, *(label.text for label in finding.also)))
            assert not unplain(said), said
        told += len(found)
    assert told
